"""Queries for locks between processes, and for the files they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.queries.accesses import AccessQueries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access, ExistenceCheck
    from fsrace_lint.analysis.synchronization.locks.lock_files import LockFileCheck
    from fsrace_lint.analysis.synchronization.model import Lock


class LockQueries(AccessQueries):
    """Which locks there are, and what goes wrong with them."""

    def locks(self) -> Iterator[Lock]:
        """Give the calls that make or take a lock between processes, in the order of the code."""
        yield from self.each(self._locks.of)

    def guarded(self, lock: Lock) -> Iterator[Access]:
        """Give the acts that the function of a lock does, or leads to, while it holds the lock."""
        function = lock.access.call_site.function
        operations = dict.fromkeys((*self._accesses.direct(function), *self._accesses.instantiated(function)))
        return (access for access in operations if self._locks.is_held(lock, access.call_site))

    def locks_what_it_opens(self, access: Access) -> bool:
        """Tell whether an act opens a file that its function, or its class, then locks."""
        locks = self._locks.of_class(access.leaf_call.function)
        return any(lock.opened is not None and lock.opened.call is access.leaf_call.call for lock in locks)

    def is_lock_file(self, access: Access) -> bool:
        """Tell whether an act is done to a file that is a lock by its name, or is locked once it is open."""
        return (access.path is not None and access.path.names_a_lock) or self.locks_what_it_opens(access)

    def is_only_locked(self, access: Access) -> bool:
        """Tell whether a lock is held where something is made, and was not when it was found missing."""
        probe, held = self.probe_of_itself(access), self.entry_states.protection.held
        if probe is None or not access.locked:
            return access.locked
        call_sites = self.flows.call_sites(access.call_site.function)
        tests = [held(call_site) for call_site in call_sites if probe.span.covers(call_site.call.span)]
        return not tests or any(lock not in test for test in tests for lock in held(access.call_site))

    def deleted_locks(self) -> Iterator[tuple[Lock, Access]]:
        """Give the locks whose files are deleted, and the deletes."""
        for delete in self.accesses("delete"):
            lock = self._lock_misuses.deleted(delete)
            if lock is not None:
                yield lock, delete

    def emptied_before_locked(self) -> Iterator[tuple[Lock, Access]]:
        """Give the locks of files that are emptied when they are opened, and the opening."""
        for lock in self.locks():
            opened = self._lock_misuses.emptied(lock)
            if opened is not None:
                yield lock, opened

    def tested_before_locked(self) -> Iterator[tuple[Lock, ExistenceCheck, Access]]:
        """Give the locks in front of which it is decided what is done while they are held.

        Yields:
            The lock, the existence test before it, and what is done under the lock without another test.
        """
        for lock in self.locks():
            yield from self._lock_misuses.decided_outside(lock)

    def unflushed(self) -> Iterator[tuple[Access, Access]]:
        """Give the acts that hand a file over to other processes before all of its content is in it.

        Yields:
            What put something into the open file, and what renames the file or releases its lock while that
            is still in a buffer.
        """
        for module in self.targets:
            for function in module.functions:
                yield from self._lock_misuses.released(function)
                yield from self._lock_misuses.renamed(function)

    def unfinished(self) -> Iterator[tuple[Access, Access]]:
        """Give the saves that go on in the background, and what already names them for others to read."""
        yield from self.each(self._lock_misuses.pointed_at)

    def claims(self) -> Iterator[LockFileCheck]:
        """Give the lock files that code of the project creates after it looked for them."""
        yield from self.each_acting(self._lock_files.claims)
