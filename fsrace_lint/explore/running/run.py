"""One run: the processes of a scenario, permitted call by call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.explore.errors import ExploreError
from fsrace_lint.explore.messages import CallRequest, Ended, Go, Meet, Pause
from fsrace_lint.explore.moves import EVERYTHING, KILLED, TRUTH, Choice, Move, NamedFootprint, Trace
from fsrace_lint.explore.running import jobs, verdict
from fsrace_lint.explore.running.held_locks import HeldLocks
from fsrace_lint.explore.running.rank_process import RankProcess
from fsrace_lint.explore.running.stale_answers import TreeHistory
from fsrace_lint.explore.running.verdict import Failure
from fsrace_lint.instrument.model import WORLD, CallOutcome, Footprint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.explore.moves import Name, Schedule
    from fsrace_lint.explore.running.stage import Stage
    from fsrace_lint.explore.scenario import Scenario
    from fsrace_lint.instrument.model import Answer, Key, Lookup


class ScheduleRun:
    """The processes of a scenario, from their start to their end.

    Args:
        scenario: The scenario.
        stage: The scratch directory.
        processes: Newly started processes, one for each rank.
    """

    def __init__(self, scenario: Scenario, stage: Stage, processes: list[jobs.Process]) -> None:
        self.scenario = scenario
        self.stage = stage
        self.trace = Trace(scenario.processes)
        self.failure: Failure | None = None
        self.notes: list[str] = []
        self.preempted = 0
        self.has_unfollowed = False
        self._names = {inode: (path or "top") for inode, path in stage.fresh().items()}
        self._locks = HeldLocks()
        self._dirty: set[int] = set()
        self._history = TreeHistory(str(stage.top)) if scenario.filesystem == "nfs" else None
        self._start(processes)

    def _start(self, processes: list[jobs.Process]) -> None:
        self.ranks = [RankProcess(process) for process in processes]
        try:
            for process in processes:
                process.join()
                process.let_through(Go())
            for number in range(len(processes)):
                self._hear(number)
            self._gather()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all processes."""
        jobs.end_all(rank.process for rank in self.ranks)

    def ready(self) -> list[int]:
        """Return the processes that can move; those that probably repeat themselves are a last resort."""
        found = [number for number, rank in enumerate(self.ranks) if self._is_ready(number, rank)]
        return [number for number in found if not self.ranks[number].polls.gives_way] or found

    def _is_ready(self, number: int, rank: RankProcess) -> bool:
        if rank.request is None or rank.is_over:
            return False
        if rank.request.lock is not None:
            return self._locks.is_free(number, rank.request.lock)
        if isinstance(rank.request.wait, Meet):
            return rank.gathered is not None
        return not rank.polls.is_parked

    def given(self, number: int) -> list[int]:
        """Return what a process can get at its next move.

        Args:
            number: The rank of the process.

        Returns:
            `TRUTH` first, then stale answers, newest first; then, with crashes, `KILLED`.
        """
        request = self.ranks[number].request
        if request is None:
            return []
        found = [TRUTH]
        if self._history is not None and request.lookup is not None:
            found += range(1, len(self._answers(number, request.lookup)))
        # a kill before a call that changes nothing is equivalent to a kill before the next call
        can_matter = request.mutates or request.lock is not None
        if self.scenario.crash != "none" and can_matter and not any(rank.killed for rank in self.ranks):
            found.append(KILLED)
        return found

    def move(self, choice: Choice) -> Move:
        """Let a process make its call, and wait until it is about to make the next one.

        Args:
            choice: The process, and the answer that it gets.

        Returns:
            The move.

        Raises:
            ExploreError: The run has too many calls, or the process cannot move.
        """
        if len(self.trace.moves) >= self.scenario.most_moves:
            raise ExploreError(
                f"a run makes more than {self.scenario.most_moves} calls: use a smaller scenario"
            )
        rank = self.ranks[choice.rank]
        if rank.request is None:
            raise ExploreError(f"process {choice.rank} cannot move")
        last = self.trace.moves[-1].choice.rank if self.trace.moves else choice.rank
        self.preempted += last != choice.rank and last in self.ready()
        move = self._killed(choice) if choice.given == KILLED else self._made(choice, rank.request)
        for number, other in enumerate(self.ranks):
            if number != choice.rank:
                other.polls.hears_of(move.footprint)
        self._gather()
        if self.scenario.crash != "none" and move.has_changed and self.failure is None:
            self._fail(verdict.of_crash(self.stage, self._dirty, with_power=self.scenario.crash == "power"))
        return move

    def _made(self, choice: Choice, request: CallRequest) -> Move:
        rank = self.ranks[choice.rank]
        answer: Answer | None = None
        if choice.given != TRUTH and self._history is not None and request.lookup is not None:
            answer = self._answers(choice.rank, request.lookup)[choice.given]
        if isinstance(request.wait, Pause):
            rank.now += rank.polls.length(request.wait)
        rank.process.let_through(Go(rank.now, answer, rank.gathered or []))
        rank.gathered = None
        outcome = self._hear(choice.rank) or CallOutcome("does not return", Footprint())
        rank.made += 1
        move = self._as_move(choice, request, outcome)
        direct = self.trace.append(move)
        rank.now = max([rank.now, *(self.trace.moves[at].now for at in direct)])
        self.trace.moves[-1] = move = move._replace(now=rank.now)
        rank.polls.note(move, is_pause=isinstance(request.wait, Pause))
        if rank.request is not None:
            self._look_for_circle(rank, rank.request)
        if self._history is not None:
            number = len(self.trace.moves) - 1
            self._history.note(choice.rank, number, outcome, changed=move.has_changed)
        return move

    def _look_for_circle(self, rank: RankProcess, request: CallRequest) -> None:
        if isinstance(request.wait, Pause):
            rank.polls.before(request.wait)
        else:
            rank.polls.asks(request.state)

    def _answers(self, number: int, lookup: Lookup) -> list[Answer]:
        if self._history is None:
            return []
        return self._history.answers(number, lookup, lambda move: self.must_know(number, move))

    def must_know(self, number: int, move: int) -> bool:
        """Return whether a process has seen the effect of a move, so that it cannot get an older answer."""
        return self.trace.is_known(number, move)

    def _as_move(self, choice: Choice, request: CallRequest, outcome: CallOutcome) -> Move:
        origin = f"{choice.rank}.{self.ranks[choice.rank].made}"
        self._names.update(dict.fromkeys(outcome.created, origin))
        self.has_unfollowed = self.has_unfollowed or bool(outcome.unobserved)
        self._dirty.update(outcome.dirtied)
        self._dirty.difference_update(outcome.synced)
        notes = outcome.unobserved
        if WORLD in outcome.footprint.writes:
            notes = (f"{request.name} {request.target}: treated as one step, whatever it does", *notes)
            self._name_unknown(origin)
        self.notes += [note for note in map(self._shown, notes) if note not in self.notes]
        footprint = NamedFootprint(*map(self._named, outcome.footprint))
        for lock in outcome.released:
            self._locks.drop(choice.rank, lock)
        for lock in outcome.acquired:
            self._locks.take(choice.rank, lock)
        freed = {lock.inode for lock in outcome.released} - {lock.inode for lock in outcome.acquired}
        dropped = {self._name(("lock", inode, "")) for inode in freed}
        waited = None if request.lock is None else self._name(("lock", request.lock.inode, ""))
        move = Move(choice, request.name, request.target, request.where, outcome.result, footprint)
        return move._replace(waited=waited, dropped=frozenset(dropped))

    def _killed(self, choice: Choice) -> Move:
        rank = self.ranks[choice.rank]
        rank.process.end()
        rank.killed = True
        request = rank.request
        held = self._locks.drop_all(choice.rank)
        names = frozenset(self._name(("lock", inode, "")) for inode in held)
        target = f"before {request.name} {request.target}" if request is not None else ""
        footprint = NamedFootprint(frozenset(), names, frozenset())
        move = Move(
            choice, "killed", target, request.where if request else "", "", footprint, rank.now, dropped=names
        )
        self.trace.append(move)
        rank.request = None
        return move

    def _hear(self, number: int) -> CallOutcome | None:
        rank = self.ranks[number]
        before, rank.request = rank.request, None
        try:
            message = rank.process.hear(self.scenario.step_timeout)
        except jobs.Hung:
            after = f"after {before.name} {before.target}" if before is not None else "at the start"
            self._lost(number, f"made no call within {self.scenario.step_timeout:g} s {after}", "hang")
            return None
        except jobs.Gone:
            self._lost(number, "was terminated, or exited by itself", "exit")
            return None
        if isinstance(message, CallRequest):
            rank.request = message
        elif isinstance(message, Ended):
            rank.ended = message
            self._fail(verdict.of_process(number, message, self.scenario))
        return getattr(message, "outcome", None)

    def _lost(self, number: int, text: str, kind: str) -> None:
        rank = self.ranks[number]
        rank.killed = True
        rank.process.end()
        self._fail(Failure(kind, f"process {number} {text}", number, subject=kind))

    def _fail(self, failure: Failure | None) -> None:
        if self.failure is None and failure is not None:
            text, details = self._shown(failure.text), self._shown(failure.details)
            self.failure = failure._replace(text=text, details=details)

    def _shown(self, text: str) -> str:
        root = f"{self.stage.top}/root"
        return text.replace(root + "/", "").replace(root, ".").replace(f"{self.stage.top}/", "")

    def _gather(self) -> None:
        waiting = [
            rank.request.wait for rank in self.ranks if rank.request is not None and rank.gathered is None
        ]
        meets = [wait for wait in waiting if isinstance(wait, Meet)]
        if len(meets) < len(self.ranks) or len({meet.kind for meet in meets}) > 1:
            return
        self.trace.meet(list(range(len(self.ranks))))
        latest = max(rank.now for rank in self.ranks)
        for rank in self.ranks:
            rank.gathered = [meet.brought for meet in meets]
            rank.now = latest

    def finish(self) -> None:
        """Judge the end of the run."""
        self._fail(verdict.of_end(self.ranks, self.stage, self.scenario))

    def _name_unknown(self, origin: str) -> None:
        """Name inodes that were created unobserved, so that the names are the same in every run."""
        for inode, path in self.stage.inodes().items():
            self._names.setdefault(inode, f"{origin}:{path}")

    def _named(self, keys: Iterable[Key]) -> frozenset[Name]:
        return frozenset(map(self._name, keys))

    def _name(self, key: Key) -> Name:
        kind, inode, name = key
        if kind == "world":
            return EVERYTHING
        return kind, self._names.get(inode) or self._names.setdefault(inode, f"?{inode}"), name

    def outcome(self) -> tuple[object, ...]:
        """Return how the run ended: the result or error of each process, and a fingerprint of the tree."""
        return (*(rank.end for rank in self.ranks), self.stage.fingerprint())

    def schedule(self) -> Schedule:
        """Return the choices that led to this state."""
        return tuple(move.choice for move in self.trace.moves)
