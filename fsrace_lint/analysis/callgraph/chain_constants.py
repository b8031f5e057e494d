"""Evaluates conditions on a call chain with the constants that the calls of the chain pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from fsrace_lint.analysis.callgraph.attribute_setters import may_set_any, sets
from fsrace_lint.analysis.callgraph.parameter_values import value_passed
from fsrace_lint.analysis.callgraph.program_arguments import ProgramArguments
from fsrace_lint.analysis.dataflow.infeasible_paths import Tested
from fsrace_lint.analysis.values.abstract_values import Argument, Expression
from fsrace_lint.analysis.values.constants import ConstantReader, all_values, is_object
from fsrace_lint.engine.query import query
from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.analysis.callgraph.call_edges import CallEdge
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.analysis.values.constants import Values
    from fsrace_lint.program.modules import LinkedClass, LinkedFunction

_CONSTRUCTOR: Final = "__init__"
_FOLLOWED: Final = 4
"""The maximum number of calls through which a constant is handed on."""

Calls: TypeAlias = "tuple[CallEdge, ...]"
"""The calls that lead to a function, the nearest one first."""


Undecided: TypeAlias = "tuple[tuple[CallSite, Calls], ...]"
"""The points of a call chain whose conditions depend on what its first function receives.

Each is a call, and the calls that lead to it.
"""


class Feasibility(NamedTuple):
    """Whether the constants on a call chain allow a state of its last function.

    Attributes:
        is_ruled_out: Whether they rule it out.
        is_open: Whether it also depends on what the first function of the chain receives.
    """

    is_ruled_out: bool
    is_open: bool


class ChainConstants:
    """Evaluates the conditions of the functions on call chains."""

    def __init__(self, entry_states: EntryStates) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.entry_states = entry_states
        self.resolver = entry_states.flows.resolver
        self.arguments = ProgramArguments(entry_states)
        self._relevance = entry_states.relevance

    def feasibility(self, conditions: Iterable[PathCondition], calls: Calls) -> Feasibility:
        """Return whether the constants that some calls pass allow conditions in the function they reach."""
        is_open = False
        for literal in conditions:
            reader = _OnChain(self, literal.scope.function, calls)
            result = None if literal.attempt is not None else reader.outcome(literal.test, literal.scope)
            if reader.asked and result is (not literal.truth):
                return Feasibility(is_ruled_out=True, is_open=False)
            is_open = is_open or reader.is_open
        return Feasibility(is_ruled_out=False, is_open=is_open and len(calls) < _FOLLOWED)

    def values(self, expr: m.Expr, scope: Environment, calls: Calls) -> Values:
        """Return the constants that an expression can be if some calls lead to its function.

        Without calls, they are those that all callers write.
        """
        reader = _OnChain(self, scope.function, calls) if calls else _ByAll(self)
        return reader.values(expr, scope)

    def undecided(
        self, call_site: CallSite, then: Undecided = (), edge: CallEdge | None = None
    ) -> Undecided | None:
        """Return the undecided points of a call chain, or None if its constants rule the chain out.

        Args:
            call_site: The first call of the chain.
            then: The undecided points of the rest of the chain.
            edge: The first call as a call of the function in which the rest begins.
        """
        before = () if edge is None else (edge,)
        found: list[tuple[CallSite, Calls]] = []
        for point, calls in ((call_site, ()), *((point, (*calls, *before)) for point, calls in then)):
            is_ruled_out, is_open = self.feasibility(point.state.conditions, calls)
            if is_ruled_out:
                return None
            found += [(point, calls)] if is_open else []
        return tuple(found)

    def extended(self, edges: Calls, then: Undecided) -> list[tuple[CallEdge, Undecided]]:
        """Return the calls that can start a chain earlier, each with the undecided points of the chain."""
        chains = ((edge, self.undecided(edge.call_site, then, edge)) for edge in edges)
        return [(edge, left) for edge, left in chains if left is not None]

    @query
    def is_fixed(self, class_: LinkedClass, name: str) -> bool:
        """Return whether only constructors set an attribute of the objects of a class."""
        methods = [method for each in class_.relatives for method in each.methods.values()]
        setters = (method for each in class_.relatives for method in each.binding(name))
        return (
            all(method.facts.name == _CONSTRUCTOR for method in setters)
            and not any(may_set_any(method, name) for method in methods)
            and not any(sets(function, name) for function in self._relevance.using([name]))
        )

    @query(provisional=())
    def passed_by_all(self, function: LinkedFunction, parameter: m.Parameter) -> Values:
        """Return the constants that all callers write for a parameter. A default does not count.

        Code outside the project can pass another value than the default.
        """
        found, reader = [], _ByAll(self)
        for edge in self.entry_states.callers(function):
            value = value_passed(edge, parameter, function)
            found.append(() if value is None else reader.values(value, edge.call_site.state.scope))
        return all_values(found)

    def construction(self, calls: Calls, function: LinkedFunction) -> tuple[Calls | None, bool]:
        """Return the calls that lead to the constructor of the object of a method, or None if not known.

        The second result is whether they can also stand before all these calls.
        """
        for place, edge in enumerate(calls):
            if function.facts.name == _CONSTRUCTOR:
                return calls[place:], False
            if edge.passed_as_callback or not edge.is_on_self:
                return self._made(edge, calls[place + 1 :]), False
            function = edge.call_site.function
        return (() if function.facts.name == _CONSTRUCTOR else None), True

    def _made(self, edge: CallEdge, calls: Calls) -> Calls | None:
        """Return the call that makes the receiver of a call, and the calls that lead to it, or None."""
        called, scope = edge.call_site.call.function, edge.call_site.state.scope
        if edge.passed_as_callback or not isinstance(called, m.Attribute):
            return None
        bound = self.entry_states.rank_tests.known(called.value, scope)
        made = bound if isinstance(bound, Expression) else Expression(called.value, scope)
        class_ = self.resolver.class_of(self.resolver.of_binding(made))
        constructor = None if class_ is None else class_.method(_CONSTRUCTOR)
        callers = () if constructor is None else self.entry_states.callers(constructor)
        outer = calls if made.scope.function is edge.call_site.function else ()
        return next(((each, *outer) for each in callers if each.call_site.call is made.expr), None)

    def constructing(self, calls: Calls, constructor: LinkedFunction) -> Calls | None:
        """Return the calls that lead to a constructor, also through the one of a subclass, or None."""
        if not calls:
            return ()
        made, scope = calls[0].call_site.call, calls[0].call_site.state.scope
        called = self.resolver.callee(made, scope)
        if called is constructor:
            return calls
        inner = (edge for edge in self.entry_states.callers(constructor) if edge.call_site.function is called)
        return next(((edge, *calls) for edge in inner), None)


class _OnChain(ConstantReader):
    """Reads parameters and attributes in a function that some calls reach."""

    def __init__(self, chains: ChainConstants, function: LinkedFunction, calls: Calls) -> None:
        self._chains, self._function, self._calls = chains, function, calls
        self.asked = False
        self.is_open = False

    def passed(self, argument: Argument) -> Values:
        self.asked = True
        is_own = argument.function is self._function
        if not (is_own and self._calls):
            self.is_open |= is_own
            return ()
        edge, *outer = self._calls
        value = value_passed(edge, argument.parameter, argument.function)
        default = argument.parameter.default
        if value is None and not edge.passed_as_callback and isinstance(default, m.Constant):
            value = default
        reader = _OnChain(self._chains, edge.call_site.function, tuple(outer))
        found = () if value is None else reader.values(value, edge.call_site.state.scope)
        self.is_open = self.is_open or reader.is_open
        return found or (() if value is None else Tested(edge.call_site.state).values(value))

    def attribute(self, expr: m.Attribute, scope: Environment) -> Values:
        function, chains = scope.function, self._chains
        class_ = function.owner
        own = isinstance(expr.value, m.Name) and is_object(function, expr.value.id)
        if not own:
            return self._of_program(expr, scope)
        if class_ is None or not chains.is_fixed(class_, expr.name):
            return ()
        self.asked = True
        calls, is_open = chains.construction(self._calls, function)
        self.is_open = self.is_open or is_open
        reader = _OfObject(chains, calls)
        found = tuple(map(reader.of_binding, chains.resolver.attribute_values(class_, expr.name)))
        return all_values(found)

    def _of_program(self, expr: m.Attribute, scope: Environment) -> Values:
        """Return the values that the program allows for an attribute of its parsed arguments."""
        arguments = self._chains.arguments
        if not arguments.is_restricted(expr.name):
            return ()
        bound = scope.get(expr.value.id) if isinstance(expr.value, m.Name) else None
        if isinstance(bound, Argument) and bound.function is self._function:
            self.asked = True
            if self._calls:
                return self._of_caller(expr, bound)
            self.is_open = True
        found = arguments.allowed(expr, scope)
        self.asked = self.asked or bool(found)
        return found

    def _of_caller(self, expr: m.Attribute, argument: Argument) -> Values:
        """Return the values of an attribute of what the first call passes for a parameter."""
        edge, *outer = self._calls
        value = value_passed(edge, argument.parameter, argument.function)
        if value is None:
            return ()
        reader = _OnChain(self._chains, edge.call_site.function, tuple(outer))
        found = reader._of_program(m.Attribute(value, expr.name), edge.call_site.state.scope)
        self.is_open = self.is_open or reader.is_open
        return found


class _OfObject(ConstantReader):
    """Reads the parameters of the constructors of an object."""

    def __init__(self, chains: ChainConstants, calls: Calls | None) -> None:
        self._chains, self._calls = chains, calls

    def passed(self, argument: Argument) -> Values:
        chains, constructor = self._chains, argument.function
        if self._calls is None:
            return chains.passed_by_all(constructor, argument.parameter)
        calls = chains.constructing(self._calls, constructor)
        return () if calls is None else _OnChain(chains, constructor, calls).passed(argument)


class _ByAll(ConstantReader):
    """Reads the parameters of a function as all its callers pass them."""

    def __init__(self, chains: ChainConstants) -> None:
        self._chains = chains

    def passed(self, argument: Argument) -> Values:
        return self._chains.passed_by_all(argument.function, argument.parameter)
