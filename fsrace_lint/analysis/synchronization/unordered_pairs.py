"""Acts of different processes on one path with nothing in between that orders them."""

from __future__ import annotations

import itertools
from bisect import bisect
from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from fsrace_lint.analysis.dataflow.abstract_state import mutually_exclusive
from fsrace_lint.analysis.dataflow.process_set import BOTTOM, TOP, ProcessSet, Runs, runs
from fsrace_lint.syntax.builtin_exceptions import handles
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fsrace_lint.analysis.dataflow.abstract_state import PathCondition as Tested
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath, Component
    from fsrace_lint.analysis.synchronization.event_sequences import EventSequences, SequenceItem
    from fsrace_lint.catalog import Op
    from fsrace_lint.files.spans import Span
    from fsrace_lint.program.modules import LinkedFunction

_MAKING: Final[frozenset[Op]] = frozenset(
    {"write", "create", "mkdir", "copy", "rename", "link", "extract", "download"}
)
_USING: Final[frozenset[Op]] = frozenset({"read", "list"})
_ONE: Final = frozenset({Runs.ONE, Runs.PER_NODE})

_LEAVING: Final = frozenset({"raise", "exit"})

Kind = Literal[
    "write-read", "delete-use", "use-delete", "write-gather", "make-delete", "make-refuse", "check-make"
]


class UnorderedPair(Record, frozen=True):
    """Two acts of different processes that nothing orders, the one that is meant to be first.

    `write-read`: one makes what the others use; `delete-use`: one deletes where the others
    then make or use something; `use-delete`: one deletes what the others still use;
    `write-gather`: one reads what all have written; `make-delete`: one makes what others
    may still delete; `make-refuse`: one makes what others, who may still look, raise for;
    `check-make`: one may still look, and raise for what others make.
    `certain` says that those who come to the second act may come from the first;
    `guard` is the rank test of the branch around the one's act, the outermost.
    """

    kind: Kind
    before: SequenceItem
    after: SequenceItem
    certain: bool = True
    guard: Span | None = None

    @property
    def alone(self) -> SequenceItem:
        """The act of the one."""
        return self.before if self.kind in _FIRST_ALONE else self.after

    @property
    def shared(self) -> SequenceItem:
        """The act of the others."""
        return self.after if self.kind in _FIRST_ALONE else self.before

    @property
    def path(self) -> str:
        """The path of the one, as the source spells it."""
        return "" if self.alone.path is None else self.alone.path.text


_OF_FILES: Final = frozenset({"isfile", "is_file"})
"""Tests that find no folder."""
_FIRST_ALONE: Final[frozenset[Kind]] = frozenset({"write-read", "delete-use", "check-make"})


class UnorderedPairs:
    """Finds such acts in the sequences of functions."""

    def __init__(self, sequences: EventSequences) -> None:
        """Prepare for a project; nothing is followed yet."""
        self.sequences = sequences
        self.entry_states = sequences.entry_states
        self.taint = sequences.taint

    def of(self, function: LinkedFunction) -> Iterator[UnorderedPair]:
        """Give the unordered acts of a function, the first use of each that one process does alone."""
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
                    yield pair
                    break

    def _conflict(
        self, step: SequenceItem, later: SequenceItem, here: AbstractPath, there: AbstractPath
    ) -> UnorderedPair | None:
        """Tell how two acts are at odds, if one process does one of them, and others the other."""
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
        """Give the outermost rank test in the function whose branch holds the act of the one."""
        for literal in alone.call_site.state.conditions:
            if literal.branch is not None and not literal.exit and self._tells_ranks(literal):
                return literal.branch.span
        return None

    def _refused(self, step: SequenceItem, later: SequenceItem, made: AbstractPath) -> Kind | None:
        """Tell whether a test leaves the function where it finds what a later act makes."""
        if later.op not in _MAKING or made.rank_dependent:
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
        """Tell whether one of those that enter does the one act alone, and others the other at any time."""
        one, many = pair.alone, pair.shared
        others = many.processes & ~one.processes & entering
        if not _is_of_one(one) or others == BOTTOM or not one.processes & entering:
            return False
        return one.serialized_by is None and many.serialized_by is None and not (one.held and many.held)

    def _tells_ranks(self, literal: Tested) -> bool:
        difference = self.taint.of_test(literal)
        return difference is not None and difference.kind == "rank"

    def _is_tolerant(self, pair: UnorderedPair) -> bool:
        """Tell whether the others accept that nothing is there."""
        caught = self.entry_states.protection.caught(pair.shared.call_site)
        return pair.kind not in {"make-delete", "make-refuse", "check-make"} and handles(
            caught, "FileNotFoundError"
        )

    def _is_ordered(self, steps: Sequence[SequenceItem], first: int, last: int) -> bool:
        """Tell whether the processes of two steps meet in between.

        Those of the first act meet after it, and those of the second before it, in one
        call or in two of the same kind for one each (`if rank != 0: barrier()`), of which
        one may be left after it. After a test that leaves, those that stay are enough.
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
        return self._meet_apart(steps, first, last)

    def _meet_apart(self, steps: Sequence[SequenceItem], first: int, last: int) -> bool:
        """Tell whether those of two steps meet in between in two calls of a kind, each in one of them."""
        wanted = steps[first].processes | steps[last].processes
        sync_points = [s for s in steps[first:last] if self._synchronizes(s, steps[first], BOTTOM)]
        return any(
            one.sync_point == other.sync_point
            and not wanted & ~(one.processes | other.processes)
            and mutually_exclusive(one.call_site.state.conditions, other.call_site.state.conditions)
            for one, other in itertools.combinations(sync_points, 2)
        )

    def _synchronizes(self, sync_point: SequenceItem, step: SequenceItem, processes: ProcessSet) -> bool:
        """Tell whether some processes wait in a call for the others, whatever they find on the filesystem.

        Who dies on the way there does nothing any more.
        """
        if not sync_point.sync_point or sync_point.processes & processes != processes:
            return False
        tested = (x for x in sync_point.call_site.state.conditions if x not in step.conditions)
        own = [literal for literal in tested if literal.exit not in {"raise", "exit"}]
        differences = (self.taint.of_test(literal) for literal in own)
        return all(d is None or d.kind == "rank" for d in differences)


def _heads(paths: Mapping[int, AbstractPath]) -> dict[int, int]:
    """Number what paths begin with, 0 for what `_kind` may hold against a path that begins otherwise."""
    numbers: dict[tuple[Component, ...], int] = {}
    return {
        step: 0 if _fits_any(path) else numbers.setdefault(path.components[:1], len(numbers) + 1)
        for step, path in paths.items()
    }


def _fits_any(path: AbstractPath) -> bool:
    """Tell whether it is the current folder, the folder of some path, or one part that differs by rank."""
    return path.is_some_parent or not path.components or (len(path.components) == 1 and path.rank_dependent)


def _kind(step: SequenceItem, later: SequenceItem, here: AbstractPath, there: AbstractPath) -> Kind | None:
    """Tell how two acts in a row are at odds by what they do at two paths, whoever does them."""
    op, then = step.op, later.op
    if here.rank_dependent:
        gathers = op in _MAKING and then in _USING and not there.rank_dependent
        return "write-gather" if gathers and (here.is_within(there) or _are_alike(here, there)) else None
    if there.rank_dependent and op not in {"mkdir", "delete"}:
        return None
    below, around = there.is_within(here), here.is_within(there) or there.is_parent_of(here)
    if op in _MAKING and then in _USING and (below or (then == "list" and there.is_parent_of(here))):
        shared: Kind | None = None if _has_made_it_too(step, later) else "write-gather"
        return "write-read" if _is_of_one(step) else shared
    if op == "mkdir" and then in _MAKING - {"mkdir"} and below and here != there:
        return "write-read"
    if op == "delete" and then in _MAKING | _USING and below:
        return (
            "delete-use" if _is_of_one(step) else "make-delete" if then in _MAKING and here == there else None
        )
    if then == "delete" and around:
        return "use-delete" if op in _MAKING | {"read"} or (op == "delete" and here != there) else None
    return None


def _has_made_it_too(step: SequenceItem, later: SequenceItem) -> bool:
    """Tell whether all make a folder, who looks into it among them: what others make there is the same."""
    return step.op == "mkdir" and not later.processes & ~step.processes


def _are_alike(own: AbstractPath, other: AbstractPath) -> bool:
    """Tell whether two paths differ only in what stands for a number: the part of one rank, and of any."""
    if own.components[:-1] != other.components[:-1] or not own.components or not other.components:
        return False
    last = own.components[-1], other.components[-1]
    texts = [[piece for piece in component if isinstance(piece, str)] for component in last]
    return texts[0] == texts[1] != []


def _is_of_one(step: SequenceItem) -> bool:
    """Tell whether one process of the job or of each node does it, by a test there."""
    return step.operation is not None and step.processes not in {BOTTOM, TOP} and runs(step.processes) in _ONE
