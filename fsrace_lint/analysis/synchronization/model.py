"""Locks, and synchronization that does not do what it is there for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.accesses.model import Access, AtCall, OpenFile
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from fsrace_lint.analysis.callgraph.concurrency import ConcurrencyMarker, Evidence
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.files.spans import Place


class Lock(Record, frozen=True, eq=False):
    """A call that makes or takes a lock between processes.

    `access` is that call, as an act on the file that is the lock. `waits` says that
    nothing limits the time for which it waits, `is_marker` that it is held while the
    file is there, `opened` by which call the file was opened that is locked.
    """

    access: Access
    waits: bool
    is_marker: bool
    opened: OpenFile | None = None

    @property
    def named(self) -> str:
        """The lock for a message: by its file, or by the call that takes it and is done with it."""
        access = self.access
        return (
            f"of {access.path_source}"
            if access.operation.path is access.call_site.call.function
            else access.path_source
        )

    @property
    def is_private(self) -> bool:
        """Whether each process of a node has another name for it."""
        symbols = () if self.access.path is None else self.access.path.variables()
        return any(symbol.rank_dependent and not symbol.is_local_rank for symbol in symbols)


class Misuse(AtCall, Record, frozen=True, eq=False):
    """A call for several processes that does not do what it is there for.

    `subject` says what it would do, or names what it was to run; `argument` is the
    call whose result it is given, as the source spells it.
    """

    call_site: CallSite
    evidence: Evidence
    subject: str
    argument: str = ""
    call_chain: tuple[CallSite, ...] = ()
    marker: ConcurrencyMarker | None = None


class TestBeforeInit(Record, frozen=True, eq=False):
    """A test that is to let one process do something, and lets all, for there is no process group yet.

    `access` is what they all do, `creator` the call that creates the group, at `created`.
    """

    access: Access
    source: str
    truth: bool
    creator: str
    created: Place
