"""Attributes of a library that all ranks must read or set together, in a branch that only some ranks take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from fsrace_lint.analysis.accesses.model import AtCall
from fsrace_lint.analysis.dataflow.abstract_state import AbstractState, CallSite, PathCondition
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.traversal import children, evaluated, suites

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fsrace_lint.analysis.dataflow.abstract_state import RankTest
    from fsrace_lint.analysis.synchronization.event_sequences import EventSequences, SequenceItem
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.catalog.entries import Agreement
    from fsrace_lint.files.spans import Span
    from fsrace_lint.program.modules import LinkedFunction


class OneSidedAttribute(AtCall, Record, frozen=True, eq=False):
    """An attribute that only some ranks read or set.

    Attributes:
        call_site: The use of the attribute, as a call.
        event: The same as an event of the ranks that take the branch.
        is_set: Whether they set it.
        branch: The branch with the rank check.
    """

    call_site: CallSite
    event: SequenceItem
    is_set: bool
    branch: m.If


class AgreedAttributes:
    """Finds the attributes that only some ranks read or set."""

    def __init__(self, sequences: EventSequences) -> None:
        """Initialize for a project."""
        self.sequences = sequences
        self.flows = sequences.flows
        self.names = sequences.catalog.last_names["agreement"]

    def of(self, function: LinkedFunction) -> Iterator[OneSidedAttribute]:
        """Yield the attributes that only the ranks in one branch of a rank check read or set."""
        if not self.flows.relevance.may_use(function, self.names):
            return
        flow = self.flows.flow(function)
        branches = {branch.test.span: branch for branch in _branches(function.facts.body)}
        for test in {each.span: each for each in (() if flow is None else flow.rank_tests)}.values():
            branch = branches.get(test.span)
            if branch is not None and flow is not None:
                yield from self._one_sided(function, test, branch, flow.scope)

    def _one_sided(
        self, function: LinkedFunction, test: RankTest, branch: _Branch, scope: Environment
    ) -> Iterator[OneSidedAttribute]:
        then, otherwise = (
            {(use.attribute, use.kind): use for use in self._uses(side, scope, branch.test.span)}
            for side in (branch.then, branch.otherwise)
        )
        for key in [key for key in (*then, *otherwise) if (key in then) != (key in otherwise)]:
            literal = PathCondition(branch.test.test, key in then, scope, branch.test)
            difference = self.sequences.taint.of_test(literal)
            if difference is not None and difference.kind == "rank":
                use = then.get(key) or otherwise[key]
                processes = self.sequences.entry_states.deciding(literal)
                state = AbstractState(processes, (*test.conditions, literal), scope)
                call = m.Call(use.attribute, (), (), use.place, exact=False)
                event = self.sequences.event(CallSite(function, call, state, (), (), ()))
                yield OneSidedAttribute(event.call_site, event, use.kind == "set", branch.test)

    def _uses(self, statements: Iterable[m.Statement], scope: Environment, place: Span) -> Iterator[_Use]:
        """Yield the uses of attributes that all ranks must read or set together.

        Args:
            statements: The statements.
            scope: The environment.
            place: The innermost place around the statements that is known.
        """
        for statement in statements:
            targets = statement.targets if isinstance(statement, m.Assign) else ()
            found = [_Use(target, "set", place) for target in targets if isinstance(target, m.Attribute)]
            found += [use for expr in evaluated(statement) for use in _read(expr, place)]
            yield from (use for use in found if self._use(use.attribute, scope) == use.kind)
            inner = statement.span if isinstance(statement, (m.If, m.While, m.For, m.With)) else place
            for suite in suites(statement):
                yield from self._uses(suite, scope, inner)

    def _use(self, attribute: m.Attribute, scope: Environment) -> str:
        """Return what all ranks must do together with an attribute: `read`, `set`, or nothing."""
        if attribute.name not in self.names:
            return ""
        owner = self.flows.resolver.type_name(self.flows.resolver.symbol(attribute.value, scope))
        entry: Agreement | None = self.sequences.catalog.exact(
            "agreement", f"{owner or '*'}.{attribute.name}"
        )
        is_meant = entry is not None and (owner is not None or last_name(attribute.value) in entry.of)
        return entry.use if entry is not None and is_meant else ""


class _Use(NamedTuple):
    """An attribute that is read or set, and the innermost place around it that is known."""

    attribute: m.Attribute
    kind: Literal["set", "read"]
    place: Span


class _Branch(NamedTuple):
    """A branch, the statements that run if its test is true, and those that run if it is false."""

    test: m.If
    then: tuple[m.Statement, ...]
    otherwise: tuple[m.Statement, ...]


def _read(expr: m.Expr | None, place: Span) -> Iterator[_Use]:
    """Yield the attributes that an expression reads."""
    if isinstance(expr, m.Attribute):
        yield _Use(expr, "read", place)
    for child in () if expr is None else children(expr):
        yield from _read(child, expr.span if isinstance(expr, m.Call) else place)


def _branches(statements: Sequence[m.Statement]) -> Iterator[_Branch]:
    """Yield the branches in some statements. What follows an early return belongs to the other side."""
    for position, statement in enumerate(statements):
        if isinstance(statement, m.If):
            rest = tuple(statements[position + 1 :]) if _leaves(statement.body) else ()
            yield _Branch(statement, statement.body, (*statement.orelse, *rest))
        for suite in suites(statement):
            yield from _branches(suite)


def _leaves(suite: Sequence[m.Statement]) -> bool:
    return any(isinstance(last, (m.Return, m.Raise, m.Continue, m.Break)) for last in suite[-1:])
