"""Judges a run: an exception, a state that the check refuses, processes that disagree or wait forever."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fsrace_lint.explore.messages import Meet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.explore.code_places import Frame
    from fsrace_lint.explore.messages import Ended
    from fsrace_lint.explore.running.disk_tree import DiskTree
    from fsrace_lint.explore.running.power_loss import DiskState
    from fsrace_lint.explore.running.rank_process import RankProcess
    from fsrace_lint.explore.running.stage import Stage
    from fsrace_lint.explore.scenario import Scenario


class Failure(NamedTuple):
    """The failure of a run.

    Attributes:
        kind: "exception", "check", "disagreement", "deadlock", "livelock", "crash", "hang", or "exit".
        text: The failure in one line.
        rank: The process that failed, if only one did.
        details: A traceback, the results, or the stacks of the waiting processes.
        subject: Identifies equal failures: the name of the exception, or the problem that the check found.
        raised: The innermost frame of the exception, and of each exception that led to it.
    """

    kind: str
    text: str
    rank: int | None = None
    details: str = ""
    subject: str = ""
    raised: tuple[Frame, ...] = ()

    def is_like(self, other: Failure | None) -> bool:
        """Return whether another failure is of the same kind and subject."""
        return other is not None and (self.kind, self.subject) == (other.kind, other.subject)


def of_process(number: int, ended: Ended, scenario: Scenario) -> Failure | None:
    """Judge the end of one process.

    Args:
        number: Its rank.
        ended: Its last message.
        scenario: The scenario.

    Returns:
        The failure, if the process ended with an unexpected exception.
    """
    expected = {kind.__name__ for kind in scenario.expected}
    if not ended.error or ended.is_by_fault or expected.intersection(ended.error):
        return None
    kind = ended.error[0]
    said = f": {ended.message}" if ended.message else ""
    return Failure(
        "exception", f"{kind} in process {number}{said}", number, ended.trace, kind, tuple(ended.raised)
    )


def of_crash(stage: Stage, states: Iterable[DiskState], tree: DiskTree | None = None) -> Failure | None:
    """Judge the trees that can remain if all processes are killed, or if power fails.

    Args:
        stage: The scratch directory.
        states: The states of the disk after a power failure.
        tree: The tree after the kill, if it is not the current one.

    Returns:
        The failure, if the check rejects a tree.
    """
    problem = stage.problem(tree)
    if problem is not None:
        return _refused("crash", problem, " (if all processes are killed after the last step)")
    for state in states:
        problem = stage.problem(state.tree)
        if problem is not None:
            return _refused("crash", problem, f" (if power fails after the last step: {state.lost()})")
    return None


def of_end(ranks: list[RankProcess], stage: Stage, scenario: Scenario) -> Failure | None:
    """Judge the end of a run that has not failed before.

    Args:
        ranks: The processes.
        stage: The scratch directory.
        scenario: The scenario.

    Returns:
        What is wrong: a process waits forever, the results differ, or the check refuses the tree.
    """
    is_short = any(rank.killed or rank.identity.life for rank in ranks)
    waiting = [rank for rank in ranks if not rank.is_over]
    # a launcher ends a job that has lost a process, so no rank keeps waiting in a collective
    has_lost = is_short or any(rank.ended is not None and rank.ended.is_by_fault for rank in ranks)
    is_ended = has_lost and any(rank.request and isinstance(rank.request.wait, Meet) for rank in waiting)
    if waiting and not is_ended:
        return _deadlock(ranks)
    if scenario.agree and not any(rank.killed for rank in ranks):
        failure = _disagreement(ranks)
        if failure is not None:
            return failure
    problem = stage.problem()
    return None if problem is None else _refused("check", problem)


def _refused(kind: str, problem: str, when: str = "") -> Failure:
    first = problem.strip().split("\n", 1)[0]
    return Failure(kind, first + when, details=problem.partition("\n\n")[2], subject=first.partition(":")[0])


def of_livelock(ranks: list[RankProcess], calls: int) -> Failure:
    """Return the failure of processes that have repeated themselves for half of a run.

    Args:
        ranks: The processes.
        calls: The number of calls in the run.
    """
    failure = _deadlock(ranks)
    return failure._replace(kind="livelock", text=f"livelock after {calls} calls: {_waiting(ranks)}")


def _deadlock(ranks: list[RankProcess]) -> Failure:
    """Return the failure of processes that wait; a loop that repeats itself may still end by itself."""
    waiting = [rank for rank in ranks if rank.request is not None and rank.ended is None]
    is_certain = not any(rank.retries.cycle for rank in waiting)
    if len(waiting) == 1:
        end = " forever" if is_certain else ", maybe forever"
    else:
        end = ": deadlock" if is_certain else ": maybe a deadlock"
    names = [rank.request.name for rank in waiting if rank.request is not None]
    return Failure("deadlock", _waiting(ranks) + end, subject=",".join(names))


def _waiting(ranks: list[RankProcess]) -> str:
    return "; ".join(
        f"process {number} waits in {f'{rank.request.name} {rank.request.target}'.rstrip()}"
        for number, rank in enumerate(ranks)
        if rank.request is not None and rank.ended is None
    )


def _disagreement(ranks: list[RankProcess]) -> Failure | None:
    ended = {number: rank.ended for number, rank in enumerate(ranks) if rank.ended and not rank.ended.error}
    values, texts = {each.value for each in ended.values()}, {each.shown for each in ended.values()}
    if len(texts) < 2 or (len(values) < 2 and b"" not in values):
        return None
    shown = [f"process {number} returned {each.shown}" for number, each in ended.items()]
    return Failure("disagreement", "; ".join(shown), details="\n".join(shown), subject="results")
