"""Locks, synchronization that has no effect, and collectives that some ranks skip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from fsrace_lint.analysis.accesses.confidence import Confidence
from fsrace_lint.analysis.accesses.model import Access, AtCall, OpenFile
from fsrace_lint.analysis.callgraph.concurrency import Doubt
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from fsrace_lint.analysis.callgraph.concurrency import ConcurrencyMarker, Evidence
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.synchronization.event_sequences import SequenceItem
    from fsrace_lint.analysis.synchronization.taint import RankTaint
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
        differs = any(symbol.rank_dependent and not symbol.is_local_rank for symbol in symbols)
        return differs and self.access.is_private


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


class CallSource(NamedTuple):
    """The call outside the condition whose result differs between ranks."""

    call: str
    place: Place


class Divergence(Record, frozen=True):
    """A collective that some ranks skip.

    Attributes:
        sync_point: The collective.
        how: Why ranks skip it. `branch`: it is in a branch. `exit`: it is after an exit. `loop`: it is in
            a loop whose number of iterations differs. `first`: it is in a context that one process
            enters first. `function`: only some ranks run its function. `path`: the ranks pass different
            paths.
        difference: Why the condition differs between ranks, if it is a condition.
        test: What differs between ranks. If an exception decides, the call that fails.
        place: The place of the condition.
        raises: Whether the ranks that skip the collective fail.
        certain: Whether nothing else decides.
        is_any_error: Whether the deciding exception need not be raised by a file operation.
        is_after_failure: Whether the ranks on which `test` fails are those that reach the collective.
        is_next: Whether ranks skip it only in the next iteration of a loop.
        source: The call outside the condition that makes it differ.
        later: The later collectives in the same branch, which the same ranks skip.
        at_most: The highest confidence that the cause allows.
    """

    sync_point: SequenceItem
    how: Literal["branch", "exit", "loop", "first", "function", "path"]
    difference: RankTaint | None
    test: str
    place: Place
    raises: bool = False
    certain: bool = True
    is_any_error: bool = False
    is_after_failure: bool = False
    is_next: bool = False
    source: CallSource | None = None
    later: tuple[SequenceItem, ...] = ()
    at_most: Confidence = Confidence.HIGH

    @property
    def is_by_error(self) -> bool:
        """Whether an exception decides. `test` is then the call that fails on some ranks."""
        return self.difference is not None and self.difference.kind == "error"

    @property
    def is_by_files(self) -> bool:
        """Whether the state of the filesystem, a clock, or a file error decides, not a rank check."""
        if self.difference is None or self.difference.kind == "rank":
            return False
        return self.difference.kind != "error" or not self.is_any_error
