"""How certain it is that ranks disagree: whether the program changes what they check, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.accesses.confidence import Confidence
from fsrace_lint.analysis.accesses.model import ASKING, Reach
from fsrace_lint.analysis.values.call_arguments import arguments_of
from fsrace_lint.syntax.ast_names import last_name, parts
from fsrace_lint.syntax.traversal import within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.synchronization.event_sequences import EventSequences, SequenceItem
    from fsrace_lint.analysis.synchronization.taint import RankTaint
    from fsrace_lint.program.modules import LinkedFunction
    from fsrace_lint.syntax import model as m

_CALLERS: Final = 3
"""The maximum number of calls from a caller that can order a check to the check."""
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
        orders the change and the check. If all changes are ordered, all ranks get the same answer.
        """
        is_ordered = False
        for around in self._around(function):
            steps = self.sequences.of(around)
            for place in [i for i, step in enumerate(steps) if step.leaf_call.call is asked]:
                access = self.sequences.access(steps[place])
                if access is not None and access.reach is Reach.NODE:
                    return Confidence.HIGH
                for change in _changes(steps, place):
                    if not self._are_ordered(steps, *sorted((change, place))):
                        return Confidence.HIGH
                    is_ordered = True
        if is_ordered:
            return Confidence.LOW
        return Confidence.HIGH if self._is_created(asked, function) else Confidence.MEDIUM

    def _is_created(self, asked: m.Expr, function: LinkedFunction) -> bool:
        """Return whether code of an unknown effect can create a path after a check found the path missing.

        It gets the path, perhaps in a display, or is a function that a helper runs on one rank.
        """
        tests = self.sequences.accesses.tests
        for call_site in self.sequences.flows.call_sites(function):
            call = call_site.call
            if call is asked or self.sequences.accesses.operation(call_site) is not None:
                continue
            for test in tests.among(call_site.state.conditions, call):
                if test.found_missing and (self._runs_once(call_site) or test.path in self._given(call_site)):
                    return True
        return False

    def _runs_once(self, call_site: CallSite) -> bool:
        name = self.sequences.name_of(call_site)
        return self.sequences.catalog.find("run-once", name) is not None

    def _given(self, call_site: CallSite) -> list[AbstractPath | None]:
        """Return the paths that a call passes, also in displays."""
        values = (part for _, _, value in arguments_of(call_site.call) for part in within(value))
        return [self.entry_states.paths.normalize(value, call_site.state.scope) for value in values]

    def _are_ordered(self, steps: Sequence[SequenceItem], first: int, last: int) -> bool:
        """Return whether all ranks of two events reach a sync point in between, whatever they find."""
        wanted = steps[first].processes | steps[last].processes
        sync_points = (s for s in steps[first:last] if s.sync_point and not wanted & ~s.processes)
        return any(not self._depends_on_files(s, steps[last]) for s in sync_points)

    def _depends_on_files(self, sync_point: SequenceItem, later: SequenceItem) -> bool:
        """Return whether ranks skip a sync point, but not a later event, because of what they find."""
        own = (x for x in sync_point.call_site.state.conditions if x not in later.conditions)
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


def _is_own(step: SequenceItem) -> bool:
    return step.path is not None and step.path.rank_dependent


def _changes(steps: Sequence[SequenceItem], place: int) -> Iterator[int]:
    """Yield the positions of the accesses that change what a check looks for.

    A later change in a loop that does not contain the check, such as the training loop, does not count.
    """
    check = steps[place]
    for position, step in enumerate(steps):
        if step.operation is None or step.op in ASKING or step.path is None or check.path is None:
            continue
        if check.op == "list" and step.op == "mkdir" and step.path == check.path:
            continue  # an empty directory
        is_in_later_loop = position > place and len(step.call_site.loops) > len(check.call_site.loops)
        if not is_in_later_loop and (step.path.is_within(check.path) or check.path.is_within(step.path)):
            yield position
