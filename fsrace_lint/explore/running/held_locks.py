"""The locks that processes hold, so that the scheduler permits no call that would block."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fsrace_lint.instrument.model import AdvisoryLock


class HeldLocks:
    """All locks of a run, each with the rank of its holder."""

    def __init__(self) -> None:
        self._held: dict[int, list[tuple[int, AdvisoryLock]]] = {}

    def is_free(self, rank: int, wanted: AdvisoryLock) -> bool:
        """Return whether a process can acquire a lock now."""
        return all(
            lock.kind != wanted.kind
            or (holder, lock.owner) == (rank, wanted.owner)
            or (lock.shared and wanted.shared)
            for holder, lock in self._held.get(wanted.inode, [])
        )

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

    def drop_all(self, rank: int) -> list[int]:
        """Release all locks of a process that has ended.

        Args:
            rank: The rank of the process.

        Returns:
            The inodes that it had locked.
        """
        dropped = [inode for inode, held in self._held.items() if any(holder == rank for holder, _ in held)]
        for inode in dropped:
            self._held[inode] = [(holder, lock) for holder, lock in self._held[inode] if holder != rank]
        return dropped
