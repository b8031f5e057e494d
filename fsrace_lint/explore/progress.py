"""How far a search is, for a program that shows it."""

from __future__ import annotations

from typing import NamedTuple


class Progress(NamedTuple):
    """The state of a search between two runs.

    Attributes:
        schedules: The number of schedules that were run.
        runs: The number of runs, including incomplete runs and runs that minimize the failure.
        seconds: The time since the start.
        most: The maximum number of schedules.
        stage: What is being done: "search", "samples", or "shrink".
    """

    schedules: int
    runs: int
    seconds: float
    most: int
    stage: str
