"""What protects a call in its own function: handlers, locks, and contexts in which one rank goes first."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.callgraph.lock_objects import LockObjects
from fsrace_lint.analysis.dataflow.abstract_state import caught_by, mutually_exclusive
from fsrace_lint.analysis.dataflow.process_set import FIRST, NOT_FIRST, TOP
from fsrace_lint.analysis.values.abstract_values import Expression
from fsrace_lint.engine.query import query
from fsrace_lint.program.modules import LinkedClass, LinkedFunction
from fsrace_lint.program.symbols import qualified_name
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import dotted, last_name, parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.callgraph.framework_hooks import FrameworkHooks
    from fsrace_lint.analysis.callgraph.parameter_values import CallerRankTests
    from fsrace_lint.analysis.callgraph.summaries import Summaries
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, ExceptionContext
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.program.symbols import Symbol

_ALIASES_DEPTH: Final = 4
_ENDING: Final = frozenset({"sys.exit", "exit", "quit", "os._exit"})
_OTHERS: Final = {scope: NOT_FIRST[scope] for scope in ("global", "local")}
"""The processes that wait while rank 0 of a scope goes first."""


class Protection:
    """Finds the handlers, locks, and contexts around calls."""

    def __init__(self, hooks: FrameworkHooks, summaries: Summaries, rank_tests: CallerRankTests) -> None:
        """Initialize for a project."""
        self.hooks = hooks
        self.flows = hooks.flows
        self.catalog = self.flows.catalog
        self.summaries = summaries
        self.rank_tests = rank_tests
        self.locks = LockObjects(self.flows, rank_tests)

    def caught(self, call_site: CallSite) -> frozenset[str]:
        """Return the names of the exceptions that are handled around a call."""
        names: set[str] = set()
        for net in (*call_site.exception_contexts, *self._nets_of_contexts(call_site)):
            for handler in net.handlers:
                spelled = self._exceptions(caught_by(handler), net.scope, 0)
                names |= spelled & {"FileExistsError"} if gives_up(handler) else spelled
            for suppressed in () if net.suppressor is None else net.suppressor.arguments:
                names |= self._exceptions(suppressed, net.scope, 0)
        return frozenset(names)

    def _nets_of_contexts(self, call_site: CallSite) -> Iterator[ExceptionContext]:
        """Yield what catches exceptions around the `yield` of the generators that are contexts of a call."""
        for named in call_site.all_contexts:
            context = self._made(named)
            called = context.expr.function if isinstance(context.expr, m.Call) else context.expr
            entity = self.flows.resolver.symbol(called, context.scope)
            points = self.flows.yield_points(entity) if isinstance(entity, LinkedFunction) else ()
            for point in points[:1]:
                yield from point.exception_contexts

    def _exceptions(self, caught: m.Expr, scope: Environment, depth: int) -> set[str]:
        """Return the exceptions of an `except` clause, also if they are in a tuple with a name."""
        if depth > _ALIASES_DEPTH:
            return set()
        if isinstance(caught, (m.Name, m.Attribute)):
            bound = self.rank_tests.known(caught, scope)
            if isinstance(bound, Expression):
                return self._exceptions(bound.expr, bound.scope, depth + 1)
            return {_last(self.flows.resolver.qualify(caught, scope))}
        names = {name for part in parts(caught) for name in self._exceptions(part, scope, depth)}
        for result in self.flows.call_results(caught, scope):
            names |= self._exceptions(result.expr, result.scope, depth + 1)
        return names

    def locked(self, call_site: CallSite) -> bool:
        """Return whether an interprocess lock is held around a call, in its own function."""
        return bool(self.held(call_site))

    def held(self, call_site: CallSite) -> tuple[m.Expr, ...]:
        """Return the interprocess locks that are held around a call, in its own function."""
        contexts = (context.expr for context in call_site.all_contexts if self.locks.is_lock(context))
        return (*call_site.state.locks, *contexts)

    def serializing_context(self, call_site: CallSite) -> str | None:
        """Return the scope whose rank 0 runs a call before the other ranks, or None.

        A context, two barriers, or an earlier call can do this. The earlier call is the same call on rank 0
        only, with a barrier after it. A framework can make it in an earlier hook.
        """
        context = next((scope for _, scope, _ in self._firsts(call_site)), None)
        return context or self._between_barriers(call_site) or self._repeated(call_site)

    def _repeated(self, call_site: CallSite) -> str | None:
        """Return the scope whose rank 0 runs a call before a barrier, and the other ranks after it."""
        function = call_site.function
        return self._repetitions(function).get(call_site)

    @query
    def _repetitions(self, function: LinkedFunction) -> dict[CallSite, str]:
        return {**dict(self._find_prepared(function)), **dict(self._find_repetitions(function))}

    def _find_prepared(self, function: LinkedFunction) -> Iterator[tuple[CallSite, str]]:
        """Yield the calls in a hook that an earlier hook of the object has made on rank 0 of a scope."""
        hook = self.hooks.of(function)
        if hook is None or hook.runs != "every" or function.owner is None:
            return
        for method in (each for class_ in function.owner.ancestors() for each in class_.methods.values()):
            first = self.hooks.of(method)
            if first is not None and first.barrier:
                made = [call_site.call for call_site in self.flows.call_sites(method)]
                for call_site in self.flows.call_sites(function):
                    callee = self.flows.resolver.callee(call_site.call, call_site.state.scope)
                    if callee is not None and any(_is_same_call(call, call_site.call) for call in made):
                        yield call_site, first.runs

    def _find_repetitions(self, function: LinkedFunction) -> Iterator[tuple[CallSite, str]]:
        call_sites = self.flows.call_sites(function)
        alone = [
            (call_site, scope)
            for call_site in call_sites
            for scope in _OTHERS
            if call_site.state.processes == FIRST[scope]
            and self.flows.resolver.callee(call_site.call, call_site.state.scope)
        ]
        waiting = [each for each in call_sites if self.summaries.waits(each)] if alone else []
        for first, scope in alone:
            behind = _waits_of_others(first, scope, waiting)
            again = [
                call_site
                for call_site in call_sites
                if any(wait.call.span < call_site.call.span for wait in behind)
                and _is_same_call(first.call, call_site.call)
                and call_site.state.processes & _OTHERS[scope]
            ]
            yield from ((call_site, scope) for call_site in (first, *again) if again)

    def _between_barriers(self, call_site: CallSite) -> str | None:
        """Return the scope whose other ranks wait at a barrier before a call, and rank 0 at one after it."""
        function = call_site.function
        at, turns = call_site.call.span, self._turns(function)
        return next((scope for away, back, scope in turns if away.call.span < at < back.call.span), None)

    @query
    def _turns(self, function: LinkedFunction) -> tuple[tuple[CallSite, CallSite, str], ...]:
        return tuple(self._find_turns(function))

    def _find_turns(self, function: LinkedFunction) -> Iterator[tuple[CallSite, CallSite, str]]:
        call_sites = self.flows.call_sites(function)
        if not any(
            call_site.state.processes == others for call_site in call_sites for others in _OTHERS.values()
        ):
            return
        for away, back in itertools.pairwise(
            call_site for call_site in call_sites if self.summaries.waits(call_site)
        ):
            for scope, others in _OTHERS.items():
                if away.state.processes == others and back.state.processes == FIRST[scope]:
                    yield away, back, scope

    def serializer_entry(self, call_site: CallSite) -> m.Expr | None:
        """Return the context around a call in which the other ranks wait at a barrier, or None."""
        return next((context for context, _, waits in self._firsts(call_site) if waits == "barrier"), None)

    def _firsts(self, call_site: CallSite) -> Iterator[tuple[m.Expr, str, str]]:
        """Yield the contexts in which one rank goes first, with the scope and how the other ranks wait."""
        for context in call_site.all_contexts:
            for scope, waits in self._turns_of(context, 0):
                yield context.expr, scope, waits

    def _turns_of(self, named: Expression, depth: int) -> Iterator[tuple[str, str]]:
        """Yield the scope of the rank that enters a context first, and how the other ranks wait.

        A generator of the project can yield within such a context.
        """
        context = self._made(named)
        if not isinstance(context.expr, m.Call) or depth > _ALIASES_DEPTH:
            return
        entity = self.flows.resolver.symbol(context.expr.function, context.scope)
        name = qualified_name(entity) or "*." + last_name(context.expr.function)
        entry = self.catalog.find("first", name)
        own = self._own_scope(entity)
        given = self._rank_given(context.expr, context.scope)
        if entry is not None:
            yield given or entry.scope, entry.waits
        elif own is not None:
            yield given or own, "barrier"
        elif isinstance(entity, LinkedFunction):
            for point in self.flows.yield_points(entity)[:1]:
                for inner in point.contexts:
                    yield from self._turns_of(inner, depth + 1)

    def _own_scope(self, entity: Symbol | None) -> str | None:
        """Return the scope whose rank 0 goes first in a context manager of the project, or None."""
        if isinstance(entity, LinkedFunction):
            return self.summaries.first_scope(entity)
        return self.summaries.first_scope_of(entity) if isinstance(entity, LinkedClass) else None

    def _made(self, context: Expression, depth: int = 0) -> Expression:
        """Return the call that creates a context, also by name or in a function that only returns it."""
        bound = self.rank_tests.known(context.expr, context.scope)
        made = bound if isinstance(bound, Expression) else context
        callee = self.flows.resolver.callee(made.expr, made.scope) if isinstance(made.expr, m.Call) else None
        if callee is None or callee.facts.is_generator or depth >= _ALIASES_DEPTH:
            return made
        values = self.flows.return_values(callee)
        return self._made(values[0], depth + 1) if len(values) == 1 else made

    def _rank_given(self, call: m.Call, scope: Environment) -> str | None:
        """Return the scope of the rank that is passed to a context, or that its `local` flag selects."""
        for keyword in call.keywords:
            told = keyword.value.value if isinstance(keyword.value, m.Constant) else None
            if keyword.name == "local" and isinstance(told, bool):
                return "local" if told else "global"
        scopes = (self.rank_tests.rank_scope(value, scope) for value in call.arguments[:1])
        return next((found for found in scopes if found in {"global", "local"}), None)


def _waits_of_others(first: CallSite, scope: str, waiting: Iterable[CallSite]) -> list[CallSite]:
    """Return the barriers in which the other ranks wait until rank 0 of a scope has made a call.

    All ranks can reach one barrier after the call, or rank 0 reaches one and the other ranks another one.
    """
    after = [each for each in waiting if each.call.span > first.call.span]
    common = [each for each in after if each.state.processes == TOP]
    if any(each.state.processes == FIRST[scope] for each in after):
        other_branch = [
            each for each in waiting if mutually_exclusive(first.state.conditions, each.state.conditions)
        ]
        common += [each for each in other_branch if each.state.processes == _OTHERS[scope]]
    return common


def _is_same_call(one: m.Call, other: m.Call) -> bool:
    """Return whether two calls have the same function and arguments."""
    return (one.function, one.arguments, one.keywords) == (other.function, other.arguments, other.keywords)


def gives_up(handler: m.Handler) -> bool:
    """Return whether a handler always raises an exception or ends the process."""
    return any(isinstance(statement, m.Raise) or _ends(statement) for statement in handler.body)


def _ends(statement: m.Statement) -> bool:
    """Return whether a statement ends the process with a nonzero or unknown exit status."""
    match statement:
        case m.Evaluate(value=m.Call(function=called, arguments=arguments)):
            return dotted(called) in _ENDING and arguments not in {(), (m.Constant(0),)}
        case _:
            return False


def _last(name: str | None) -> str:
    return "" if name is None else name.rpartition(".")[2]
