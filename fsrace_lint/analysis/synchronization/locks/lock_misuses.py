"""Misuses of locks and open files: deleted lock files, truncation, and unflushed writes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.model import ASKING
from fsrace_lint.analysis.dataflow.abstract_state import mutually_exclusive
from fsrace_lint.analysis.dataflow.rank_partition import UNPARTITIONED
from fsrace_lint.engine.query import lazy
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name, parts
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.existence_checks import ExistenceChecks
    from fsrace_lint.analysis.accesses.model import Access, ExistenceCheck, Operation
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath, Component
    from fsrace_lint.analysis.synchronization.event_sequences import EventSequences, SequenceItem
    from fsrace_lint.analysis.synchronization.locks.locks import Locks
    from fsrace_lint.analysis.synchronization.model import Lock
    from fsrace_lint.catalog import Op
    from fsrace_lint.program.modules import LinkedFunction

_IDENTITY: Final = frozenset({"st_ino", "st_nlink", "samestat", "samefile", "sameopenfile"})
_WAITING: Final = frozenset({"result", "exception", "as_completed", "synchronize"})
_WAITING_NAME: Final = re.compile(r"wait|finali[sz]e", re.IGNORECASE)
_POINTER: Final = re.compile(
    r"(?:^|[^a-z])(?:latest|last|newest|current|tracker|done|complete|completed|finished|success)(?:[^a-z]|$)",
    re.IGNORECASE,
)
_MAKING: Final[frozenset[Op]] = frozenset({"mkdir", "create", "write", "copy", "link", "extract", "download"})


class LockMisuses:
    """Finds the misuses of the locks of a project."""

    def __init__(self, locks: Locks, probes: ExistenceChecks, sequences: EventSequences) -> None:
        """Initialize for a project."""
        self.locks = locks
        self.files = locks.files
        self.accesses = locks.accesses
        self.flows = locks.flows
        self.entry_states = locks.entry_states
        self.probes = probes
        self.sequences = sequences
        catalog = self.flows.catalog
        later = (n for n in catalog.names("collective-saver") if catalog.exact("collective-saver", n).later)
        self._later = frozenset(name.rpartition(".")[2] for name in later)

    def deleted(self, delete: Access) -> Lock | None:
        """Return the lock whose file an access deletes although the lock is on the open file.

        The lock is in the same function or class, or its file name is literal in both places. Code that
        compares inodes after it acquires a lock may delete the file.
        """
        function = delete.call_site.function
        around = () if function.owner is None else function.owner.methods.values()
        if any(not _IDENTITY.isdisjoint(each.facts.referenced_names) for each in (function, *around)):
            return None
        path = delete.path
        if path is None:
            return None
        near = (lock for lock in self.locks.of_class(function) if lock.access.path == path)
        found = next(near, None) or (self._named_locks.get(path.components[-1]) if _is_named(path) else None)
        return None if found is None or found.is_marker else found

    @lazy
    def _named_locks(self) -> dict[Component, Lock]:
        """The locks of the project whose file names are literal, by file name."""
        functions = (function for module in self.flows.table.modules for function in module.functions)
        locks = (lock for function in functions for lock in self.locks.of(function))
        return {
            lock.access.path.components[-1]: lock
            for lock in locks
            if lock.access.path is not None and _is_named(lock.access.path)
        }

    def emptied(self, lock: Lock) -> Access | None:
        """Return the access that opens and truncates the file of a lock, if the file is written."""
        opened, path = lock.opened, lock.access.path
        if opened is None or not opened.operation.truncates or (path is not None and path.names_a_lock):
            return None
        if not self.files.is_written(opened):
            return None
        accesses = self.accesses.direct(opened.scope.function)
        return next((access for access in accesses if access.call_site.call is opened.call), None)

    def released(self, function: LinkedFunction) -> Iterator[tuple[Access, Access]]:
        """Yield the unflushed writes of a locked file, and the release of the lock."""
        taken = [lock for lock in self.locks.of(function) if lock.opened is not None]
        for call_site in self.flows.call_sites(function) if taken else ():
            if not self.locks.releases(call_site) or not call_site.call.arguments:
                continue
            opening = self.files.opening(call_site.call.arguments[0], call_site.state.scope)
            for lock in taken:
                if opening is None or lock.opened is None or lock.opened.call is not opening.call:
                    continue
                written = self.files.unflushed(call_site, opening)
                if written is not None and lock.access.span < written.call.span:
                    operation = replace(lock.access.operation, op="write")
                    yield (
                        self.accesses.access_at(operation, written, opening.scope),
                        self.accesses.access_at(operation, call_site, opening.scope),
                    )
                break

    def renamed(self, function: LinkedFunction) -> Iterator[tuple[Access, Access]]:
        """Yield the unflushed writes of a file, and the rename of the file."""
        for access in self.accesses.direct(function):
            for opening in self.files.open_at(access.call_site) if access.op == "rename" else ():
                path = self.entry_states.paths.normalize(opening.operation.path, opening.scope)
                is_same = path is not None and path == access.path
                if not (
                    is_same
                    or self.files.is_path_of(access.operation.path, access.call_site.state.scope, opening)
                ):
                    continue
                written = self.files.unflushed(access.call_site, opening)
                if written is not None:
                    operation = replace(access.operation, op="write")
                    yield self.accesses.access_at(operation, written, written.state.scope), access

    def pointed_at(self, function: LinkedFunction) -> Iterator[tuple[Access, Access]]:
        """Yield the background saves, and the write that names them before anything waits for them."""
        if not self.flows.relevance.may_use(function, self._later):
            return
        saves: list[CallSite] = []
        steps = {step.call_site: step for step in self.sequences.of(function) if _is_pointer(step)}
        for call_site in self.flows.call_sites(function):
            called = last_name(call_site.call.function)
            if called in _WAITING or _WAITING_NAME.search(called) is not None:
                saves.clear()
            name = self.flows.resolver.qualify(call_site.call.function, call_site.state.scope)
            entry = self.flows.catalog.find("collective-saver", name)
            if entry is not None and entry.later:
                saves.append(call_site)
            step = steps.get(call_site)
            before = [
                save
                for save in saves
                if not mutually_exclusive(save.state.conditions, call_site.state.conditions)
            ]
            if step is not None and step.operation is not None and before:
                operation = replace(step.operation, path=before[-1].call.function)
                save = self.accesses.access_at(operation, before[-1], call_site.state.scope)
                yield (
                    save,
                    _seen(self.accesses.access_at(step.operation, call_site, call_site.state.scope), step),
                )

    def decided_outside(self, lock: Lock) -> Iterator[tuple[Lock, ExistenceCheck, Access]]:
        """Yield the first access under a lock that a check before the lock decides."""
        function = lock.access.call_site.function
        inside_events = (
            call_site for call_site in self.flows.call_sites(function) if self.locks.is_held(lock, call_site)
        )
        first = next(inside_events, None)
        outside = () if first is None else first.state.conditions
        if not outside:
            return
        steps = self.sequences.of(function)
        for index, step in enumerate(steps):
            if step.operation is None or step.path is None or not self.locks.is_held(lock, step.call_site):
                continue
            moved = (
                index > 0 and steps[index - 1].op == "rename" and steps[index - 1].leaf_call is step.leaf_call
            )
            makes = step.op in _MAKING and not moved and not _is_idempotent(step.operation)
            probe = self._absent(step, outside, step.path) if makes or step.op == "delete" else None
            inside = step.conditions[len(outside) :]
            if probe is None or any(self._is_another_test(literal) for literal in inside):
                continue
            if not makes and probe.path != step.path:
                continue
            if any(self._looks(lock, other, probe.path) for other in steps[:index]):
                continue
            yield lock, probe, _seen(lock.access, step)
            return

    def _absent(
        self, step: SequenceItem, outside: tuple[PathCondition, ...], path: AbstractPath
    ) -> ExistenceCheck | None:
        """Return the check that found missing what an event creates, or None."""
        probes = (probe for probe in self.probes.among(outside, step.call_site.call) if probe.found_missing)
        return next((probe for probe in probes if _is_of(probe.path, path)), None)

    def _looks(self, lock: Lock, step: SequenceItem, path: AbstractPath) -> bool:
        """Return whether an event checks a path again while a lock is held."""
        asks = step.op in ASKING
        same = step.path is not None and (_is_of(path, step.path) or _is_of(step.path, path))
        return asks and same and self.locks.is_held(lock, step.call_site)

    def _is_another_test(self, literal: PathCondition) -> bool:
        """Return whether a condition may repeat the check under the lock. Rank checks do not."""
        if self.entry_states.rank_tests.partition(literal.test, literal.scope) != UNPARTITIONED:
            return False
        return literal.attempt is None and _asks(literal.test, 4)


def _is_named(path: AbstractPath) -> bool:
    """Return whether a file name is literal and names a lock."""
    return path.names_a_lock and all(isinstance(piece, str) for piece in path.components[-1])


def _seen(access: Access, step: SequenceItem) -> Access:
    """Return an access with the operation, the calls, and the path of an event."""
    operation = access.operation if step.operation is None else step.operation
    spelled = (
        spell(operation.path) if step.call_site is step.leaf_call or step.path is None else step.path.text
    )
    return replace(
        access,
        operation=operation,
        call_site=step.call_site,
        leaf_call=step.leaf_call,
        path=step.path,
        path_source=spelled,
    )


def _is_pointer(step: SequenceItem) -> bool:
    """Return whether an event writes a file that names the last checkpoint, or marks it as complete."""
    last = step.path.components[-1:] if step.path is not None else ()
    texts = (piece for component in last for piece in component if isinstance(piece, str))
    is_made = step.op in _MAKING and step.op != "mkdir"
    return is_made and any(_POINTER.search(text) is not None for text in texts)


def _is_idempotent(operation: Operation) -> bool:
    return (
        operation.tolerant
        or operation.exclusive
        or operation.atomic
        or operation.synchronized
        or operation.appends
    )


def _is_of(probed: AbstractPath, made: AbstractPath) -> bool:
    """Return whether the created path is the checked path, is in it, or is a parent directory of it."""
    return made.is_within(probed) or probed.is_within(made) or made.is_parent_of(probed)


def _asks(test: m.Expr, depth: int) -> bool:
    """Return whether a condition may query the filesystem: it contains a call or a name."""
    if isinstance(test, (m.Call, m.Name)):
        return True
    return depth > 0 and any(_asks(part, depth - 1) for part in parts(test))
