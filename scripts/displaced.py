"""Runs the program as if its objects were in other places of memory.

    python scripts/displaced.py SALT check [OPTION]... [PATH]...

What is told apart by identity hashes otherwise for each salt: a set of such objects has another order.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from fsrace_lint import rules
from fsrace_lint.cli.main import main
from fsrace_lint.program.modules import LinkedClass, LinkedFunction, Module
from fsrace_lint.syntax.identity import Identity
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def by_identity() -> Iterator[type]:
    """Give the classes of the project room whose objects are equal to themselves alone."""
    rules.load()
    yield from (LinkedFunction, LinkedClass, Module)
    waiting: list[type[Record]] = [Record]
    while waiting:
        here = waiting.pop()
        waiting += here.__subclasses__()
        own = any("__hash__" in vars(base) or "__eq__" in vars(base) for base in here.__mro__[:-2])
        if not here.__struct_config__.eq and not own:
            yield here


def salted(salt: int) -> Callable[[Any], int]:
    """Give a hash by identity that is another one for each salt."""
    return lambda one: ((id(one) >> 4) * 2_654_435_761 ^ salt * 0x9E3779B97F4A7C15) & 0x7FFFFFFFFFFF


if __name__ == "__main__":
    found = salted(int(sys.argv.pop(1)))

    def by_object(one: Identity[object]) -> int:
        """Give that of the object that is meant."""
        return found(one.of)

    Identity.__hash__ = by_object  # type: ignore[assignment,method-assign]
    for each in by_identity():
        each.__hash__ = found  # type: ignore[assignment,method-assign]  # in place of the address
    main()
