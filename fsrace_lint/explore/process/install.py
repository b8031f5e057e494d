"""Installs the gate before all intercepted calls of this process, and removes it."""

from __future__ import annotations

import contextlib
import copyreg
import datetime
from typing import TYPE_CHECKING

from fsrace_lint.explore.process.clock import Clock, reduced
from fsrace_lint.explore.process.gate import Gate
from fsrace_lint.explore.process.proc_files import ProcFiles
from fsrace_lint.explore.process.process_calls import ProcessCalls
from fsrace_lint.explore.process.restrictions import Restrictions
from fsrace_lint.instrument.opaque_calls import OpaqueCalls
from fsrace_lint.instrument.patching import replaced, replacements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.instrument.tree_watch import TreeWatch

_datetime = datetime.datetime


@contextlib.contextmanager
def installed(start: float, top: str, watch: TreeWatch) -> Iterator[Gate]:
    """Replace every intercepted call in all loaded modules; in this process, the calls still pass.

    Args:
        start: The wall clock of the processes at their start.
        top: The directory below which their calls stop.
        watch: Reports changes of this directory.

    Yields:
        The gate, where calls stop in a process that begins it.
    """
    gate = Gate(start, top, watch)
    table = replacements(gate, gate.files)
    gate.rescan = OpaqueCalls(gate, gate.files).replace_late
    table |= Clock(gate).replacements() | Restrictions(gate, table).replacements()
    table |= ProcessCalls(gate).replacements() | ProcFiles(gate, table).replacements()
    # C code creates `datetime` objects of the original class
    copyreg.dispatch_table[_datetime] = reduced
    try:
        with replaced(table, exempt=("fsrace_lint.explore",)) as fixed:
            gate.captured = fixed
            yield gate
    finally:
        copyreg.dispatch_table.pop(_datetime, None)
