"""Which locks are held, so that nobody is let through who would have to wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fsrace_lint.instrument.model import AdvisoryLock


class HeldLocks:
    """All locks of a run, each with the rank of who holds it."""

    def __init__(self) -> None:
        self._held: dict[int, list[tuple[int, AdvisoryLock]]] = {}

    def is_free(self, rank: int, wanted: AdvisoryLock) -> bool:
        """Tell whether a process can have a lock now."""
        return all(
            lock.kind != wanted.kind
            or (holder, lock.owner) == (rank, wanted.owner)
            or (lock.shared and wanted.shared)
            for holder, lock in self._held.get(wanted.inode, [])
        )

    def take(self, rank: int, lock: AdvisoryLock) -> None:
        """Remember that a process has taken a lock."""
        self.drop(rank, lock)
        self._held[lock.inode].append((rank, lock))

    def drop(self, rank: int, lock: AdvisoryLock) -> None:
        """Remember that a process has dropped a lock."""
        self._held[lock.inode] = [
            (holder, held)
            for holder, held in self._held.get(lock.inode, [])
            if (holder, held.kind, held.owner) != (rank, lock.kind, lock.owner)
        ]

    def drop_all(self, rank: int) -> list[int]:
        """Drop the locks of a process that is no more.

        Args:
            rank: The process.

        Returns:
            The inodes it had locked.
        """
        dropped = [inode for inode, held in self._held.items() if any(holder == rank for holder, _ in held)]
        for inode in dropped:
            self._held[inode] = [(holder, lock) for holder, lock in self._held[inode] if holder != rank]
        return dropped
