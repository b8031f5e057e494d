"""The race explorer: runs the processes of a scenario for real, in every order that can make a difference.

Of our packages it imports `instrument` alone.
"""

from fsrace_lint.explore.errors import ExploreError, Nondeterministic
from fsrace_lint.explore.explorer import explore
from fsrace_lint.explore.result import Failing, Result

__all__ = ["ExploreError", "Failing", "Nondeterministic", "Result", "explore"]
