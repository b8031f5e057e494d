"""What is known of one act on the filesystem."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, Protocol

from fsrace_lint.analysis.dataflow.process_set import Runs
from fsrace_lint.analysis.paths.abstract_path import AbstractPath
from fsrace_lint.files.spans import Place
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.builtin_exceptions import handles
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from fsrace_lint.analysis.callgraph.concurrency import ConcurrencyMarker, ConcurrencyTrace, Evidence
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.dataflow.process_set import ProcessSet
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.catalog import Op
    from fsrace_lint.files.spans import Span


class Reach(enum.Enum):
    """Who shares a path."""

    PRIVATE = "one process"
    NODE = "the processes of one node"
    SHARED = "all processes"


ASKING: Final[frozenset[Op]] = frozenset({"probe", "list", "read"})
"""The operations that change nothing: they ask the filesystem, and their answers can differ."""

LOOKING: Final[frozenset[Op]] = frozenset({"probe", "list"})
"""Those of them that ask what is there."""

_DIRECTORY_TESTS: Final = frozenset({"isdir", "is_dir"})
_LINK_TESTS: Final = frozenset({"islink", "is_symlink"})
_PRESENCE_TESTS: Final = _DIRECTORY_TESTS | {"exists", "lexists"}
_KIND_TESTS: Final = _DIRECTORY_TESTS | _LINK_TESTS | {"access", "ismount", "is_tarfile", "is_zipfile"}


class Operation(Record, frozen=True):
    """What one call does: the operation, and the path it is done to.

    `tolerant` says that it accepts what another process did, `appends` that it
    adds to a file and takes nothing away, `truncates` that it empties it, `exclusive` that it fails where the
    path is there, `atomic` that the result appears whole or not at all,
    `synchronized` that several processes may do it at once, `skips` that it does
    nothing where the result is there. `only` is the scope
    whose first process alone does it, whoever calls; `condition` is what says
    whether this process does it; `target` the path that a rename makes; `tree`
    that it copies or removes a directory with all that is in it.
    """

    op: Op
    path: m.Expr
    api: str
    tolerant: bool
    appends: bool = False
    truncates: bool = False
    exclusive: bool = False
    atomic: bool = False
    synchronized: bool = False
    skips: bool = False
    only: str | None = None
    condition: m.Expr | None = None
    target: m.Expr | None = None
    tree: bool = False

    @property
    def spares_what_was_there(self) -> bool:
        """Whether a reader never meets half of it: nothing is taken away, or it appears whole."""
        return self.appends or self.exclusive or self.atomic or self.synchronized


class AtCall:
    """What is seen from a call, and reported there."""

    __slots__ = ()

    call_site: CallSite

    @property
    def span(self) -> Span:
        """The call."""
        return self.call_site.call.span

    @property
    def file(self) -> str:
        """The path of the file it stands in, as reported."""
        return self.call_site.function.module.path

    @property
    def function(self) -> str:
        """The qualified name of the function it stands in."""
        return self.call_site.function.facts.qualname

    @property
    def callee(self) -> str:
        """The function called, as the source spells it."""
        return spell(self.call_site.call.function)

    @property
    def source(self) -> str:
        """The call as the source spells it."""
        return spell(self.call_site.call)

    @property
    def display(self) -> str:
        """The call as a witness tells it."""
        return self.source


class AccessContext(Protocol):
    """How an act stands among the processes: what is known beyond the code around it."""

    @property
    def own(self) -> ProcessSet:
        """Who gets from the call to the act, before what the callers bring."""

    @property
    def runs(self) -> Runs:
        """Who does it, with what the callers bring."""

    @property
    def caught(self) -> frozenset[str]:
        """The exceptions that are handled around it, by name."""

    @property
    def locked(self) -> bool:
        """Whether a lock between processes is held there."""

    @property
    def serialized_by(self) -> str | None:
        """The scope whose first process is let through before the others."""

    @property
    def reach(self) -> Reach:
        """Who shares its path."""

    @property
    def certain(self) -> bool:
        """Whether neither what its path holds nor a setting can keep processes apart."""

    @property
    def trace(self) -> ConcurrencyTrace:
        """How several processes come to the function of the call it is seen from."""


class Access(AtCall, Record, frozen=True, eq=False):
    """One filesystem act with everything known about it.

    `call_site` is the call it is seen from, `leaf_call` the call that does it: another
    one where the path was handed through functions of the project. `path` is
    None where nothing is known of it, `path_source` is how the source spells it.
    `context` finds what is known beyond the code around it, and with what all callers bring.
    `fixed_here` says that it is judged here whoever calls, though callers hand over a part of its path;
    `callers` are the calls that do, and `sure` tells then whether it is certain.
    `shown` is how several processes come to it, where that is known otherwise than by its context.
    `claimed_by` is what is made before it and leaves nothing to race for. `callee_access` is the same act
    as the function that `call_site` calls has it, where that is not the call that does it.
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
        """How several processes come to the function of `call_site`."""
        return self.context.trace if self.shown is None else self.shown

    @property
    def op(self) -> Op:
        """What it does."""
        return self.operation.op

    @property
    def caught(self) -> frozenset[str]:
        """The exceptions that are handled around it, by name."""
        return self.context.caught

    @property
    def locked(self) -> bool:
        """Whether a lock between processes is held there."""
        return self.context.locked

    @property
    def serialized_by(self) -> str | None:
        """The scope whose first process is let through before the others."""
        return self.context.serialized_by

    @property
    def own(self) -> ProcessSet:
        """Who gets from `call_site` to `leaf_call`, before what the callers bring."""
        return self.context.own

    @property
    def runs(self) -> Runs:
        """Who does it, with what the callers bring."""
        return self.context.runs

    @property
    def reach(self) -> Reach:
        """Who shares its path."""
        return self.context.reach

    @property
    def certain(self) -> bool:
        """Whether neither what its path holds nor a setting can keep processes apart."""
        return self.context.certain if self.sure is None else self.sure

    @property
    def evidence(self) -> Evidence:
        """How sure it is that several processes run it at all."""
        return self.trace.evidence

    @property
    def call_chain(self) -> tuple[CallSite, ...]:
        """How several processes come to the function of `call_site`: the calls, nearest first."""
        return self.trace.call_chain

    @property
    def marker(self) -> ConcurrencyMarker | None:
        """What shows at the end of that way that they do."""
        return self.trace.marker

    @property
    def inlined_chain(self) -> tuple[CallSite, ...]:
        """The calls that lead from where it is seen to the one that does it, both among them."""
        return (
            (self.call_site,)
            if self.callee_access is None
            else (self.call_site, *self.callee_access.inlined_chain)
        )

    @property
    def leaf_access(self) -> Access:
        """The act as the function has it that does it."""
        return self if self.callee_access is None else self.callee_access.leaf_access

    @property
    def differs_in_folder(self) -> bool:
        """Whether what differs from process to process names a folder, not only a file in it."""
        components = self.path.components if self.path is not None else ()
        folders = components if self.operation.op == "mkdir" else components[:-1]
        return AbstractPath(folders).rank_dependent

    @property
    def is_contended(self) -> bool:
        """Whether several processes can be here at once, at one path, and nothing holds them apart."""
        if self.operation.synchronized or self.claimed_by is not None:
            return False
        return self.runs_several and self.is_shared and not self.locked

    @property
    def runs_several(self) -> bool:
        """Whether several processes of a node can be here at once."""
        return self.runs in {Runs.MANY, Runs.OTHERS, Runs.PER_GROUP}

    @property
    def is_shared(self) -> bool:
        """Whether several processes have this path."""
        return self.reach is not Reach.PRIVATE

    @property
    def place(self) -> Place:
        """Where the call stands."""
        return Place(self.file, self.span)

    @property
    def can_be_made_twice(self) -> bool:
        """Whether several processes can make this file, link or tree at once, and one fails or spoils it."""
        operation = self.operation
        if operation.atomic or not self.is_contended or self.is_serialized:
            return False
        if operation.op in {"write", "copy"}:
            return not operation.exclusive and not operation.tolerant
        fails = not self.tolerates("FileExistsError")
        return fails if operation.op == "link" else operation.tree and (fails or operation.tolerant)

    @property
    def is_private(self) -> bool:
        """Whether each process has a path of its own."""
        return self.reach is Reach.PRIVATE

    @property
    def is_one_of_group(self) -> bool:
        """Whether one process of each group runs it, which is one of the job where there is one group."""
        return self.runs is Runs.PER_GROUP

    @property
    def display(self) -> str:
        """The call as a witness tells it."""
        if self.call_site is not self.leaf_call:
            return self.source
        arguments = self.call_site.call.arguments
        if isinstance(self.call_site.call.function, m.Attribute) and self.path_source == spell(
            self.call_site.call.function.value
        ):
            return f"{self.callee}()"
        first = bool(arguments) and spell(arguments[0]) == self.path_source
        return f"{self.callee}({'' if first else '..., '}{self.path_source})"

    @property
    def destination(self) -> str:
        """The path, in words where it is the current directory."""
        return "the current directory" if self.path_source == "'.'" else self.path_source

    @property
    def is_surely_a_path(self) -> bool:
        """Whether the object whose method is called is known to be a path."""
        return not self.operation.api.startswith("*.")

    @property
    def is_serialized(self) -> bool:
        """Whether the first process is done here before any other begins: its test then sees the result."""
        return self.serialized_by is not None

    @property
    def is_shared_by_nodes(self) -> bool:
        """Whether processes of different nodes share its path."""
        return self.reach is Reach.SHARED

    def comes_after(self, other: Access) -> bool:
        """Tell whether it stands behind another act, perhaps both in a function that one call leads to."""
        if self.call_site is not other.call_site:
            return self.span > other.span
        one, two = self.leaf_call, other.leaf_call
        return one.function is two.function and one.call.span > two.call.span

    def handles(self, error: str) -> bool:
        """Tell whether `error` is handled around it."""
        return handles(self.caught, error)

    def tolerates(self, error: str) -> bool:
        """Tell whether losing the race does no harm here: `error` is accepted or handled."""
        return self.operation.tolerant or self.handles(error)


class OpenFile(Record, frozen=True, eq=False):
    """A call that opens a file, and what it does to it."""

    call: m.Call
    operation: Operation
    scope: Environment


class ExistenceCheck(Record, frozen=True, eq=False):
    """An existence test whose outcome led to a site.

    `absent` says that it found the path missing; `exit` how the code was left
    where it came out otherwise (empty for a branch that does not raise). `is_whole_test` says that
    the branch tests nothing else, `guards_only_the_site` that the branch holds
    nothing but the site and has no `else`. `is_implied` says that the test cannot
    come out that way otherwise; `asks` is the last name of what was called, `answer`
    what it answered, as a witness tells it.
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
        """Whether the code is given up where it came out otherwise."""
        return self.other_branch_exit in {"raise", "exit"}

    @property
    def asks_presence(self) -> bool:
        """Whether it asks whether anything, or a directory, is there."""
        return self.asks in _PRESENCE_TESTS

    @property
    def asks_kind(self) -> bool:
        """Whether it asks what is there, so that it can be false of something that is."""
        return self.asks in _KIND_TESTS
