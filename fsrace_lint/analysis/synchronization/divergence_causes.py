"""How certain it is that ranks disagree: whether the program changes what they check, and in which order."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.accesses.confidence import Confidence
from fsrace_lint.analysis.accesses.model import ASKING, Reach
from fsrace_lint.analysis.callgraph.attribute_setters import constants_set
from fsrace_lint.analysis.dataflow.process_set import TOP
from fsrace_lint.analysis.synchronization.sync_points import sync_points_of
from fsrace_lint.analysis.values.abstract_values import Derived, Expression, Union, Unknown
from fsrace_lint.analysis.values.call_arguments import arguments_of
from fsrace_lint.engine.query import query
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import implied, last_name, parts
from fsrace_lint.syntax.traversal import within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.synchronization.event_sequences import EventSequences, SequenceItem
    from fsrace_lint.analysis.synchronization.taint import RankTaint
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.analysis.values.constants import Values
    from fsrace_lint.program.modules import LinkedFunction

_CALLERS: Final = 3
"""The maximum number of calls from a caller that can order a check to the check."""
_VARIABLES: Final = 4
"""The number of variables to follow from a check to a variable that a loop changes."""
_MISSING_MODULE: Final = frozenset({"ImportError", "ModuleNotFoundError"})


class DivergenceCauses:
    """Finds out whether ranks can get different answers in ordinary use."""

    def __init__(self, sequences: EventSequences) -> None:
        """Initialize for a project."""
        self.sequences = sequences
        self.entry_states = sequences.entry_states

    def of_check(self, difference: RankTaint, function: LinkedFunction) -> Confidence:
        """Return the highest confidence that a filesystem check in a condition allows.

        Args:
            difference: Why the condition differs between ranks.
            function: The function with the condition.
        """
        if difference.kind != "files" or difference.source is None:
            return Confidence.HIGH
        return self._of_call(difference.source.expr, function)

    def of_exit(self, conditions: Sequence[PathCondition]) -> Confidence:
        """Return the highest confidence that the conditions of an early exit allow.

        It is low if the exit needs a flag, such as `self.stopped`, that the project only sets otherwise.
        """
        for literal in conditions:
            for test, truth in implied(literal.test, truth=literal.truth):
                values = self._flag(test) if isinstance(test, m.Attribute) else ()
                if values and truth not in map(bool, values):
                    return Confidence.LOW
        return Confidence.HIGH

    @query(provisional=())
    def _flag(self, attribute: m.Attribute) -> Values:
        return constants_set(self.entry_states.relevance, attribute)

    def of_iterations(self, difference: RankTaint, function: LinkedFunction) -> Confidence:
        """Return the highest confidence that a check allows that decides how often a loop runs.

        Ranks that start at different steps never meet again, unlike ranks that find the same entries.

        Args:
            difference: Why the number of iterations differs between ranks.
            function: The function with the loop.
        """
        found, source = self.of_check(difference, function), difference.source
        if source is None or not isinstance(source.expr, m.Call):
            return found
        operation = self.sequences.accesses.effects.operation(source.expr, source.scope)
        is_listing = operation is None or operation.op == "list"
        return found if is_listing else max(found, Confidence.MEDIUM)

    def of_repeated_check(self, difference: RankTaint, function: LinkedFunction) -> Confidence:
        """Return the highest confidence that a check allows that ends a loop.

        It is at least `MEDIUM` if each iteration checks the same path, such as that of a file that stops the
        job: it appears while the ranks are in different iterations.
        """
        found = self.of_check(difference, function)
        asked = None if difference.source is None else difference.source.expr
        steps = self.sequences.of(function)
        repeated = any(step.leaf_call.call is asked and _is_repeated_check(step) for step in steps)
        return max(found, Confidence.MEDIUM) if repeated else found

    def of_error(
        self, literal: PathCondition, tried: Sequence[SequenceItem], function: LinkedFunction
    ) -> Confidence:
        """Return the highest confidence that a condition on an exception allows.

        All ranks get the same exception, unless it comes from an access that another rank can disturb.

        Args:
            literal: The condition.
            tried: The accesses in the `try`.
            function: The function with the `try`.
        """
        names = {last_name(part) for part in (literal.test, *parts(literal.test))} - {""}
        if names <= _MISSING_MODULE:
            return Confidence.LOW
        if any(step.op not in ASKING and not _is_own(step) for step in tried):
            return Confidence.HIGH
        found = [self._of_call(step.leaf_call.call, function) for step in tried if step.op in ASKING]
        return max(found, default=Confidence.MEDIUM)

    def _of_call(self, asked: m.Expr, function: LinkedFunction) -> Confidence:
        """Return the highest confidence that a check or a read allows.

        It is `HIGH` if the path is node-local, or if the program changes the path, or may do so, and nothing
        orders the change and the check. It is `MEDIUM` if each rank asks for a path of its own, or if the
        check runs elsewhere, as in a constructor. Otherwise, all ranks get the same answer.
        """
        is_own = is_ordered = is_found = False
        for around in self._around(function):
            steps = self.sequences.of(around)
            for place in [i for i, step in enumerate(steps) if step.leaf_call.call is asked]:
                access = self.sequences.access(steps[place])
                if access is not None and access.reach is Reach.NODE:
                    return Confidence.HIGH
                is_own |= _is_own(steps[place])
                is_found |= around is function
                for change in _changes(steps, place):
                    if not self._are_ordered(steps, *sorted((change, place))):
                        return Confidence.HIGH
                    is_ordered = True
        if not is_ordered and self._is_created(asked, function):
            return Confidence.HIGH
        return Confidence.MEDIUM if is_own or not is_found else Confidence.LOW

    def _calls_in(self, function: LinkedFunction) -> Sequence[CallSite]:
        return self.sequences.flows.call_sites(function)

    def _is_created(self, asked: m.Expr, function: LinkedFunction) -> bool:
        """Return whether code of an unknown effect can create a path after a check found it missing.

        It gets the path, perhaps in a display, or is a function that a helper runs on one rank. After a sync
        point, the other ranks have checked too.
        """
        sync_points = {s.call_site for s in sync_points_of(self.sequences.of(function)) if s.processes == TOP}
        passed: list[CallSite] = []
        for call_site in self._calls_in(function):
            if call_site.call is asked:
                passed.clear()
            elif self._may_create(call_site, asked) and all(
                self._depends_on_files(each, call_site.state.conditions) for each in passed
            ):
                return True
            if call_site in sync_points:
                passed.append(call_site)
        return False

    def _may_create(self, call_site: CallSite, asked: m.Expr) -> bool:
        """Return whether a call of an unknown effect gets a path that a check found missing."""
        if _is_pure(call_site.call) or self.sequences.accesses.operation(call_site) is not None:
            return False
        place = asked.span if isinstance(asked, m.Call) else None
        found = self.sequences.accesses.tests.among(call_site.state.conditions, call_site.call)
        paths = [test.path for test in found if test.span == place and test.found_missing]
        given = self._given(call_site) if paths else []
        return any(self._runs_once(call_site) or path in given for path in paths)

    def _runs_once(self, call_site: CallSite) -> bool:
        name = self.sequences.name_of(call_site)
        return self.sequences.catalog.find("run-once", name) is not None

    def _given(self, call_site: CallSite) -> list[AbstractPath | None]:
        """Return the paths that a call passes, also in displays, but not in texts."""
        values = (part for _, _, value in arguments_of(call_site.call) for part in _passed(value))
        return [self.entry_states.paths.normalize(value, call_site.state.scope) for value in values]

    def _are_ordered(self, steps: Sequence[SequenceItem], first: int, last: int) -> bool:
        """Return whether all ranks of two events reach a sync point in between, whatever they find."""
        wanted = steps[first].processes | steps[last].processes
        sync_points = (s for s in sync_points_of(steps[first:last]) if not wanted & ~s.processes)
        return any(not self._depends_on_files(s.call_site, steps[last].conditions) for s in sync_points)

    def _depends_on_files(self, sync_point: CallSite, later: Sequence[PathCondition]) -> bool:
        """Return whether ranks skip a sync point because of what they find, but not what is under `later`."""
        own = (x for x in sync_point.state.conditions if x not in later)
        found = map(self.sequences.taint.of_test, own)
        return any(difference is not None and difference.kind != "rank" for difference in found)

    def _around(self, function: LinkedFunction) -> Iterator[LinkedFunction]:
        """Yield a function and its callers, nearest first."""
        found, layer = {function}, [function]
        for _ in range(_CALLERS):
            yield from layer
            edges = (edge for each in layer for edge in self.entry_states.callers(each))
            layer = list(dict.fromkeys(edge.call_site.function for edge in edges))
            layer = [each for each in layer if each not in found]
            found.update(layer)
        yield from layer


def _passed(value: m.Expr) -> Iterator[m.Expr]:
    """Yield a value and its parts, except those of a text with values."""
    yield value
    if not isinstance(value, m.Format) and not (isinstance(value, m.Call) and _is_pure(value)):
        for part in parts(value):
            yield from _passed(part)


def _is_pure(call: m.Call) -> bool:
    """Return whether a call fills a text, or is one of a builtin such as `print`; neither creates a path."""
    if isinstance(call.function, m.Name):
        return hasattr(builtins, call.function.id)
    return last_name(call.function) == "format"


def _is_own(step: SequenceItem) -> bool:
    return step.path is not None and step.path.rank_dependent


def _is_repeated_check(step: SequenceItem) -> bool:
    """Return whether a loop checks one path repeatedly, such as that of a file that stops the job."""
    call_site = step.call_site
    return call_site.repeated and not _varies(call_site.call, call_site.state.scope)


def _varies(expr: m.Expr, scope: Environment, steps: int = _VARIABLES) -> bool:
    """Return whether an expression depends on a variable that a loop changes, directly or not."""
    for part in within(expr):
        bound = scope.get(part.id) if isinstance(part, m.Name) else None
        if isinstance(bound, (Derived, Union, Unknown)):
            return True
        if isinstance(bound, Expression) and (steps == 0 or _varies(bound.expr, bound.scope, steps - 1)):
            return True
    return False


def _is_left_out(check: SequenceItem, made: SequenceItem) -> bool:
    """Return whether a check has the same result after a directory above or at its path is created."""
    return made.path != check.path or check.op == "list"


def _is_repeated(step: SequenceItem, earlier: Sequence[SequenceItem]) -> bool:
    """Return whether the same code has downloaded the same path before, so that it is there already."""
    call = step.leaf_call.call
    return step.op == "download" and any(x.leaf_call.call is call and x.path == step.path for x in earlier)


def _changes(steps: Sequence[SequenceItem], place: int) -> Iterator[int]:
    """Yield the positions of the accesses that change what a check looks for.

    A later change in a loop that does not contain the check, such as the training loop, does not count.
    """
    check = steps[place]
    for position, step in enumerate(steps):
        if step.operation is None or step.op in ASKING or step.path is None or check.path is None:
            continue
        if step.op == "mkdir" and check.path.is_within(step.path) and _is_left_out(check, step):
            continue
        if position > place and _is_repeated(step, steps[:place]):
            continue
        is_in_later_loop = position > place and len(step.call_site.loops) > len(check.call_site.loops)
        if not is_in_later_loop and (step.path.is_within(check.path) or check.path.is_within(step.path)):
            yield position
