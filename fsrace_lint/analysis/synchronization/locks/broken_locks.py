"""Locks that exclude no process: their names differ between processes, or their files are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.engine.query import query
from fsrace_lint.program.modules import LinkedFunction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.synchronization.locks.lock_misuses import LockMisuses
    from fsrace_lint.analysis.synchronization.model import Lock
    from fsrace_lint.syntax import model as m


class BrokenLocks:
    """Finds what breaks the locks around calls."""

    def __init__(self, misuses: LockMisuses) -> None:
        """Initialize for a project; nothing is computed yet."""
        self._misuses, self._locks = misuses, misuses.locks
        self._flows = misuses.flows

    @query
    def around(self, call_site: CallSite) -> tuple[Access, ...]:
        """Return what breaks the locks that a function holds at a call, or nothing if one lock works.

        For a lock whose name differs between processes, it is the call that creates the lock; for one whose
        file is deleted, it is the delete.
        """
        held = self._locks.protection.held(call_site)
        found = [next(self._breaking(each, call_site), None) for each in held]
        return tuple(each for each in found if each is not None) if None not in found else ()

    def _breaking(self, held: m.Expr, call_site: CallSite) -> Iterator[Access]:
        for lock in self._locks.of_class(call_site.function):
            if self._locks.is_it(lock, held, call_site):
                if lock.is_private:
                    yield lock.access
                elif lock.is_marker:
                    yield from self._deletes(self._entering(lock), None)
                else:
                    yield from self._deletes(lock.access.call_site.function.module.functions, lock)

    def _entering(self, lock: Lock) -> Iterable[LinkedFunction]:
        """Return the functions that take and release a lock of the project: its methods, or a generator."""
        call, scope = lock.access.call_site.call, lock.access.call_site.state.scope
        entity = self._flows.resolver.symbol(call.function, scope)
        class_ = self._flows.resolver.class_of(entity)
        if class_ is not None:
            return [method for each in class_.ancestors() for method in each.methods.values()]
        return [entity] if isinstance(entity, LinkedFunction) else ()

    def _deletes(self, functions: Iterable[LinkedFunction], lock: Lock | None) -> Iterator[Access]:
        """Yield the calls of some functions that delete the file of a lock, or of any lock."""
        for function in functions:
            for access in self._locks.accesses.direct(function):
                if access.op == "delete" and access.is_shared and access.runs_several:
                    deleted = None if access.is_serialized else self._misuses.deleted(access)
                    if deleted is not None and lock in {None, deleted}:
                        yield access
