"""The arguments that callers pass for the parameters of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.dataflow.process_set import BOTTOM
from fsrace_lint.analysis.dataflow.rank_partition import UNPARTITIONED
from fsrace_lint.analysis.ranks.rank_tests import RankTests
from fsrace_lint.analysis.values.abstract_values import Argument, Expression, IterationElement, UnpackedPart
from fsrace_lint.analysis.values.call_arguments import bind
from fsrace_lint.engine.cycles import CombinedCycles, CycleDetector
from fsrace_lint.engine.query import query
from fsrace_lint.program.symbols import Instance, is_class
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.annotations import class_names
from fsrace_lint.syntax.ast_names import parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fsrace_lint.analysis.callgraph.call_edges import CallEdge, Callers
    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.analysis.dataflow.rank_partition import RankPartition
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.program.modules import LinkedFunction

_NO_NUMBERS: Final = frozenset({"bool", "bytes", "dict", "float", "list", "set", "tuple"})
"""The built-in classes whose values are never ranks. A string can be a rank that is parsed later."""


class CallerRankTests(RankTests):
    """Evaluates rank tests of parameters with the arguments of all callers."""

    def __init__(self, flows: FunctionFlows, callers: Callers) -> None:
        """Initialize for a project.

        Args:
            flows: The flows of its functions.
            callers: Finds the call edges into functions.
        """
        self.flows, self.callers = flows, callers
        self.cycles = CycleDetector()
        super().__init__(flows.resolver, CombinedCycles(flows.cycles, self.cycles))
        self.dependencies = None  # nothing here is kept

    def partition_of_parameter(self, argument: Argument) -> RankPartition:
        """Return the processes for which a parameter can be true, and for which it can be false."""
        if _is_object(argument):
            return UNPARTITIONED
        return self._partition_of_passed(argument.function, argument.parameter)

    @query(provisional=UNPARTITIONED, shared=True)
    def _partition_of_passed(self, function: LinkedFunction, parameter: m.Parameter) -> RankPartition:
        return self._join(function, parameter, lambda value: self.partition(value.expr, value.scope))

    def partition_of_attribute(self, argument: Argument, name: str) -> RankPartition:
        """Return the partition by an attribute that callers set on the argument: `args.save = is_main()`."""
        if _is_object(argument):
            return UNPARTITIONED
        return self._partition_of_set(argument.function, argument.parameter, name)

    @query(provisional=UNPARTITIONED, shared=True)
    def _partition_of_set(self, function: LinkedFunction, parameter: m.Parameter, name: str) -> RankPartition:
        return self._join(function, parameter, lambda value: self._split_set(value, name))

    def _split_set(self, value: Expression, name: str) -> RankPartition:
        """Return the partition by an attribute that a caller sets on an argument."""
        if not isinstance(value.expr, m.Name):
            return UNPARTITIONED
        bound, whole = value.scope.get(f"{value.expr.id}.{name}"), value.scope.get(value.expr.id)
        if bound is not None:
            return self.partition(m.Attribute(value.expr, name), value.scope)
        return self.partition_of_attribute(whole, name) if isinstance(whole, Argument) else UNPARTITIONED

    def rank_of_parameter(self, argument: Argument) -> str | None:
        """Return the scope of the rank that every caller passes for a parameter, or None."""
        return None if _is_object(argument) else self._rank(argument.function, argument.parameter)

    def rank_of_attribute(self, argument: Argument, name: str) -> str | None:
        """Return the scope of the rank that every caller stores in an attribute of an argument, or None."""
        return None if _is_object(argument) else self._rank_set(argument.function, argument.parameter, name)

    @query(provisional=None, shared=True)
    def _rank_set(self, function: LinkedFunction, parameter: m.Parameter, name: str) -> str | None:
        scopes = set()
        for value in self.passed(Argument(function, parameter)):
            owner = value.expr.id if value is not None and isinstance(value.expr, m.Name) else None
            bound = None if value is None or owner is None else value.scope.get(f"{owner}.{name}")
            whole = None if value is None or owner is None else value.scope.get(owner)
            if value is not None and bound is not None:
                scopes.add(self.rank_scope(m.Attribute(value.expr, name), value.scope))
            elif isinstance(whole, Argument):
                scopes.add(self.rank_of_attribute(whole, name))
            else:
                return None
        return scopes.pop() if len(scopes) == 1 else None

    def _is_no_number(self, argument: Argument) -> bool:
        """Return whether a parameter is declared as another type, as in `path: Path` or `save=True`."""
        default, annotation = argument.parameter.default, argument.parameter.annotation
        if isinstance(default, m.Constant) and isinstance(default.value, bool):
            return True
        names = () if annotation is None else tuple(class_names(annotation))
        if names and _NO_NUMBERS.issuperset(names):
            return True
        declared = self.resolver.of_binding(argument)
        return isinstance(declared, Instance) and is_class(declared.of)

    def _join(
        self,
        function: LinkedFunction,
        parameter: m.Parameter,
        partition: Callable[[Expression], RankPartition],
    ) -> RankPartition:
        true, false = BOTTOM, BOTTOM
        for edge in self.callers.search(function):
            value = self._value(edge, parameter, function)
            if value is None:
                return UNPARTITIONED
            one = partition(value)
            true, false = true | one[0], false | one[1]
            if (true, false) == UNPARTITIONED:
                return UNPARTITIONED
        return (true, false) if true or false else UNPARTITIONED

    @query(provisional=None, shared=True)
    def _rank(self, function: LinkedFunction, parameter: m.Parameter) -> str | None:
        """Return the scope of the rank that all callers pass, or None.

        A caller can pass a constant if other callers spawn processes: it then runs the only process.
        """
        argument = Argument(function, parameter)
        if self._is_no_number(argument):
            return None
        scopes: set[str] = set()
        is_alone = False
        for edge in self.callers.search(function):
            if is_spawned_number(edge, argument):
                scopes.add("global")
                continue
            value = self._value(edge, parameter, function)
            if value is not None and isinstance(value.expr, m.Constant):
                if not is_alone and not self._is_spawned(argument):
                    return None
                is_alone = True
                continue
            scope = None if value is None else self.rank_scope(value.expr, value.scope)
            if scope is None:
                return None
            scopes.add(scope)
        return scopes.pop() if len(scopes) == 1 else None

    def _is_spawned(self, argument: Argument) -> bool:
        """Return whether a call that starts processes passes each its number for a parameter."""
        return any(is_spawned_number(edge, argument) for edge in self.callers.spawning(argument.function))

    def passed(self, argument: Argument) -> Iterator[Expression | None]:
        """Yield what each caller passes for a parameter, or its default; None if unknown."""
        if not _is_object(argument):
            for edge in self.callers.search(argument.function):
                yield self._value(edge, argument.parameter, argument.function)

    def _value(self, edge: CallEdge, parameter: m.Parameter, function: LinkedFunction) -> Expression | None:
        scope: Environment | None = edge.call_site.state.scope
        value = value_passed(edge, parameter, function)
        if value is None and not edge.passed_as_callback:
            value, scope = parameter.default, self._outside(function)
        return None if value is None or scope is None else Expression(value, scope)

    def _outside(self, function: LinkedFunction) -> Environment | None:
        """Return the environment in which the defaults of a function are evaluated."""
        outer = function.enclosing
        return None if outer is None else self.flows.final_environment(outer)


def _is_object(argument: Argument) -> bool:
    """Return whether a parameter is `self` or `cls`."""
    function = argument.function
    return function.takes_object and function.facts.parameters[:1] == (argument.parameter,)


def value_passed(edge: CallEdge, parameter: m.Parameter, function: LinkedFunction) -> m.Expr | None:
    """Return the argument of a caller for a parameter, or the value that is unpacked over it.

    Understands `submit(function, value, …)`, `partial(function, value, …)`,
    `delayed(function)(value, …)`, and `Process(target=function, args=(value, …))`.
    """
    call = edge.call_site.call
    if not edge.passed_as_callback:
        return bind(call, function).source_of(parameter)
    if edge.passing is not None:
        return bind(edge.passing, function).argument_for(parameter)
    given = () if edge.position is None else call.arguments[edge.position + 1 :]
    keywords = {keyword.name: keyword.value for keyword in call.keywords}
    names, packed = function.positional, keywords.get("args")
    if edge.spawn is not None and edge.spawn.passes_rank:
        packed = packed or next(iter(given), m.Sequence("tuple", ()))
    if edge.spawn is not None and (edge.spawn.passes_rank or edge.spawn.passes_object):
        names = names[1:]
    if packed is not None:
        given, keywords = packed.items if isinstance(packed, m.Sequence) else (), {}
    elif edge.position is None or (edge.spawn is not None and edge.spawn.each):
        return None
    position = names.index(parameter.name) if parameter.name in names else -1
    if any(isinstance(value, m.Starred) for value in given[: position + 1]):
        return None
    return given[position] if 0 <= position < len(given) else keywords.get(parameter.name)


def is_spawned_number(edge: CallEdge, argument: Argument) -> bool:
    """Return whether a call that starts processes passes each its number for a parameter.

    `spawn` does so itself. A loop over `range` around `Process` passes the number as an argument.
    """
    if not edge.passed_as_callback or edge.spawn is None:
        return False
    if edge.spawn.passes_rank:
        return argument.function.positional[:1] == [argument.parameter.name]
    value = value_passed(edge, argument.parameter, argument.function)
    bound = edge.call_site.state.scope.get(value.id) if isinstance(value, m.Name) else None
    if not isinstance(bound, IterationElement) or bound.index is not None or not edge.call_site.repeated:
        return False
    counted = bound.source.expr
    return isinstance(counted, m.Call) and counted.function == m.Name("range")


def differs(edge: CallEdge, parameter: m.Parameter, function: LinkedFunction) -> bool:
    """Return whether each process that a call starts gets its own value for a parameter.

    The value is its number, its element of the distributed work, or depends on the variable of the loop
    around the call.
    """
    if edge.spawn is None:
        return False
    if edge.spawn.each:
        return True
    if edge.spawn.passes_rank:
        return function.positional[:1] == [parameter.name]
    value = value_passed(edge, parameter, function)
    values = edge.call_site.call.arguments if value is None else (value,)
    return edge.call_site.repeated and any(_varies(each, edge.call_site.state.scope) for each in values)


def _varies(expr: m.Expr, scope: Environment) -> bool:
    if isinstance(expr, m.Name):
        bound = scope.get(expr.id)
        if isinstance(bound, Expression):
            return _varies(bound.expr, bound.scope)
        return isinstance(bound, (IterationElement, UnpackedPart))
    return any(_varies(part, scope) for part in parts(expr))
