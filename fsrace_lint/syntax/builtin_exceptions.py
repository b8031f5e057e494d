"""Which exceptions an `except` clause handles, over Python's own hierarchy."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_CLASSES: Final[Mapping[str, type[BaseException]]] = {
    name: value
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}
"""By name, aliases included: `IOError` and `EnvironmentError` are `OSError`."""


def handles(caught: Iterable[str], error: str) -> bool:
    """Whether one of some `except` clauses handles an exception.

    Args:
        caught: The names that the clauses give; those of no builtin exception handle only themselves.
        error: The name of the exception.

    Returns:
        Whether it is one of these, or derives from one.
    """
    raised = _CLASSES.get(error)
    return any(
        name == error or (raised is not None and name in _CLASSES and issubclass(raised, _CLASSES[name]))
        for name in caught
    )


def handles_any(caught: Iterable[str]) -> bool:
    """Whether one of some `except` clauses handles whatever a program raises as an error."""
    return any(_CLASSES.get(name) in {Exception, BaseException} for name in caught)


def is_os_error(name: str) -> bool:
    """Whether a name is that of `OSError`, or of an exception that derives from it."""
    return name in _CLASSES and issubclass(_CLASSES[name], OSError)
