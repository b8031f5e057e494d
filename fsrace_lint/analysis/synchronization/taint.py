"""Whether a value can differ between the ranks of one job, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.model import LOOKING
from fsrace_lint.analysis.dataflow.loops import loops_in
from fsrace_lint.analysis.dataflow.process_set import BOTTOM, SYNCHRONIZING, TOP, ProcessSet
from fsrace_lint.analysis.dataflow.rank_partition import WHETHER_DISTRIBUTED
from fsrace_lint.analysis.synchronization.object_flags import one_sided_flag
from fsrace_lint.analysis.values.abstract_values import (
    Argument,
    ConditionalValue,
    Derived,
    Expression,
    Union,
    Unknown,
    UnpackedPart,
)
from fsrace_lint.engine.query import lazy, query
from fsrace_lint.program.symbols import is_property, qualified_name
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import calls_in, last_name, parts, variable_of
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.traversal import bound_names, target_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.accesses.effects import Effects
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import ExitPoint, LoopExit
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
"""Calls that are tainted by their arguments, in addition to the `pure` calls of the library models."""
_MAKING_PATHS: Final = frozenset({"os.path.join", "pathlib.Path", "str", "os.path.abspath", "os.fspath"})

_VARIABLES: Final = 3
"""The number of variables to follow from a condition to the call that returns the rank."""


class RankTaint(Record, frozen=True):
    """Why a value can differ between ranks.

    Attributes:
        kind: `rank`: it depends on the rank. `files`: it is a filesystem result, which can change
            between the calls of two ranks. `own`: it is a clock, a random number, a process ID, or a
            host name. `error`: it is whether an exception was raised.
        expr: The expression that differs.
        is_between_ranks: Whether it compares two ranks, such as the ranks in two process groups.
        is_flag: Whether it is a flag that only some ranks set, perhaps in an earlier iteration.
        source: The call whose result differs, if known. For `rank`, only if a variable holds the check.
    """

    kind: Literal["rank", "files", "own", "error"]
    expr: m.Expr
    is_between_ranks: bool = False
    is_flag: bool = False
    source: Expression | None = None


class TaintAnalysis:
    """Traces values back to what differs between ranks.

    Values that were broadcast or gathered are equal on all ranks.
    """

    def __init__(self, entry_states: EntryStates, effects: Effects) -> None:
        """Initialize for a project."""
        self.entry_states = entry_states
        self.flows = entry_states.flows
        self.catalog = self.flows.catalog
        self.effects = effects

    @query(provisional=None)
    def of(self, expr: m.Expr, scope: Environment) -> RankTaint | None:
        """Return why the value of an expression can differ between ranks.

        Args:
            expr: The expression.
            scope: The environment in which it is evaluated.

        Returns:
            The first reason found, or None if the value is equal on all ranks or assumed to be.
        """
        return self._find(expr, scope)

    def of_test(self, literal: Tested) -> RankTaint | None:
        """Return why a condition can differ between ranks. Whether an exception was raised also counts."""
        if literal.attempt is not None:
            return RankTaint("error", literal.test)
        if self._is_joined(literal.test, literal.scope):
            return None
        return self.of(literal.test, literal.scope)

    def of_iterations(self, over: Expression, function: LinkedFunction) -> RankTaint | None:
        """Return why ranks can differ in how often they iterate: a listing, or a flag that some ranks set.

        Args:
            over: The iterable or the test of the loop.
            function: The function with the loop.
        """
        found = self.of(over.expr, over.scope)
        if found is not None and found.kind == "files":
            return found
        if not any(loop.test is over.expr for loop in _whiles(function)):
            return None
        ends = (way.state.scope for way in self._iteration_ends(function) if way.loop is over)
        return next(filter(None, (self.of(over.expr, end) for end in ends)), None) if found is None else None

    def _iteration_ends(self, function: LinkedFunction) -> Iterator[LoopExit]:
        """Yield the points at which the next iteration of a loop can follow."""
        flow = self.flows.flow(function)
        yield from (way for way in (() if flow is None else flow.loop_exits) if way.how != "break")

    def _is_joined(self, test: m.Expr, scope: Environment) -> bool:
        """Return whether a condition is a path of several parts, which is always true."""
        binding = self.entry_states.rank_tests.known(test, scope) if isinstance(test, m.Name) else None
        if not isinstance(binding, Expression):
            return False
        path = self.entry_states.paths.normalize(binding.expr, binding.scope)
        return path is not None and len(path.components) > 1

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
            return RankTaint("rank", expr, source=self._rank_source(binding))
        if variable_of(expr) in self._given_to_collectives(scope.function):
            return None
        if isinstance(expr, m.Name) and expr.id in self._counted_up(scope.function):
            return RankTaint("files", expr)
        flag = one_sided_flag(expr, scope, self.entry_states) if isinstance(expr, m.Attribute) else None
        if flag is not None:
            return RankTaint("rank", flag.expr, is_flag=True)
        if isinstance(binding, Unknown):
            return self._carried(expr, binding, scope)
        if binding is not None:
            return self._bound(binding)
        entity = self.flows.resolver.symbol(expr, scope)
        if isinstance(expr, m.Attribute) and is_property(entity):
            return self._returned(entity, expr)
        return self._own(expr, expr, scope)

    def _carried(self, expr: m.Name | m.Attribute, start: Unknown, scope: Environment) -> RankTaint | None:
        """Return why a variable that a loop changes can differ: its value at the end of an iteration."""
        name = target_name(expr) or ""
        ends = (
            way.state.scope for way in self._iteration_ends(scope.function) if way.start.get(name) is start
        )
        found = next(filter(None, (self.of(expr, end) for end in ends if end.get(name) is not start)), None)
        return None if found is None else replace(found, is_flag=True)

    def _rank_source(self, binding: Binding | None, steps: int = _VARIABLES) -> Expression | None:
        """Return the call in the rank check that a variable holds, also if a variable holds the rank."""
        if steps == 0 or not isinstance(binding, Expression):
            return None
        expr, scope = binding.expr, binding.scope
        call = next(calls_in(expr), None)
        if call is not None:
            return Expression(call, scope)
        found = [self.entry_states.rank_tests.known(part, scope) for part in parts(expr)]
        known = next((each for each in found if isinstance(each, Expression)), None)
        return self._rank_source(known, steps - 1)

    def _bound(self, binding: Binding) -> RankTaint | None:
        match binding:
            case Expression(expr=expr, scope=scope):
                return self.of(expr, scope)
            case UnpackedPart() if items := tuple(self.entry_states.rank_tests.parts(binding)):
                found = next(filter(None, (self.of(*item) for item in items)), None)
                return found or self._part_returned(binding)
            case Derived(source=value):
                return self.of(value.expr, value.scope)
            case ConditionalValue() if (several := self._if_distributed(binding)) is not None:
                return self._bound(several)
            case Union(options=options):
                return next(filter(None, map(self._bound, options)), None) or self._chosen(binding)
            case Argument():
                apart = _tells_apart(self.entry_states.rank_tests.partition_of_parameter(binding))
                return RankTaint("rank", m.Name(binding.parameter.name)) if apart else None
            case _:
                return None

    def _if_distributed(self, choice: ConditionalValue) -> Binding | None:
        """Return the value if there are multiple processes, if a check for them chooses the value."""
        test = choice.test
        split = self.entry_states.rank_tests.partition(test.expr, test.scope)
        if split not in WHETHER_DISTRIBUTED or self.of(test.expr, test.scope) is not None:
            return None
        return choice.options[0 if split[0] == TOP else 1]

    def _chosen(self, choice: Union) -> RankTaint | None:
        """Return why ranks can choose different values, if one of the values is a constant such as None."""
        if not isinstance(choice, ConditionalValue):
            return None
        return (
            self.of(choice.test.expr, choice.test.scope) if any(map(_is_constant, choice.options)) else None
        )

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
            return _of_call("files", call, scope) if operation.op in LOOKING else None
        callee = resolver.callee(call, scope)
        if callee is not None:
            return self._returned(callee, call)
        drawn = self.catalog.exact("random", name) is not None and not self._seeds
        if drawn:
            return _of_call("own", call, scope)
        own = self._own(call, call.function, scope) or self._of_host(call, scope)
        passes = name in _TELLING or self.catalog.exact("pure", name) is not None
        return own or (self._first(parts(call), scope) if passes else None)

    def _is_whether_set(self, split: RankPartition, expr: m.Expr, scope: Environment) -> bool:
        """Return whether a check only tests if an environment variable is set, the same on all ranks."""
        return (
            split in WHETHER_DISTRIBUTED
            and self.entry_states.rank_tests.environment_variable(expr, scope) is not None
        )

    def _own(self, expr: m.Expr, source: m.Expr, scope: Environment) -> RankTaint | None:
        entry = self.catalog.find("private", self.flows.resolver.qualify(source, scope))
        same = entry is None or entry.scope == "job" or entry.by == "address"
        return None if same else RankTaint("own", expr, source=Expression(expr, scope))

    def _of_host(self, expr: m.Expr, scope: Environment) -> RankTaint | None:
        """Return the taint of an environment variable that differs between hosts."""
        name = self.entry_states.rank_tests.environment_variable(expr, scope)
        entry = None if name is None else self.catalog.exact("environment", name)
        return RankTaint("own", expr) if entry is not None and entry.means == "host" else None

    @lazy
    def _seeds(self) -> bool:
        """Whether the project uses a function that sets a seed, so that ranks may draw the same numbers."""
        return self.flows.relevance.reads(self.catalog.names("seed"))

    def _is_rank(self, expr: m.Expr, scope: Environment) -> bool:
        """Return whether an expression is a rank."""
        return self.entry_states.rank_tests.rank_scope(expr, scope) not in {None, "worker"}

    def _compared(self, expr: m.Compare, scope: Environment) -> RankTaint | None:
        split = self.entry_states.rank_tests.partition(expr, scope)
        if split in WHETHER_DISTRIBUTED and self._is_rank_or_size(expr, scope):
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
        """Return why ranks can differ in whether a name is None. A value with taint `own` is never None."""
        if isinstance(binding, Union):
            return next(filter(None, map(self._of_presence, binding.options)), None) or self._chosen(binding)
        found = None if binding is None else self._bound(binding)
        return None if found is None or found.kind == "own" else found

    def _is_made(self, expr: m.Expr, scope: Environment) -> bool:
        """Return whether a name is bound to a formatted string or a joined path, which is never None."""
        bound = self.entry_states.rank_tests.known(expr, scope)
        if not isinstance(bound, Expression):
            return False
        if isinstance(bound.expr, m.Call):
            return self.flows.resolver.qualify(bound.expr.function, bound.scope) in _MAKING_PATHS
        return isinstance(bound.expr, (m.Format, m.Binary))

    def _is_rank_or_size(self, expr: m.Compare, scope: Environment) -> bool:
        """Return whether a comparison is only about ranks, the world size, and constants."""
        return all(
            isinstance(side, m.Constant) or self._is_rank(side, scope) or not parts(side)
            for side in (expr.left, *expr.rights)
        )

    def _returned(self, function: LinkedFunction, shown: m.Expr) -> RankTaint | None:
        """Return why the result of a function of the project can differ between ranks.

        If the function broadcasts a value, a result that only some ranks compute is assumed to be that value.
        """
        found = None if function.facts.is_generator else self._computed(function, shown)
        is_sent = (
            found is not None and found.kind == "rank" and self.entry_states.rank_dependence.agrees(function)
        )
        return None if is_sent else found

    def _computed(self, function: LinkedFunction, shown: m.Expr) -> RankTaint | None:
        exits = self.flows.exit_points(function)
        for way in exits:
            found = None if way.value is None else self.of(way.value, way.state.scope)
            if found is not None:
                return RankTaint(found.kind, shown, source=found.source)
        if any(map(self._may_be_nothing, exits)):
            asked = next(filter(self.effects.looks, self.flows.call_sites(function)), None)
            if asked is not None:
                return RankTaint("files", shown, source=Expression(asked.call, asked.state.scope))
        if any(way.value is not None and not isinstance(way.value, m.Constant) for way in exits):
            kinds = self._deciding(way for way in exits if _is_nothing(way.value))
        else:
            kinds = self._deciding(exits)
        found = next(kinds, None) if len(exits) > 1 else None
        return None if found is None else RankTaint(found.kind, shown, source=found.source)

    def _part_returned(self, part: UnpackedPart) -> RankTaint | None:
        """Return why ranks can differ in whether one item of a returned tuple is empty."""
        call, scope, index = part.source.expr, part.source.scope, part.index or 0
        callee = self.flows.resolver.callee(call, scope) if isinstance(call, m.Call) else None
        exits = () if callee is None else self.flows.exit_points(callee)
        empty = [
            way
            for way in exits
            if isinstance(way.value, m.Sequence) and any(map(_is_nothing, way.value.items[index:][:1]))
        ]
        found = next(self._deciding(empty), None) if len(empty) < len(exits) else None
        return None if found is None else RankTaint(found.kind, call, source=found.source)

    def _may_be_nothing(self, way: ExitPoint) -> bool:
        """Return whether an exit returns a variable that is empty on some paths only."""
        bound = way.state.scope.get(way.value.id) if isinstance(way.value, m.Name) else None
        options = bound.options if type(bound) is Union else ()
        empty = [isinstance(o, Expression) and _is_nothing(o.expr) for o in options]
        return any(empty) and not all(empty)

    @query
    def _counted_up(self, function: LinkedFunction) -> frozenset[str]:
        """Return the variables that a `while` loop with a filesystem check binds.

        An example is the search for the next free number.
        """
        asked = {
            call_site.call for call_site in self.flows.call_sites(function) if self.effects.looks(call_site)
        }
        loops = (loop for loop in _whiles(function) if not asked.isdisjoint(calls_in(loop.test)))
        return frozenset(bound_names(s for loop in loops for s in loop.body))

    def _deciding(self, ways: Iterable[ExitPoint]) -> Iterator[RankTaint]:
        """Yield the taints of the conditions that decide which exit a function takes."""
        for way in ways:
            for literal in way.state.conditions:
                found = self.of_test(literal) if literal.exit not in {"raise", "exit"} else None
                if found is not None and found.kind != "error":
                    yield found

    @query
    def _given_to_collectives(self, function: LinkedFunction) -> frozenset[str]:
        """Return the variables that a function passes to a collective, which makes them equal."""
        names = set()
        for call_site in self.flows.call_sites(function):
            called = self.flows.resolver.symbol(call_site.call.function, call_site.state.scope)
            name = qualified_name(called) or f"*.{last_name(call_site.call.function)}"
            if self.catalog.find("collective", name) is not None:
                values = (*call_site.call.arguments, *(k.value for k in call_site.call.keywords))
                names |= {variable_of(value) for value in values}
        return frozenset(names - {""})


def _of_call(kind: Literal["files", "own"], call: m.Call, scope: Environment) -> RankTaint:
    return RankTaint(kind, call, source=Expression(call, scope))


def _whiles(function: LinkedFunction) -> Iterator[m.While]:
    """Yield the `while` loops in a function, including nested ones."""
    return (loop for loop in loops_in(function.facts.body) if isinstance(loop, m.While))


def _tells_apart(split: RankPartition) -> bool:
    """Return whether a check is certainly true on some ranks and false on others."""
    true, false = split
    return (bool(true & ~false) and bool(false & ~true)) or _picks_one(true, false)


def _picks_one(true: ProcessSet, false: ProcessSet) -> bool:
    """Return whether a check is true, or false, on exactly one process."""
    one = true if false == TOP else false if true == TOP else TOP
    return one not in {TOP, BOTTOM} and (true, false) not in WHETHER_DISTRIBUTED


def _is_about_none(expr: m.Compare) -> bool:
    return expr.operators in {("is",), ("is not",)} and expr.rights == (m.Constant(None),)


def _is_constant(binding: Binding) -> bool:
    """Return whether a binding can be a constant."""
    if isinstance(binding, Union):
        return any(map(_is_constant, binding.options))
    return isinstance(binding, Expression) and isinstance(binding.expr, m.Constant)


def _is_nothing(value: m.Expr | None) -> bool:
    return value is None or (isinstance(value, m.Constant) and not value.value)
