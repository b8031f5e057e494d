"""The states of the disk after a power failure, and the trees after kills at other points of the same run.

Names: Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014 (ALICE); Mohan et al., "Finding
Crash-Consistency Bugs with Bounded Black-Box Crash Testing", OSDI 2018 (CrashMonkey). docs/filesystems.md
cites what filesystems promise.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.instrument.model import EVERY_FILE, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fsrace_lint.explore.running.disk_journal import DiskJournal, Step
    from fsrace_lint.explore.running.disk_tree import DiskTree

MOST_STATES: Final = 64
"""The maximum number of different states of the disk to check after one step."""
MOST_CUTS: Final = 1_000
"""The maximum number of points of one run at which all processes are killed."""
BLOCK: Final = 4096
"""A larger write is torn between two blocks of this size."""

Before = Callable[[int, int], bool]
"""Returns whether a move happens before another one, in every order of calls that commute."""


class DiskState(NamedTuple):
    """A possible state of the disk.

    Attributes:
        tree: The tree.
        lost: Returns what is not on the disk, for display.
    """

    tree: DiskTree
    lost: Callable[[], str]


class _Contents(NamedTuple):
    """Contents that an unsynced file can have on the disk; `lost` is "" if nothing is lost."""

    data: bytes
    lost: str


class PowerLoss:
    """The states of the disk if power fails after some steps of a run.

    Args:
        journal: The steps of the run.
        is_before: Returns whether a move happens before another.
        is_ordered: Whether names reach the disk in order: no name without all changes that came before it.
            Otherwise, only the changes of one name are in order.

    Attributes:
        is_bounded: Whether there were more states than were yielded.
    """

    def __init__(self, journal: DiskJournal, is_before: Before, *, is_ordered: bool) -> None:
        self.is_bounded = False
        self._journal = journal
        self._is_before = is_before
        self._is_ordered = is_ordered
        self._needed: dict[int, frozenset[int]] = {}
        self._yielded: set[tuple[object, ...]] = set()

    def states(self, steps: Sequence[Step]) -> Iterator[DiskState]:
        """Yield the states of the disk, the simplest ones first.

        Args:
            steps: The steps before the power failure, in order.

        Yields:
            The states, without those that were yielded after earlier steps. Some may be equal.
        """
        changed = sum(len(step.modes) for step in steps)
        named = [step for step in steps if step.names]
        for step in named:
            self._note_needed(step, named)
        files = self._files(steps)
        whole = {number: states[0].data for number, states in files.items()}
        kept_names, is_all = self._kept_names(named, self._persisted(steps, named))
        self.is_bounded = self.is_bounded or not is_all
        for choices in (_simple_choices, _all_choices):
            for moves in kept_names:
                kept = [step for step in named if step.move in moves]
                missing = [step for step in named if step.move not in moves]
                visible = {number for _, number in self._journal.tree(kept, steps, whole).walk()}
                loose = {at: states for at, states in files.items() if at in visible and len(states) > 1}
                for chosen in choices(loose):
                    contents = whole | {number: state.data for number, state in chosen.items()}
                    key = moves, changed, frozenset(contents.items())
                    if key not in self._yielded:
                        self._yielded.add(key)
                        tree = self._journal.tree(kept, steps, contents)
                        yield DiskState(tree, functools.partial(_told, kept, missing, tree, chosen))

    def _note_needed(self, step: Step, named: Sequence[Step]) -> None:
        """Find the names that must be on the disk before those of this step."""
        if step.move in self._needed:
            return
        entries = {(change.folder, change.name) for change in step.names}
        found: set[int] = set()
        for before in named:
            if (
                before.move >= step.move
                or before.move in found
                or not self._is_before(before.move, step.move)
            ):
                continue
            if self._is_ordered or any((change.folder, change.name) in entries for change in before.names):
                found |= {before.move, *self._needed[before.move]}
        self._needed[step.move] = frozenset(found)

    def _closed(self, moves: Iterable[int]) -> frozenset[int]:
        return frozenset(moves).union(*(self._needed[move] for move in moves))

    def _persisted(self, steps: Sequence[Step], named: Sequence[Step]) -> frozenset[int]:
        """Return the moves whose names are on the disk, because their directory was synced afterwards."""
        synced = [step for step in steps if step.synced]
        return self._closed(
            {
                step.move
                for step in named
                if any(
                    (EVERY_FILE in sync.synced or any(change.folder in sync.synced for change in step.names))
                    and self._is_before(step.move, sync.move)
                    for sync in synced
                )
            }
        )

    def _kept_names(
        self, named: Sequence[Step], persisted: frozenset[int]
    ) -> tuple[list[frozenset[int]], bool]:
        """Return the moves whose names can be on the disk together, and whether these are all such sets."""
        free = [step.move for step in named if step.move not in persisted]
        whole = frozenset(step.move for step in named)
        found = {whole: None}

        def add(moves: Iterable[int]) -> None:
            found[self._closed(moves) | persisted] = None

        for move in reversed(free):
            found[whole - {move} - {later for later in free if move in self._needed[later]}] = None
        found[persisted] = None
        for move in free:
            add([move])
        for count in range(len(free)):
            add(free[:count])
        ranks: dict[int, list[int]] = {}
        for step in named:
            if step.move not in persisted:
                ranks.setdefault(step.rank, []).append(step.move)
        if self._is_ordered:
            ends = [range(len(moves) + 1) for moves in ranks.values()]
            is_all = len(ends) < 2 or math.prod(map(len, ends)) <= MOST_STATES
            for counts in itertools.product(*ends) if is_all else ():
                add([at for moves, count in zip(ranks.values(), counts, strict=True) for at in moves[:count]])
        else:
            is_all = 2 ** len(free) <= MOST_STATES
            for size in range(2, len(free)) if is_all else ():
                for chosen in itertools.combinations(free, size):
                    add(chosen)
        return list(found), is_all

    def _files(self, steps: Sequence[Step]) -> dict[int, list[_Contents]]:
        """Return what each file that was written can have on the disk; its current contents come first."""
        written: dict[int, list[tuple[int, bytes]]] = {}
        for step in steps:
            for number, data in step.data:
                written.setdefault(number, []).append((step.move, data))
        found = {}
        for number, versions in written.items():
            syncs = [step.move for step in steps if number in step.synced or EVERY_FILE in step.synced]
            safe = self._journal.initial(number)
            loose: list[bytes] = []
            for move, data in versions:
                # a write with O_SYNC is synced by the same move
                if any(move == sync or self._is_before(move, sync) for sync in syncs):
                    safe, loose = data, []
                else:
                    loose.append(data)
            found[number] = _contents(safe, loose, is_ordered=self._is_ordered)
        return found


def _told(kept: list[Step], missing: list[Step], tree: DiskTree, chosen: dict[int, _Contents]) -> str:
    said = []
    if missing:
        calls = ", ".join(f"`{step.text}`" for step in missing)
        said.append(f"{calls} {'is' if len(missing) == 1 else 'are'} not on the disk")
    paths = {number: path.removeprefix("root/") for path, number in reversed(list(tree.walk()))}
    for number, state in chosen.items():
        if state.lost:
            lost = state.lost.format(plain(paths[number]))
            named = [step.text for step in kept if any(change.number == number for change in step.names)]
            said.append(f"`{named[-1]}` is on the disk, but {lost}" if named else f"{lost} on the disk")
    return "; ".join(said)


def _simple_choices(files: dict[int, list[_Contents]]) -> Iterator[dict[int, _Contents]]:
    """Yield what the files can have on the disk: all, nothing, and one file with less or more than others."""
    full = {number: states[0] for number, states in files.items()}
    empty = {number: states[1] for number, states in files.items()}
    yield full
    if files:
        yield empty
    for number, states in files.items():
        for state in states[1:]:
            yield full | {number: state}
        if len(files) > 1:
            yield empty | {number: states[0]}


def _all_choices(files: dict[int, list[_Contents]]) -> Iterator[dict[int, _Contents]]:
    """Yield every combination of what two or more files can have on the disk."""
    for combined in itertools.product(*files.values()) if len(files) > 1 else ():
        yield dict(zip(files, combined, strict=True))


def _contents(safe: bytes, loose: list[bytes], *, is_ordered: bool) -> list[_Contents]:
    """Return what a file can have on the disk: all writes, none, a prefix of them, or all but one.

    Args:
        safe: What is certainly on the disk.
        loose: The contents after each write since then.
        is_ordered: Whether appended data reaches the disk in order.

    Returns:
        Distinct contents: the current ones first, then those that are certain.
    """
    versions = [safe, *loose]
    last = versions[-1]
    found: dict[bytes, str] = {last: ""}

    def add(data: bytes, lost: str) -> None:
        found.setdefault(data, lost)

    def held(data: bytes) -> str:
        return f"only {len(data)} of {len(last)} bytes of {{}} are"

    if loose:
        add(safe, "the new data of {} is not" if safe else f"0 of {len(last)} bytes of {{}} are")
    for at in range(len(loose), 0, -1):
        part = torn(versions[at - 1], versions[at])
        add(part, held(part) if len(part) < len(last) else "only a part of the last write to {} is")
    for at in range(1, len(loose)):
        add(
            versions[at],
            held(versions[at]) if len(versions[at]) < len(last) else "the last writes to {} are not",
        )
        grown = len(versions[at]) - len(versions[at - 1])
        # a file never shrinks out of order
        if grown == 0 or (grown > 0 and not is_ordered):
            missing = versions[at - 1]
            for before, after in itertools.pairwise(versions[at:]):
                missing = _patched(missing, before, after)
            add(missing, "a write to {} is not, and a later one is")
    return [_Contents(data, lost) for data, lost in found.items()]


def _changed(before: bytes, after: bytes) -> tuple[int, int]:
    """Return the range in which the contents differ."""
    shared = min(len(before), len(after))
    start = next((at for at in range(shared) if before[at] != after[at]), shared)
    if len(before) != len(after):
        return start, len(after)
    end = next((at for at in range(shared, start, -1) if before[at - 1] != after[at - 1]), start)
    return start, end


def torn(before: bytes, after: bytes) -> bytes:
    """Return the contents after the first half of a write; a large one is torn between two blocks.

    Args:
        before: The contents before the write.
        after: The contents after it.

    Returns:
        The contents of the disk if power fails in the middle.
    """
    start, end = _changed(before, after)
    middle = start + (end - start) // 2
    if end - start > 2 * BLOCK:
        middle -= middle % BLOCK
    rest = before[middle:] if len(before) == len(after) else b""
    return after[:middle] + rest


def _patched(data: bytes, before: bytes, after: bytes) -> bytes:
    """Return contents after a write that turned `before` into `after`, with zeros where nothing was."""
    if len(after) < len(before):
        return data[: len(after)]
    start, end = _changed(before, after)
    return data[:start].ljust(start, b"\0") + after[start:end] + data[end:]


def cuts(steps: Iterable[Step], is_before: Before) -> tuple[list[list[Step]], bool]:
    """Return the points at which all processes can be killed, in any order of the calls that commute.

    Args:
        steps: The steps of a run, in order.
        is_before: Returns whether a move happens before another.

    Returns:
        The steps before each such point, in order, and whether these are all points.
    """
    ranks: dict[int, list[Step]] = {}
    for step in steps:
        ranks.setdefault(step.rank, []).append(step)
    chains = list(ranks.values())
    ends = [range(len(chain) + 1) for chain in chains]
    if math.prod(map(len, ends)) > MOST_CUTS:
        return [], False

    def is_closed(counts: tuple[int, ...]) -> bool:
        """Return whether no step comes before one of these without being among them."""
        lasts = [chain[count - 1] for chain, count in zip(chains, counts, strict=True) if count]
        nexts = [chain[count] for chain, count in zip(chains, counts, strict=True) if count < len(chain)]
        return not any(is_before(step.move, last.move) for step in nexts for last in lasts)

    found = []
    for counts in filter(is_closed, itertools.product(*ends)):
        taken = [step for chain, count in zip(chains, counts, strict=True) for step in chain[:count]]
        found.append(sorted(taken))
    return found, True
