"""The locks that processes hold, so that the scheduler permits no call that would block."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fsrace_lint.instrument.model import AdvisoryLock, Key


class HeldLocks:
    """All locks of a run, each with the rank of its holder."""

    def __init__(self) -> None:
        self._held: dict[int, list[tuple[int, AdvisoryLock]]] = {}

    def is_free(self, rank: int, wanted: AdvisoryLock) -> bool:
        """Return whether a process can acquire a lock now."""
        inode = wanted.inode or self._inode(wanted)
        return all(
            lock.kind != wanted.kind
            or (holder, lock.owner) == (rank, wanted.owner)
            or (lock.shared and wanted.shared)
            for holder, lock in self._held.get(inode, [])
        )

    def _inode(self, wanted: AdvisoryLock) -> int:
        if not any(lock.kind == wanted.kind for held in self._held.values() for _, lock in held):
            return 0
        try:
            return os.stat(wanted.path).st_ino
        except OSError:
            return 0

    def state(self) -> str:
        """Return a text that identifies who holds which locks."""
        return repr(
            sorted(
                (inode, rank, lock.kind, lock.shared)
                for inode, held in self._held.items()
                for rank, lock in held
            )
        )

    def take(self, rank: int, lock: AdvisoryLock) -> None:
        """Record that a process has acquired a lock."""
        self.drop(rank, lock)
        self._held[lock.inode].append((rank, lock))

    def drop(self, rank: int, lock: AdvisoryLock) -> None:
        """Record that a process has released a lock."""
        self._held[lock.inode] = [
            (holder, held)
            for holder, held in self._held.get(lock.inode, [])
            if (holder, held.kind, held.owner) != (rank, lock.kind, lock.owner)
        ]

    def drop_all(self, rank: int) -> list[Key]:
        """Release all locks of a process that has ended.

        Args:
            rank: The rank of the process.

        Returns:
            The keys of the locks that it held.
        """
        dropped = [lock.key for held in self._held.values() for holder, lock in held if holder == rank]
        for inode, held in self._held.items():
            self._held[inode] = [(holder, lock) for holder, lock in held if holder != rank]
        return dropped
