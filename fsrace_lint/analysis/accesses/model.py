"""Filesystem accesses and existence checks."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, Protocol

from msgspec.structs import replace

from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.analysis.dataflow.process_set import Runs
from fsrace_lint.analysis.paths.abstract_path import AbstractPath
from fsrace_lint.files.spans import Place
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.builtin_exceptions import handles
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.analysis.callgraph.concurrency import (
        ConcurrencyMarker,
        ConcurrencyTrace,
        Doubt,
    )
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.dataflow.process_set import ProcessSet
    from fsrace_lint.analysis.paths.work_items import Share
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.catalog import Op
    from fsrace_lint.files.spans import Span


class Reach(enum.Enum):
    """The processes that share a path."""

    PRIVATE = "one process"
    NODE = "the processes of one node"
    SHARED = "all processes"


ASKING: Final[frozenset[Op]] = frozenset({"probe", "list", "read"})
"""The operations that only query the filesystem. Their results can differ between processes."""

LOOKING: Final[frozenset[Op]] = frozenset({"probe", "list"})
"""The operations that check for the existence of paths."""

_DIRECTORY_TESTS: Final = frozenset({"isdir", "is_dir"})
_FILE_TESTS: Final = frozenset({"isfile", "is_file"})
_EXISTENCE_TESTS: Final = frozenset({"exists", "lexists"})
_LINK_TESTS: Final = frozenset({"islink", "is_symlink"})
_PRESENCE_TESTS: Final = _DIRECTORY_TESTS | _EXISTENCE_TESTS
_KIND_TESTS: Final = _DIRECTORY_TESTS | _LINK_TESTS | {"access", "ismount", "is_tarfile", "is_zipfile"}


WRITING: Final = frozenset("waxcn+")
"""The letters of the modes that write to a file."""


def appends(mode: str) -> bool:
    """Return whether a mode that writes leaves the content of the file."""
    return {"w", "x", "n"}.isdisjoint(mode)


class Operation(Record, frozen=True):
    """The operation of one call: what it does, and to which path.

    Attributes:
        op: The kind of operation.
        path: The expression for the path.
        api: The name of the called function in the catalog.
        tolerant: Whether it accepts the result of another process.
        appends: Whether it appends to a file without truncating it.
        truncates: Whether it truncates the file.
        empty: Whether it writes nothing to the file.
        exclusive: Whether it fails if the path exists.
        atomic: Whether the result appears atomically.
        synchronized: Whether concurrent calls by multiple processes are safe.
        skips: Whether it does nothing if the result exists.
        only: The scope in which only rank 0 runs it, even if all ranks call it.
        condition: The expression that decides whether this process runs it.
        target: The new path of a rename.
        tree: Whether it copies or deletes a directory with its whole content.
        mode: The expression for the mode of a file, if callers can pass it.
        saves_model: Whether it saves the weights of a model, or the state of a run.
    """

    op: Op
    path: m.Expr
    api: str
    tolerant: bool
    appends: bool = False
    truncates: bool = False
    empty: bool = False
    exclusive: bool = False
    atomic: bool = False
    synchronized: bool = False
    skips: bool = False
    only: str | None = None
    condition: m.Expr | None = None
    target: m.Expr | None = None
    tree: bool = False
    mode: m.Expr | None = None
    saves_model: bool = False

    def opened_with(self, mode: str) -> Operation | None:
        """Return the operation with a mode that a caller passes, or None if the mode is only for reading."""
        if WRITING.isdisjoint(mode):
            return None
        exclusive = self.exclusive or "x" in mode
        return replace(self, appends=appends(mode), truncates="w" in mode, exclusive=exclusive)

    @property
    def spares_what_was_there(self) -> bool:
        """Whether a concurrent reader never sees existing content truncated or partly overwritten."""
        return self.appends or self.exclusive or self.atomic or self.synchronized


class AtCall:
    """Mixin for results that are reported at a call site."""

    __slots__ = ()

    call_site: CallSite

    @property
    def span(self) -> Span:
        """The span of the call."""
        return self.call_site.call.span

    @property
    def file(self) -> str:
        """The path of the file that contains the call, as reported."""
        return self.call_site.function.module.path

    @property
    def function(self) -> str:
        """The qualified name of the function that contains the call."""
        return self.call_site.function.facts.qualname

    @property
    def callee(self) -> str:
        """The called function, as spelled in the source."""
        return spell(self.call_site.call.function)

    @property
    def source(self) -> str:
        """The call, as spelled in the source."""
        return spell(self.call_site.call)

    @property
    def display(self) -> str:
        """The call, as shown in an interleaving."""
        return self.source


class AccessContext(Protocol):
    """The context of an access: processes, handlers, locks, and callers."""

    @property
    def own(self) -> ProcessSet:
        """The processes that get from the call site to the operation, without restrictions by callers."""

    @property
    def runs(self) -> Runs:
        """Which processes run the operation, with restrictions by all callers."""

    @property
    def caught(self) -> frozenset[str]:
        """The names of the exceptions that are handled around the access."""

    @property
    def locked(self) -> bool:
        """Whether an interprocess lock is held that excludes other processes."""

    @property
    def broken_locks(self) -> tuple[Access, ...]:
        """What breaks the locks that are held, if none of them works."""

    @property
    def serialized_by(self) -> str | None:
        """The scope whose rank 0 runs the access before the other ranks, or None."""

    @property
    def reach(self) -> Reach:
        """The processes that share the path."""

    @property
    def certain(self) -> bool:
        """Whether the reach is certain, and no setting decides whether all ranks run the access."""

    @property
    def is_opened(self) -> bool:
        """Whether a setting decides if all ranks run the access."""

    @property
    def share(self) -> Share:
        """Which processes have the same path, as far as the work is divided among them."""

    def is_off_by_default(self, call_sites: Iterable[CallSite], /) -> bool:
        """Whether several processes come to one path by a call chain only if a setting says so."""

    @property
    def trace(self) -> ConcurrencyTrace:
        """The call chain by which multiple processes reach the function of the call site."""


class Access(AtCall, Record, frozen=True, eq=False):
    """One filesystem access and its context.

    Attributes:
        operation: The operation.
        call_site: The call at which the access is reported.
        leaf_call: The call that runs the operation. It differs from `call_site` if functions of the project
            pass the path on.
        path: The normalized path, or None if it is unknown.
        path_source: The path, as spelled in the source.
        context: The context. It is computed on demand, because it depends on all callers.
        fixed_here: Whether the access is reported in this function although callers pass a part of its path.
        callers: The callers that were checked, if `fixed_here` is set for them.
        sure: If not None, replaces `certain` of the context.
        shown: If not None, replaces `trace` of the context.
        claimed_by: The earlier access that leaves nothing to race for.
        callee_access: The same access in the function that `call_site` calls, or None if `call_site` is
            the leaf call.
    """

    operation: Operation
    call_site: CallSite
    leaf_call: CallSite
    path: AbstractPath | None
    path_source: str
    context: AccessContext
    fixed_here: bool = False
    callers: tuple[CallSite, ...] = ()
    sure: bool | None = None
    shown: ConcurrencyTrace | None = None
    claimed_by: Access | None = None
    callee_access: Access | None = None

    @property
    def trace(self) -> ConcurrencyTrace:
        """The call chain by which multiple processes reach the function of `call_site`."""
        return self.context.trace if self.shown is None else self.shown

    @property
    def op(self) -> Op:
        """The kind of operation."""
        return self.operation.op

    @property
    def caught(self) -> frozenset[str]:
        """The names of the exceptions that are handled around the access."""
        return self.context.caught

    @property
    def locked(self) -> bool:
        """Whether an interprocess lock is held that excludes other processes."""
        return self.context.locked

    @property
    def broken_locks(self) -> tuple[Access, ...]:
        """What breaks the locks that are held, if none of them works."""
        return self.context.broken_locks

    @property
    def serialized_by(self) -> str | None:
        """The scope whose rank 0 runs the access before the other ranks, or None."""
        return self.context.serialized_by

    @property
    def own(self) -> ProcessSet:
        """The processes that get from `call_site` to `leaf_call`, without restrictions by callers."""
        return self.context.own

    @property
    def runs(self) -> Runs:
        """Which processes run the access, with restrictions by all callers."""
        return self.context.runs

    @property
    def reach(self) -> Reach:
        """The processes that share the path."""
        return self.context.reach

    @property
    def certain(self) -> bool:
        """Whether the reach is certain, and no setting decides whether all ranks run the access."""
        return self.context.certain if self.sure is None else self.sure

    @property
    def is_surely_shared(self) -> bool:
        """Whether multiple processes certainly share the path.

        If ranks are certainly started, a literal file name in an unknown directory is enough.
        """
        if self.certain or self.path is None or self.evidence is not Evidence.EVIDENT:
            return self.certain
        is_divided = self.path.rank_dependent or self.path.has_work_item
        return self.path.has_literal_name and not is_divided and not self.context.is_opened

    @property
    def share(self) -> Share:
        """Which processes have the same path, as far as the work is divided among them."""
        return self.context.share

    @property
    def is_off_by_default(self) -> bool:
        """Whether several processes come to one path only if a setting says so."""
        return self.context.is_off_by_default((*self.inlined_chain, *self.call_chain))

    @property
    def evidence(self) -> Evidence:
        """How certain it is that multiple processes run the access."""
        return self.trace.evidence

    @property
    def call_chain(self) -> tuple[CallSite, ...]:
        """The calls by which multiple processes reach the function of `call_site`, nearest first."""
        return self.trace.call_chain

    @property
    def marker(self) -> ConcurrencyMarker | None:
        """The evidence of multiple processes at the end of the call chain."""
        return self.trace.marker

    @property
    def doubt(self) -> Doubt:
        """Why the call chain is not certain."""
        return self.trace.doubt

    @property
    def inlined_chain(self) -> tuple[CallSite, ...]:
        """The calls from `call_site` to `leaf_call`, including both."""
        return (
            (self.call_site,)
            if self.callee_access is None
            else (self.call_site, *self.callee_access.inlined_chain)
        )

    @property
    def leaf_access(self) -> Access:
        """The same access in the function that contains `leaf_call`."""
        return self if self.callee_access is None else self.callee_access.leaf_access

    @property
    def differs_in_folder(self) -> bool:
        """Whether a directory of the path differs between processes, not only the file name."""
        components = self.path.components if self.path is not None else ()
        folders = components if self.operation.op == "mkdir" else components[:-1]
        return AbstractPath(folders).rank_dependent

    @property
    def is_contended(self) -> bool:
        """Whether multiple processes can run the access at the same time, on one path and without a lock."""
        if self.operation.synchronized or self.claimed_by is not None:
            return False
        return self.runs_several and self.is_shared and not self.locked

    @property
    def runs_several(self) -> bool:
        """Whether multiple processes of a node can run the access."""
        return self.runs in {Runs.MANY, Runs.OTHERS, Runs.PER_GROUP}

    @property
    def is_shared(self) -> bool:
        """Whether multiple processes share the path."""
        return self.reach is not Reach.PRIVATE

    @property
    def place(self) -> Place:
        """The place of the call."""
        return Place(self.file, self.span)

    @property
    def can_be_made_twice(self) -> bool:
        """Whether multiple processes can create the path at the same time, and one fails or corrupts it."""
        operation = self.operation
        if operation.atomic or not self.is_contended or self.is_serialized:
            return False
        if operation.op in {"write", "copy"}:
            return not operation.exclusive and not operation.tolerant
        fails = not self.tolerates("FileExistsError")
        return fails if operation.op == "link" else operation.tree and (fails or operation.tolerant)

    @property
    def is_private(self) -> bool:
        """Whether each process has its own path."""
        return self.reach is Reach.PRIVATE

    @property
    def is_one_of_group(self) -> bool:
        """Whether one process of each process group runs the access."""
        return self.runs is Runs.PER_GROUP

    @property
    def display(self) -> str:
        """The call, as shown in an interleaving."""
        if self.call_site is not self.leaf_call:
            return self.source
        arguments = self.call_site.call.arguments
        if isinstance(self.call_site.call.function, m.Attribute) and self.path_source == spell(
            self.call_site.call.function.value
        ):
            return f"{self.callee}()"
        passed = (*arguments, *(keyword.value for keyword in self.call_site.call.keywords))
        if not any(self.path_source in spell(each) for each in passed):
            return self.source
        first = bool(arguments) and spell(arguments[0]) == self.path_source
        return f"{self.callee}({'' if first else '..., '}{self.path_source})"

    @property
    def is_surely_a_path(self) -> bool:
        """Whether the API is known, and not only matched by the name of a method."""
        return not self.operation.api.startswith("*.")

    @property
    def is_repeated(self) -> bool:
        """Whether a loop runs the access with the same path in each round."""
        symbols = () if self.path is None else self.path.variables()
        return bool(self.call_site.loops) and all(symbol.parameter for symbol in symbols)

    @property
    def is_serialized(self) -> bool:
        """Whether rank 0 finishes the access first, so that the checks of the other ranks see the result."""
        return self.serialized_by is not None

    @property
    def is_shared_by_nodes(self) -> bool:
        """Whether processes on different nodes share the path."""
        return self.reach is Reach.SHARED

    def comes_after(self, other: Access) -> bool:
        """Return whether the access follows another one in the source, possibly both in the same callee."""
        if self.call_site is not other.call_site:
            return self.span > other.span
        one, two = self.leaf_call, other.leaf_call
        return one.function is two.function and one.call.span > two.call.span

    def handles(self, error: str) -> bool:
        """Return whether an exception is handled around the access."""
        return handles(self.caught, error)

    def tolerates(self, error: str) -> bool:
        """Return whether losing the race is harmless: the operation is tolerant, or `error` is handled."""
        return self.operation.tolerant or self.handles(error)


class OpenFile(Record, frozen=True, eq=False):
    """A call that opens a file, and its operation."""

    call: m.Call
    operation: Operation
    scope: Environment


class ExistenceCheck(Record, frozen=True, eq=False):
    """An existence check whose result leads to an access.

    Attributes:
        span: The span of the check.
        path_source: The check, as spelled in the source.
        path: The checked path.
        found_missing: Whether the check found the path missing.
        other_branch_exit: How the other branch leaves the code, or empty if it does not.
        is_whole_test: Whether the branch tests nothing else.
        guards_only_the_site: Whether the branch contains only the access and has no `else`.
        is_implied: Whether the outcome of the whole test implies the result of the check.
        asks: The last name of the called function.
        answer: The result, as shown in an interleaving.
    """

    span: Span
    path_source: str
    path: AbstractPath
    found_missing: bool
    other_branch_exit: str
    is_whole_test: bool
    guards_only_the_site: bool
    is_implied: bool
    asks: str
    answer: str

    @property
    def refuses(self) -> bool:
        """Whether the other branch raises an exception or exits."""
        return self.other_branch_exit in {"raise", "exit"}

    @property
    def asks_presence(self) -> bool:
        """Whether the check asks for the existence of a path or a directory."""
        return self.asks in _PRESENCE_TESTS

    @property
    def asks_existence(self) -> bool:
        """Whether the check asks for the existence of a path of any kind."""
        return self.asks in _EXISTENCE_TESTS

    @property
    def asks_directory(self) -> bool:
        """Whether the check asks for a directory."""
        return self.asks in _DIRECTORY_TESTS

    @property
    def asks_file(self) -> bool:
        """Whether the check asks for a regular file."""
        return self.asks in _FILE_TESTS

    @property
    def has_trailing_slash(self) -> bool:
        """Whether the checked path is spelled with a slash at the end, so that it cannot be a file."""
        return self.path_source.rstrip("'\")").endswith("/")

    @property
    def asks_kind(self) -> bool:
        """Whether the check asks for a kind of file, so that it can be false for an existing path."""
        return self.asks in _KIND_TESTS
