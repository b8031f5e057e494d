"""Where a reason for silence stands: the test, the handler, the lock or the caller that decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from fsrace_lint.analysis.dataflow.process_set import TOP, runs
from fsrace_lint.analysis.dataflow.rank_partition import UNPARTITIONED
from fsrace_lint.analysis.program.symbols import as_function
from fsrace_lint.analysis.values.abstract_values import Expression, expressions_of
from fsrace_lint.files.spans import Place
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fsrace_lint.analysis.callgraph.call_graph import CallEdge
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.dataflow.process_set import Runs
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.files.spans import Span

_DEEPEST: Final = 8


class ExplanationStep(NamedTuple):
    """A call on the way up from a site; `edge` led here, and `is_one_of_several` says that others do too."""

    event: CallSite
    edge: CallEdge | None = None
    is_one_of_several: bool = False


class ExplanationPlaces:
    """Finds the places that reasons point at, the nearest to the site first."""

    def __init__(self, propagation: EntryStates) -> None:
        """Prepare for a project."""
        self.propagation = propagation
        self.protection = propagation.protection
        self.linker = propagation.linker

    def nearest(
        self, event: CallSite, look: Callable[[ExplanationStep], Place | None]
    ) -> tuple[Place, ExplanationStep] | tuple[None, None]:
        """Look at a call, at the calls of its function, at the calls of those, and so on.

        Args:
            event: The call to begin with.
            look: Gives the place of what is looked for, where a call has it.

        Returns:
            The first place that it gives, and the call.
        """
        for step in self._upward(event):
            place = look(step)
            if place is not None:
                return place, step
        return None, None

    def _upward(self, event: CallSite) -> Iterator[ExplanationStep]:
        waiting = [ExplanationStep(event)]
        seen = set()
        while waiting:
            step = waiting.pop(0)
            yield step
            function = step.event.function
            if function not in seen:
                seen.add(function)
                edges = self.propagation.callers(function)
                several = step.is_one_of_several or len(edges) > 1
                waiting += [ExplanationStep(edge.event, edge, several) for edge in edges]

    def guard(self, step: ExplanationStep, wanted: Runs) -> Place | None:
        """Find what lets only so few processes come to a call: who runs what is handed over, or its guard."""
        if step.edge is not None and runs(step.edge.only) is wanted:
            return place_of(step.event)
        return self.guard_at(step.event, wanted)

    def guard_at(self, event: CallSite, wanted: Runs) -> Place | None:
        """Find what guards a call in its own function: a test, a call that leaves, a decorator."""
        reached = TOP
        for literal in event.state.conditions:
            reached &= self.propagation.deciding(literal)
            if runs(reached) is wanted:
                return self._tested(event, literal)
        if runs(event.state.processes) is wanted:
            return self._left_behind(event, wanted)
        if runs(self.propagation.decorated(event.function)) is wanted:
            return Place(event.function.module.path, event.function.facts.span)
        return None

    @staticmethod
    def _tested(event: CallSite, literal: PathCondition) -> Place:
        span = _span_of(literal.test) if literal.branch is None else literal.branch.span
        return Place(event.function.module.path, span or event.call.span)

    def _left_behind(self, event: CallSite, wanted: Runs) -> Place:
        """Find the call from which the others do not come back, or else a test that asks for a rank."""
        before: CallSite | None = None
        for earlier in self.linker.call_sites_before(event):
            if runs(earlier.state.processes) is wanted:
                break
            before = earlier
        if before is not None and self._lets_few_return(before):
            return place_of(before)
        for literal in event.state.conditions:
            if literal.branch is not None and self._divides(literal.test, literal.scope):
                return Place(event.function.module.path, literal.branch.span)
        flow = self.linker.flow(event.function)
        tests = () if flow is None else flow.rank_tests
        return Place(event.function.module.path, tests[0].span) if tests else place_of(event)

    def _divides(self, test: m.Expr, scope: Environment) -> bool:
        """Tell whether a part of a test asks for a rank: `not path or rank == 0`."""
        divided = self.linker.guards.partition(test, scope) != UNPARTITIONED
        return divided or any(self._divides(part, scope) for part in parts(test))

    def _lets_few_return(self, event: CallSite) -> bool:
        """Tell whether a call is one of a function of the project from which not all come back."""
        entity = self.linker.resolver.symbol(event.call.function, event.state.scope)
        function = as_function(entity)
        exits = () if function is None else self.linker.exit_points(function)
        return bool(exits) and not any(way.state.processes == TOP for way in exits)

    def handler(self, step: ExplanationStep, tolerates: Callable[[frozenset[str]], bool]) -> Place | None:
        """Find the handler around a call; none is around what it is only handed."""
        return (
            None
            if step.edge is not None and step.edge.passed_as_callback
            else self.handler_at(step.event, tolerates)
        )

    def handler_at(self, event: CallSite, tolerates: Callable[[frozenset[str]], bool]) -> Place | None:
        """Find the handler around a call, or the context that suppresses, in its own function."""
        for net in reversed(event.exception_contexts):
            for handler in net.handlers:
                alone = replace(event, nets=(replace(net, handlers=(handler,), suppressor=None),))
                if tolerates(self.protection.caught(alone)):
                    return Place(event.function.module.path, handler.span)
            suppressor = net.suppressor
            if suppressor is not None and tolerates(self.protection.caught(replace(event, nets=(net,)))):
                return Place(event.function.module.path, suppressor.span)
        return None

    def lock(self, step: ExplanationStep) -> Place | None:
        """Find where the lock around a call is made or entered; a call that is only handed it holds none."""
        return None if step.edge is not None and step.edge.passed_as_callback else self.lock_at(step.event)

    def lock_at(self, event: CallSite) -> Place | None:
        """Find where the lock around a call, in its own function, is made or entered."""
        held = self.protection.held(event)
        return (self._made(held[0], event.state.scope) or place_of(event)) if held else None

    def first(self, step: ExplanationStep) -> Place | None:
        """Find what lets one process go first: who runs what is handed over, or the context around a call."""
        if step.edge is not None and step.edge.passed_as_callback:
            return None if step.edge.first is None else place_of(step.event)
        event = step.event
        for context in event.contexts:
            if self.protection.serializing_context(replace(event, contexts=(context,))) is not None:
                span = _span_of(context.expr)
                return None if span is None else Place(event.function.module.path, span)
        return None

    def private(self, expr: m.Expr, scope: Environment, depth: int = 0) -> Place | None:
        """Find where what differs from process to process in a value is asked for, where that is a call."""
        if depth > _DEEPEST or not self.linker.privacy.is_rank_dependent(expr, scope):
            return None
        if isinstance(expr, (m.Name, m.Attribute)):
            inner = expressions_of(self.linker.guards.known(expr, scope))
            if isinstance(expr, m.Attribute) and not inner:
                inner = [Expression(expr.value, scope)]
        else:
            inner = [Expression(part, scope) for part in parts(expr)]
        if isinstance(expr, m.Call):
            inner += self._returned(expr, scope)
        found = (self.private(value.expr, value.scope, depth + 1) for value in inner)
        place = next(filter(None, found), None)
        if place is None and isinstance(expr, m.Call):
            return Place(scope.function.module.path, expr.span)
        return place

    def _returned(self, call: m.Call, scope: Environment) -> list[Expression]:
        """Give what a function of the project returns."""
        function = self.linker.resolver.callee(call, scope)
        ways = () if function is None else self.linker.exit_points(function)
        return [Expression(way.value, way.state.scope) for way in ways if way.value is not None]

    def passed(self, step: ExplanationStep) -> Place | None:
        """Tell whether a caller passes something that differs from process to process."""
        if step.edge is None:
            return None
        scope = step.event.state.scope
        values = parts(step.event.call)
        differs = step.edge.spawn is not None
        if differs or any(self.linker.privacy.is_rank_dependent(value, scope) for value in values):
            return place_of(step.event)
        return None

    def _made(self, expr: m.Expr, scope: Environment) -> Place | None:
        """Find the call that made an object, also by its name."""
        span = _span_of(expr)
        if span is not None:
            return Place(scope.function.module.path, span)
        made = (_place(value) for value in expressions_of(self.linker.guards.known(expr, scope)))
        return next(filter(None, made), None)


def place_of(event: CallSite) -> Place:
    """Give the place of a call."""
    return Place(event.function.module.path, event.call.span)


def _place(value: Expression) -> Place | None:
    span = _span_of(value.expr)
    return None if span is None else Place(value.scope.function.module.path, span)


def _span_of(expr: m.Expr) -> Span | None:
    """Give the place of an expression, which only calls have, within it."""
    if isinstance(expr, m.Call):
        return expr.span
    return next(filter(None, map(_span_of, parts(expr))), None)
