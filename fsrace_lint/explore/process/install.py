"""Puts the gate before all calls of this process that are to stop, and takes it away again."""

from __future__ import annotations

import contextlib
import copyreg
import datetime
from typing import TYPE_CHECKING

from fsrace_lint.explore.process.clock import Clock, reduced
from fsrace_lint.explore.process.gate import Gate
from fsrace_lint.explore.process.restrictions import Restrictions
from fsrace_lint.instrument.patching import replaced, replacements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_datetime = datetime.datetime


@contextlib.contextmanager
def installed(start: float, top: str, function: Callable[..., object]) -> Iterator[Gate]:
    """Replace every call that is to stop, in all loaded modules; in this process they still go through.

    Args:
        start: The wall clock of the processes at their start.
        top: The folder below which their calls are to stop.
        function: What they run: calls that it has captured are replaced too.

    Yields:
        Where the calls will stop, in a process that begins it.
    """
    gate = Gate(start, top)
    table = replacements(gate, gate.files)
    table |= Clock(gate).replacements() | Restrictions(gate, table).replacements()
    # moments that C code makes are of the class as it was
    copyreg.dispatch_table[_datetime] = reduced
    try:
        with replaced(table, function, exempt=("fsrace_lint.explore",)):
            yield gate
    finally:
        copyreg.dispatch_table.pop(_datetime, None)
