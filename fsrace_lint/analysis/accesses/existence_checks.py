"""Existence checks whose results lead to an access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.model import ExistenceCheck
from fsrace_lint.analysis.paths.abstract_path import AbstractPath
from fsrace_lint.analysis.paths.callee_paths import instantiate_at_call
from fsrace_lint.analysis.values.abstract_values import ConditionalValue, Expression
from fsrace_lint.analysis.values.call_arguments import arguments_of
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import calls_in, last_name
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fsrace_lint.analysis.accesses.effects import Effects
    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.program.modules import LinkedFunction

_ALIASES_DEPTH: Final = 4
_READERS_DEPTH: Final = 3
_DATING: Final = frozenset({"getmtime", "getctime", "getatime"})
"""Functions that read the time of a file, which a partial file has too."""


class _CheckAnswer(Record, frozen=True):
    """A tested expression, and its outcome.

    Attributes:
        expr: The expression.
        scope: The environment in which to read it.
        truth: The outcome.
        implied: Whether the outcome of the whole test implies this outcome.
        depth: The number of names and calls followed so far.
        entry: For a directory listing, the name that is searched in it.
        through: The call of a function of the project that contains the expression, and its scope.
        said: The result of that call.
    """

    expr: m.Expr
    scope: Environment
    truth: bool
    implied: bool = True
    depth: int = 0
    entry: Expression | None = None
    through: tuple[m.Call, Environment] | None = None
    said: str = ""


class ExistenceChecks:
    """Finds the existence checks before calls."""

    def __init__(self, entry_states: EntryStates, effects: Effects) -> None:
        """Initialize for a project."""
        self.entry_states = entry_states
        self.flows = entry_states.flows
        self.effects = effects

    def wanting(self, access: Access) -> ExistenceCheck | None:
        """Return the nearest check before an access that found the path missing, or None.

        A call of a function of the project counts as such a check if it contains an existence check and takes
        the path, or is a method without arguments.
        """
        for literal in reversed(access.call_site.state.conditions):
            for call, answer in self._calls(_CheckAnswer(literal.test, literal.scope, literal.truth)):
                probe = self._probe(call, answer, literal, access.call_site.call)
                if probe is not None and probe.found_missing and related(probe.path, access.path):
                    return probe
                if access.path is not None and self._asks_about(call, answer.scope, access.path):
                    return replace(
                        _made(call, access.path, answer, literal, access.call_site.call), found_missing=True
                    )
        return None

    def is_named_after_missing(self, access: Access) -> bool:
        """Return whether a check found a path missing, and the name of the access begins with that path."""
        whole = () if access.path is None else tuple(access.path.pieces())
        found = (probe for probe in self.before(access.call_site) if probe.found_missing)
        return any(whole[: len(begin)] == begin for begin in (tuple(each.path.pieces()) for each in found))

    def _asks_about(self, call: m.Call, scope: Environment, path: AbstractPath) -> bool:
        """Return whether a function of the project checks for a path, or a part of it, that it is passed."""
        callee = self.flows.resolver.callee(call, scope)
        if callee is None:
            return False
        given = [value for _, _, value in arguments_of(call)]
        paths = (self.entry_states.paths.normalize(value, scope) for value in given)
        on_itself = not given and callee.takes_object and isinstance(call.function, m.Attribute)
        if not on_itself and not any(found is not None and related(found, path) for found in paths):
            return False
        return any(map(self.effects.looks, self.flows.call_sites(callee)))

    def is_verified(self, access: Access) -> bool:
        """Return whether a check before an access also reads the file: it does not accept a partial one."""
        return access.path is not None and any(
            self._is_read(call, literal.scope, access.path)
            for literal in access.call_site.state.conditions
            for call in self._verifying(literal.test, literal.scope)
        )

    def _is_read(self, call: m.Call, scope: Environment, path: AbstractPath) -> bool:
        """Return whether a call reads a file, or passes its path to a function that reads a file."""
        normalize = self.entry_states.paths.normalize
        operation = self.effects.operation(call, scope)
        if operation is not None:
            return operation.op == "read" and normalize(operation.path, scope) == path
        callee = self.flows.resolver.callee(call, scope)
        given = (normalize(value, scope) for _, _, value in arguments_of(call))
        return callee is not None and path in given and self._reads_a_file(callee, _READERS_DEPTH)

    def _reads_a_file(self, function: LinkedFunction, depth: int) -> bool:
        for call_site in self.flows.call_sites(function) if depth else ():
            operation = self.effects.operation(call_site.call, call_site.state.scope)
            callee = self.flows.resolver.callee(call_site.call, call_site.state.scope)
            if operation is not None and operation.op == "read":
                return last_name(call_site.call.function) not in _DATING
            if callee is not None and self._reads_a_file(callee, depth - 1):
                return True
        return False

    def _verifying(self, test: m.Expr, scope: Environment) -> Iterator[m.Call]:
        """Yield the calls in a test, except those whose result is compared with a constant."""
        match test:
            case m.Boolean(values=values):
                for value in values:
                    yield from self._verifying(value, scope)
            case m.Not(value=value) | m.Walrus(value=value):
                yield from self._verifying(value, scope)
            case m.Name() if isinstance(bound := self.flows.resolver.binding(test.id, scope), Expression):
                yield from self._verifying(bound.expr, bound.scope)
            case m.Compare(left=left, rights=rights) if any(
                isinstance(side, m.Constant) for side in (left, *rights)
            ):
                return
            case _:
                yield from (call for call in calls_in(test) if last_name(call.function) not in _DATING)

    def before(self, call_site: CallSite) -> Iterator[ExistenceCheck]:
        """Yield the existence checks that lead to a call, for any path, nearest first."""
        return self.among(call_site.state.conditions, call_site.call)

    def among(self, conditions: Sequence[PathCondition], call: m.Call) -> Iterator[ExistenceCheck]:
        """Yield the existence checks in the conditions before a call, nearest first."""
        for literal in reversed(conditions):
            for asked, answer in self._calls(_CheckAnswer(literal.test, literal.scope, literal.truth)):
                probe = self._probe(asked, answer, literal, call)
                if probe is not None:
                    yield probe

    def _calls(self, answer: _CheckAnswer) -> Iterator[tuple[m.Call, _CheckAnswer]]:
        """Yield the calls in a test, each with its outcome."""
        match answer.expr:
            case m.Call() as call:
                yield call, answer
                asked = replace(answer, said=str(answer.truth))
                yield from self._returned(call, asked, lambda value: bool(value) == answer.truth)
            case m.Not(value=value):
                yield from self._calls(replace(answer, expr=value, truth=not answer.truth))
            case m.Boolean(operator=operator, values=values):
                implied = answer.implied and (operator == "and") == answer.truth
                for value in values:
                    yield from self._calls(replace(answer, expr=value, implied=implied))
            case m.Walrus(value=value):
                yield from self._calls(replace(answer, expr=value))
            case m.Conditional(body=body, orelse=orelse):
                for value in (body, orelse):
                    yield from self._calls(replace(answer, expr=value, implied=False))
            case m.Name() | m.Attribute() if answer.depth < _ALIASES_DEPTH:
                yield from self._named(answer)
            case m.Compare(left=left, operators=(operator,), rights=(right,)):
                yield from self._compared(answer, left, operator, right)
            case _:
                return

    def _named(self, answer: _CheckAnswer) -> Iterator[tuple[m.Call, _CheckAnswer]]:
        bound = self.entry_states.rank_tests.known(answer.expr, answer.scope)
        if isinstance(bound, Expression):
            yield from self._calls(
                replace(answer, expr=bound.expr, scope=bound.scope, depth=answer.depth + 1)
            )
        elif isinstance(bound, ConditionalValue):
            yield from self._chosen(answer, bound, lambda value: bool(value) == answer.truth)

    def _compared(
        self, answer: _CheckAnswer, left: m.Expr, operator: str, right: m.Expr
    ) -> Iterator[tuple[m.Call, _CheckAnswer]]:
        holds = answer.truth == (operator in {"==", "is", "in"})
        if operator in {"in", "not in"}:
            yield from self._calls(
                replace(answer, expr=right, truth=holds, entry=Expression(left, answer.scope))
            )
        elif isinstance(right, m.Constant) and isinstance(right.value, bool):
            yield from self._calls(replace(answer, expr=left, truth=right.value == holds))
        elif right == m.Constant(None) and answer.depth < _ALIASES_DEPTH:
            bound = self.entry_states.rank_tests.known(left, answer.scope)
            if isinstance(bound, ConditionalValue):
                yield from self._chosen(answer, bound, lambda value: (value is None) == holds)
            elif isinstance(bound, Expression) and isinstance(bound.expr, m.Call) and holds:
                asked = replace(answer, scope=bound.scope, said=str(None))
                yield from self._returned(bound.expr, asked, lambda value: value is None)

    def _chosen(
        self, answer: _CheckAnswer, bound: ConditionalValue, fits: Callable[[object], bool]
    ) -> Iterator[tuple[m.Call, _CheckAnswer]]:
        """Yield the calls in the test that selected the value of a name, given the outcome for that value.

        A value that is not a constant, such as a loaded object, is assumed to be neither None nor false. The
        result is then not implied.
        """
        sides = [
            side.expr if isinstance(side, Expression) and isinstance(side.expr, m.Constant) else None
            for side in bound.options
        ]
        may_be = [side is not None and fits(side.value) for side in sides]
        implied = None not in sides
        if not any(may_be):
            may_be, implied = [side is None for side in sides], True
        if may_be[0] != may_be[1]:
            yield from self._calls(
                replace(
                    answer,
                    expr=bound.test.expr,
                    scope=bound.test.scope,
                    truth=may_be[0],
                    implied=answer.implied and implied,
                    depth=answer.depth + 1,
                )
            )

    def _returned(
        self, call: m.Call, answer: _CheckAnswer, fits: Callable[[object], bool]
    ) -> Iterator[tuple[m.Call, _CheckAnswer]]:
        """Yield the calls in the return values of a function of the project, or in the tests that select one.

        The tests count if exactly one of multiple exits returns a constant with the outcome.
        """
        if answer.through is not None or answer.depth >= _ALIASES_DEPTH:
            return
        callee = self.flows.resolver.callee(call, answer.scope)
        ways = () if callee is None else self.flows.exit_points(callee)
        within = replace(answer, through=(call, answer.scope), depth=answer.depth + 1)
        implied = answer.implied and len(ways) == 1
        for way in ways:
            if way.value is not None and not isinstance(way.value, m.Constant):
                asked = replace(within, expr=way.value, scope=way.state.scope, implied=implied)
                yield from self._calls(asked)
        left = [way for way in ways if _is_constant(way.value) and fits(_constant(way.value))]
        for way in left if len(left) == 1 < len(ways) else ():
            for literal in reversed(way.state.conditions):
                told = replace(within, expr=literal.test, scope=literal.scope, truth=literal.truth)
                yield from self._calls(replace(told, implied=False))

    def _probe(
        self, call: m.Call, answer: _CheckAnswer, literal: PathCondition, then: m.Call
    ) -> ExistenceCheck | None:
        operation = self.effects.operation(call, answer.scope)
        if operation is None or operation.op != ("probe" if answer.entry is None else "list"):
            return None
        path = self.entry_states.paths.normalize(operation.path, answer.scope)
        if answer.entry is not None:
            path = self._in_folder(path, answer.entry)
        if answer.through is not None:
            outer, scope = answer.through
            path = instantiate_at_call(self.entry_states.paths, path, outer, scope, answer.scope.function)
        if path is None:
            return None
        return _made(call, path, answer, literal, then, asks=operation.api.rpartition(".")[2])

    def _in_folder(self, folder: AbstractPath | None, entry: Expression) -> AbstractPath | None:
        """Return the path of an entry of a directory."""
        name = self.entry_states.paths.normalize(entry.expr, entry.scope)
        return (
            None
            if folder is None or name is None
            else AbstractPath.of((*folder.pieces(), "/", *name.pieces()))
        )


def _is_constant(value: m.Expr | None) -> bool:
    """Return whether an exit returns a constant; without a value, it returns None."""
    return value is None or isinstance(value, m.Constant)


def _constant(value: m.Expr | None) -> object:
    return value.value if isinstance(value, m.Constant) else None


def related(probed: AbstractPath, path: AbstractPath | None) -> bool:
    """Return whether a check of one path applies to another: they are equal, or one contains the other."""
    if path is None:
        return False
    return probed.is_within(path) or path.is_within(probed) or path.is_parent_of(probed)


def _made(
    call: m.Call,
    path: AbstractPath,
    answer: _CheckAnswer,
    literal: PathCondition,
    then: m.Call,
    *,
    asks: str = "",
) -> ExistenceCheck:
    test = literal.test.value if isinstance(literal.test, m.Not) else literal.test
    if answer.through is not None:
        call = answer.through[0]
    return ExistenceCheck(
        span=call.span,
        path_source=spell(call) if answer.entry is None else f"{spell(answer.entry.expr)} in {spell(call)}",
        path=path,
        found_missing=not answer.truth,
        other_branch_exit=literal.exit or _raised_otherwise(literal),
        is_whole_test=test is call and answer.through is None,
        guards_only_the_site=_guards_only(literal, then),
        is_implied=answer.implied,
        asks=asks,
        answer=answer.said if answer.through is not None else str(answer.truth),
    )


def _raised_otherwise(literal: PathCondition) -> str:
    """Return `raise` if the other branch ends with a `raise` statement, or an empty string."""
    if literal.branch is None:
        return ""
    other = literal.branch.orelse if literal.truth else literal.branch.body
    return "raise" if other and isinstance(other[-1], m.Raise) else ""


def _guards_only(literal: PathCondition, call: m.Call) -> bool:
    branch = literal.branch
    if branch is None or literal.exit:
        return False
    taken, other = (branch.body, branch.orelse) if literal.truth else (branch.orelse, branch.body)
    only = taken[0] if len(taken) == 1 and not other else None
    return isinstance(only, (m.Evaluate, m.Return)) and only.value is call
