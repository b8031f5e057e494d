"""Locks, and synchronization that has no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.accesses.model import Access, AtCall, OpenFile
from fsrace_lint.analysis.callgraph.concurrency import Doubt
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from fsrace_lint.analysis.callgraph.concurrency import ConcurrencyMarker, Evidence
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.files.spans import Place


class Lock(Record, frozen=True, eq=False):
    """A call that creates or acquires an interprocess lock.

    Attributes:
        access: The call, as an access to the lock file.
        waits: Whether it waits without a timeout.
        is_marker: Whether the lock is held as long as the file exists.
        opened: The call that opened the file that is locked, if any.
        accepts_timeout: Whether the call has a parameter for a timeout.
    """

    access: Access
    waits: bool
    is_marker: bool
    opened: OpenFile | None = None
    accepts_timeout: bool = False

    @property
    def named(self) -> str:
        """The lock for a message: its file, or the function that acquires it if the file is unknown."""
        access = self.access
        return (
            f"of {access.path_source}"
            if access.operation.path is access.call_site.call.function
            else access.path_source
        )

    @property
    def is_private(self) -> bool:
        """Whether each process of a node locks a file of its own.

        The file name then depends on more than the local rank, such as the global rank or the process ID.
        """
        symbols = () if self.access.path is None else self.access.path.variables()
        return any(symbol.rank_dependent and not symbol.is_local_rank for symbol in symbols)


class Misuse(AtCall, Record, frozen=True, eq=False):
    """A call of a synchronization helper that does not synchronize.

    Attributes:
        call_site: The call.
        evidence: The evidence that multiple processes run it.
        subject: What entering the context would do, or the name of the function that was to run once.
        argument: The call whose result is passed instead of a function, as in the source.
        call_chain: The calls by which multiple processes reach it.
        marker: The evidence at the end of the call chain.
        doubt: Why the call chain is not certain.
    """

    call_site: CallSite
    evidence: Evidence
    subject: str
    argument: str = ""
    call_chain: tuple[CallSite, ...] = ()
    marker: ConcurrencyMarker | None = None
    doubt: Doubt = Doubt.NONE


class TestBeforeInit(Record, frozen=True, eq=False):
    """A rank check that is true on every rank, because the process group is not initialized yet.

    Attributes:
        access: The access that all ranks run.
        source: The check, as in the source.
        truth: The result of the check that leads to the access.
        creator: The function that initializes the process group later.
        created: The place of that call.
    """

    access: Access
    source: str
    truth: bool
    creator: str
    created: Place
