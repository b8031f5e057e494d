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
from fsrace_lint.analysis.ranks.rank_sources import ENVIRONMENT_CALLS, TRANSPARENT, RankSources, as_attribute
from fsrace_lint.analysis.values.abstract_values import (
    Argument,
    ConditionalValue,
    Environment,
    Expression,
    Union,
    UnpackedPart,
)
from fsrace_lint.analysis.values.constants import constant_passed
from fsrace_lint.engine.query import recursive_query
from fsrace_lint.program.symbols import as_function, is_property, qualified_name
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name, setting_of

if TYPE_CHECKING:
    from fsrace_lint.analysis.dataflow.rank_partition import RankPartition
    from fsrace_lint.analysis.values.abstract_values import Binding
    from fsrace_lint.catalog.entries import Guard
    from fsrace_lint.program.modules import LinkedFunction

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
                return combine(operator, [self.partition(value, scope, depth) for value in values])
            case m.Conditional(test=inner, body=body, orelse=orelse):
                return choose(
                    self.partition(inner, scope, depth),
                    self.partition(body, scope, depth),
                    self.partition(orelse, scope, depth),
                )
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

    def _truth(self, test: m.Expr, scope: Environment, depth: int) -> RankPartition:
        """Return the partition of a name, an attribute, an item, or a call."""
        if not isinstance(test, m.Call) and (known := self.known(test, scope)) is not None:
            found = self._bound_split(known, depth + 1)
            if found != UNPARTITIONED or _is_understood(known):
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
            found = self._decided(test, function, depth) or self.interpretation.result_partition(function)
            if found != UNPARTITIONED:
                return found
        rank = self.rank_scope(test, scope, depth + 1)
        if rank is not None and self.environment_variable(test, scope) is not None:
            return TOP, MAIN
        if rank is not None:
            return NOT_FIRST[rank], FIRST[rank]
        found = self._heuristic(target, setting_of(test))
        return self._kept(test, scope) if found == UNPARTITIONED else found

    def _kept(self, test: m.Expr, scope: Environment) -> RankPartition:
        """Return the partition of an attribute that callers set on an argument."""
        if not isinstance(test, m.Attribute) or not isinstance(test.value, m.Name):
            return UNPARTITIONED
        bound = self.resolver.binding(test.value.id, scope)
        return self.partition_of_attribute(bound, test.name) if isinstance(bound, Argument) else UNPARTITIONED

    def _decided(self, test: m.Expr, function: LinkedFunction, depth: int) -> RankPartition | None:
        """Return the partition of a result that the constant arguments of a call select, or None."""
        if not isinstance(test, m.Call) or not function.parameters:
            return None
        ways = feasible_exits(test, function, self.interpretation.exit_points(function))
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
        variable = self.catalog.find("variable", last_name(target))
        if variable is not None and variable.means == "guard":
            return is_first(variable.scope)
        setting = self.catalog.exact("variable", key) if key else None
        if "initialized" in {each.means for each in (variable, setting) if each is not None}:
            return TOP, MAIN
        return UNPARTITIONED

    @recursive_query(beyond=UNPARTITIONED)
    def _bound_split(self, binding: Binding, depth: int) -> RankPartition:
        match binding:
            case Expression(expr=expr, scope=scope):
                return self.partition(expr, scope, depth + 1)
            case ConditionalValue(test=test, options=(then, otherwise)):
                return choose(
                    self._split_of_choice(test, depth + 1),
                    self._bound_split(then, depth + 1),
                    self._bound_split(otherwise, depth + 1),
                )
            case Union(options=options):
                return union([self._bound_split(option, depth + 1) for option in _informative(options)])
            case UnpackedPart():
                returned = _informative(tuple(Expression(*part) for part in self.parts(binding)))
                splits = [self._bound_split(option, depth + 1) for option in returned]
                return union(splits) if splits else UNPARTITIONED
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
        if (
            isinstance(right, m.Constant)
            and isinstance(right.value, bool)
            and operator in {"==", "is", "!=", "is not"}
        ):
            true, false = self.partition(left, scope, depth + 1)
            return (true, false) if right.value == (operator in {"==", "is"}) else (false, true)
        return UNPARTITIONED

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
        return compare_rank(rank, operator, self._number(right, scope, depth))

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
                    return self.environment(arguments[0], "size") is not None
                world = self.catalog.find("world", name)
                return world is not None and world.kind == "size"
            case m.Subscript(value=value, index=index):
                is_environment = self.resolver.qualify(value, scope) == "os.environ"
                return is_environment and self.environment(index, "size") is not None
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

    A comparison with None is not, because it often checks for multiple processes.
    """
    expr = binding.expr if isinstance(binding, Expression) else None
    if isinstance(expr, m.Compare):
        return expr.rights != (m.Constant(None),)
    return isinstance(expr, (m.Constant, m.Not))


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
