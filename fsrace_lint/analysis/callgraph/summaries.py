"""Summaries of functions: how they run callbacks, and whether they synchronize processes."""

from __future__ import annotations

import functools
import itertools
import operator
from typing import TYPE_CHECKING, Final, TypeAlias

from fsrace_lint.analysis.callgraph.synchronizing_calls import is_barrier
from fsrace_lint.analysis.dataflow.process_set import BOTTOM, FIRST, MAIN, NODE_FIRSTS, TOP, ProcessSet
from fsrace_lint.analysis.values.abstract_values import Argument
from fsrace_lint.analysis.values.call_arguments import arguments_of, bind
from fsrace_lint.engine.query import query
from fsrace_lint.program.symbols import as_function
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.ranks.rank_tests import RankTests
    from fsrace_lint.program.modules import LinkedClass, LinkedFunction

_DEEPEST: Final = 3

_HandedOn: TypeAlias = "tuple[CallSite, str, int | None, str | None]"
"""A call, the parameter that it passes on, and the position or the keyword of the argument."""


class _CallbackParameter(Record, frozen=True):
    """The calls in a function that run its parameters, and those that pass them on."""

    called: tuple[tuple[CallSite, str], ...]
    handed_on: tuple[_HandedOn, ...]


_NOT_CALLED: Final = _CallbackParameter((), ())


class Summaries:
    """Summaries of functions, computed once per function."""

    def __init__(self, flows: FunctionFlows, rank_tests: RankTests) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.flows, self.rank_tests = flows, rank_tests
        self.cycles = flows.cycles

    def callback_processes(self, function: LinkedFunction, parameter: str | None) -> ProcessSet:
        """Return the processes in which a helper or a decorator runs its callback.

        Args:
            function: The helper (`run_on_main(prepare)`) or the decorator.
            parameter: The parameter that receives the callback; None for any parameter.

        Returns:
            The processes that reach a call of the parameter: in the function, in a nested function, or in
            another helper to which it is passed. All processes if no call is found, or if the helper passes
            the callback on in a tuple or a list, as in `mp.spawn(work, args=(callback,))`.
        """
        if parameter is not None and self._is_packed(function, parameter):
            return TOP
        processes = BOTTOM
        for way in self.callback_call_chains(function, parameter):
            processes |= functools.reduce(operator.and_, (call_site.state.processes for call_site in way))
        return processes or TOP

    def _is_packed(self, function: LinkedFunction, parameter: str) -> bool:
        """Return whether a function passes a parameter on in a tuple or a list."""
        return any(
            m.Name(parameter) in value.items
            for call_site in self.flows.call_sites(function)
            for _, _, value in arguments_of(call_site.call)
            if isinstance(value, m.Sequence)
        )

    def callback_call_chains(
        self, function: LinkedFunction, parameter: str | None, depth: int = 0
    ) -> Iterator[tuple[CallSite, ...]]:
        """Yield the call chains by which a helper or a decorator runs its callback.

        If another helper runs the callback, the calls that pass it on come first.
        """
        yield from (
            (call_site,) for call_site, name in self._given_to(function).called if parameter in {None, name}
        )
        for call_site, helper, further in self._receivers(function, parameter) if depth < _DEEPEST else ():
            for way in self.callback_call_chains(helper, further, depth + 1):
                yield call_site, *way

    def _receivers(
        self, function: LinkedFunction, parameter: str | None
    ) -> Iterator[tuple[CallSite, LinkedFunction, str | None]]:
        """Yield the calls by which a helper passes its callback on, with the receiver and its parameter."""
        for call_site, name, position, keyword in self._given_to(function).handed_on:
            if name == parameter:
                helper = as_function(
                    self.flows.resolver.symbol(call_site.call.function, call_site.state.scope)
                )
                if helper is not None and helper is not function:
                    arguments = bind(call_site.call, helper)
                    yield call_site, helper, arguments.parameter_for(position, keyword)

    @query(provisional=_NOT_CALLED, shared=True)
    def _given_to(self, function: LinkedFunction) -> _CallbackParameter:
        called: list[tuple[CallSite, str]] = []
        within = tuple(_with_nested(function))
        for inner in within:
            for call_site in self.flows.call_sites(inner):
                name = self._called_parameter(call_site, within)
                if name is not None:
                    called.append((call_site, name))
        return _CallbackParameter(tuple(called), tuple(_handed_on(self.flows.call_sites(function))))

    def is_barrier(self, function: LinkedFunction, depth: int = 0) -> bool:
        """Return whether every process that calls a function waits in it for the other ranks."""
        return depth <= _DEEPEST and self._finds_barrier(function, depth)

    @query(provisional=False)
    def _finds_barrier(self, function: LinkedFunction, depth: int) -> bool:
        call_sites = self.flows.call_sites(function)
        return any(
            call_site.state.processes == TOP and self.waits(call_site, depth + 1) for call_site in call_sites
        )

    def waits(self, call_site: CallSite, depth: int = 0) -> bool:
        """Return whether a call is a barrier, of a framework or of the project."""
        entity = self.flows.resolver.symbol(call_site.call.function, call_site.state.scope)
        name = self.flows.resolver.type_name(entity)
        called = name or "*." + last_name(call_site.call.function)
        if is_barrier(self.flows.catalog, called, call_site.call):
            return True
        callee = as_function(entity)
        return callee is not None and self.is_barrier(callee, depth)

    @query(provisional=None)
    def first_scope(self, function: LinkedFunction) -> str | None:
        """Return the scope whose rank 0 runs the body of `with function():` before the other ranks.

        Returns:
            `global` for rank 0 of the job, `local` for rank 0 of each node, or None for any other function.
        """
        if not function.facts.is_generator:
            return None
        taking_turns = self._find_turns(function)
        if taking_turns is not None:
            return taking_turns
        return self._first_through(function)

    def first_scope_of(self, class_: LinkedClass) -> str | None:
        """Return the scope whose rank 0 runs the body of `with class_():` before the other ranks, or None."""
        ends = (class_.method(name) for name in ("__enter__", "__exit__"))
        return self._first_through(*(end for end in ends if end is not None))

    def _first_through(self, *functions: LinkedFunction) -> str | None:
        """Return the scope whose rank 0 passes the barriers of some functions before the other ranks."""
        call_sites = (call_site for function in functions for call_site in self.flows.call_sites(function))
        waiting = [e.state.processes for e in call_sites if self.waits(e)]
        if any(processes == MAIN for processes in waiting) and any(
            not processes & MAIN for processes in waiting
        ):
            return "global"
        first = [p for p in waiting if p & MAIN and not p & ~NODE_FIRSTS]
        return "local" if first and any(not processes & MAIN for processes in waiting) else None

    def _find_turns(self, function: LinkedFunction) -> str | None:
        """Return the scope whose rank 0 enters the body first, if two branches yield around a barrier."""
        arms = [branch for branch in function.facts.body if isinstance(branch, m.If) and _yields(branch.body)]
        for one, other in itertools.pairwise(arms):
            between = [e for e in self.flows.call_sites(function) if one.span < e.call.span < other.span]
            for call_site in between:
                if call_site.state.processes == TOP and self.waits(call_site):
                    before, _ = self.rank_tests.partition(one.test, call_site.state.scope)
                    after, _ = self.rank_tests.partition(other.test, call_site.state.scope)
                    scopes = (scope for scope in ("global", "local") if before == FIRST[scope])
                    return None if after & MAIN else next(scopes, None)
        return None

    def _called_parameter(self, call_site: CallSite, within: Container[LinkedFunction]) -> str | None:
        """Return the name of the parameter, of one of some functions, that a call runs."""
        called = call_site.call.function
        bound = (
            self.flows.resolver.binding(called.id, call_site.state.scope)
            if isinstance(called, m.Name)
            else None
        )
        return bound.parameter.name if isinstance(bound, Argument) and bound.function in within else None


def _yields(body: Iterable[m.Statement]) -> bool:
    """Return whether a suite yields no value, as in a context manager without an `as` target."""
    return any(isinstance(each, m.Evaluate) and each.value == m.Yield() for each in body)


def _handed_on(call_sites: Iterable[CallSite]) -> Iterator[_HandedOn]:
    """Yield the arguments of calls that are parameters of the enclosing function."""
    for call_site in call_sites:
        for position, keyword, value in arguments_of(call_site.call):
            bound = call_site.state.scope.get(value.id) if isinstance(value, m.Name) else None
            if isinstance(bound, Argument):
                yield call_site, bound.parameter.name, position, keyword


def _with_nested(function: LinkedFunction) -> Iterator[LinkedFunction]:
    yield function
    for inner in function.nested.values():
        yield from _with_nested(inner)
