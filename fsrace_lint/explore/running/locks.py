"""Which locks are held, so that nobody is let through who would have to wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fsrace_lint.explore.messages import Acquire, Held


class _Holder(NamedTuple):
    kind: str
    owner: str
    shared: bool


class HeldLocks:
    """All locks of a run; those of `flock` and those of `lockf` do not see each other, as on Linux."""

    def __init__(self) -> None:
        self._holders: dict[int, list[_Holder]] = {}

    def is_free(self, wanted: Acquire) -> bool:
        """Tell whether a lock can be had now."""
        return all(
            holder.kind != wanted.kind or holder.owner == wanted.owner or (holder.shared and wanted.shared)
            for holder in self._holders.get(wanted.inode, [])
        )

    def note(self, held: Held) -> None:
        """Remember that a lock was taken or dropped."""
        holders = [
            holder
            for holder in self._holders.get(held.inode, [])
            if (holder.kind, holder.owner) != (held.kind, held.owner)
        ]
        if held.taken:
            holders.append(_Holder(held.kind, held.owner, held.shared))
        self._holders[held.inode] = holders

    def drop_all(self, rank: int) -> list[int]:
        """Drop the locks of a process that is no more.

        Args:
            rank: The process.

        Returns:
            The inodes it had locked.
        """
        dropped = []
        for inode, holders in self._holders.items():
            left = [holder for holder in holders if holder.owner.partition(".")[0] != str(rank)]
            if len(left) < len(holders):
                dropped.append(inode)
                self._holders[inode] = left
        return dropped
