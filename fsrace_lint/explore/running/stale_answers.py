"""What a weakly coherent filesystem may answer: any state since a process last opened or changed a path."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from fsrace_lint.instrument.model import Answer
from fsrace_lint.instrument.path_resolution import trail

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.instrument.model import CallOutcome, Lookup

_KINDS = {"isdir": stat.S_ISDIR, "isfile": stat.S_ISREG, "islink": stat.S_ISLNK}
_NOT_FOLLOWING = ("lexists", "islink", "lstat")

State = dict[str, "tuple[os.stat_result, str]"]
"""All that is there, by its path: its stat and, of a link, what it says."""


class TreeHistory:
    """All states that the tree has had in a run, and since when each process must not be told of older ones.

    `stat`, `lstat`, `access`, `exists` and its kin, and listings may be answered from any state that the path
    had since this process last opened it or its directory, or changed it itself; at worst since the process
    began. What a file was before this process wrote to it is no answer, by whatever name that is: a client
    knows its own writes. Opening, creating, renaming and removing act on the true state. Of names that came
    into a directory in no particular order, older listings are those of the order that was run.

    Args:
        top: The folder below which everything counts.
    """

    def __init__(self, top: str) -> None:
        self._top = top
        self._states: list[State] = [self._now()]
        self._made_by: list[int] = [-1]
        self._since: dict[tuple[int, str], int] = {}
        self._born: dict[int, int] = {}
        self._outdated: dict[tuple[int, int], list[range]] = {}

    def note(self, rank: int, move: int, outcome: CallOutcome, *, changed: bool) -> None:
        """Remember what a move did.

        Args:
            rank: Who made it.
            move: Its number.
            outcome: What came of it.
            changed: Whether the tree may be another now.
        """
        if changed:
            self._states.append(self._now())
            self._made_by.append(move)
        now = len(self._states) - 1
        for path in outcome.seen:
            self._since[rank, path] = now
        # an inode's number is given again when its file is gone
        self._born.update(dict.fromkeys(outcome.created, now))
        for kind, inode, _ in outcome.footprint.writes:
            if kind == "file":
                self._outdated.setdefault((rank, inode), []).append(range(self._born.get(inode, 0), now))

    def answers(self, rank: int, lookup: Lookup, is_known: Callable[[int], bool]) -> list[Answer]:
        """Give what a process can be told.

        An older answer that it would get as the truth, if it asked earlier, is left out: it asks earlier in
        another schedule. What remains is what contradicts the changes that it must know of: those that came
        before something it has seen.

        Args:
            rank: Who asks.
            lookup: What.
            is_known: Whether a move must have come before what the process does now.

        Returns:
            Different answers, the true one first, then from the newest state to the oldest.
        """
        path = self._resolved(self._states[-1], lookup.path, follow=lookup.kind not in _NOT_FOLLOWING)
        paths = {path, lookup.path, os.path.dirname(path), os.path.dirname(lookup.path)}
        if lookup.kind == "listdir":
            paths.add(path + "/")
        since = max(self._since.get((rank, each), 0) for each in paths)
        known = max(at for at, move in enumerate(self._made_by) if move < 0 or is_known(move))
        found: list[Answer] = []
        told: list[object] = []
        for at in range(len(self._states) - 1, since - 1, -1):
            answer = self._answer(self._states[at], lookup)
            if self._is_outdated(rank, at, answer):
                continue
            meaning = _meaning(lookup.kind, answer)
            if meaning not in told:
                told.append(meaning)
                if at < known or not found:
                    found.append(answer)
        return found

    def _is_outdated(self, rank: int, at: int, answer: Answer) -> bool:
        """Tell whether an answer says what a file was before this process wrote to it."""
        inode = int(answer.stat[1]) if answer.stat else 0
        return any(at in before for before in self._outdated.get((rank, inode), ()))

    def _answer(self, state: State, lookup: Lookup) -> Answer:
        path = self._resolved(state, lookup.path, follow=lookup.kind not in _NOT_FOLLOWING)
        found = state.get(path)
        if found is None:
            return Answer(False)
        if lookup.kind == "listdir":
            prefix = path + "/"
            names = sorted(
                (name[len(prefix) :], stat.S_IFMT(there.st_mode))
                for name, (there, _) in state.items()
                if name.startswith(prefix) and "/" not in name[len(prefix) :]
            )
            return Answer(stat.S_ISDIR(found[0].st_mode), names=tuple(names))
        times = (found[0].st_atime, found[0].st_mtime, found[0].st_ctime)
        return Answer(True, stat=(*map(float, found[0][:7]), *times))

    def _resolved(self, state: State, path: str, *, follow: bool) -> str:
        def says(here: str) -> str | None:
            return state[here][1] or None if here in state else None

        *_, last = trail(path, self._top, says, follow=follow)
        return last

    def _now(self) -> State:
        found: State = {self._top: (os.stat(self._top), "")}
        folders = [self._top]
        while folders:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    link = os.readlink(entry.path) if entry.is_symlink() else ""
                    found[entry.path] = (entry.stat(follow_symlinks=False), link)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        return found


def _meaning(kind: str, answer: Answer) -> object:
    if kind in ("exists", "lexists"):
        return answer.there
    if kind == "listdir":
        return answer.there, answer.names
    mode = int(answer.stat[0]) if answer.there else 0
    if kind in _KINDS:
        return _KINDS[kind](mode)
    # a directory's size and times say nothing of what is in it
    size = answer.stat[6] if stat.S_ISREG(mode) else 0
    return answer.there, mode, answer.stat[1] if answer.there else 0, size
