"""Why a run failed: a change by one process between two calls of another one that do not commute with it."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.explore.moves import KILLED, TRUTH
from fsrace_lint.explore.timeline import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fsrace_lint.explore.moves import Move, Name
    from fsrace_lint.explore.running.run import ScheduleRun

_KINDS: Final = ("entry", "file", "listing", "links", "world", "lock")
"""The kinds of names, the most telling one first."""
_VERBS: Final = {
    **dict.fromkeys(("mkdir", "symlink", "link", "mkfifo"), ("create", "created")),
    **dict.fromkeys(("unlink", "remove", "rmdir"), ("delete", "deleted")),
    **dict.fromkeys(("truncate", "ftruncate"), ("truncate", "truncated")),
    "rename": ("rename", "renamed"),
    "replace": ("replace", "replaced"),
    "write": ("write", "wrote"),
    "open": ("open", "opened"),
}
"""Calls as verbs: the infinitive, and the past."""
_CHECKS: Final = frozenset(("stat", "lstat", "exists", "lexists", "isdir", "isfile", "islink", "access"))
_FAILED: Final = re.compile(r"[A-Z]\w*(?:Error|Exception)")


class Reason(NamedTuple):
    """An explanation, and the numbers of the steps that it names, in order."""

    text: str
    steps: tuple[int, ...]


def of_run(run: ScheduleRun) -> list[Reason]:
    """Explain which change ran between two calls that do not commute with it.

    Args:
        run: A failed run.

    Returns:
        At most two reasons, and at most one if one process failed. The one closest to the failure is first.
    """
    story = _Story(run)
    rank = None if run.failure is None else run.failure.rank
    loops = [reason for number in range(len(run.ranks)) if (reason := story.loop(number)) is not None]
    held = [reason for number in range(len(run.ranks)) if (reason := story.held(number)) is not None]
    if run.failure is not None and run.failure.kind == "deadlock" and held + loops:
        return held + loops
    last = _last_steps(run)
    raised = _raising(run, last)
    attempts = [(story.between, raised), (story.within, raised), (story.between, last)]
    if rank is not None:
        attempts.append((story.within, last))
    found: list[Reason] = []
    for explain, steps in attempts:
        found += islice(filter(None, map(explain, steps)), 1 if rank is not None else 2)
        if found:
            break
    return found


def _last_steps(run: ScheduleRun) -> list[int]:
    """Return the steps of the process that failed, or of all, from the last one to the first."""
    rank = None if run.failure is None else run.failure.rank
    moves = run.trace.moves
    return [at for at in range(len(moves) - 1, -1, -1) if rank in (None, moves[at].choice.rank)]


def _raising(run: ScheduleRun, steps: Sequence[int]) -> list[int]:
    """Return the last step that was made by a line which raised the exception of the failure, if any."""
    lines = set() if run.failure is None else {frame[:2] for frame in run.failure.raised}
    moves = run.trace.moves
    return [at for at in steps if lines.intersection(frame[:2] for frame in moves[at].stack)][:1]


class _Story:
    def __init__(self, run: ScheduleRun) -> None:
        self._run = run
        self._moves = run.trace.moves
        self._paths = _paths(run)

    def between(self, last: int) -> Reason | None:
        """Find a change by another process between a call and an earlier call of the same process."""
        mine = self._moves[last]
        if mine.choice.given > TRUTH:
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
        did, again = _verb(before, name), _verb(mine, name)
        return Reason(
            f"process {other.choice.rank} {_verb(other, name)} {self._subject(name, other)}"
            f" ({_step(changed, other)})"
            f" after process {mine.choice.rank} {did} it ({_step(looked, before)})"
            f" and before process {mine.choice.rank} {again} it{' again' if did == again else ''}"
            f" ({_step(last, mine)})",
            (looked + 1, changed + 1, last + 1),
        )

    def within(self, last: int) -> Reason | None:
        """Find a change by another process that has more calls to make, before a call that sees it."""
        mine = self._moves[last]
        for kinds in (_KINDS[:3], _KINDS):
            for changed in self._others(mine, last):
                other = self._moves[changed]
                spoiled = self._spoiled(changed, mine, kinds)
                if not spoiled:
                    continue
                name = _first(spoiled)
                subject = self._subject(name, other)
                rest = self._rest(other.choice.rank, subject)
                if rest:
                    text = (
                        f"process {mine.choice.rank} {_verb(mine, name)} {subject} ({_step(last, mine)})"
                        f" after process {other.choice.rank} {_verb(other, name)} it"
                        f" ({_step(changed, other)}) and before {rest}"
                    )
                    return Reason(text, (changed + 1, last + 1))
        return None

    def loop(self, rank: int) -> Reason | None:
        """Say that a process is in a retry loop, which may end by itself."""
        waits = self._run.ranks[rank]
        if not waits.retries.cycle or waits.request is None:
            return None
        text = (
            f"process {rank} repeats {waits.request.name}, and many equal rounds have not ended its loop;"
            " if the loop ends by itself later, this is not a deadlock"
        )
        return Reason(text, ())

    def held(self, rank: int) -> Reason | None:
        """Find who holds the lock that a process waits for."""
        request = self._run.ranks[rank].request
        if request is None or request.lock is None:
            return None
        name = self._run.names.of(request.lock.key)
        for at in range(len(self._moves) - 1, -1, -1):
            move = self._moves[at]
            if move.choice.rank != rank and name in move.footprint.changes and name not in move.dropped:
                text = (
                    f"process {rank} waits for {self._subject(name, move)},"
                    f" which process {move.choice.rank} took ({_step(at, move)})"
                )
                return Reason(text, (at + 1,))
        return None

    def _rest(self, rank: int, subject: str) -> str:
        request = self._run.ranks[rank].request
        if request is not None:
            target = "" if subject.endswith(request.target) else f" {request.target}"
            return f"its next call ({request.name}{target})"
        for at, move in enumerate(self._moves, 1):
            if move.choice.rank == rank and move.choice.given == KILLED:
                return f"its next call, which it did not make because it was killed (step {at})"
        return ""

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


def _step(at: int, move: Move) -> str:
    result = "" if move.result in ("", "done") else f" -> {move.result}"
    return plain(f"step {at + 1}: {move.name}{result}")


def _verb(move: Move, name: Name) -> str:
    """Return what a move did to a name, in the past tense."""
    kind, _, entry = name
    call = move.name.partition("[")[0]
    if kind == "lock":
        return _verb_of_lock(move, name)
    infinitive, past = _VERBS.get(call, ("change", "changed"))
    if name not in move.footprint.changes:
        if _FAILED.fullmatch(move.result) and call in _VERBS:
            return f"tried to {infinitive}"
        return "opened" if call == "open" else "checked" if call in _CHECKS else "read"
    if call == "open":
        return "created" if kind == "entry" else "truncated" if kind == "file" else "changed"
    if kind == "entry" and call in ("rename", "replace"):
        is_source = move.target.partition(" -> ")[0].endswith(entry)
        return "renamed" if is_source else "replaced"
    return past if kind in ("entry", "file") else "changed"


def _verb_of_lock(move: Move, name: Name) -> str:
    if name not in move.footprint.changes:
        return "tried to take"
    return "released" if name in move.dropped else "took"


def _paths(run: ScheduleRun) -> dict[str, str]:
    """Return the paths of inodes by their names in footprints: those at the start, and those created."""
    found = {name: _relative(name) for name in run.names.initial}
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


def of_interest(reasons: Sequence[Reason], run: ScheduleRun) -> list[int]:
    """Return the numbers of the steps to explain: those of the reasons, and the one that failed."""
    last = _last_steps(run)
    failing = (_raising(run, last) or last)[:1]
    return sorted({step for reason in reasons for step in reason.steps}.union(at + 1 for at in failing))
