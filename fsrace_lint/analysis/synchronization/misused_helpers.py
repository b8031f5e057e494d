"""Synchronization helpers that are called so that they have no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.accesses.model import LOOKING
from fsrace_lint.analysis.dataflow.process_set import Runs, runs
from fsrace_lint.analysis.synchronization.model import Misuse
from fsrace_lint.analysis.values.call_arguments import arguments_of, bind
from fsrace_lint.engine.query import lazy
from fsrace_lint.program.modules import LinkedFunction
from fsrace_lint.program.relevance import EVERYTHING
from fsrace_lint.program.symbols import as_function, qualified_name
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.traversal import suites
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.accesses.accesses import Accesses
    from fsrace_lint.analysis.callgraph.concurrency import Evidence
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.program.symbols import Symbol

_CONTEXT_MAKERS: Final = frozenset({"contextmanager", "asynccontextmanager"})
_FUNCTION_KEYWORDS: Final = frozenset({"function", "func", "fn", "f", "callback"})
_ONCE: Final = frozenset({Runs.ONE, Runs.PER_NODE})
_DATA: Final = (m.Constant, m.Format, m.Sequence, m.Compare, m.Binary, m.Not, m.Comprehension)
"""Expressions whose value is never a function."""


class MisusedHelpers:
    """Finds misused synchronization helpers in functions."""

    def __init__(self, entry_states: EntryStates, accesses: Accesses) -> None:
        """Initialize for a project."""
        self.accesses = accesses
        self.entry_states = entry_states
        self.flows = entry_states.flows
        self.relevance = self.flows.relevance
        self.catalog = entry_states.catalog

    def never_entered(self, function: LinkedFunction) -> Iterator[Misuse]:
        """Yield the calls that create a synchronizing context manager and do not enter it."""
        if not self.relevance.may_use(function, self._contexts):
            return
        called = ((call, last_name(call.function)) for call in _statements(function.facts.body))
        bare = {call for call, name in called if name in self._contexts}
        for call_site in self.flows.call_sites(function) if bare else ():
            what = self._entering(call_site) if call_site.call in bare else ""
            if what:
                yield Misuse(call_site, self._evidence(call_site), what)

    def _entering(self, call_site: CallSite) -> str:
        """Return what entering a synchronizing context does, or an empty string for other calls."""
        entity = self.flows.resolver.symbol(call_site.call.function, call_site.state.scope)
        if isinstance(entity, LinkedFunction) and not _makes_context(entity):
            return ""
        name = qualified_name(entity) or f"*.{last_name(call_site.call.function)}"
        first = self.catalog.find("first", name)
        if first is not None:
            return "" if first.runs_given else "lets rank 0 run before the other ranks"
        lock = self.catalog.find("lock", name)
        if lock is not None:
            return "locks" if lock.kind == "context" and not _acquires(name) else ""
        return self._entering_own(entity)

    def _entering_own(self, entity: Symbol | None) -> str:
        """Return what entering a context manager of the project does, or an empty string."""
        class_ = self.flows.resolver.class_of(entity)
        if class_ is not None and class_ is entity:
            enter, init = class_.method("__enter__"), class_.method("__init__")
            takes = enter is not None and self.entry_states.protection.locks.takes_lock(enter)
            early = init is not None and self.entry_states.protection.locks.takes_lock(init)
            return "locks" if takes and not early else ""
        if not isinstance(entity, LinkedFunction):
            return ""
        if self.entry_states.summaries.first_scope(entity) is not None:
            return "lets rank 0 run before the other ranks"
        if self.entry_states.protection.locks.takes_lock(entity):
            return "locks"
        waits = any(map(self.entry_states.summaries.waits, self.flows.call_sites(entity)))
        return "waits for the other processes" if waits else ""

    def eager(self, function: LinkedFunction) -> Iterator[Misuse]:
        """Yield the calls that pass the result of a call to a run-once helper, instead of the function."""
        if function not in self._handing:
            return
        for call_site in self.flows.call_sites(function):
            for position, name, value in arguments_of(call_site.call):
                if not isinstance(value, m.Call) or not self._runs_once(call_site, position, name):
                    continue
                if self._gives_no_function(value, call_site.state.scope):
                    called = spell(value.function)
                    yield Misuse(call_site, self._evidence(call_site), called, argument=spell(value))

    @lazy
    def _contexts(self) -> frozenset[str]:
        """The last names of functions and classes that may create a synchronizing context manager."""
        return self.relevance.filtered(self._find_contexts, EVERYTHING)

    def _find_contexts(self) -> frozenset[str]:
        names = {name for kind in ("first", "lock") for name in self.catalog.last_names[kind]}
        for module in self.flows.table.modules:
            names.update(function.facts.name for function in module.functions if _makes_context(function))
            names.update(class_.facts.name for class_ in module.classes)
        return self.relevance.project_names(names)

    @lazy
    def _handing(self) -> frozenset[LinkedFunction]:
        """The functions that may pass something to a run-once helper."""
        return self.relevance.filtered(self._find_handing, EVERYTHING)

    def _find_handing(self) -> frozenset[LinkedFunction]:
        known = self.catalog.last_names["run-once"] | self.catalog.last_names["decorator"]
        found = set(self.relevance.using(self.relevance.library_names(known)))
        waiting = [f for module in self.flows.table.modules for f in module.functions if f.facts.runs]
        helpers = dict.fromkeys(waiting)
        while waiting:
            helper = waiting.pop()
            further = [outer for outer in (helper.enclosing,) if outer is not None and outer.index != 0]
            if self._is_once(helper):
                callers = self.relevance.candidate_callers(helper)
                found.update(callers)
                further += callers
            new = dict.fromkeys(each for each in further if each not in helpers)
            helpers |= new
            waiting += new
        return frozenset(found)

    def _is_once(self, helper: LinkedFunction) -> bool:
        """Return whether a function runs a callback in one process of the job or of each node."""
        given = self.entry_states.summaries.callback_processes
        return any(runs(given(helper, name)) in _ONCE for name in helper.parameters)

    def _evidence(self, call_site: CallSite) -> Evidence:
        return self.accesses.evidence.trace(call_site).evidence

    def _runs_once(self, call_site: CallSite, position: int | None, keyword: str | None) -> bool:
        """Return whether a call runs an argument in one process of the job or of each node."""
        entity = self.flows.resolver.symbol(call_site.call.function, call_site.state.scope)
        name = qualified_name(entity) or f"*.{last_name(call_site.call.function)}"
        if self.catalog.is_any(("run-once", "decorator"), name):
            return position == 0 or keyword in _FUNCTION_KEYWORDS
        helper = as_function(entity)
        parameter = None if helper is None else bind(call_site.call, helper).parameter_for(position, keyword)
        if helper is None or parameter is None:
            return False
        return runs(self.entry_states.summaries.callback_processes(helper, parameter)) in _ONCE

    def _gives_no_function(self, call: m.Call, scope: Environment) -> bool:
        """Return whether a call is done when it returns, and its result is not callable."""
        callee = self.flows.resolver.symbol(call.function, scope)
        if isinstance(callee, LinkedFunction):
            ways = () if callee.facts.is_generator else self.flows.exit_points(callee)
            return bool(ways) and all(way.value is None or isinstance(way.value, _DATA) for way in ways)
        operation = self.accesses.effects.operation(call, scope)
        return operation is not None and operation.op not in LOOKING


def _makes_context(function: LinkedFunction) -> bool:
    return not _CONTEXT_MAKERS.isdisjoint(map(last_name, function.facts.decorators))


def _acquires(name: str) -> bool:
    """Return whether a call acquires a lock at once, although its result is also a context manager."""
    return name.rpartition(".")[2].startswith("acquire")


def _statements(body: Iterable[m.Statement]) -> Iterator[m.Call]:
    """Yield the calls that are expression statements."""
    for statement in body:
        if isinstance(statement, m.Evaluate) and isinstance(statement.value, m.Call):
            yield statement.value
        for suite in suites(statement):
            yield from _statements(suite)
