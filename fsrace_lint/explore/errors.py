"""Errors of the explorer itself."""

from __future__ import annotations


class ExploreError(Exception):
    """The exploration cannot run, or it failed. The message is for the user."""


class ScenarioError(ExploreError):
    """The code of the scenario itself is wrong. The message includes the traceback."""


class Nondeterministic(ExploreError):  # noqa: N818  # it tells what the scenario is
    """The scenario behaves differently when the same schedule is run again."""
