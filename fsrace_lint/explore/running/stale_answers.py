"""The answers of a weakly coherent filesystem: any state since a process last opened or changed a path."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from fsrace_lint.instrument.model import WORLD, Answer
from fsrace_lint.instrument.path_resolution import trail

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.instrument.model import CallOutcome, Lookup

_KINDS = {"isdir": stat.S_ISDIR, "isfile": stat.S_ISREG, "islink": stat.S_ISLNK}
_NOT_FOLLOWING = ("lexists", "islink", "lstat")

State = dict[str, "tuple[os.stat_result, str]"]
"""All paths of the tree, each with its stat and, for a link, its target."""


class TreeHistory:
    """All states of the tree in a run, and the oldest state that each process may still see.

    `stat`, `lstat`, `access`, `exists` and similar functions, and listings may see an old state of a path.
    The oldest possible state is from when this process last opened the path or its directory, or changed it
    itself, or else from its start. A process never sees a file as it was before its own writes, under any
    name, because a client knows its own writes. Opening, creating, renaming, and deleting use the true state.

    An open file may have the attributes and data of any time since this process last opened or locked it. If
    another process has deleted it, its handle can be stale.

    If names were added to a directory in no particular order, older listings follow the order of this run.

    Args:
        top: The watched directory.
        caches: What the processes do not share: "attributes", "names", "data", and "handles".
    """

    def __init__(self, top: str, caches: frozenset[str]) -> None:
        self._top = top
        self._caches = caches
        self._states: list[State] = [self._now()]
        self._made_by: list[int] = [-1]
        self._since: dict[tuple[int, str | int], int] = {}
        self._born: dict[int, int] = {}
        self._outdated: dict[tuple[int, int], list[range]] = {}
        self._contents: dict[int, list[tuple[int, bytes]]] = {}

    def note(self, rank: int, move: int, outcome: CallOutcome, *, changed: bool) -> None:
        """Record the effect of a move.

        Args:
            rank: The process that made the move.
            move: The index of the move.
            outcome: The outcome of the call.
            changed: Whether the tree may have changed.
        """
        if changed:
            self._states.append(self._now())
            self._made_by.append(move)
        now = len(self._states) - 1
        refreshed: tuple[str | int, ...] = (*outcome.seen, *outcome.refreshed)
        self._since.update({(rank, each): now for each in refreshed})
        # the kernel reuses the inode number of a deleted file
        self._born.update(dict.fromkeys(outcome.created, now))
        written = [inode for kind, inode, _ in outcome.footprint.writes if kind == "file"]
        for inode in written:
            self._outdated.setdefault((rank, inode), []).append(range(self._born.get(inode, 0), now))
        if "data" in self._caches:
            if WORLD in outcome.footprint.writes:
                written += self._contents
            for inode in {*written, *(set(outcome.refreshed) - self._contents.keys())}:
                self._note_contents(inode, now)

    def _note_contents(self, inode: int, now: int) -> None:
        path = self._path(self._states[-1], inode)
        if path and stat.S_ISREG(self._states[-1][path][0].st_mode):
            with open(path, "rb") as file:
                self._contents.setdefault(inode, []).append((now, file.read()))

    def answers(self, rank: int, lookup: Lookup, is_known: Callable[[int], bool]) -> list[Answer]:
        """Return the possible answers to a lookup.

        An old answer that the process could get as the true one by asking earlier is skipped, because another
        schedule covers it. The remaining old answers contradict changes that happened before something the
        process has seen.

        Args:
            rank: The process that asks.
            lookup: The lookup.
            is_known: Whether a move happened before the current call of the process.

        Returns:
            Distinct answers: the true one first, then from the newest to the oldest state.
        """
        since = self._oldest(rank, lookup)
        known = max(at for at, move in enumerate(self._made_by) if move < 0 or is_known(move))
        now = len(self._states) - 1
        truth = self._answer(now, lookup)
        found, told = [truth], [_meaning(lookup.kind, truth)]
        if lookup.inode and not truth.there:
            return [truth, Answer(False)] if "handles" in self._caches else [truth]
        for at in range(now - 1, since - 1, -1):
            answer = self._answer(at, lookup)
            if self._is_outdated(rank, at, answer) or not self._is_cached(lookup, answer, truth):
                continue
            meaning = _meaning(lookup.kind, answer)
            if meaning not in told:
                told.append(meaning)
                if at < known:
                    found.append(answer)
        return found

    def _oldest(self, rank: int, lookup: Lookup) -> int:
        """Return the oldest state that a process may see."""
        if lookup.inode:
            return self._since.get((rank, lookup.inode), 0)
        path = self._resolved(self._states[-1], lookup.path, follow=lookup.kind not in _NOT_FOLLOWING)
        paths = {path, lookup.path, os.path.dirname(path), os.path.dirname(lookup.path)}
        if lookup.kind == "listdir":
            paths.add(path + "/")
        return max(self._since.get((rank, each), 0) for each in paths)

    def _is_cached(self, lookup: Lookup, answer: Answer, truth: Answer) -> bool:
        """Return whether a client caches this answer, although another one is true."""
        if lookup.kind in ("read", "write"):
            return lookup.kind == "read" and "data" in self._caches
        if lookup.inode:
            return "attributes" in self._caches and answer.there
        same = (
            answer.there
            and truth.there
            and lookup.kind != "listdir"
            and (answer.stat[1], stat.S_IFMT(int(answer.stat[0])))
            == (truth.stat[1], stat.S_IFMT(int(truth.stat[0])))
        )
        return "names" in self._caches or ("attributes" in self._caches and same)

    def _is_outdated(self, rank: int, at: int, answer: Answer) -> bool:
        """Return whether an answer describes a file as it was before this process wrote to it."""
        inode = int(answer.stat[1]) if answer.stat else 0
        return any(at in before for before in self._outdated.get((rank, inode), ()))

    def _answer(self, at: int, lookup: Lookup) -> Answer:
        state = self._states[at]
        if lookup.inode:
            path = self._path(state, lookup.inode)
        else:
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
        data = b""
        if lookup.kind == "read":
            data = next(
                (data for then, data in reversed(self._contents.get(lookup.inode, [])) if then <= at), b""
            )
        return Answer(True, stat=(*map(float, found[0][:7]), *times), data=data)

    @staticmethod
    def _path(state: State, inode: int) -> str:
        return next((path for path, (there, _) in state.items() if there.st_ino == inode), "")

    def _resolved(self, state: State, path: str, *, follow: bool) -> str:
        def says(here: str) -> str | None:
            return state[here][1] or None if here in state else None

        return [here for here in trail(path, self._top, says, follow=follow) if here][-1]

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
    if kind in ("exists", "lexists", "access"):
        return answer.there
    if kind == "read":
        return answer.there, answer.data
    if kind == "listdir":
        return answer.there, answer.names
    mode = int(answer.stat[0]) if answer.there else 0
    if kind in _KINDS:
        return _KINDS[kind](mode)
    # the size and times of a directory do not describe its contents
    size, modified = (answer.stat[6], answer.stat[8]) if stat.S_ISREG(mode) else (0, 0)
    return answer.there, mode, answer.stat[1] if answer.there else 0, size, modified
