"""The hierarchy of builtin exceptions: which ones an `except` clause handles."""

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
"""Builtin exceptions by name, including the aliases `IOError` and `EnvironmentError` of `OSError`."""


def handles(caught: Iterable[str], error: str) -> bool:
    """Return whether one of some `except` clauses handles an exception.

    Args:
        caught: The names in the clauses. The name of an exception that is not builtin handles only itself.
        error: The name of the exception.
    """
    raised = _CLASSES.get(error)
    return any(
        name == error or (raised is not None and name in _CLASSES and issubclass(raised, _CLASSES[name]))
        for name in caught
    )


def handles_any(caught: Iterable[str]) -> bool:
    """Return whether one of some `except` clauses handles every `Exception`."""
    return any(_CLASSES.get(name) in {Exception, BaseException} for name in caught)


def is_os_error(name: str) -> bool:
    """Return whether a name is that of `OSError` or of a subclass."""
    return name in _CLASSES and issubclass(_CLASSES[name], OSError)
