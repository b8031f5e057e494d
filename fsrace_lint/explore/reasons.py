"""Why a run failed: a change by one process between two calls of another one that do not commute with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.explore.moves import KILLED, TRUTH
from fsrace_lint.explore.timeline import told

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fsrace_lint.explore.moves import Move, Name
    from fsrace_lint.explore.running.run import ScheduleRun

_KINDS: Final = ("entry", "file", "listing", "links", "world", "lock")
"""The kinds of names, the most telling one first."""
_VERBS: Final = {
    "mkdir": "created",
    "symlink": "created",
    "link": "created",
    "mkfifo": "created",
    "unlink": "deleted",
    "remove": "deleted",
    "rmdir": "deleted",
    "write": "wrote",
    "truncate": "truncated",
    "ftruncate": "truncated",
}


class Reason(NamedTuple):
    """An explanation, and the numbers of the steps that it names, in order."""

    text: str
    steps: tuple[int, ...]


def of_run(run: ScheduleRun) -> list[Reason]:
    """Explain which change ran between two calls that do not commute with it.

    Args:
        run: A failed run.

    Returns:
        At most two reasons; the one closest to the failure comes first.
    """
    told_of = _Story(run)
    rank = None if run.failure is None else run.failure.rank
    last = [at for at, move in reversed(list(enumerate(run.trace.moves))) if rank in (None, move.choice.rank)]
    found: list[Reason] = []
    for at in last:
        reason = told_of.between(at)
        if reason is not None:
            found.append(reason)
        if len(found) == (1 if rank is not None else 2):
            return found
    if rank is not None and not found:
        found += (reason for reason in map(told_of.within, last) if reason is not None)
    return found[:1] if rank is not None else found


class _Story:
    def __init__(self, run: ScheduleRun) -> None:
        self._run = run
        self._moves = run.trace.moves
        self._paths = _paths(run)

    def between(self, last: int) -> Reason | None:
        """Find a change by another process between a call and an earlier call of the same process."""
        mine = self._moves[last]
        if mine.choice.given not in (TRUTH, KILLED):
            return Reason(f"step {last + 1} ({mine.name} {mine.target}) got a stale answer", (last + 1,))
        for kinds in (_KINDS[:3], _KINDS):
            for changed in self._others(mine, last):
                spoiled = self._spoiled(changed, mine, kinds)
                for looked in range(changed - 1, -1, -1) if spoiled else ():
                    before = self._moves[looked]
                    if before.choice.rank != mine.choice.rank:
                        continue
                    shared = spoiled & self._spoiled(changed, before, kinds)
                    if shared:
                        return self._told(looked, changed, last, _first(shared))
        return None

    def _others(self, mine: Move, last: int) -> Iterator[int]:
        return (at for at in range(last - 1, -1, -1) if self._moves[at].choice.rank != mine.choice.rank)

    def _spoiled(self, changed: int, move: Move, kinds: Iterable[str]) -> frozenset[Name]:
        names = self._moves[changed].footprint.spoils(move.footprint)
        return frozenset(name for name in names if name[0] in kinds)

    def _told(self, looked: int, changed: int, last: int, name: Name) -> Reason:
        before, other, mine = (self._moves[at] for at in (looked, changed, last))
        did, again = self._verb(before, name), self._verb(mine, name)
        return Reason(
            f"process {other.choice.rank} {self._verb(other, name)} {self._subject(name, other)}"
            f" (step {changed + 1}: {told(other)})"
            f" after process {mine.choice.rank} {did} it (step {looked + 1}: {told(before)})"
            f" and before process {mine.choice.rank} {again} it{' again' if did == again else ''}"
            f" (step {last + 1}: {told(mine)})",
            (looked + 1, changed + 1, last + 1),
        )

    def within(self, last: int) -> Reason | None:
        """Find a change by another process that has more calls to make, before a call that sees it."""
        mine = self._moves[last]
        for changed in self._others(mine, last):
            other = self._moves[changed]
            spoiled = self._spoiled(changed, mine, _KINDS[:3])
            rest = self._rest(other.choice.rank)
            if spoiled and rest:
                name = _first(spoiled)
                return Reason(
                    f"process {mine.choice.rank} {self._verb(mine, name)} {self._subject(name, other)}"
                    f" (step {last + 1}: {told(mine)}) after process {other.choice.rank}"
                    f" {self._verb(other, name)} it (step {changed + 1}: {told(other)}) and before {rest}",
                    (changed + 1, last + 1),
                )
        return None

    def _rest(self, rank: int) -> str:
        request = self._run.ranks[rank].request
        if request is not None:
            return f"its next call ({f'{request.name} {request.target}'.rstrip()})"
        for at, move in enumerate(self._moves, 1):
            if move.choice.rank == rank and move.choice.given == KILLED:
                return f"its next call, because it was killed (step {at})"
        return ""

    def _verb(self, move: Move, name: Name) -> str:
        if name not in move.footprint.changes:
            return "read"
        if name[0] == "entry" and move.name.startswith("open"):
            return "created"
        if name[0] == "entry" and move.name in ("rename", "replace"):
            is_source = move.target.partition(" -> ")[0].endswith(name[2])
            return "renamed" if is_source else "replaced"
        if name[0] == "file" and move.name.startswith("open"):
            return "truncated"
        return _VERBS.get(move.name, "changed") if name[0] in ("entry", "file") else "changed"

    def _subject(self, name: Name, move: Move) -> str:
        kind, inode, entry = name
        path = self._paths.get(inode, "")
        if kind == "entry":
            return "/".join(part for part in (path, entry) if part not in ("", ".")) or entry
        path = path or move.target
        return {
            "file": f"the contents of {path}",
            "listing": f"the names in {path}",
            "links": f"the number of names of {path}",
            "lock": f"the lock on {path}",
        }.get(kind, "something that the explorer does not follow")


def _paths(run: ScheduleRun) -> dict[str, str]:
    """Return the paths of inodes by their names in footprints: those at the start, and those created."""
    found = {name: _relative(name) for name in run.names}
    made = [0] * len(run.ranks)
    for move in run.trace.moves:
        rank = move.choice.rank
        if move.choice.given != KILLED:
            made[rank] += 1
            found[f"{rank}.{made[rank]}"] = move.target.rpartition(" -> ")[2]
    return found


def _relative(name: str) -> str:
    return "." if name == "root" else name.removeprefix("root/")


def _first(names: Iterable[Name]) -> Name:
    return min(names, key=lambda name: (_KINDS.index(name[0]), name))


def of_interest(reasons: Sequence[Reason], moves: Sequence[Move], rank: int | None) -> list[int]:
    """Return the numbers of the steps to explain: those of the reasons, and the last one of the failure."""
    failing = [at for at, move in enumerate(moves, 1) if rank in (None, move.choice.rank)]
    return sorted({step for reason in reasons for step in reason.steps}.union(failing[-1:]))
