"""Where processes wait for others that never come: collectives that only some of them reach.

The method is that of PARCOACH and MPI-Checker for C: a collective diverges
where it is control-dependent on a value that can differ between ranks, unless
the other way calls the same (https://doi.org/10.1177/1094342014552204).
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from fsrace_lint.facts import model as m
from fsrace_lint.facts.names import last_name, parts
from fsrace_lint.facts.spell import spell
from fsrace_lint.project.processes import ALL, NOBODY, Processes
from fsrace_lint.project.states import are_apart
from fsrace_lint.spans import Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fsrace_lint.project.differences import Difference
    from fsrace_lint.project.modules import LinkedFunction
    from fsrace_lint.project.sequences import Sequences, Step
    from fsrace_lint.project.states import Event, Flow
    from fsrace_lint.project.states import Literal as Tested
    from fsrace_lint.spans import Span

_GROUPS: Final = frozenset({"group", "process_group", "gather_group", "pg"})
_PATH_NAME: Final = re.compile("path|dir|file|folder|name|ckpt|checkpoint")
_KINDS: Final = tuple(kind for kind in Processes if kind)
_ANYTHING: Final = frozenset({"Exception", "BaseException"})
_FAILING: Final = frozenset(
    {"OSError", "IOError", "EnvironmentError", "FileNotFoundError", "FileExistsError"}
)


@dataclass(frozen=True, slots=True)
class Divergence:
    """A meeting that some processes miss.

    `how` it comes about: it stands in a branch (`branch`), behind a way out (`exit`),
    in a loop of differing length (`loop`), in a context that lets one process in first
    (`first`), in a function that some processes alone are let into (`function`), or the
    processes come with different paths (`path`). `place` is what decides, `test` what
    differs there. `raises` says that those who miss it die; `certain` that nothing
    else decides.
    """

    meeting: Step
    how: Literal["branch", "exit", "loop", "first", "function", "path"]
    difference: Difference | None
    test: str
    place: Place
    raises: bool = False
    certain: bool = True

    @property
    def is_by_files(self) -> bool:
        """Whether no rank test decides, but what each process finds: files, a clock, an error from files."""
        if self.difference is None or self.difference.kind == "rank":
            return False
        return self.difference.kind != "error" or self.certain


class Divergences:
    """Finds the meetings of functions that some processes miss."""

    def __init__(self, sequences: Sequences) -> None:
        """Prepare for a project; nothing is followed yet."""
        self.sequences = sequences
        self.linker = sequences.linker
        self.propagation = sequences.propagation
        self.differences = sequences.differences

    def of(self, function: LinkedFunction) -> Iterator[Divergence]:
        """Give the meetings of a function that some of those that enter it miss.

        Of several that are missed for the same reason it is the first: nobody gets
        to the others.
        """
        flow = self.linker.flow(function)
        meetings = list(_meetings(self.sequences.of(function)))
        if flow is None or not meetings:
            return
        counted = _Counted(meetings)
        first: dict[Place, Divergence] = {}
        for meeting in meetings:
            found = next(self._found(meeting, flow, counted), None)
            if found is not None:
                found = replace(found, certain=found.certain and meeting.certain)
                if found.place not in first or (found.certain and not first[found.place].certain):
                    first[found.place] = found
        yield from first.values()

    def _found(self, meeting: Step, flow: Flow, counted: _Counted) -> Iterator[Divergence]:
        yield from self._in_first(meeting)
        yield from self._by_tests(meeting, counted)
        yield from self._by_exits(meeting, flow, counted)
        yield from self._by_loops(meeting)
        yield from self._by_function(meeting)
        yield from self._by_path(meeting)

    def _in_first(self, meeting: Step) -> Iterator[Divergence]:
        """A meeting in a context that lets one process through before the others: they wait at its door."""
        context = self.propagation.protection.door(meeting.event)
        if context is not None:
            place = Place(meeting.file, context.span if isinstance(context, m.Call) else meeting.span)
            yield Divergence(meeting, "first", None, spell(context), place)

    def _by_tests(self, meeting: Step, counted: _Counted) -> Iterator[Divergence]:
        """A meeting in a branch that some processes do not take, or behind one that some have left by."""
        for literal in reversed(meeting.event.state.literals):
            difference = self.differences.of_test(literal)
            if difference is None or counted.has_other_side(meeting, literal):
                continue
            if difference.kind == "rank" and (_names_a_group(meeting) or counted.is_balanced(meeting)):
                continue
            if literal.branch is None and literal.attempt is None and difference.kind != "rank":
                continue
            certain = self._counts(difference, [literal], raises=literal.exit == "raise", meeting=meeting)
            if certain is None:
                continue
            if difference.kind == "files":
                certain = certain and not counted.meets_on_other_side(meeting, literal)
            elif difference.kind == "rank":
                certain = certain and _is_first_or_rest(meeting.comers)
            how: Literal["branch", "exit"] = "exit" if literal.exit else "branch"
            yield self._told(meeting, how, difference, literal, certain=certain)

    def _by_exits(self, meeting: Step, flow: Flow, counted: _Counted) -> Iterator[Divergence]:
        """A meeting behind a way out that some processes take, in a branch that was left since."""
        literals = meeting.event.state.literals
        position = flow.events.index(meeting.event)
        ways = (*((way, False) for way in flow.exits), *((way, True) for way in flow.raises))
        for way, raises in ways:
            if way.position > position or are_apart(way.state.literals, literals):
                continue
            own = [literal for literal in way.state.literals if literal not in literals]
            for literal in own:
                difference = self.differences.of_test(literal)
                if difference is None or counted.comes_by(meeting, literal):
                    continue
                certain = self._counts(difference, own, raises=raises, meeting=meeting)
                if certain is not None:
                    yield self._told(meeting, "exit", difference, literal, certain=certain, raises=raises)

    def _counts(
        self, difference: Difference, literals: Sequence[Tested], *, raises: bool, meeting: Step
    ) -> bool | None:
        """Tell whether a difference makes some miss a meeting surely, perhaps (False), or not at all (None).

        One that dies takes the others with it sooner or later: it counts where it finds
        what should not be there yet, surely where a rank test lets it alone look.
        """
        if difference.kind == "error":
            return None if raises else self._fails(literals, meeting)
        if not raises:
            return True
        found = [part for literal in literals for part in self._parts(literal)]
        if not any(kind == "files" and present for kind, present in found):
            return None
        return any(kind == "rank" for kind, _ in found)

    def _parts(self, literal: Tested) -> Iterator[tuple[str, bool]]:
        """Give what differs in a test, and whether it came out true there: something was found."""
        values = literal.test.values if isinstance(literal.test, m.Boolean) else (literal.test,)
        for value in values:
            difference = self.differences.of(value, literal.scope)
            if difference is not None:
                yield difference.kind, not self._is_missing(value, literal)

    def _is_missing(self, test: m.Expr, literal: Tested) -> bool:
        """Tell whether an existence test came out as not there."""
        truth = literal.truth
        while isinstance(test, m.Not):
            test, truth = test.value, not truth
        act = self.sequences.sites.effects.act(test, literal.scope) if isinstance(test, m.Call) else None
        return act is not None and not truth

    def _fails(self, literals: Sequence[Tested], meeting: Step) -> bool | None:
        """Tell whether what was tried can fail on one process alone: it acts on the filesystem."""
        for literal in literals:
            if literal.attempt is None:
                continue
            names = {last_name(part) for part in (literal.test, *parts(literal.test))}
            steps = self.sequences.of(meeting.event.function)
            tried = [step for step in steps if _is_tried(step.event, literal.attempt)]
            if any(step.meeting == meeting.meeting for step in tried):
                return None
            if any(step.act is not None for step in tried) and names & (_FAILING | _ANYTHING):
                return not names & _ANYTHING
        return None

    def _by_loops(self, meeting: Step) -> Iterator[Divergence]:
        """A meeting in a loop over what each process has found on the filesystem."""
        for loop in meeting.event.loops:
            value = loop.over
            difference = self.differences.of(value.expr, value.scope)
            if difference is not None and difference.kind == "files":
                place = Place(meeting.file, _span(value.expr) or meeting.span)
                yield Divergence(meeting, "loop", difference, spell(value.expr), place)

    def _by_function(self, meeting: Step) -> Iterator[Divergence]:
        """A meeting in a function that some processes alone are let into, whoever calls it."""
        function = meeting.event.function
        allowed = self.propagation.decorated(function)
        edges = self.propagation.edges(function)
        if edges and all(edge.handed for edge in edges):
            handed = functools.reduce(operator.or_, (edge.only for edge in edges))
            allowed &= handed
        if allowed not in {ALL, NOBODY} and not _names_a_group(meeting):
            place = Place(meeting.file, function.facts.span)
            yield Divergence(meeting, "function", None, function.facts.name, place)

    def _by_path(self, meeting: Step) -> Iterator[Divergence]:
        """A save by all processes to a path that each of them has found or made up by itself."""
        if not self.sequences.is_save(meeting.event):
            return
        call = meeting.event.call
        given = [(last_name(value), value) for value in call.arguments]
        given += [(keyword.name or "", keyword.value) for keyword in call.keywords]
        for value in (value for name, value in given if _PATH_NAME.search(name)):
            difference = self.differences.of(value, meeting.event.state.scope)
            if difference is not None and difference.kind in {"files", "own"}:
                yield Divergence(meeting, "path", difference, spell(value), Place(meeting.file, meeting.span))

    def _told(
        self,
        meeting: Step,
        how: Literal["branch", "exit"],
        difference: Difference,
        literal: Tested,
        *,
        certain: bool,
        raises: bool = False,
    ) -> Divergence:
        """Say where and how a test decides."""
        place = Place(meeting.file, _place_of(literal) or meeting.span)
        raises = raises or literal.exit == "raise"
        return Divergence(meeting, how, difference, spell(literal.test), place, raises, certain)


class _Counted:
    """The meetings of a function, counted for each kind of process."""

    def __init__(self, meetings: Iterable[Step]) -> None:
        self._meetings: dict[str, list[Step]] = defaultdict(list)
        for meeting in meetings:
            self._meetings[meeting.meeting].append(meeting)

    def is_balanced(self, meeting: Step) -> bool:
        """Tell whether every process comes to as many meetings of this kind, each on its own way."""
        if meeting.processes == ALL:
            return False
        same = self._meetings[meeting.meeting]
        return len({sum(bool(kind & other.processes) for other in same) for kind in _KINDS}) == 1

    def has_other_side(self, meeting: Step, literal: Tested) -> bool:
        """Tell whether those whose test comes out otherwise come to such a meeting there."""
        others = (other for other in self._meetings[meeting.meeting] if other is not meeting)
        return any(are_apart([literal], other.event.state.literals) for other in others)

    def meets_on_other_side(self, meeting: Step, literal: Tested) -> bool:
        """Tell whether those come to a meeting too, of another kind: the test asks what is to be done."""
        others = (other for several in self._meetings.values() for other in several if other is not meeting)
        return any(are_apart([literal], other.event.state.literals) for other in others)

    def comes_by(self, meeting: Step, literal: Tested) -> bool:
        """Tell whether those who leave have come by such a meeting before."""
        others = (other for other in self._meetings[meeting.meeting] if other is not meeting)
        return any(literal in other.event.state.literals for other in others)


def _meetings(steps: Iterable[Step]) -> Iterator[Step]:
    """Give the calls by which all who come there meet, the call itself or one that it leads to."""
    groups = itertools.groupby((step for step in steps if step.meeting), key=lambda step: step.event)
    for _, group in groups:
        several = list(group)
        met: dict[str, Processes] = defaultdict(lambda: NOBODY)
        for step in several:
            met[step.meeting] |= step.processes
        whole = [step for step in several if met[step.meeting] == step.comers]
        if whole:
            best = next((step for step in whole if step.certain), whole[0])
            yield replace(best, processes=best.comers)


def _is_first_or_rest(processes: Processes) -> bool:
    """Tell whether some processes are the first of something, or all but these."""
    return bool(processes & Processes.MAIN) != bool(processes & Processes.REST)


def _is_tried(event: Event, attempt: m.Try) -> bool:
    return any(net.handlers is attempt.handlers for net in event.nets)


def _names_a_group(meeting: Step) -> bool:
    """Tell whether a collective is for the processes of a group that is named there."""
    call = meeting.origin.call
    given = {k.name for k in call.keywords if not (isinstance(k.value, m.Constant) and k.value.value is None)}
    return not _GROUPS.isdisjoint({name for name in given if name is not None})


def _place_of(literal: Tested) -> Span | None:
    if literal.branch is not None:
        return literal.branch.span
    handlers = () if literal.attempt is None else literal.attempt.handlers
    return next(
        (h.span for h in handlers if h.caught is literal.test), handlers[0].span if handlers else None
    )


def _span(expr: m.Expr) -> Span | None:
    return expr.span if isinstance(expr, m.Call) else None
