"""Interprocess locks: their files, and how long a process waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.accesses.file_handles import FileHandles
from fsrace_lint.analysis.accesses.model import Operation
from fsrace_lint.analysis.synchronization.model import Lock
from fsrace_lint.analysis.values.abstract_values import Expression, Union
from fsrace_lint.analysis.values.call_arguments import holds, library_argument, words
from fsrace_lint.analysis.values.trace_back import sides_of
from fsrace_lint.engine.query import query
from fsrace_lint.program.modules import LinkedClass
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.accesses import Accesses
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.values.abstract_values import Binding
    from fsrace_lint.catalog.entries import LockEntry
    from fsrace_lint.program.modules import LinkedFunction


class Locks:
    """Finds the locks that functions create or acquire."""

    def __init__(self, entry_states: EntryStates, accesses: Accesses) -> None:
        """Initialize for a project."""
        self.entry_states = entry_states
        self.flows = entry_states.flows
        self.protection = entry_states.protection
        self.accesses = accesses
        self.files = FileHandles(entry_states, accesses.effects)
        self._names = self.flows.relevance.library_names(self.flows.catalog.last_names["lock"])

    @query
    def of(self, function: LinkedFunction) -> tuple[Lock, ...]:
        """Return the calls of a function that create or acquire a lock."""
        return tuple(self._find(function))

    def of_class(self, function: LinkedFunction) -> Iterator[Lock]:
        """Yield the locks of a function, its enclosing functions, and the other methods of its class."""
        around: list[LinkedFunction] = []
        each: LinkedFunction | None = function
        while each is not None:
            around.append(each)
            for class_ in () if each.owner is None else each.owner.ancestors():
                around.extend(class_.methods.values())
            each = each.enclosing
        for other in dict.fromkeys(around):
            yield from self.of(other)

    def is_held(self, lock: Lock, call_site: CallSite) -> bool:
        """Return whether a lock is held at a call: the lock itself, its file, or a name bound to it."""
        return any(self.is_it(lock, held, call_site) for held in self.protection.held(call_site))

    def is_it(self, lock: Lock, held: m.Expr, call_site: CallSite) -> bool:
        """Return whether an expression that is held at a call is a lock, its file, or a name of it."""
        taken = lock.access.call_site.call
        bound = self.entry_states.rank_tests.known(held, call_site.state.scope)
        named = any(value.expr is taken for value in _values(bound))
        return held is taken or named or (lock.opened is not None and held == taken.arguments[0])

    def releases(self, call_site: CallSite) -> bool:
        """Return whether a call releases a lock."""
        entry = self._entry(call_site)
        return entry is not None and _releases(entry, call_site.call)

    def _entry(self, call_site: CallSite) -> LockEntry | None:
        """Return the library model of a lock call, or None."""
        if last_name(call_site.call.function) not in self._names:
            return None
        name = self.flows.resolver.qualify(call_site.call.function, call_site.state.scope)
        found: LockEntry | None = self.flows.catalog.find("lock", name)
        return found

    def _find(self, function: LinkedFunction) -> Iterator[Lock]:
        if not function.facts.has_context and not self.flows.relevance.may_use(function, self._names):
            return
        call_sites = self.flows.call_sites(function)
        contexts = {
            Identity(context.expr): context for call_site in call_sites for context in call_site.contexts
        }
        own = {key for key, context in contexts.items() if self.protection.locks.is_lock(context)}
        for call_site in call_sites:
            entry = self._entry(call_site)
            lock = None if entry is None or _releases(entry, call_site.call) else self._lock(entry, call_site)
            if lock is not None:
                yield lock
            elif Identity(call_site.call) in own:
                yield self._own(call_site)

    def _own(self, call_site: CallSite) -> Lock:
        """Return a lock of a class or context manager of the project.

        The first argument is the lock file if the path is named like a lock.
        """
        first = call_site.call.arguments[0] if call_site.call.arguments else None
        path = None if first is None else self.entry_states.paths.normalize(first, call_site.state.scope)
        known = first is not None and path is not None and path.names_a_lock
        file = first if known and first is not None else call_site.call.function
        operation = Operation("create", file, last_name(call_site.call.function), tolerant=True)
        return Lock(
            self.accesses.access_at(operation, call_site, call_site.state.scope), waits=False, is_marker=True
        )

    def _lock(self, entry: LockEntry, call_site: CallSite) -> Lock | None:
        path, scope, opened = self._path(entry, call_site), call_site.state.scope, None
        if path is None:
            return None
        if entry.file:
            opened = self.files.opening(path, scope)
        if opened is not None:
            path, scope = opened.operation.path, opened.scope
        name = self.flows.resolver.qualify(call_site.call.function, call_site.state.scope) or ""
        operation = Operation("create", path, name, tolerant=True)
        waits = self._waits(entry, call_site.call) and not self._is_limited(call_site)
        access = self.accesses.access_at(operation, call_site, scope)
        return Lock(access, waits, entry.marker, opened, accepts_timeout=bool(entry.timeout))

    @staticmethod
    def _path(entry: LockEntry, call_site: CallSite) -> m.Expr | None:
        """Return the expression of the lock file: its path, or the open file."""
        if entry.path or entry.file:
            return library_argument(call_site.call, entry.path or entry.file)
        return call_site.call.function if entry.kind == "within" else None

    @staticmethod
    def _waits(entry: LockEntry, call: m.Call) -> bool:
        """Return whether a call waits without a timeout."""
        flags = set(words(library_argument(call, entry.flags)))
        if not entry.waits or (entry.flags and (not flags or not flags.isdisjoint(entry.trying))):
            return False
        if entry.blocking and not holds(entry.blocking, call):
            return False
        limit = library_argument(call, entry.timeout)
        return limit is None or (isinstance(limit, m.Constant) and not _is_limit(limit.value))

    def _is_limited(self, made: CallSite) -> bool:
        """Return whether a lock has a timeout outside the call that creates it.

        The lock is of a class of the project, or is acquired with arguments after its creation.
        """
        function = made.function
        class_ = self.flows.resolver.symbol(made.call.function, made.state.scope)
        if isinstance(class_, LinkedClass) and not self._is_of_library(class_):
            return True
        around = (function,) if function.owner is None else tuple(function.owner.methods.values())
        for call_site in (call_site for each in around for call_site in self.flows.call_sites(each)):
            asked = call_site.call.function
            if isinstance(asked, m.Attribute) and asked.name.startswith("acquire"):
                bound = self.entry_states.rank_tests.known(asked.value, call_site.state.scope)
                is_this = asked.value is made.call or any(v.expr is made.call for v in _values(bound))
                if is_this and (call_site.call.arguments or call_site.call.keywords):
                    return True
        return False

    def _is_of_library(self, class_: LinkedClass) -> bool:
        """Return whether a class of the project inherits from a library lock."""
        names = self.flows.resolver.known_as(class_, 0)
        return any(self.flows.catalog.exact("lock", name) is not None for name in names)


def _releases(entry: LockEntry, call: m.Call) -> bool:
    flags = words(library_argument(call, entry.flags))
    return entry.kind == "release" or not set(flags).isdisjoint(entry.releasing)


def _is_limit(value: object) -> bool:
    return isinstance(value, (int, float)) and value >= 0


def _values(binding: Binding | None) -> Iterator[Expression]:
    """Yield the expressions that a name may be bound to, as far as they are in the source."""
    if isinstance(binding, Expression):
        yield from (binding, *sides_of(binding))
    for option in binding.options if type(binding) is Union else ():
        yield from _values(option)
