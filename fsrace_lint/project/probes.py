"""Existence tests whose outcome led to a site."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from fsrace_lint.facts import model as m
from fsrace_lint.facts.spell import spell
from fsrace_lint.project.model import Probe
from fsrace_lint.project.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.project.effects import Effects
    from fsrace_lint.project.linker import Linker
    from fsrace_lint.project.states import Event, Literal
    from fsrace_lint.project.values import Scope

_ALIASES_DEPTH: Final = 4


@dataclass(frozen=True, slots=True)
class _Answer:
    """An expression that came out one way; `implied` where the whole test could not come out so otherwise."""

    expr: m.Expr
    scope: Scope
    truth: bool
    implied: bool = True
    depth: int = 0


class Probes:
    """Finds the tests before sites."""

    def __init__(self, linker: Linker, effects: Effects) -> None:
        """Prepare for a project."""
        self.linker = linker
        self.effects = effects

    def before(self, event: Event) -> Iterator[Probe]:
        """Give the existence tests that led to a call, nearest first, of whatever path."""
        return self.among(event.state.literals, event.call)

    def among(self, literals: Sequence[Literal], call: m.Call) -> Iterator[Probe]:
        """Give the existence tests that some tests before a call consist of, nearest first."""
        for literal in reversed(literals):
            for answer in self._calls(_Answer(literal.test, literal.scope, literal.truth)):
                if isinstance(answer.expr, m.Call):
                    probe = self._probe(answer.expr, answer, literal, call)
                    if probe is not None:
                        yield probe

    def _calls(self, answer: _Answer) -> Iterator[_Answer]:
        """Give the calls that a test consists of, and how each came out."""
        match answer.expr:
            case m.Call():
                yield answer
            case m.Not(value=value):
                yield from self._calls(replace(answer, expr=value, truth=not answer.truth))
            case m.Boolean(operator=operator, values=values):
                implied = answer.implied and (operator == "and") == answer.truth
                for value in values:
                    yield from self._calls(replace(answer, expr=value, implied=implied))
            case m.Walrus(value=value):
                yield from self._calls(replace(answer, expr=value))
            case m.Name() | m.Attribute():
                bound = self.linker.guards.known(answer.expr, answer.scope)
                if isinstance(bound, Value) and answer.depth < _ALIASES_DEPTH:
                    yield from self._calls(
                        replace(answer, expr=bound.expr, scope=bound.scope, depth=answer.depth + 1)
                    )
            case m.Compare(left=left, operators=(operator,), rights=(m.Constant(value=bool() as value),)):
                same = value == (operator in {"==", "is"})
                yield from self._calls(replace(answer, expr=left, truth=answer.truth == same))
            case _:
                return

    def _probe(self, call: m.Call, answer: _Answer, literal: Literal, then: m.Call) -> Probe | None:
        act = self.effects.act(call, answer.scope)
        if act is None or act.op != "probe":
            return None
        path = self.linker.paths.normalize(act.path, answer.scope)
        if path is None:
            return None
        test = literal.test.value if isinstance(literal.test, m.Not) else literal.test
        return Probe(
            span=call.span,
            spelled=spell(call),
            path=path,
            absent=not answer.truth,
            exit=literal.exit or _raised_otherwise(literal),
            is_whole_test=test is call,
            guards_only_the_site=_guards_only(literal, then),
            is_implied=answer.implied,
            asks=act.api.rpartition(".")[2],
        )


def _raised_otherwise(literal: Literal) -> str:
    """Tell whether the other side of a branch ends by raising."""
    if literal.branch is None:
        return ""
    other = literal.branch.orelse if literal.truth else literal.branch.body
    return "raise" if other and isinstance(other[-1], m.Raise) else ""


def _guards_only(literal: Literal, call: m.Call) -> bool:
    branch = literal.branch
    if branch is None or literal.exit:
        return False
    taken, other = (branch.body, branch.orelse) if literal.truth else (branch.orelse, branch.body)
    only = taken[0] if len(taken) == 1 and not other else None
    return isinstance(only, (m.Evaluate, m.Return)) and only.value is call
