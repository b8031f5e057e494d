"""Existence tests whose outcome led to a site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.facts import model as m
from fsrace_lint.facts.spell import spell
from fsrace_lint.project.model import Probe
from fsrace_lint.project.names.given import arguments_of
from fsrace_lint.project.names.values import Value
from fsrace_lint.project.paths.forms import Path
from fsrace_lint.project.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.project.acts.effects import Effects
    from fsrace_lint.project.callers.linker import Linker
    from fsrace_lint.project.flow.states import Event, Literal
    from fsrace_lint.project.model import Site
    from fsrace_lint.project.names.values import Scope

_ALIASES_DEPTH: Final = 4


class _Answer(Record, frozen=True):
    """An expression that came out one way; `implied` where the whole test could not come out so otherwise.

    Where it is a listing, `entry` is the name that was looked for in it.
    """

    expr: m.Expr
    scope: Scope
    truth: bool
    implied: bool = True
    depth: int = 0
    entry: Value | None = None


class Probes:
    """Finds the tests before sites."""

    def __init__(self, linker: Linker, effects: Effects) -> None:
        """Prepare for a project."""
        self.linker = linker
        self.effects = effects

    def wanting(self, site: Site) -> Probe | None:
        """Give the nearest test before a site that makes what it found missing.

        That may be a function of the project that is asked about the path, or about
        the object whose method the site stands in: what it answers is taken to say so.
        """
        for literal in reversed(site.event.state.literals):
            for call, answer in self._calls(_Answer(literal.test, literal.scope, literal.truth)):
                probe = self._probe(call, answer, literal, site.event.call)
                if probe is not None and probe.absent and related(probe.path, site.path):
                    return probe
                if site.path is not None and self._asks_about(call, answer.scope, site.path):
                    return replace(_made(call, site.path, answer, literal, site.event.call), absent=True)
        return None

    def _asks_about(self, call: m.Call, scope: Scope, path: Path) -> bool:
        """Tell whether a function of the project looks for what it is given: this path, or a part of it."""
        callee = self.linker.resolver.callee(call, scope)
        if callee is None:
            return False
        given = [value for _, _, value in arguments_of(call)]
        paths = (self.linker.paths.normalize(value, scope) for value in given)
        on_itself = not given and callee.takes_object and isinstance(call.function, m.Attribute)
        if not on_itself and not any(found is not None and related(found, path) for found in paths):
            return False
        return any(map(self.effects.looks, self.linker.events(callee)))

    def before(self, event: Event) -> Iterator[Probe]:
        """Give the existence tests that led to a call, nearest first, of whatever path."""
        return self.among(event.state.literals, event.call)

    def among(self, literals: Sequence[Literal], call: m.Call) -> Iterator[Probe]:
        """Give the existence tests that some tests before a call consist of, nearest first."""
        for literal in reversed(literals):
            for asked, answer in self._calls(_Answer(literal.test, literal.scope, literal.truth)):
                probe = self._probe(asked, answer, literal, call)
                if probe is not None:
                    yield probe

    def _calls(self, answer: _Answer) -> Iterator[tuple[m.Call, _Answer]]:
        """Give the calls that a test consists of, and how each came out."""
        match answer.expr:
            case m.Call() as call:
                yield call, answer
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
            case m.Compare(left=left, operators=("in" | "not in" as operator,), rights=(entries,)):
                truth, entry = answer.truth == (operator == "in"), Value(left, answer.scope)
                yield from self._calls(replace(answer, expr=entries, truth=truth, entry=entry))
            case _:
                return

    def _probe(self, call: m.Call, answer: _Answer, literal: Literal, then: m.Call) -> Probe | None:
        act = self.effects.act(call, answer.scope)
        if act is None or act.op != ("probe" if answer.entry is None else "list"):
            return None
        path = self.linker.paths.normalize(act.path, answer.scope)
        if answer.entry is not None:
            path = self._in_folder(path, answer.entry)
        if path is None:
            return None
        return _made(call, path, answer, literal, then, asks=act.api.rpartition(".")[2])

    def _in_folder(self, folder: Path | None, entry: Value) -> Path | None:
        """Give the path of what has a name in a folder."""
        name = self.linker.paths.normalize(entry.expr, entry.scope)
        return None if folder is None or name is None else Path.of((*folder.pieces(), "/", *name.pieces()))


def related(probed: Path, path: Path | None) -> bool:
    """Tell whether a test of one path says something of another: of the same, or of what it lies in."""
    if path is None:
        return False
    return probed.is_within(path) or path.is_within(probed) or path.is_parent_of(probed)


def _made(
    call: m.Call, path: Path, answer: _Answer, literal: Literal, then: m.Call, *, asks: str = ""
) -> Probe:
    test = literal.test.value if isinstance(literal.test, m.Not) else literal.test
    return Probe(
        span=call.span,
        spelled=spell(call) if answer.entry is None else f"{spell(answer.entry.expr)} in {spell(call)}",
        path=path,
        absent=not answer.truth,
        exit=literal.exit or _raised_otherwise(literal),
        is_whole_test=test is call,
        guards_only_the_site=_guards_only(literal, then),
        is_implied=answer.implied,
        asks=asks,
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
