"""Judges what a kill of all processes, or a power failure, leaves after each step of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.explore.running import verdict
from fsrace_lint.explore.running.disk_journal import DiskJournal
from fsrace_lint.explore.running.power_loss import MOST_CUTS, MOST_STATES, PowerLoss, cuts
from fsrace_lint.instrument.model import WORLD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.explore.messages import CallRequest
    from fsrace_lint.explore.moves import Move, Schedule, Trace
    from fsrace_lint.explore.running.disk_journal import Step
    from fsrace_lint.explore.running.power_loss import DiskState
    from fsrace_lint.explore.running.stage import Stage
    from fsrace_lint.explore.running.verdict import Failure
    from fsrace_lint.explore.scenario import Scenario
    from fsrace_lint.instrument.model import CallOutcome

SYNCS: Final = ("fsync", "fdatasync", "sync")
"""The calls that change only what a power failure can undo."""
MOST_CANDIDATES: Final = 1_000
"""The maximum number of states of the disk, equal ones included, to derive after one step."""


class Crashes:
    """What crashes leave in one run.

    Args:
        scenario: The scenario, with a check.
        stage: The scratch directory.
        trace: The moves of the run.

    Attributes:
        bound: Why some states were not checked, or "".
        stage: The scratch directory.
        journal: The steps of the run, if crashes are derived from them, or None.
    """

    def __init__(self, scenario: Scenario, stage: Stage, trace: Trace) -> None:
        self.bound = ""
        self.stage = stage
        self._trace = trace
        self._is_nfs = scenario.filesystem != "posix"
        # a kill of one process, after which the other one continues, leads to every state of two processes
        self._has_other_orders = scenario.processes > 2
        with_power = scenario.crash.startswith("power")
        self.journal = DiskJournal(stage) if with_power or self._has_other_orders else None
        self._loss = None
        if with_power and self.journal is not None:
            is_ordered = scenario.crash == "power"
            self._loss = PowerLoss(self.journal, trace.is_before, is_ordered=is_ordered)

    def note(self, move: Move, outcome: CallOutcome) -> None:
        """Record what the last move of the trace did."""
        if self.journal is not None:
            self.journal.note(len(self._trace.moves) - 1, move, outcome)
        if self._loss is not None and WORLD in outcome.footprint.writes:
            self.bound = (
                f"the order of the changes in {move.name} is not known, so power cannot fail between them"
            )

    def can_matter(self, request: CallRequest) -> bool:
        """Return whether a crash before a call can leave another tree than one before the next call."""
        return request.mutates or (self._loss is not None and request.name in SYNCS)

    def after_last_step(self) -> Failure | None:
        """Judge a crash after the last move of the trace."""
        steps = () if self.journal is None else self.journal.steps
        return verdict.of_crash(self.stage, self._states(steps))

    def in_other_orders(self) -> tuple[Failure, Schedule] | None:
        """Judge crashes after steps that happen in this order only if calls that commute are swapped.

        Returns:
            The failure, and a schedule that ends with it.
        """
        if self.journal is None or not self._has_other_orders:
            return None
        steps = [step for step in self.journal.steps if step.has_changed or self._loss is not None]
        points, is_all = cuts(steps, self._trace.is_before)
        if not is_all or self._is_nfs:
            limit = "with stale answers" if is_all else f"at more than {MOST_CUTS} points of a run"
            self.bound = (
                "the state after all processes are killed was checked in only one order of the calls that"
                f" commute ({limit})"
            )
            return None
        for steps in points:
            contents = {number: data for step in steps for number, data in step.data}
            failure = verdict.of_crash(
                self.stage, self._states(steps), self.journal.tree(steps, steps, contents)
            )
            if failure is not None:
                return failure, self._trace.up_to([step.move for step in steps])
        return None

    def _states(self, steps: Sequence[Step]) -> Iterator[DiskState]:
        """Yield the distinct states of the disk if power fails after these steps."""
        seen: set[bytes] = set()
        if self._loss is None:
            return
        for number, state in enumerate(self._loss.states(steps)):
            key = self.stage.fingerprint(state.tree)
            if key not in seen:
                if len(seen) == MOST_STATES or number == MOST_CANDIDATES:
                    self._loss.is_bounded = True
                    break
                seen.add(key)
                yield state
        if self._loss.is_bounded:
            self.bound = (
                f"after a step, the disk could have more than the {MOST_STATES} states that were checked"
            )
