"""Limits on the length of functions, beyond which the analysis would take too long."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fsrace_lint.syntax.expressions import Scope

MOST_STATEMENTS: Final = 50_000
MOST_TESTS: Final = 1000
"""The maximum number of tests in a function, because each operation is compared with all tests before it.

The longest functions in the standard library and in large scientific packages have 4900 statements and 320
tests.
"""
TESTS: Final = (ast.If, ast.Assert, ast.Try)
"""Statements that can end the execution of the code after them."""


class TooLongError(Exception):
    """Raised if a function is too long to be analyzed."""

    def __init__(self, scope: Scope, line: int) -> None:
        """Create the error for a function.

        Args:
            scope: The counts of the function.
            line: Its first line.
        """
        what = "module-level code" if scope.index == 0 else f"function `{scope.qualname}`"
        counts = f"{_count(scope.statements, 'statement')} and {_count(scope.tests, 'test')}"
        super().__init__(f"{what} has {counts}; the limits are {MOST_STATEMENTS} and {MOST_TESTS}")
        self.line = line


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def check_length(scope: Scope, line: int) -> None:
    """Check that a function is short enough to be analyzed.

    Args:
        scope: The counts of the function.
        line: Its first line.

    Raises:
        TooLongError: The function is too long.
    """
    if scope.statements > MOST_STATEMENTS or scope.tests > MOST_TESTS:
        raise TooLongError(scope, line)
