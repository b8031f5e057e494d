"""How much of a file can be followed: more would take for ever."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fsrace_lint.syntax.expressions import Scope

MOST_STATEMENTS: Final = 50_000
MOST_TESTS: Final = 1000
"""Each act in a function is compared with all that was tested before it.

The longest functions in the standard library and in the large scientific packages have 4900
statements, and 320 tests.
"""
TESTS: Final = (ast.If, ast.Assert, ast.Try)
"""What can end the way to the statements after it."""


class TooLongError(Exception):
    """A function is too long to be followed."""

    def __init__(self, scope: Scope, line: int) -> None:
        """Say which, and where it begins."""
        what = "the code of the file" if scope.index == 0 else f"the function {scope.qualname}"
        counts = f"{scope.statements} statements and {scope.tests} tests"
        most = f"{MOST_STATEMENTS} and {MOST_TESTS}"
        super().__init__(f"is not analyzed: {what} has {counts}, more than the {most} that can be followed")
        self.line = line


def check_length(scope: Scope, line: int) -> None:
    """Look whether a function can be followed.

    Args:
        scope: What was gathered about it.
        line: Where it begins.

    Raises:
        TooLongError: It is too long.
    """
    if scope.statements > MOST_STATEMENTS or scope.tests > MOST_TESTS:
        raise TooLongError(scope, line)
