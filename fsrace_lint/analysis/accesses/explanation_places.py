"""Places that explain why an access is not reported: a rank check, a handler, a lock, or a caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from fsrace_lint.analysis.dataflow.process_set import TOP, runs
from fsrace_lint.analysis.dataflow.rank_partition import UNPARTITIONED
from fsrace_lint.analysis.values.abstract_values import Expression
from fsrace_lint.analysis.values.trace_back import expressions_of
from fsrace_lint.files.spans import Place
from fsrace_lint.program.symbols import as_function
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fsrace_lint.analysis.callgraph.call_edges import CallEdge
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.dataflow.process_set import Runs
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.files.spans import Span

_DEEPEST: Final = 8


class ExplanationStep(NamedTuple):
    """A call on the way up the call graph from an access.

    Attributes:
        call_site: The call.
        edge: The call edge from it to the previous step.
        is_one_of_several: Whether other call edges lead there too.
    """

    call_site: CallSite
    edge: CallEdge | None = None
    is_one_of_several: bool = False


class ExplanationPlaces:
    """Finds the places that explain accesses, nearest first."""

    def __init__(self, entry_states: EntryStates) -> None:
        """Initialize for a project."""
        self.entry_states = entry_states
        self.protection = entry_states.protection
        self.flows = entry_states.flows

    def nearest(
        self, call_site: CallSite, look: Callable[[ExplanationStep], Place | None]
    ) -> tuple[Place, ExplanationStep] | tuple[None, None]:
        """Search a call, the calls of its function, their callers, and so on.

        Args:
            call_site: The call to start with.
            look: Returns the place to find if a step has it.

        Returns:
            The first place found and its step, or None for both.
        """
        for step in self._upward(call_site):
            place = look(step)
            if place is not None:
                return place, step
        return None, None

    def _upward(self, call_site: CallSite) -> Iterator[ExplanationStep]:
        waiting = [ExplanationStep(call_site)]
        seen = set()
        while waiting:
            step = waiting.pop(0)
            yield step
            function = step.call_site.function
            if function not in seen:
                seen.add(function)
                edges = self.entry_states.callers(function)
                several = step.is_one_of_several or len(edges) > 1
                waiting += [ExplanationStep(edge.call_site, edge, several) for edge in edges]

    def guard(self, step: ExplanationStep, wanted: Runs) -> Place | None:
        """Return the place of the rank check for a call: in its function, or in the helper that runs it."""
        if step.edge is not None and runs(step.edge.only) is wanted:
            return place_of(step.call_site)
        return self.guard_at(step.call_site, wanted)

    def guard_at(self, call_site: CallSite, wanted: Runs) -> Place | None:
        """Return the place of the rank check in the function of a call: a test, an exit, or a decorator."""
        reached = TOP
        for literal in call_site.state.conditions:
            reached &= self.entry_states.deciding(literal)
            if runs(reached) is wanted:
                return self._tested(call_site, literal)
        if runs(call_site.state.processes) is wanted:
            return self._left_behind(call_site, wanted)
        if runs(self.entry_states.processes(call_site)) is wanted:
            return place_of(call_site)
        if runs(self.entry_states.decorated(call_site.function)) is wanted:
            return Place(call_site.function.module.path, call_site.function.facts.span)
        return None

    @staticmethod
    def _tested(call_site: CallSite, literal: PathCondition) -> Place:
        span = _span_of(literal.test) if literal.branch is None else literal.branch.span
        return Place(call_site.function.module.path, span or call_site.call.span)

    def _left_behind(self, call_site: CallSite, wanted: Runs) -> Place:
        """Return the place of the call from which the other ranks do not return, or of a rank check."""
        before: CallSite | None = None
        for earlier in self.flows.call_sites_before(call_site):
            if runs(earlier.state.processes) is wanted:
                break
            before = earlier
        if before is not None and self._lets_few_return(before):
            return place_of(before)
        for literal in call_site.state.conditions:
            if literal.branch is not None and self._divides(literal.test, literal.scope):
                return Place(call_site.function.module.path, literal.branch.span)
        flow = self.flows.flow(call_site.function)
        tests = () if flow is None else flow.rank_tests
        return Place(call_site.function.module.path, tests[0].span) if tests else place_of(call_site)

    def _divides(self, test: m.Expr, scope: Environment) -> bool:
        """Return whether a part of a test is a rank check: `not path or rank == 0`."""
        divided = self.entry_states.rank_tests.partition(test, scope) != UNPARTITIONED
        return divided or any(self._divides(part, scope) for part in parts(test))

    def _lets_few_return(self, call_site: CallSite) -> bool:
        """Return whether a call runs a function of the project from which not all processes return."""
        entity = self.flows.resolver.symbol(call_site.call.function, call_site.state.scope)
        function = as_function(entity)
        exits = () if function is None else self.flows.exit_points(function)
        return bool(exits) and not any(way.state.processes == TOP for way in exits)

    def handler(self, step: ExplanationStep, tolerates: Callable[[frozenset[str]], bool]) -> Place | None:
        """Return the place of the handler around a call. A callback has no handler around it."""
        return (
            None
            if step.edge is not None and step.edge.passed_as_callback
            else self.handler_at(step.call_site, tolerates)
        )

    def handler_at(self, call_site: CallSite, tolerates: Callable[[frozenset[str]], bool]) -> Place | None:
        """Return the place of the handler or suppressing context around a call, in its function."""
        for net in reversed(call_site.exception_contexts):
            for handler in net.handlers:
                alone = replace(
                    call_site, exception_contexts=(replace(net, handlers=(handler,), suppressor=None),)
                )
                if tolerates(self.protection.caught(alone)):
                    return Place(call_site.function.module.path, handler.span)
            suppressor = net.suppressor
            if suppressor is not None and tolerates(
                self.protection.caught(replace(call_site, exception_contexts=(net,)))
            ):
                return Place(call_site.function.module.path, suppressor.span)
        return None

    def lock(self, step: ExplanationStep) -> Place | None:
        """Return where the lock around a call is created or entered. A callback has no lock around it."""
        return (
            None if step.edge is not None and step.edge.passed_as_callback else self.lock_at(step.call_site)
        )

    def lock_at(self, call_site: CallSite) -> Place | None:
        """Return where the lock around a call, in its function, is created or entered."""
        held = self.protection.held(call_site)
        return (self._made(held[0], call_site.state.scope) or place_of(call_site)) if held else None

    def first(self, step: ExplanationStep) -> Place | None:
        """Return the place of the context or helper in which one rank goes first."""
        if step.edge is not None and step.edge.passed_as_callback:
            return None if step.edge.first is None else place_of(step.call_site)
        call_site = step.call_site
        for context in call_site.contexts:
            if self.protection.serializing_context(replace(call_site, contexts=(context,))) is not None:
                span = _span_of(context.expr)
                return None if span is None else Place(call_site.function.module.path, span)
        return None

    def private(self, expr: m.Expr, scope: Environment, depth: int = 0) -> tuple[Expression, ...]:
        """Return the calls through which a value differs between processes, the one of the reason last."""
        if depth > _DEEPEST or not self.entry_states.rank_dependence.is_rank_dependent(expr, scope):
            return ()
        if isinstance(expr, (m.Name, m.Attribute)):
            inner = expressions_of(self.entry_states.rank_tests.known(expr, scope))
            if isinstance(expr, m.Attribute) and not inner:
                inner = [Expression(expr.value, scope)]
        else:
            inner = [Expression(part, scope) for part in parts(expr)]
        inner += self.flows.call_results(expr, scope)
        found = (self.private(value.expr, value.scope, depth + 1) for value in inner)
        calls = next(filter(None, found), ())
        return (Expression(expr, scope), *calls) if isinstance(expr, m.Call) else calls

    def passed(self, step: ExplanationStep) -> Place | None:
        """Return the place of the call if it passes a value that differs between processes."""
        if step.edge is None:
            return None
        scope = step.call_site.state.scope
        values = parts(step.call_site.call)
        differs = step.edge.spawn is not None
        if differs or any(
            self.entry_states.rank_dependence.is_rank_dependent(value, scope) for value in values
        ):
            return place_of(step.call_site)
        return None

    def _made(self, expr: m.Expr, scope: Environment) -> Place | None:
        """Return the place of the call that creates an object, also if the object is given by name."""
        span = _span_of(expr)
        if span is not None:
            return Place(scope.function.module.path, span)
        made = (place_in(value) for value in expressions_of(self.entry_states.rank_tests.known(expr, scope)))
        return next(filter(None, made), None)


def place_of(call_site: CallSite) -> Place:
    """Return the place of a call."""
    return Place(call_site.function.module.path, call_site.call.span)


def place_in(value: Expression) -> Place | None:
    """Return the place of the first call in an expression, or None."""
    span = _span_of(value.expr)
    return None if span is None else Place(value.scope.function.module.path, span)


def _span_of(expr: m.Expr) -> Span | None:
    """Return the span of the first call in an expression. Only calls have spans."""
    if isinstance(expr, m.Call):
        return expr.span
    return next(filter(None, map(_span_of, parts(expr))), None)
