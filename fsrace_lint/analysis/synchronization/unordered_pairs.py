"""Accesses to one path by different processes, with no sync point in between."""

from __future__ import annotations

import itertools
from bisect import bisect
from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.confidence import Confidence
from fsrace_lint.analysis.dataflow.abstract_state import mutually_exclusive
from fsrace_lint.analysis.dataflow.process_set import BOTTOM, TOP, ProcessSet, Runs, runs
from fsrace_lint.analysis.synchronization.awaited import MAKING, AwaitedAccesses, are_alike
from fsrace_lint.analysis.synchronization.order_doubts import OrderDoubts
from fsrace_lint.syntax.builtin_exceptions import handles
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fsrace_lint.analysis.dataflow.abstract_state import PathCondition as Tested
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath, Component
    from fsrace_lint.analysis.synchronization.event_sequences import EventSequences, SequenceItem
    from fsrace_lint.analysis.synchronization.polling import Polling
    from fsrace_lint.catalog import Op
    from fsrace_lint.files.spans import Span
    from fsrace_lint.program.modules import LinkedFunction

_USING: Final[frozenset[Op]] = frozenset({"read", "list"})
_ONE: Final = frozenset({Runs.ONE, Runs.PER_NODE})

_LEAVING: Final = frozenset({"raise", "exit"})

Kind = Literal[
    "write-read", "delete-use", "use-delete", "write-gather", "make-delete", "make-refuse", "check-make"
]


class UnorderedPair(Record, frozen=True):
    """Two accesses by different processes that nothing orders.

    Attributes:
        kind: The conflict. `write-read`: one process creates what the other ranks use. `delete-use`: one
            deletes a path where the other ranks then create or use something. `use-delete`: one deletes
            what the other ranks still use. `write-gather`: one reads what all have written.
            `make-delete`: one creates what the other ranks may still delete. `make-refuse`: one creates
            a path, and the other ranks raise if their check finds it. `check-make`: the check of one
            process raises if it finds what the other ranks create.
        before: The access that is intended to be first.
        after: The access that is intended to be second.
        certain: Whether ranks can reach the second access from the first.
        guard: The outermost rank check whose branch contains the access of the one process.
        at_most: The highest confidence that the code in between allows.
    """

    kind: Kind
    before: SequenceItem
    after: SequenceItem
    certain: bool = True
    guard: Span | None = None
    at_most: Confidence = Confidence.HIGH

    @property
    def alone(self) -> SequenceItem:
        """The access of the one process."""
        return self.before if self.kind in _FIRST_ALONE else self.after

    @property
    def shared(self) -> SequenceItem:
        """The access of the other processes."""
        return self.after if self.kind in _FIRST_ALONE else self.before

    @property
    def is_of_one_path(self) -> bool:
        """Whether the others use the path itself, or what the operation of the one process makes in it."""
        operation = self.alone.operation
        is_file = operation is not None and operation.op in {"copy", "write"} and not operation.tree
        return self.kind != "write-read" or not is_file or self.alone.path == self.shared.path

    @property
    def path(self) -> str:
        """The path of the one process, as in the source."""
        return "" if self.alone.path is None else self.alone.path.text


_OF_FILES: Final = frozenset({"isfile", "is_file"})
"""Checks that are false for a directory."""
_FIRST_ALONE: Final[frozenset[Kind]] = frozenset({"write-read", "delete-use", "check-make"})


class UnorderedPairs:
    """Finds unordered accesses in the event sequences of functions."""

    def __init__(self, sequences: EventSequences, polling: Polling) -> None:
        """Initialize for a project."""
        self.sequences = sequences
        self.awaited = AwaitedAccesses(sequences, polling)
        self.doubts = OrderDoubts(sequences)
        self.entry_states = sequences.entry_states
        self.taint = sequences.taint

    def of(self, function: LinkedFunction) -> Iterator[UnorderedPair]:
        """Yield the unordered accesses of a function, one pair for each first access."""
        steps = self.sequences.of(function)
        paths = {i: step.path for i, step in enumerate(steps) if step.path is not None}
        operations = list(paths)
        alone = [i for i in operations if _is_of_one(steps[i])]
        if not alone:
            return
        of_one = set(alone)
        heads = _heads(paths)
        for first in operations:
            others = operations if first in of_one else alone
            for last in others[bisect(others, first) :]:
                if heads[first] != heads[last] and heads[first] and heads[last]:
                    continue
                if steps[last].processes == steps[first].processes:
                    continue
                pair = self._conflict(steps[first], steps[last], paths[first], paths[last])
                if pair is None:
                    continue
                context = self.entry_states.entry_state(function)
                if context.first is not None:
                    return
                if not self._is_of_others(pair, context.processes):
                    continue
                if not self._is_ordered(steps, first, last):
                    is_doubtful = self.doubts.are_between(pair.before, pair.after)
                    yield replace(pair, at_most=Confidence.LOW if is_doubtful else Confidence.HIGH)
                    break

    def _conflict(
        self, step: SequenceItem, later: SequenceItem, here: AbstractPath, there: AbstractPath
    ) -> UnorderedPair | None:
        """Return how two accesses conflict if one process runs one of them and others run the other."""
        kind = None if later.call_site is step.call_site else _kind(step, later, here, there)
        if kind is None and step.op == "probe" and here == there:
            kind = self._refused(step, later, there)
        if kind is None:
            return None
        pair = UnorderedPair(kind, step, later)
        apart = [x for x in pair.alone.conditions if mutually_exclusive([x], pair.shared.conditions)]
        if not all(map(self._tells_ranks, apart)) or self._is_tolerant(pair):
            return None
        certain = not apart and (kind != "write-gather" or later.op == "read")
        return replace(pair, certain=certain, guard=self._guard(pair.alone))

    def _guard(self, alone: SequenceItem) -> Span | None:
        """Return the outermost rank check whose branch contains the access of the one process."""
        for literal in alone.call_site.state.conditions:
            if literal.branch is not None and not literal.exit and self._tells_ranks(literal):
                return literal.branch.span
        return None

    def _refused(self, step: SequenceItem, later: SequenceItem, made: AbstractPath) -> Kind | None:
        """Return the conflict if a check leaves the function when it finds what a later access creates."""
        if later.op not in MAKING or made.rank_dependent:
            return None
        tests = self.sequences.accesses.tests.among(later.call_site.state.conditions, later.call_site.call)
        makes_folder = later.op == "mkdir" or (later.operation is not None and later.operation.tree)
        refuses = (
            test
            for test in tests
            if test.span == step.span and test.found_missing and test.other_branch_exit in _LEAVING
        )
        if all(makes_folder and test.asks in _OF_FILES for test in refuses):
            return None
        return "check-make" if _is_of_one(step) else "make-refuse"

    @staticmethod
    def _is_of_others(pair: UnorderedPair, entering: ProcessSet) -> bool:
        """Return whether one process runs one access alone, and others can run the other at any time."""
        one, many = pair.alone, pair.shared
        others = many.processes & ~one.processes & entering
        if not _is_of_one(one) or others == BOTTOM or not one.processes & entering:
            return False
        return one.serialized_by is None and many.serialized_by is None and not (one.held and many.held)

    def _tells_ranks(self, literal: Tested) -> bool:
        difference = self.taint.of_test(literal)
        return difference is not None and difference.kind == "rank"

    def _is_tolerant(self, pair: UnorderedPair) -> bool:
        """Return whether the access of the other processes handles a missing path."""
        caught = self.entry_states.protection.caught(pair.shared.call_site)
        return pair.kind not in {"make-delete", "make-refuse", "check-make"} and handles(
            caught, "FileNotFoundError"
        )

    def _is_ordered(self, steps: Sequence[SequenceItem], first: int, last: int) -> bool:
        """Return whether a sync point, or a wait for the first event, orders two events.

        The ranks of the first event must reach a sync point after it, and those of the second one before it.
        This can be one call, or two matching calls on different ranks (`if rank != 0: barrier()`). After a
        check that leaves the function, only the remaining ranks need to synchronize.
        """
        step, later = steps[first], steps[last]
        if step.op == "probe":
            return any(s.sync_point and not step.processes & ~s.processes for s in steps[first:last])
        others = later.processes & ~step.processes
        after = [i for i, s in enumerate(steps) if i > first and self._synchronizes(s, step, step.processes)]
        before = [i for i, s in enumerate(steps[:last]) if self._synchronizes(s, later, others)]
        for i, j in itertools.product(after, before):
            one, other = steps[i], steps[j]
            two_sided = one.sync_point == other.sync_point and not one.processes & other.processes
            if i == j or two_sided or (i < last and j > first):
                return True
        return self._meet_apart(steps, first, last) or self.awaited.orders(steps, first, last)

    def _meet_apart(self, steps: Sequence[SequenceItem], first: int, last: int) -> bool:
        """Return whether the ranks of two events synchronize in between at two matching calls.

        Each rank reaches one of the two calls.
        """
        wanted = steps[first].processes | steps[last].processes
        sync_points = [s for s in steps[first:last] if self._synchronizes(s, steps[first], BOTTOM)]
        return any(
            one.sync_point == other.sync_point
            and not wanted & ~(one.processes | other.processes)
            and mutually_exclusive(one.call_site.state.conditions, other.call_site.state.conditions)
            for one, other in itertools.combinations(sync_points, 2)
        )

    def _synchronizes(self, sync_point: SequenceItem, step: SequenceItem, processes: ProcessSet) -> bool:
        """Return whether some ranks wait in a call for the other ranks, whatever they find on the filesystem.

        Ranks that raise before it do not matter.
        """
        if not sync_point.sync_point or sync_point.processes & processes != processes:
            return False
        tested = (x for x in sync_point.call_site.state.conditions if x not in step.conditions)
        own = [literal for literal in tested if literal.exit not in {"raise", "exit"}]
        differences = (self.taint.of_test(literal) for literal in own)
        return all(d is None or d.kind == "rank" for d in differences)


def _heads(paths: Mapping[int, AbstractPath]) -> dict[int, int]:
    """Number the first components of paths. The number is 0 if `_kind` may match paths with another start."""
    numbers: dict[tuple[Component, ...], int] = {}
    return {
        step: 0 if _fits_any(path) else numbers.setdefault(path.components[:1], len(numbers) + 1)
        for step, path in paths.items()
    }


def _fits_any(path: AbstractPath) -> bool:
    """Return whether a path is the current directory, an unresolved parent, or one rank-dependent part."""
    return path.is_some_parent or not path.components or (len(path.components) == 1 and path.rank_dependent)


def _kind(step: SequenceItem, later: SequenceItem, here: AbstractPath, there: AbstractPath) -> Kind | None:
    """Return how two consecutive accesses conflict by their operations and paths, on any ranks."""
    op, then = step.op, later.op
    if here.rank_dependent:
        gathers = op in MAKING and then in _USING and not there.rank_dependent
        return "write-gather" if gathers and (here.is_within(there) or are_alike(here, there)) else None
    if there.rank_dependent and op not in {"mkdir", "delete"}:
        return None
    below, around = there.is_within(here), here.is_within(there) or there.is_parent_of(here)
    if op in MAKING and then in _USING and (below or (then == "list" and there.is_parent_of(here))):
        shared: Kind | None = None if _has_made_it_too(step, later) else "write-gather"
        return "write-read" if _is_of_one(step) else shared
    if op == "mkdir" and then in MAKING - {"mkdir"} and below and here != there:
        return "write-read"
    if op == "delete" and then in MAKING | _USING and below:
        return (
            "delete-use" if _is_of_one(step) else "make-delete" if then in MAKING and here == there else None
        )
    if then == "delete" and around:
        return "use-delete" if op in MAKING | {"read"} or (op == "delete" and here != there) else None
    return None


def _has_made_it_too(step: SequenceItem, later: SequenceItem) -> bool:
    """Return whether every rank that reads a directory also creates it.

    The ranks then find the directory whatever the order.
    """
    return step.op == "mkdir" and not later.processes & ~step.processes


def _is_of_one(step: SequenceItem) -> bool:
    """Return whether one process of the job, or of each node, runs an access because of a rank check."""
    return step.operation is not None and step.processes not in {BOTTOM, TOP} and runs(step.processes) in _ONE
