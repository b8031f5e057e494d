"""The race explorer: runs real processes in every distinct interleaving of their filesystem calls.

It imports no other package of fsrace-lint than `instrument`.
"""

from fsrace_lint.explore.errors import ExploreError, Nondeterministic, ScenarioError
from fsrace_lint.explore.exploration_result import Coverage, FailingSchedule, Result, as_data
from fsrace_lint.explore.explorer import explore

__all__ = [
    "Coverage",
    "ExploreError",
    "FailingSchedule",
    "Nondeterministic",
    "Result",
    "ScenarioError",
    "as_data",
    "explore",
]
