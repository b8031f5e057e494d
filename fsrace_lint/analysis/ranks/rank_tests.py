"""Rank checks: the processes for which a condition can be true or false."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.dataflow.infeasible_paths import feasible_exits
from fsrace_lint.analysis.dataflow.process_set import ANOTHER, BOTTOM, FIRST, MAIN, NOT_FIRST, TOP
from fsrace_lint.analysis.dataflow.rank_partition import (
    UNPARTITIONED,
    choose,
    combine,
    compare_rank,
    compare_size,
    is_first,
    union,
)
from fsrace_lint.analysis.ranks.rank_objects import asks_for_object, partition_by_object
from fsrace_lint.analysis.ranks.rank_sources import ENVIRONMENT_CALLS, TRANSPARENT, RankSources
from fsrace_lint.analysis.values.abstract_values import (
    Argument,
    ConditionalValue,
    ContextResult,
    Environment,
    Expression,
    IterationElement,
    Union,
    UnpackedPart,
)
from fsrace_lint.analysis.values.constants import constant_passed
from fsrace_lint.analysis.values.entered_values import entered_values
from fsrace_lint.catalog.lexicon import asks_whether_distributed, checks_first_process
from fsrace_lint.engine.query import recursive_query
from fsrace_lint.program.modules import LinkedClass, LinkedFunction
from fsrace_lint.program.symbols import as_function, is_property, qualified_name
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import as_attribute, last_name, setting_of
from fsrace_lint.syntax.traversal import within

if TYPE_CHECKING:
    from fsrace_lint.analysis.dataflow.rank_partition import RankPartition
    from fsrace_lint.analysis.values.abstract_values import Binding
    from fsrace_lint.catalog.entries import Guard

_MIRRORED: Final = {
    "<": ">",
    ">": "<",
    "<=": ">=",
    ">=": "<=",
    "==": "==",
    "!=": "!=",
    "is": "is",
    "is not": "is not",
}

_EQUALITY: Final = frozenset({"is", "==", "is not", "!="})


class RankTests(RankSources):
    """Interprets rank checks in the environments of a project, by the code of each function alone."""

    def partition_of_parameter(self, _argument: Argument) -> RankPartition:
        """Return the partition of a parameter. Subclasses override this; here it is unknown."""
        return UNPARTITIONED

    def partition_of_attribute(self, _argument: Argument, _name: str) -> RankPartition:
        """Return the partition of an attribute that callers set. Subclasses override this."""
        return UNPARTITIONED

    def partition(self, test: m.Expr, scope: Environment, depth: int = 0) -> RankPartition:
        """Return how a condition divides the processes of a job.

        Args:
            test: The condition.
            scope: The environment in which it is evaluated.
            depth: The number of steps so far.

        Returns:
            The processes for which it can be true, and those for which it can be false. Both are all
            processes if the condition does not depend on the rank.
        """
        if self.budget.exhausted(depth):
            return UNPARTITIONED
        test = as_attribute(test)
        match test:
            case m.Constant(value=value):
                return (TOP, BOTTOM) if value else (BOTTOM, TOP)
            case m.Not(value=value):
                return self.partition(value, scope, depth)[::-1]
            case m.Boolean(operator=operator, values=values):
                return self._combined(operator, values, scope, depth)
            case m.Conditional(test=inner, body=body, orelse=orelse):
                then, otherwise = (self.partition(each, scope, depth) for each in (body, orelse))
                known = partition_by_object(inner, (body, then), (orelse, otherwise))
                chosen = self.partition(inner, scope, depth)
                return choose(known if known and chosen == UNPARTITIONED else chosen, then, otherwise)
            case m.Compare(left=left, operators=(operator,), rights=(right,)):
                return self._compare(left, operator, right, scope, depth)
            case m.Binary(operator="&" | "|" as operator, left=left, right=right):
                sides = [self.partition(side, scope, depth + 1) for side in (left, right)]
                return combine("and" if operator == "&" else "or", sides)
            case m.Call(function=m.Name(id="bool"), arguments=(value,)):
                return self.partition(value, scope, depth + 1)
            case m.Walrus(value=value):
                return self.partition(value, scope, depth)
            case m.Name() | m.Attribute() | m.Call() | m.Subscript():
                return self._truth(test, scope, depth)
            case _:
                return UNPARTITIONED

    def _combined(
        self, operator: str, values: tuple[m.Expr, ...], scope: Environment, depth: int
    ) -> RankPartition:
        """Return the partition of `and` or `or`.

        In `state and not state.is_main`, the first operand only asks whether there is an object that knows
        the rank. A process in a job of several has one.
        """
        splits = [(value, self.partition(value, scope, depth)) for value in values]
        telling = [
            split for value, split in splits if split != UNPARTITIONED or not asks_for_object(value, values)
        ]
        return combine(operator, telling or [split for _, split in splits])

    def _truth(self, test: m.Expr, scope: Environment, depth: int) -> RankPartition:
        """Return the partition of a name, an attribute, an item, or a call."""
        if not isinstance(test, m.Call) and (known := self.known(test, scope)) is not None:
            found = self._bound_split(known, depth + 1)
            is_flag = self._is_flag(last_name(test)) and _selects_by_name(known)
            if found != UNPARTITIONED or (_is_understood(known) and not is_flag):
                return found
        target = test.function if isinstance(test, m.Call) else test
        entity = self.resolver.symbol(target, scope)
        name = qualified_name(entity)
        guard = self.catalog.find("guard", name or f"*.{last_name(target)}")
        if guard is not None and _is_meant(guard, test, target, name):
            return is_first(guard.scope)
        world = self.catalog.find("world", name)
        if world is not None and world.kind != "size":
            return (TOP, MAIN) if world.kind == "initialized" else UNPARTITIONED
        function = as_function(entity)
        if function is not None and (isinstance(test, m.Call) or is_property(function)):
            decided = self._decided(test, scope, function, depth)
            found = decided or self.interpretation.result_partition(function)
            if found != UNPARTITIONED:
                return found
        rank = self.rank_scope(test, scope, depth + 1)
        if rank is not None and self.environment_variable(test, scope) is not None:
            return TOP, MAIN
        if rank is not None:
            return NOT_FIRST[rank], FIRST[rank]
        found = self._heuristic(target, setting_of(test))
        if found == UNPARTITIONED and self._is_function(test, scope):
            return TOP, BOTTOM
        return self._kept(test, scope) if found == UNPARTITIONED else found

    def _is_function(self, expr: m.Expr, scope: Environment) -> bool:
        """Return whether a name is a function of the project; `if evaluate:` is then always true."""
        return isinstance(expr, m.Name) and isinstance(self.resolver.symbol(expr, scope), LinkedFunction)

    def _kept(self, test: m.Expr, scope: Environment) -> RankPartition:
        """Return the partition of an attribute that callers set on an argument."""
        if not isinstance(test, m.Attribute) or not isinstance(test.value, m.Name):
            return UNPARTITIONED
        bound = self.resolver.binding(test.value.id, scope)
        return self.partition_of_attribute(bound, test.name) if isinstance(bound, Argument) else UNPARTITIONED

    def _decided(
        self, test: m.Expr, scope: Environment, function: LinkedFunction, depth: int
    ) -> RankPartition | None:
        """Return the partition of a result that the constant arguments of a call select, or None."""
        if not isinstance(test, m.Call) or not function.parameters:
            return None
        ways = feasible_exits(test, scope, function, self.interpretation.exit_points(function))
        value = ways[0].value if len(ways) == 1 else None
        decided = len(ways) < len(self.interpretation.exit_points(function))
        if isinstance(value, m.Conditional):
            chosen = constant_passed(value.test, test, function)
            if chosen is not None:
                value, decided = value.body if chosen.value else value.orelse, True
        return (
            self.partition(value, ways[0].state.scope, depth + 1) if decided and value is not None else None
        )

    def _heuristic(self, target: m.Expr, key: str) -> RankPartition:
        """Return the partition that the name of a variable, or the key of a setting, suggests."""
        name = last_name(target)
        variable = self.catalog.find("variable", name)
        if variable is not None and variable.means == "guard":
            return is_first(variable.scope)
        stated = checks_first_process(name)
        if stated is not None:
            return is_first(stated)
        return (TOP, MAIN) if self._is_flag(name) or self._is_flag(key) else UNPARTITIONED

    def _is_flag(self, name: str) -> bool:
        """Return whether a name states whether the job is distributed."""
        variable = self.catalog.find("variable", name)
        return (variable is not None and variable.means == "initialized") or asks_whether_distributed(name)

    @recursive_query(beyond=UNPARTITIONED)
    def _bound_split(self, binding: Binding, depth: int) -> RankPartition:
        match binding:
            case Expression(expr=expr, scope=scope):
                return self.partition(expr, scope, depth + 1)
            case ConditionalValue(test=test, options=(one, other)):
                then, otherwise = (self._bound_split(each, depth + 1) for each in (one, other))
                values = (each.expr if isinstance(each, Expression) else None for each in (one, other))
                known = partition_by_object(test.expr, *zip(values, (then, otherwise), strict=True))
                return choose(known or self._split_of_choice(test, depth + 1), then, otherwise)
            case Union(options=options):
                return union([self._bound_split(option, depth + 1) for option in _informative(options)])
            case UnpackedPart():
                returned = _informative(tuple(Expression(*part) for part in self.parts(binding)))
                splits = [self._bound_split(option, depth + 1) for option in returned]
                return union(splits) if splits else UNPARTITIONED
            case ContextResult():
                entered = _informative(entered_values(self.resolver, binding))
                return union([self._bound_split(each, depth + 1) for each in entered] or [UNPARTITIONED])
            case Argument():
                return self.partition_of_parameter(binding)
            case _:
                return UNPARTITIONED

    def _split_of_choice(self, test: Expression, depth: int) -> RankPartition:
        """Return the partition of the condition that chooses a value.

        A check whether a distributed package is installed counts as a check for multiple processes.
        """
        expr = test.expr
        asked = expr.left if isinstance(expr, m.Compare) and expr.rights == (m.Constant(None),) else None
        if (
            isinstance(expr, m.Compare)
            and isinstance(asked, m.Call)
            and self._asks_for_launcher(asked, test.scope)
        ):
            return (TOP, MAIN) if expr.operators == ("is not",) else (MAIN, TOP)
        return self.partition(expr, test.scope, depth)

    def _asks_for_launcher(self, call: m.Call, scope: Environment) -> bool:
        """Return whether a call looks for a package that launches processes or provides ranks."""
        if self.resolver.qualify(call.function, scope) != "importlib.util.find_spec":
            return False
        launchers = {
            name.partition(".")[0] for kind in ("launch", "rank") for name in self.catalog.names(kind)
        }
        return any(isinstance(each, m.Constant) and each.value in launchers for each in call.arguments)

    def _compare(
        self, left: m.Expr, operator: str, right: m.Expr, scope: Environment, depth: int
    ) -> RankPartition:
        rank = self.rank_scope(left, scope, depth + 1)
        if rank is None and operator in _MIRRORED and self.rank_scope(right, scope, depth + 1) is not None:
            left, right, operator = right, left, _MIRRORED[operator]
            rank = self.rank_scope(left, scope, depth + 1)
        if rank is not None:
            return self._compare_rank(rank, operator, right, scope, depth)
        if isinstance(right, m.Constant) and operator in _EQUALITY and self._is_function(left, scope):
            return (BOTTOM, TOP) if operator in {"is", "=="} else (TOP, BOTTOM)
        if right == m.Constant(None) and operator in _EQUALITY:
            none, other = self._whether_none(Expression(left, scope), depth + 1)
            if BOTTOM in {none, other}:
                return UNPARTITIONED
            return (none, other) if operator in {"is", "=="} else (other, none)
        if (
            operator == "=="
            and self._is_shifted_rank(left, scope, depth)
            and self._is_size(right, scope, depth)
        ):
            return ANOTHER, TOP
        if (
            isinstance(right, m.Constant)
            and isinstance(right.value, int)
            and self._is_size(left, scope, depth)
        ):
            return compare_size(operator, right.value)
        if isinstance(right, m.Constant) and isinstance(right.value, bool) and operator in _EQUALITY:
            true, false = self.partition(left, scope, depth + 1)
            return (true, false) if right.value == (operator in {"==", "is"}) else (false, true)
        return UNPARTITIONED

    @recursive_query(beyond=UNPARTITIONED)
    def _whether_none(self, binding: Binding, depth: int) -> RankPartition:
        """Return the processes in which a value can be None, and in which it can be something else."""
        match binding:
            case Expression(expr=m.Constant(value=value)):
                return (TOP, BOTTOM) if value is None else (BOTTOM, TOP)
            case Expression(expr=m.Format() | m.Binary() | m.Sequence()):
                return BOTTOM, TOP
            case Expression(expr=m.Call() as call, scope=scope):
                return self._whether_result_is_none(call, scope, None, depth)
            case Expression(expr=m.Conditional() as expr, scope=scope):
                return choose(
                    self.partition(expr.test, scope, depth + 1),
                    self._whether_none(Expression(expr.body, scope), depth + 1),
                    self._whether_none(Expression(expr.orelse, scope), depth + 1),
                )
            case Expression(expr=m.Name() | m.Attribute() as expr, scope=scope):
                known = self.known(expr, scope)
                return UNPARTITIONED if known is None else self._whether_none(known, depth + 1)
            case ConditionalValue(test=test, options=(then, otherwise)):
                return choose(
                    self._split_of_choice(test, depth + 1),
                    self._whether_none(then, depth + 1),
                    self._whether_none(otherwise, depth + 1),
                )
            case Union(options=options):
                return union([self._whether_none(option, depth + 1) for option in options])
            case UnpackedPart(source=Expression(expr=m.Call() as call, scope=scope), index=index):
                return self._whether_result_is_none(call, scope, index, depth)
            case _:
                return UNPARTITIONED

    def _whether_result_is_none(
        self, call: m.Call, scope: Environment, index: int | None, depth: int
    ) -> RankPartition:
        """Return the processes in which a result, or one item of it, can be None, and something else."""
        if index is None and isinstance(self.resolver.symbol(call.function, scope), LinkedClass):
            return BOTTOM, TOP
        callee = self._implementation(call, scope)
        if callee is None or callee.facts.is_generator or callee.is_stub:
            return UNPARTITIONED
        return self._whether_one_is_none(callee, index, depth)

    @recursive_query(beyond=UNPARTITIONED)
    def _whether_one_is_none(self, function: LinkedFunction, index: int | None, depth: int) -> RankPartition:
        """Return the processes in which a function can return None, and something else."""
        ways = self.interpretation.exit_points(function)
        none, other = BOTTOM, BOTTOM
        for way in ways:
            value: m.Expr | None = m.Constant(None) if way.value is None else way.value
            if index is not None:
                items = value.items if isinstance(value, m.Sequence) else ()
                value = next(iter(items[index : index + 1]), None)
            at = UNPARTITIONED
            if value is not None:
                at = self._whether_none(Expression(value, way.state.scope), depth + 2)
            none, other = none | (at[0] & way.state.processes), other | (at[1] & way.state.processes)
        return (none, other) if ways else UNPARTITIONED

    def _implementation(self, call: m.Call, scope: Environment) -> LinkedFunction | None:
        """Return the function that a call runs, also if it is a method that only one subclass has."""
        entity = self.resolver.symbol(call.function, scope)
        if isinstance(entity, LinkedFunction):
            return entity.implementations[-1]
        if entity is not None or not isinstance(call.function, m.Attribute):
            return None
        class_ = self.resolver.class_of(self.resolver.symbol(call.function.value, scope))
        found = (
            [] if class_ is None else [each.methods.get(call.function.name) for each in class_.descendants()]
        )
        methods = [method for method in found if method is not None]
        return methods[0] if len(methods) == 1 else None

    def _is_shifted_rank(self, expr: m.Expr, scope: Environment, depth: int) -> bool:
        """Return whether an expression is a rank plus a number, as in `rank + 1 == world_size`."""
        if not isinstance(expr, m.Binary) or not isinstance(expr.right, m.Constant):
            return False
        return self.rank_scope(expr.left, scope, depth + 1) in {"global", "filesystem"}

    def _compare_rank(
        self, rank: str, operator: str, right: m.Expr, scope: Environment, depth: int
    ) -> RankPartition:
        if operator in {"in", "not in"}:
            true, false = _among(rank, right)
            return (true, false) if operator == "in" else (false, true)
        if isinstance(right, m.Constant) and right.value is None:
            return (MAIN, TOP) if operator in {"is", "=="} else (TOP, MAIN)
        if self._takes_turns(right, scope):
            return UNPARTITIONED
        return compare_rank(rank, operator, self._number(right, scope, depth))

    def _takes_turns(self, expr: m.Expr, scope: Environment) -> bool:
        """Return whether a number selects another process for each element of a loop: `i % world_size`."""
        bound = self.known(expr, scope) if isinstance(expr, m.Name) else None
        if isinstance(bound, Expression):
            expr, scope = bound.expr, bound.scope
        if not isinstance(expr, m.Binary) or expr.operator != "%":
            return False
        names = (part for part in within(expr.left) if isinstance(part, m.Name))
        return any(isinstance(self.known(name, scope), IterationElement) for name in names)

    def _number(self, expr: m.Expr, scope: Environment, depth: int) -> int | None:
        if isinstance(expr, m.Constant):
            if isinstance(expr.value, str):
                text = expr.value.strip()
                return int(text) if text.lstrip("-").isdecimal() else None
            return expr.value if isinstance(expr.value, int) else None
        if isinstance(expr, m.Name) and not self.budget.exhausted(depth + 1):
            bound = self.known(expr, scope)
            if isinstance(bound, Expression):
                return self._number(bound.expr, bound.scope, depth + 1)
        return None

    def _is_size(self, expr: m.Expr, scope: Environment, depth: int) -> bool:
        match expr:
            case m.Call(function=function, arguments=arguments):
                name = self.resolver.qualify(function, scope)
                if name in TRANSPARENT and arguments:
                    return self._is_size(arguments[0], scope, depth)
                if name in ENVIRONMENT_CALLS and arguments:
                    return self.environment(arguments[0], "size", scope) is not None
                world = self.catalog.find("world", name)
                return world is not None and world.kind == "size"
            case m.Subscript(value=value, index=index):
                is_environment = self.resolver.qualify(value, scope) == "os.environ"
                return is_environment and self.environment(index, "size", scope) is not None
            case m.Name() | m.Attribute():
                variable = self.catalog.find("variable", last_name(expr))
                if variable is not None and variable.means == "size":
                    return True
                bound = None if self.budget.exhausted(depth + 1) else self.known(expr, scope)
                return isinstance(bound, Expression) and self._is_size(bound.expr, bound.scope, depth + 1)
            case _:
                return False


def _is_understood(binding: Binding) -> bool:
    """Return whether a value is a condition that is fully interpreted, so that its name adds nothing.

    A comparison with None is not, because it often checks for multiple processes. A search among objects is:
    `any(is_sharded(model) for model in models)`.
    """
    if isinstance(binding, Union):
        return any(map(_is_search, _informative(binding.options)))
    if _is_search(binding):
        return True
    expr = binding.expr if isinstance(binding, Expression) else None
    if isinstance(expr, m.Compare):
        return expr.rights != (m.Constant(None),)
    return isinstance(expr, (m.Constant, m.Not))


def _is_search(binding: Binding) -> bool:
    """Return whether a value is `any()` or `all()` of a function for multiple objects."""
    match binding:
        case Expression(
            expr=m.Call(
                function=m.Name(id="any" | "all"),
                arguments=(m.Comprehension(results=(m.Call(function=m.Name()),)),),
            )
        ):
            return True
    return False


def _selects_by_name(binding: Binding) -> bool:
    """Return whether a value compares with a text, as in `launcher != "none"`."""
    expr = binding.expr if isinstance(binding, Expression) else None
    return isinstance(expr, m.Compare) and any(
        isinstance(each, m.Constant) and isinstance(each.value, str) for each in expr.rights
    )


def _is_meant(guard: Guard, test: m.Expr, target: m.Expr, name: str | None) -> bool:
    """Return whether a condition that is named like a rank check is that rank check."""
    if guard.is_property and isinstance(test, m.Call):
        return False
    owner = last_name(target.value) if isinstance(target, m.Attribute) else ""
    return name is not None or not guard.of or not owner or owner in guard.of


def _informative(options: tuple[Binding, ...]) -> list[Binding]:
    """Return the bindings without constants, which are defaults for a single process, if others remain."""
    rest = [o for o in options if not (isinstance(o, Expression) and isinstance(o.expr, m.Constant))]
    return rest or list(options)


def _among(rank: str, right: m.Expr) -> RankPartition:
    if not (isinstance(right, m.Sequence) and all(isinstance(item, m.Constant) for item in right.items)):
        return UNPARTITIONED
    members = {item.value for item in right.items if isinstance(item, m.Constant)}
    if members <= {-1, 0, "0", "-1", None} and members & {0, "0"}:
        return is_first(rank)
    return UNPARTITIONED
