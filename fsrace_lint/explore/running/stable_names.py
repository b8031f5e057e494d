"""Names of files and directories that are the same in every run with the same moves, as inodes are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.explore.moves import EVERYTHING
from fsrace_lint.instrument.model import PROCESSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fsrace_lint.explore.moves import Name
    from fsrace_lint.instrument.model import Key


class StableNames:
    """The names of the inodes of a run.

    Args:
        initial: The paths of the initial tree, by inode.
    """

    def __init__(self, initial: Mapping[int, str]) -> None:
        self._names = {inode: (path or "top") for inode, path in initial.items()}
        self.initial = tuple(self._names.values())

    def created(self, inodes: Iterable[int], origin: str) -> None:
        """Name inodes after the move that created them; the kernel reuses the number of a deleted file."""
        self._names.update(dict.fromkeys(inodes, origin))

    def found(self, paths: Mapping[int, str], origin: str) -> None:
        """Name the inodes that were created unobserved during a move."""
        for inode, path in paths.items():
            self._names.setdefault(inode, f"{origin}:{path}")

    def of_all(self, keys: Iterable[Key]) -> frozenset[Name]:
        """Return the names of keys of a footprint."""
        return frozenset(map(self.of, keys))

    def of(self, key: Key) -> Name:
        """Return the name of a key of a footprint."""
        kind, inode, name = key
        if kind == "world":
            return EVERYTHING
        if kind in PROCESSES:
            return kind, str(inode), name
        return kind, self._names.get(inode) or self._names.setdefault(inode, f"?{inode}"), name
