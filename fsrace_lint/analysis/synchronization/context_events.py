"""The functions that run when a `with` statement is entered and left, in the order of the calls around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.program.modules import LinkedFunction
from fsrace_lint.program.symbols import Instance
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.values.abstract_values import Expression

_ENTER, _EXIT = ("__enter__", "__aenter__"), ("__exit__", "__aexit__")


class ContextEvents:
    """Finds out what the context managers of the project run around the calls of a function."""

    def __init__(self, flows: FunctionFlows) -> None:
        """Initialize for a project."""
        self.flows = flows

    def within(self, function: LinkedFunction) -> Iterator[tuple[CallSite, tuple[CallSite, ...] | None]]:
        """Yield the calls of a function, and what its context managers run.

        Yields:
            A call and None; or the call that creates a context manager, and the calls that the context
            manager makes as the body is entered or left.
        """
        if not function.facts.has_context:
            yield from ((call_site, None) for call_site in self.flows.call_sites(function))
            return
        made: dict[Identity[m.Expr], CallSite] = {}
        entered: tuple[Expression, ...] = ()
        for call_site in self.flows.call_sites(function):
            yield from self._changed(entered, call_site.contexts, made)
            entered = call_site.contexts
            made[Identity(call_site.call)] = call_site
            yield call_site, None
        yield from self._changed(entered, (), made)

    def _changed(
        self,
        before: tuple[Expression, ...],
        now: tuple[Expression, ...],
        made: dict[Identity[m.Expr], CallSite],
    ) -> Iterator[tuple[CallSite, tuple[CallSite, ...]]]:
        """Yield what runs between two calls whose contexts differ."""
        left = [(context, False) for context in reversed(before) if context not in now]
        for context, enters in (*left, *((context, True) for context in now if context not in before)):
            call_site = made.get(Identity(context.expr))
            if call_site is not None:
                yield call_site, self._run_by(context, enters=enters)

    def _run_by(self, context: Expression, *, enters: bool) -> tuple[CallSite, ...]:
        """Return the calls that a context manager makes as it is entered, or as it is left."""
        called = context.expr.function if isinstance(context.expr, m.Call) else context.expr
        callee = self.flows.resolver.symbol(called, context.scope)
        if isinstance(callee, LinkedFunction) and callee.facts.is_generator:
            place = min((each.position for each in self.flows.yield_points(callee)), default=0)
            call_sites = self.flows.call_sites(callee)
            return call_sites[:place] if enters else call_sites[place:]
        entity = self.flows.resolver.symbol(context.expr, context.scope)
        class_ = self.flows.resolver.class_of(entity) if isinstance(entity, Instance) else None
        names = _ENTER if enters else _EXIT
        methods = () if class_ is None else tuple(filter(None, map(class_.method, names)))
        return tuple(call_site for method in methods for call_site in self.flows.call_sites(method))
