"""Expressions that are a rank, and the values of names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.ranks.process_groups import names_group
from fsrace_lint.analysis.values.abstract_values import (
    Argument,
    ContextResult,
    Environment,
    Expression,
    IterationElement,
    Union,
    UnpackedPart,
)
from fsrace_lint.analysis.values.assignment import is_none
from fsrace_lint.analysis.values.call_arguments import bind
from fsrace_lint.analysis.values.entered_values import entered_values
from fsrace_lint.engine.depth_budget import DepthBudget
from fsrace_lint.engine.query import query, recursive_query
from fsrace_lint.program.symbols import as_function, qualified_name
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import as_attribute, last_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.values.abstract_values import Binding
    from fsrace_lint.analysis.values.resolve import Resolver
    from fsrace_lint.engine.cycles import CombinedCycles, CycleDetector
    from fsrace_lint.program.modules import LinkedClass, LinkedFunction

_DEEPEST: Final = 12
_NAMES: Final = 4
"""The number of names that are followed to the name of an environment variable."""
_DEVICES: Final = 8
"""The number of processes of a node in most of the code that divides ranks by a constant."""
TRANSPARENT: Final = frozenset({"int", "str", "bool"})
_SPLITTING: Final = frozenset({"split", "rsplit", "partition", "rpartition", "group", "groups", "findall"})
ENVIRONMENT_CALLS: Final = frozenset({"os.environ.get", "os.getenv", "os.environ.setdefault"})


_NAMESPACES: Final = frozenset({"argparse.Namespace", "types.SimpleNamespace"})


class RankSources:
    """Finds ranks in the environments of a project, by the code of each function alone."""

    def __init__(self, resolver: Resolver, cycles: CycleDetector | CombinedCycles) -> None:
        """Initialize for a project.

        Args:
            resolver: Resolves the names.
            cycles: Detects whether a result is final.
        """
        self.resolver = resolver
        self.interpretation = resolver.interpretation
        self.catalog = resolver.catalog
        self.budget = DepthBudget(_DEEPEST, cycles)
        self.dependencies = resolver.dependencies

    def rank_scope(self, expr: m.Expr, scope: Environment, depth: int = 0) -> str | None:
        """Return the scope of a rank.

        Args:
            expr: The expression.
            scope: The environment in which it is evaluated.
            depth: The number of steps so far.

        Returns:
            A scope of the library models, such as `global`, `local`, `group`, or `filesystem`; or None if the
            expression is not a rank.
        """
        if self.budget.exhausted(depth):
            return None
        expr = as_attribute(expr)
        match expr:
            case m.Name() | m.Attribute():
                return self._named_rank(expr, scope, depth)
            case m.Call(function=function, arguments=arguments):
                entity = self.resolver.symbol(function, scope)
                name = qualified_name(entity)
                if name in TRANSPARENT and arguments:
                    return self.rank_scope(arguments[0], scope, depth + 1)
                if name in ENVIRONMENT_CALLS and arguments:
                    return self.environment(arguments[0], "rank", scope)
                own = as_function(entity)
                found = self._called_rank(name or last_name(function), own, depth)
                found = found or self._rank_named_to(own, expr, scope)
                return "group" if found in {"global", "local"} and names_group(expr, scope) else found
            case m.Subscript(value=value, index=index):
                if self.resolver.qualify(value, scope) == "os.environ":
                    return self.environment(index, "rank", scope)
                known = self.known(expr, scope)
                return self._item_rank(index) if known is None else self._bound_rank(known, depth + 1)
            case m.Conditional(body=body, orelse=orelse):
                return self.rank_scope(body, scope, depth + 1) or self.rank_scope(orelse, scope, depth + 1)
            case m.Walrus(value=value):
                return self.rank_scope(value, scope, depth + 1)
            case m.Boolean(operator="or", values=values):
                ranks = (self.rank_scope(value, scope, depth + 1) for value in values)
                return next(filter(None, ranks), None)
            case m.Binary():
                return self._computed_rank(expr, scope, depth)
            case _:
                return None

    def _computed_rank(self, expr: m.Binary, scope: Environment, depth: int) -> str | None:
        """Return the scope of a rank that is computed from another rank.

        A rank modulo a size is the local rank, but `rank % (gpus * nodes)` is the rank itself. So is
        `local_rank + node * gpus`.
        """
        left, right = expr.left, expr.right
        if expr.operator == "%" and _may_be_size(right):
            scale = "global" if _is_product(right) else "local"
            return scale if self.rank_scope(left, scope, depth + 1) == "global" else None
        if expr.operator == "+" and _is_product(left) != _is_product(right):
            rank = right if _is_product(left) else left
            return "global" if self.rank_scope(rank, scope, depth + 1) == "local" else None
        return None

    def rank_of_attribute(self, _argument: Argument, _name: str) -> str | None:
        """Return the scope of the rank that callers store in an attribute. Subclasses override this."""
        return None

    def rank_of_parameter(self, _argument: Argument) -> str | None:
        """Return the scope of the rank that callers pass. Subclasses override this; here it is unknown."""
        return None

    def environment_variable(self, expr: m.Expr, scope: Environment) -> str | None:
        """Return the name of the environment variable that an expression reads, or None."""
        name = self._variable_name(expr, scope)
        return name.value if isinstance(name, m.Constant) and isinstance(name.value, str) else None

    def _variable_name(self, expr: m.Expr, scope: Environment) -> m.Expr | None:
        """Return the name of the environment variable that an expression reads, as an expression, or None."""
        if isinstance(expr, m.Subscript):
            return expr.index if self.resolver.qualify(expr.value, scope) == "os.environ" else None
        if not isinstance(expr, m.Call) or not expr.arguments:
            return None
        called = self.resolver.qualify(expr.function, scope)
        return expr.arguments[0] if called in ENVIRONMENT_CALLS else None

    def _rank_named_to(self, own: LinkedFunction | None, call: m.Call, scope: Environment) -> str | None:
        """Return the scope of a rank in the environment variable whose name a call passes, or None."""
        parameter = None if own is None else self._name_of_variable(own)
        if own is None or parameter is None:
            return None
        passed = bind(call, own).argument_for(parameter)
        return None if passed is None else self.environment(passed, "rank", scope)

    @query
    def _name_of_variable(self, function: LinkedFunction) -> m.Parameter | None:
        """Return the parameter that names the environment variable that a function returns, or None."""
        for value in self.interpretation.return_values(function):
            read = value.expr
            if isinstance(read, m.Call) and last_name(read.function) in TRANSPARENT and read.arguments:
                read = read.arguments[0]
            name = self._variable_name(read, value.scope)
            bound = None if name is None else self.known(name, value.scope)
            if isinstance(bound, Argument) and bound.function is function:
                return bound.parameter
        return None

    def known(self, expr: m.Expr, scope: Environment) -> Binding | None:
        """Return the binding of a name, an attribute, or an item with a constant index, or None."""
        if isinstance(expr, m.Name):
            return self.resolver.binding(expr.id, scope) or self._imported(expr, scope)
        if isinstance(expr, m.Attribute):
            if isinstance(expr.value, m.Name):
                bound = scope.get(f"{expr.value.id}.{expr.name}")
                if bound is not None:
                    return bound
            return self._attribute(expr, scope)
        if isinstance(expr, m.Subscript) and isinstance(expr.index, m.Constant):
            return self._item(expr.value, scope, expr.index.value)
        return None

    def _item(self, whole: m.Expr, scope: Environment, index: object, depth: int = 0) -> Binding | None:
        """Return the item of a display or a result. Constants are left out: code can replace them later."""
        if isinstance(whole, m.Sequence) and type(index) is int and not any(map(_is_starred, whole.items)):
            item = next(iter(whole.items[index:][:1]), None)
            return None if item is None or isinstance(item, m.Constant) else Expression(item, scope)
        if isinstance(whole, m.Call) and type(index) is int:
            return UnpackedPart(Expression(whole, scope), index)
        is_followed = not isinstance(whole, m.Sequence) and depth < _NAMES
        made = self.known(whole, scope) if is_followed else None
        return self._item(made.expr, made.scope, index, depth + 1) if isinstance(made, Expression) else None

    def _imported(self, expr: m.Expr, scope: Environment) -> Binding | None:
        return self.resolver.variable(self.resolver.symbol(expr, scope))

    def _attribute(self, expr: m.Attribute, scope: Environment) -> Binding | None:
        class_ = self.resolver.class_of(self.resolver.symbol(expr.value, scope))
        if class_ is None:
            return self._imported(expr, scope) or self._kept_in(self.known(expr.value, scope), expr.name)
        return self._attribute_of(class_, expr.name)

    def _kept_in(self, made: Binding | None, name: str) -> Binding | None:
        """Return the value of an attribute of `Namespace(world_size=1)`, or None."""
        match made:
            case Expression(expr=m.Call() as call, scope=scope):
                if self.resolver.qualify(call.function, scope) not in _NAMESPACES:
                    return None
                return next(
                    (Expression(each.value, scope) for each in call.keywords if each.name == name), None
                )
            case Union(options=options):
                found = [kept for kept in (self._kept_in(each, name) for each in options) if kept is not None]
                return self.resolver.either(tuple(found)) if len(found) == len(options) else None
            case _:
                return None

    def _attribute_of(self, class_: LinkedClass, name: str) -> Binding | None:
        values = self.resolver.attribute_values(class_, name)
        if not values:
            return None
        return values[0] if len(values) == 1 else self.resolver.either(tuple(values))

    def environment(self, name: m.Expr, means: str, scope: Environment, depth: int = 0) -> str | None:
        """Return the scope of an environment variable that is a rank or a world size, or None.

        The name can be in a variable, or one of several in a loop.
        """
        bound = self.known(name, scope) if isinstance(name, m.Name) and depth < _NAMES else None
        match bound:
            case IterationElement(source=Expression(expr=expr, scope=outer)):
                return self.environment(expr, means, outer, depth + 1)
            case Expression(expr=expr, scope=outer):
                return self.environment(expr, means, outer, depth + 1)
        if isinstance(name, m.Sequence):
            found = [self.environment(item, means, scope, depth + 1) for item in name.items]
            return found[0] if found and None not in found else None
        if not (isinstance(name, m.Constant) and isinstance(name.value, str)):
            return None
        entry = self.catalog.exact("environment", name.value)
        return entry.scope if entry is not None and entry.means == means else None

    def _item_rank(self, index: m.Expr) -> str | None:
        if not (isinstance(index, m.Constant) and isinstance(index.value, str)):
            return None
        variable = self.catalog.exact("variable", index.value)
        return variable.scope if variable is not None and variable.means == "rank" else None

    def _called_rank(self, name: str, own: LinkedFunction | None, depth: int) -> str | None:
        found = None if own is None else self._returned_rank(own, depth + 1)
        entry = None if found is not None else self.catalog.find("rank", name)
        return found if entry is None else str(entry.scope)

    @recursive_query(beyond=None)
    def _returned_rank(self, function: LinkedFunction, depth: int) -> str | None:
        """Return the scope of the rank that all results of a function are, or None."""
        results = self.interpretation.return_values(function)
        values = (value for value in results if not isinstance(value.expr, m.Constant))
        ranks = {self.rank_scope(value.expr, value.scope, depth + 1) for value in values}
        return ranks.pop() if len(ranks) == 1 else None

    def _named_rank(self, expr: m.Expr, scope: Environment, depth: int) -> str | None:
        known = self.known(expr, scope)
        if known is not None:
            found = self._bound_rank(known, depth + 1)
            if found is not None:
                return found
            if self._is_no_rank(known, depth + 1):
                return None
        if isinstance(expr, m.Attribute):
            entry = self.catalog.find("rank", qualified_name(self.resolver.symbol(expr, scope)))
            if entry is not None:
                return str(entry.scope)
            owner = self.known(expr.value, scope) if known is None else None
            stored = self.rank_of_attribute(owner, expr.name) if isinstance(owner, Argument) else None
            if stored is not None:
                return stored
        variable = self.catalog.find("variable", last_name(expr))
        return variable.scope if variable is not None and variable.means == "rank" else None

    def _is_no_rank(self, binding: Binding, depth: int) -> bool:
        """Return whether a binding is a constant, a loop element, or a number parsed from text."""
        if self.budget.exhausted(depth):
            return False
        match binding:
            case Expression(expr=m.Constant(value=value)):
                return value is not None
            case Expression(expr=expr, scope=scope):
                return self._is_read_from_text(expr, scope, depth + 1)
            case IterationElement():
                return True
            case Union(options=options):
                return self._are_no_ranks(options, depth + 1)
            case _:
                return False

    def _are_no_ranks(self, options: tuple[Binding, ...], depth: int) -> bool:
        """Return whether no binding is a rank. None is a placeholder for a later value, and is ignored."""
        known = [each for each in options if not is_none(each)]
        return bool(known) and all(self._is_no_rank(each, depth) for each in known)

    def _is_read_from_text(self, expr: m.Expr, scope: Environment, depth: int) -> bool:
        """Return whether a number is parsed from text, such as a file name."""
        match expr:
            case m.Call(function=m.Name(id=name), arguments=[value]) if name in TRANSPARENT:
                return self._is_read_from_text(value, scope, depth)
            case m.Call(function=m.Attribute(name=name)):
                return name in _SPLITTING
            case m.Subscript(value=value):
                return self._is_read_from_text(value, scope, depth)
            case m.Name(id=name):
                bound = self.resolver.binding(name, scope)
                return isinstance(bound, Expression) and self._is_no_rank(bound, depth)
            case _:
                return False

    @recursive_query(beyond=None)
    def _bound_rank(self, binding: Binding, depth: int) -> str | None:
        match binding:
            case Expression(expr=expr, scope=scope):
                return self.rank_scope(expr, scope, depth + 1)
            case Union(options=options):
                return next(filter(None, (self._bound_rank(option, depth + 1) for option in options)), None)
            case ContextResult():
                entered = entered_values(self.resolver, binding)
                found = {self.rank_scope(each.expr, each.scope, depth + 1) for each in entered}
                return found.pop() if len(found) == 1 else None
            case UnpackedPart():
                found = {self.rank_scope(*part, depth + 1) for part in self.parts(binding)}
                return found.pop() if len(found) == 1 else None
            case Argument(parameter=parameter):
                passed = self.rank_of_parameter(binding)
                variable = self.catalog.exact("variable", parameter.name)
                named = variable.scope if variable is not None and variable.means == "rank" else None
                return passed or named
            case _:
                return None

    def parts(self, binding: UnpackedPart) -> Iterator[tuple[m.Expr, Environment]]:
        """Yield one item of the tuples that a function of the project returns.

        Nothing is yielded unless all results are tuple displays.
        """
        call, scope = binding.source.expr, binding.source.scope
        callee = self.resolver.callee(call, scope) if isinstance(call, m.Call) else None
        ways = () if callee is None or binding.index is None else self.interpretation.exit_points(callee)
        tuples = [(way.value.items, way.state.scope) for way in ways if isinstance(way.value, m.Sequence)]
        for items, names in tuples if len(tuples) == len(ways) else ():
            yield from ((item, names) for item in items[binding.index :][:1])


def _may_be_size(number: m.Expr) -> bool:
    """Return whether a number can be the number of processes of a node."""
    return not isinstance(number, m.Constant) or number.value == _DEVICES


def _is_product(expr: m.Expr) -> bool:
    return isinstance(expr, m.Binary) and expr.operator == "*"


def _is_starred(item: m.Expr) -> bool:
    return isinstance(item, m.Starred)
