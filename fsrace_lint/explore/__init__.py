"""The race explorer: runs the processes of a scenario for real, in every order that can make a difference.

Of our packages it imports `instrument` alone.
"""

from fsrace_lint.explore.errors import ExploreError, Nondeterministic
from fsrace_lint.explore.exploration_result import FailingSchedule, Result
from fsrace_lint.explore.explorer import explore

__all__ = ["ExploreError", "FailingSchedule", "Nondeterministic", "Result", "explore"]
