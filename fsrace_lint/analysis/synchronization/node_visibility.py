"""Paths that the main process creates on node-local storage and processes of other nodes use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from fsrace_lint.analysis.accesses.model import ASKING, Operation, Reach
from fsrace_lint.analysis.dataflow.process_set import MAIN, Runs
from fsrace_lint.analysis.paths.purpose import Purpose, purpose
from fsrace_lint.engine.query import query
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.traversal import all_in, evaluated, within
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.accesses import Accesses
    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.synchronization.event_sequences import EventSequences, SequenceItem
    from fsrace_lint.program.modules import LinkedFunction

_NEW: Final = frozenset({"creation"})
_FETCHING: Final = frozenset({"download", "extract"})
_DEPTH_OF_DISKS: Final = 2
"""The number of components in the path of a disk, such as `/tmp`."""


class Absence(Record, frozen=True, eq=False):
    """A path that one process of the job creates, and that is missing where other processes use it.

    Attributes:
        access: The access that creates it.
        use: The access of the other processes.
        kind: `missing`: `use` runs on other nodes. `first`: the other ranks run `access` too, after the
            first process, and all processes of another node run it at once. `sent`: `access` sends the
            other ranks a path that is new on one node.
        is_known: Whether the path is known to be node-local. If False, it is only assumed, as for data
            and caches.
    """

    access: Access
    use: Access
    kind: Literal["missing", "first", "sent"] = "missing"
    is_known: bool = True


class NodeVisibility:
    """Finds paths that exist only on the first node."""

    def __init__(self, accesses: Accesses, sequences: EventSequences) -> None:
        """Initialize for a project."""
        self.accesses = accesses
        self.sequences = sequences
        self.storage = accesses.storage
        self.entry_states = accesses.entry_states

    def of(self, function: LinkedFunction) -> Iterator[Absence]:
        """Yield the paths that a function creates on one node and uses on all nodes, in source order."""
        steps = self.sequences.of(function)
        for position, step in enumerate(steps):
            is_made = step.path is not None and step.operation is not None and step.op not in ASKING
            access = self.sequences.access(step) if is_made else None
            if access is None or not self._may_be_on_a_node(access):
                continue
            use = self._use(access, steps[position + 1 :])
            is_missed = use is not None or access.op in _FETCHING or self._is_said(access)
            if not is_missed or not _is_for_one_node(access):
                continue
            is_here, known = access.call_site is access.leaf_call, access.reach is Reach.NODE
            if not (is_here if known else self._is_taken_for_local(access)):
                continue
            comes_first = access.serialized_by == "global" and access.runs is not Runs.ONE
            if comes_first and (self._is_said(access) if known else access.op in _FETCHING):
                yield Absence(access, access, "first", known)
            elif use is None or not is_here or access.runs is not Runs.ONE:
                continue
            elif not self._is_made_by_others(access, steps) and self._has_its_own(access):
                yield Absence(access, use, is_known=known)
        yield from self._sent(function)

    def _sent(self, function: LinkedFunction) -> Iterator[Absence]:
        """Yield the new paths on the disk of one node that a function sends to other processes."""
        told = set()
        for step in self.sequences.of(function):
            call, scope = step.call_site.call, step.call_site.state.scope
            if not step.sync_point or call in told:
                continue
            told.add(call)
            for value in call.arguments if self._is_for_all(call, function) else ():
                path = self.accesses.entry_states.paths.normalize(value, scope)
                own = [] if path is None else [symbol for symbol in path.variables() if symbol.rank_dependent]
                is_new = own != [] and all(symbol.local and symbol.rank_dependence == _NEW for symbol in own)
                if is_new and not self._is_one_node(function):
                    operation = Operation("name", value, spell(call.function), tolerant=False)
                    access = self.accesses.access_at(operation, step.call_site, scope)
                    yield Absence(access, access, "sent", is_known=False)

    def _is_for_all(self, call: m.Call, function: LinkedFunction) -> bool:
        """Return whether all ranks receive a value of one rank, by a broadcast or an indexed gather."""
        is_sent = last_name(call.function) in self.accesses.entry_states.rank_dependence.sources
        return is_sent or call in self._of_one(function)

    @query
    def _of_one(self, function: LinkedFunction) -> frozenset[m.Expr]:
        """Return the expressions that a function indexes with a constant."""
        exprs = (expr for statement in all_in(function.facts.body) for expr in evaluated(statement))
        items = (item for expr in exprs for item in within(expr) if isinstance(item, m.Subscript))
        return frozenset(i.value for i in items if isinstance(i.index, m.Constant))

    def _has_its_own(self, access: Access) -> bool:
        """Return whether each node has its own path.

        The settings say so, or the processes may run on multiple nodes.
        """
        return self._is_said(access) or not self._is_one_node(access.call_site.function)

    def _may_be_on_a_node(self, access: Access) -> bool:
        """Return whether a path may be node-local, by its name."""
        shared = self.accesses.contexts.shared_by(access.path, access.path_source)
        return shared is Reach.NODE or self._is_of_data(access)

    def _is_of_data(self, access: Access) -> bool:
        """Return whether a path is a cache or downloaded data, and no setting says whether nodes share it."""
        if (
            self.storage.filesystem != "auto"
            or self.storage.named(access.path, access.path_source) is not None
        ):
            return False
        texts = (access.path_source, "" if access.path is None else access.path.text, access.callee)
        is_cached = access.op in {"write", "copy"} and purpose(texts, (access.function,)) is Purpose.CACHE
        return is_cached or access.op in _FETCHING

    def _is_taken_for_local(self, access: Access) -> bool:
        """Return whether a cached or downloaded path is assumed to be node-local."""
        if access.reach is not Reach.SHARED or access.locked or not self._is_of_data(access):
            return False
        return not self._is_one_node(access.call_site.function)

    def _use(self, access: Access, after: tuple[SequenceItem, ...]) -> Access | None:
        """Return the later access with which other processes read or list what an access creates."""
        for step in after:
            if step.operation is None or step.op not in ASKING - {"probe"}:
                continue
            use = self.sequences.access(step)
            if use is not None and _needs(use, access) and self._are_others(step):
                return use
        return None

    def _is_made_by_others(self, access: Access, steps: tuple[SequenceItem, ...]) -> bool:
        """Return whether processes of other nodes also create the path."""
        made = (step for step in steps if step.operation is not None and step.op not in ASKING)
        return any(
            step.path is not None
            and access.path is not None
            and step.path.is_within(access.path)
            and self._are_others(step)
            for step in made
        )

    def _are_others(self, step: SequenceItem) -> bool:
        context = self.entry_states.entry_state(step.call_site.function)
        return bool(step.processes & context.processes & ~MAIN)

    def _is_said(self, access: Access) -> bool:
        """Return whether the settings declare the path node-local."""
        named = self.storage.named(access.path, access.path_source)
        return self.storage.filesystem == "local" if named is None else not named

    @query
    def _is_one_node(self, function: LinkedFunction) -> bool:
        """Return whether the processes of a function are started by another on the same node."""
        above = self.entry_states.upward(function, self.entry_states.callers)
        edges = (edge for caller in above for edge in self.entry_states.callers(caller))
        return any(edge.starts_several for edge in edges)


def _is_for_one_node(access: Access) -> bool:
    """Return whether one process of the job runs an access, or runs it first."""
    return (
        access.call_site is access.leaf_call if access.runs is Runs.ONE else access.serialized_by == "global"
    )


def _needs(use: Access, access: Access) -> bool:
    """Return whether a use needs what an access creates, or its parent directory.

    The parent directory does not count if it is a whole disk.
    """
    if use.path is None or access.path is None:
        return False
    folder = len(access.path.components) - 1
    is_folder = access.path.is_within(use.path) and len(use.path.components) == folder > _DEPTH_OF_DISKS
    return use.path.is_within(access.path) or is_folder
