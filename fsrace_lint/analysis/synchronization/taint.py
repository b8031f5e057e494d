"""Whether a value can differ between the ranks of one job, and what makes it differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from fsrace_lint.analysis.accesses.model import LOOKING
from fsrace_lint.analysis.dataflow.process_set import BOTTOM, MAIN, SYNCHRONIZING, TOP, ProcessSet
from fsrace_lint.analysis.values.abstract_values import (
    Argument,
    ConditionalValue,
    Derived,
    Expression,
    Union,
    UnpackedPart,
)
from fsrace_lint.engine.query import lazy, query
from fsrace_lint.program.symbols import is_property, qualified_name
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name, parts, variable_of
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.traversal import bound_names, suites

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.accesses.effects import Effects
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import ExitPoint
    from fsrace_lint.analysis.dataflow.abstract_state import PathCondition as Tested
    from fsrace_lint.analysis.dataflow.rank_partition import RankPartition
    from fsrace_lint.analysis.values.abstract_values import Binding, Environment
    from fsrace_lint.program.modules import LinkedFunction

_TELLING: Final = frozenset(
    {
        "*.endswith", "*.format", "*.item", "*.joinpath", "*.split", "*.startswith", "*.strip", "all", "any",
        "bool", "int", "len", "list", "max", "min", "next", "os.path.abspath", "os.path.basename",
        "os.path.dirname", "os.path.join", "pathlib.Path", "reversed", "set", "sorted", "str", "sum",
        "tuple",
    }
)  # fmt: skip
"""What tells of its arguments what is asked of them; of other calls nothing follows."""
_MAKING_PATHS: Final = frozenset({"os.path.join", "pathlib.Path", "str", "os.path.abspath", "os.fspath"})
_WHETHER_SET_UP: Final = ((MAIN, TOP), (TOP, MAIN))
"""How tests for the number of processes, or for a job that was set up, divide them: alone or not."""


class RankTaint(Record, frozen=True):
    """Why a value can differ: `kind`, and the expression that makes it so.

    `rank`: it tells the processes apart. `files`: it is an answer of the
    filesystem, which may change in between. `own`: a clock, a random number,
    a process id, the name of the node. `error`: whether an exception came up.
    `is_between_ranks` says that two numbers of the process are compared, as that in one
    group with that in another.
    """

    kind: Literal["rank", "files", "own", "error"]
    expr: m.Expr
    is_between_ranks: bool = False


class TaintAnalysis:
    """Follows values back to what differs between ranks; what was broadcast or gathered is equal again."""

    def __init__(self, entry_states: EntryStates, effects: Effects) -> None:
        """Prepare for a project."""
        self.entry_states = entry_states
        self.flows = entry_states.flows
        self.catalog = self.flows.catalog
        self.effects = effects

    @query(provisional=None)
    def of(self, expr: m.Expr, scope: Environment) -> RankTaint | None:
        """Tell why the value of an expression can differ between ranks.

        Args:
            expr: The expression.
            scope: The names as they stand where it is evaluated.

        Returns:
            The first reason found; None where the value is equal, or taken for equal.
        """
        return self._find(expr, scope)

    def of_test(self, literal: Tested) -> RankTaint | None:
        """Tell why a test can come out differently on other ranks; whether an error came up is one too."""
        if literal.attempt is not None:
            return RankTaint("error", literal.test)
        return self.of(literal.test, literal.scope)

    def _find(self, expr: m.Expr, scope: Environment) -> RankTaint | None:
        match expr:
            case m.Name() | m.Attribute():
                return self._named(expr, scope)
            case m.Call():
                return self._called(expr, scope)
            case m.Compare():
                return self._compared(expr, scope)
            case m.Conditional():
                return self._first((expr.test, expr.body, expr.orelse), scope)
            case m.Comprehension(generators=generators, results=results):
                iterables = (generator.iterable for generator in generators)
                return self._first((*iterables, *results), scope)
            case m.Lambda():
                return None
            case m.Subscript(value=value):
                return self._of_host(expr, scope) or self.of(value, scope)
            case _:
                return self._first(parts(expr), scope)

    def _first(self, exprs: Iterable[m.Expr], scope: Environment) -> RankTaint | None:
        return next(filter(None, (self.of(expr, scope) for expr in exprs)), None)

    def _named(self, expr: m.Name | m.Attribute, scope: Environment) -> RankTaint | None:
        binding = self.entry_states.rank_tests.known(expr, scope)
        split = self.entry_states.rank_tests.partition(expr, scope)
        if isinstance(binding, Expression) and self._is_whether_set(split, binding.expr, binding.scope):
            return None
        if _tells_apart(split) or self._is_rank(expr, scope):
            return RankTaint("rank", expr)
        if variable_of(expr) in self._given_to_collectives(scope.function):
            return None
        if isinstance(expr, m.Name) and expr.id in self._counted_up(scope.function):
            return RankTaint("files", expr)
        if binding is not None:
            return self._bound(binding)
        entity = self.flows.resolver.symbol(expr, scope)
        if isinstance(expr, m.Attribute) and is_property(entity):
            return self._returned(entity, expr)
        return self._own(expr, expr, scope)

    def _bound(self, binding: Binding) -> RankTaint | None:
        match binding:
            case Expression(expr=expr, scope=scope):
                return self.of(expr, scope)
            case UnpackedPart() if items := tuple(self.entry_states.rank_tests.parts(binding)):
                found = next(filter(None, (self.of(*item) for item in items)), None)
                return found or self._part_returned(binding)
            case Derived(source=value):
                return self.of(value.expr, value.scope)
            case Union(options=options):
                return next(filter(None, map(self._bound, options)), None) or self._chosen(binding)
            case Argument():
                apart = _tells_apart(self.entry_states.rank_tests.partition_of_parameter(binding))
                return RankTaint("rank", m.Name(binding.parameter.name)) if apart else None
            case _:
                return None

    def _chosen(self, choice: Union) -> RankTaint | None:
        """Tell why it can differ whether a name was bound to something or to nothing."""
        if not isinstance(choice, ConditionalValue):
            return None
        nothing = any(isinstance(b, Expression) and isinstance(b.expr, m.Constant) for b in choice.options)
        return self.of(choice.test.expr, choice.test.scope) if nothing else None

    def _called(self, call: m.Call, scope: Environment) -> RankTaint | None:
        resolver = self.flows.resolver
        entity = resolver.symbol(call.function, scope)
        name = qualified_name(entity) or f"*.{last_name(call.function)}"
        if self.catalog.is_any(SYNCHRONIZING, name):
            return None
        split = self.entry_states.rank_tests.partition(call, scope)
        if self._is_whether_set(split, call, scope):
            return None
        if _tells_apart(split) or self._is_rank(call, scope):
            return RankTaint("rank", call)
        world = self.catalog.find("world", name)
        if world is not None:
            return None
        operation = self.effects.operation(call, scope)
        if operation is not None:
            return RankTaint("files", call) if operation.op in LOOKING else None
        callee = resolver.callee(call, scope)
        if callee is not None:
            return self._returned(callee, call)
        drawn = self.catalog.exact("random", name) is not None and not self._seeds
        if drawn:
            return RankTaint("own", call)
        own = self._own(call, call.function, scope) or self._of_host(call, scope)
        passes = name in _TELLING or self.catalog.exact("pure", name) is not None
        return own or (self._first(parts(call), scope) if passes else None)

    def _is_whether_set(self, split: RankPartition, expr: m.Expr, scope: Environment) -> bool:
        """Tell whether a test asks of a text of the environment whether it is there, which is so for all."""
        return (
            split in _WHETHER_SET_UP
            and self.entry_states.rank_tests.environment_variable(expr, scope) is not None
        )

    def _own(self, expr: m.Expr, source: m.Expr, scope: Environment) -> RankTaint | None:
        entry = self.catalog.find("private", self.flows.resolver.qualify(source, scope))
        same = entry is None or entry.scope == "job" or entry.by == "address"
        return None if same else RankTaint("own", expr)

    def _of_host(self, expr: m.Expr, scope: Environment) -> RankTaint | None:
        """Tell whether an expression is a text of the environment that another machine has otherwise."""
        name = self.entry_states.rank_tests.environment_variable(expr, scope)
        entry = None if name is None else self.catalog.exact("environment", name)
        return RankTaint("own", expr) if entry is not None and entry.means == "host" else None

    @lazy
    def _seeds(self) -> bool:
        """Whether anything in the project is named as what sets a seed, so that all may draw the same."""
        return self.flows.relevance.reads(self.catalog.names("seed"))

    def _is_rank(self, expr: m.Expr, scope: Environment) -> bool:
        """Tell whether a value is the number of the process; a test whether it is set at all is none."""
        return self.entry_states.rank_tests.rank_scope(expr, scope) not in {None, "worker"}

    def _compared(self, expr: m.Compare, scope: Environment) -> RankTaint | None:
        split = self.entry_states.rank_tests.partition(expr, scope)
        if split in _WHETHER_SET_UP and self._is_rank_or_size(expr, scope):
            return None
        between = all(self._is_rank(side, scope) for side in (expr.left, *expr.rights))
        if between or _tells_apart(split):
            return RankTaint("rank", expr, is_between_ranks=between)
        if _is_about_none(expr) and self._is_made(expr.left, scope):
            return None
        found = self._first((expr.left, *expr.rights), scope)
        own = found is not None and found.kind == "own" and _is_about_none(expr)
        return self._of_presence(self.entry_states.rank_tests.known(expr.left, scope)) if own else found

    def _of_presence(self, binding: Binding | None) -> RankTaint | None:
        """Tell why it can differ whether a name is bound to None; a value of one's own is never None."""
        if isinstance(binding, Union):
            return next(filter(None, map(self._of_presence, binding.options)), None) or self._chosen(binding)
        found = None if binding is None else self._bound(binding)
        return None if found is None or found.kind == "own" else found

    def _is_made(self, expr: m.Expr, scope: Environment) -> bool:
        """Tell whether a name stands for a text or a path that was put together, which is never None."""
        bound = self.entry_states.rank_tests.known(expr, scope)
        if not isinstance(bound, Expression):
            return False
        if isinstance(bound.expr, m.Call):
            return self.flows.resolver.qualify(bound.expr.function, bound.scope) in _MAKING_PATHS
        return isinstance(bound.expr, (m.Format, m.Binary))

    def _is_rank_or_size(self, expr: m.Compare, scope: Environment) -> bool:
        """Tell whether a comparison asks whether there are several processes, and nothing else."""
        return all(
            isinstance(side, m.Constant) or self._is_rank(side, scope) or not parts(side)
            for side in (expr.left, *expr.rights)
        )

    def _returned(self, function: LinkedFunction, shown: m.Expr) -> RankTaint | None:
        """Tell why what a function of the project returns can differ."""
        if function.facts.is_generator:
            return None
        exits = self.flows.exit_points(function)
        for way in exits:
            found = None if way.value is None else self.of(way.value, way.state.scope)
            if found is not None:
                return RankTaint(found.kind, shown)
        if any(map(self._may_be_nothing, exits)) and self._asks(function):
            return RankTaint("files", shown)
        if any(way.value is not None and not isinstance(way.value, m.Constant) for way in exits):
            kinds = self._deciding(way for way in exits if _is_nothing(way.value))
        else:
            kinds = self._deciding(exits)
        found = next(kinds, None) if len(exits) > 1 else None
        return None if found is None else RankTaint(found.kind, shown)

    def _part_returned(self, part: UnpackedPart) -> RankTaint | None:
        """Tell why it can differ whether a function returns something or nothing at one place of a tuple."""
        call, scope, index = part.source.expr, part.source.scope, part.index or 0
        callee = self.flows.resolver.callee(call, scope) if isinstance(call, m.Call) else None
        exits = () if callee is None else self.flows.exit_points(callee)
        empty = [
            way
            for way in exits
            if isinstance(way.value, m.Sequence) and any(map(_is_nothing, way.value.items[index:][:1]))
        ]
        found = next(self._deciding(empty), None) if len(empty) < len(exits) else None
        return None if found is None else RankTaint(found.kind, call)

    def _may_be_nothing(self, way: ExitPoint) -> bool:
        """Tell whether a function returns a variable that was bound to something, or stayed None."""
        bound = way.state.scope.get(way.value.id) if isinstance(way.value, m.Name) else None
        options = bound.options if type(bound) is Union else ()
        empty = [isinstance(o, Expression) and _is_nothing(o.expr) for o in options]
        return any(empty) and not all(empty)

    def _asks(self, function: LinkedFunction) -> bool:
        """Tell whether a function asks the filesystem what is there."""
        return any(map(self.effects.looks, self.flows.call_sites(function)))

    @query
    def _counted_up(self, function: LinkedFunction) -> frozenset[str]:
        """Name the variables that a function changes as long as it finds something: the next free number."""
        asked = {
            call_site.call for call_site in self.flows.call_sites(function) if self.effects.looks(call_site)
        }
        loops = (loop for loop in _whiles(function.facts.body) if not asked.isdisjoint(_calls(loop.test)))
        return frozenset(bound_names(s for loop in loops for s in loop.body))

    def _deciding(self, ways: Iterable[ExitPoint]) -> Iterator[RankTaint]:
        """Give the differing tests that decide which way a function is left."""
        for way in ways:
            for literal in way.state.conditions:
                found = self.of_test(literal) if literal.exit not in {"raise", "exit"} else None
                if found is not None and found.kind != "error":
                    yield found

    @query
    def _given_to_collectives(self, function: LinkedFunction) -> frozenset[str]:
        """Name the variables of a function that a collective was given, which makes them equal."""
        names = set()
        for call_site in self.flows.call_sites(function):
            called = self.flows.resolver.symbol(call_site.call.function, call_site.state.scope)
            name = qualified_name(called) or f"*.{last_name(call_site.call.function)}"
            if self.catalog.find("collective", name) is not None:
                values = (*call_site.call.arguments, *(k.value for k in call_site.call.keywords))
                names |= {variable_of(value) for value in values}
        return frozenset(names - {""})


def _whiles(statements: Iterable[m.Statement]) -> Iterator[m.While]:
    """Give the `while` loops among some statements and in them."""
    for statement in statements:
        if isinstance(statement, m.While):
            yield statement
        for suite in suites(statement):
            yield from _whiles(suite)


def _calls(expr: m.Expr) -> Iterator[m.Call]:
    """Give the calls in a test."""
    if isinstance(expr, m.Call):
        yield expr
    for part in parts(expr):
        yield from _calls(part)


def _tells_apart(split: RankPartition) -> bool:
    """Tell whether a test surely comes out one way for some processes, and the other way for others."""
    true, false = split
    return (bool(true & ~false) and bool(false & ~true)) or _picks_one(true, false)


def _picks_one(true: ProcessSet, false: ProcessSet) -> bool:
    """Tell whether a test is true, or false, for one certain process of whatever number."""
    one = true if false == TOP else false if true == TOP else TOP
    return one not in {TOP, BOTTOM} and (true, false) not in _WHETHER_SET_UP


def _is_about_none(expr: m.Compare) -> bool:
    return expr.operators in {("is",), ("is not",)} and expr.rights == (m.Constant(None),)


def _is_nothing(value: m.Expr | None) -> bool:
    return value is None or (isinstance(value, m.Constant) and not value.value)
