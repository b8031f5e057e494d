"""Queries for interprocess locks, and for lock files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.queries.accesses import AccessQueries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access, ExistenceCheck
    from fsrace_lint.analysis.synchronization.locks.lock_files import LockFileCheck
    from fsrace_lint.analysis.synchronization.model import Lock


class LockQueries(AccessQueries):
    """Queries for locks and their misuses."""

    def locks(self) -> Iterator[Lock]:
        """Yield the calls that create or acquire an interprocess lock, in source order."""
        yield from self.each(self._locks.of)

    def guarded(self, lock: Lock) -> Iterator[Access]:
        """Yield the accesses in the function of a lock, or in its callees, while the lock is held."""
        function = lock.access.call_site.function
        operations = dict.fromkeys((*self._accesses.direct(function), *self._accesses.instantiated(function)))
        return (access for access in operations if self._locks.is_held(lock, access.call_site))

    def locks_what_it_opens(self, access: Access) -> bool:
        """Return whether an access opens a file that its function or class then locks."""
        locks = self._locks.of_class(access.leaf_call.function)
        return any(lock.opened is not None and lock.opened.call is access.leaf_call.call for lock in locks)

    def is_lock_file(self, access: Access) -> bool:
        """Return whether the file of an access is a lock by its name, or is locked after it is opened."""
        return (access.path is not None and access.path.names_a_lock) or self.locks_what_it_opens(access)

    def is_only_locked(self, access: Access) -> bool:
        """Return whether a lock is held when a path is created, but not when a check found it missing."""
        probe, held = self.probe_of_itself(access), self.entry_states.protection.held
        if probe is None or not access.locked:
            return access.locked
        call_sites = self.flows.call_sites(access.call_site.function)
        tests = [held(call_site) for call_site in call_sites if probe.span.covers(call_site.call.span)]
        return not tests or any(lock not in test for test in tests for lock in held(access.call_site))

    def deleted_locks(self) -> Iterator[tuple[Lock, Access]]:
        """Yield the locks whose files are deleted, and the deletes."""
        for delete in self.accesses("delete"):
            lock = self._lock_misuses.deleted(delete)
            if lock is not None:
                yield lock, delete

    def emptied_before_locked(self) -> Iterator[tuple[Lock, Access]]:
        """Yield the locks of files that are truncated on opening, and the opening."""
        for lock in self.locks():
            opened = self._lock_misuses.emptied(lock)
            if opened is not None:
                yield lock, opened

    def tested_before_locked(self) -> Iterator[tuple[Lock, ExistenceCheck, Access]]:
        """Yield the locks that are acquired after the check that decides what is done while they are held.

        Yields:
            The lock, the existence check before it, and the access under the lock without another check.
        """
        for lock in self.locks():
            yield from self._lock_misuses.decided_outside(lock)

    def unflushed(self) -> Iterator[tuple[Access, Access]]:
        """Yield the accesses that publish or unlock a file before it is flushed.

        Yields:
            The write to the open file, and the rename of the file or the release of its lock.
        """
        for module in self.targets:
            for function in module.functions:
                yield from self._lock_misuses.released(function)
                yield from self._lock_misuses.renamed(function)

    def unfinished(self) -> Iterator[tuple[Access, Access]]:
        """Yield the saves that continue in the background, and the write of a file that points to them."""
        yield from self.each(self._lock_misuses.pointed_at)

    def claims(self) -> Iterator[LockFileCheck]:
        """Yield the lock files that the project creates after an existence check."""
        yield from self.each_acting(self._lock_files.claims)
