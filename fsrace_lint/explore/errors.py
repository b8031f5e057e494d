"""What can go wrong with an exploration itself, as opposed to what it finds."""

from __future__ import annotations


class ExploreError(Exception):
    """An exploration that cannot be made, or has failed itself; its text is for the user."""


class Nondeterministic(ExploreError):  # noqa: N818  # it tells what the scenario is
    """A scenario that does something else when the same schedule is run again."""
