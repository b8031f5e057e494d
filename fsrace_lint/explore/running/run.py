"""One run: the processes of a scenario, permitted call by call."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from fsrace_lint.explore import code_places
from fsrace_lint.explore.errors import ExploreError
from fsrace_lint.explore.identity import identity
from fsrace_lint.explore.messages import CallRequest, Census, Ended, Go, Meet, Pause, Unseen
from fsrace_lint.explore.moves import (
    FAULT_BASE,
    IMPATIENT,
    KILLED,
    RESTARTED,
    TRUTH,
    Choice,
    Move,
    NamedFootprint,
    Trace,
)
from fsrace_lint.explore.running import jobs, verdict
from fsrace_lint.explore.running.crashes import Crashes
from fsrace_lint.explore.running.held_locks import HeldLocks
from fsrace_lint.explore.running.rank_process import EXIT, START, RankProcess
from fsrace_lint.explore.running.retry_detector import Past
from fsrace_lint.explore.running.stable_names import StableNames
from fsrace_lint.explore.running.stale_answers import TreeHistory
from fsrace_lint.explore.running.verdict import Failure
from fsrace_lint.instrument.model import WORLD, CallOutcome, Footprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fsrace_lint.explore.messages import Living
    from fsrace_lint.explore.moves import Name, Schedule
    from fsrace_lint.explore.running.retry_detector import Loop
    from fsrace_lint.explore.running.stage import Stage
    from fsrace_lint.explore.running.tracing import Tracing
    from fsrace_lint.explore.scenario import Scenario
    from fsrace_lint.instrument.model import Answer, Lookup


RESTART_SECONDS: Final = 1.0
"""The time that it takes to start a killed process again."""


class LifetimesMatter(Exception):  # noqa: N818  # describes the scenario
    """A process asks for another one, so the start and the end of each process must be moves."""


class ScheduleRun:
    """The processes of a scenario, from their start to their end.

    Args:
        scenario: The scenario.
        stage: The scratch directory.
        processes: Newly started processes, one for each rank.
        restart: Starts the process of a rank again; its second argument counts the starts before.
        endless: The retry loops that count as endless unless another process moves, and where they are; this
            run adds to them.
        tracing: Collects stacks and output for the report, or None.

    Attributes:
        in_vain: A process that did not wait for the others, and only repeated itself; None if there is none.
    """

    def __init__(
        self,
        scenario: Scenario,
        stage: Stage,
        processes: list[jobs.Process],
        restart: Callable[[int, int], jobs.Process],
        endless: dict[Loop, str],
        tracing: Tracing | None = None,
    ) -> None:
        self.scenario = scenario
        self.stage = stage
        self.tracing = tracing
        self._restart = restart
        self._kills = 0
        self.trace = Trace(scenario.processes)
        self.failure: Failure | None = None
        self.preempted = 0
        self.unfollowed: dict[tuple[str, str], str] = {}
        self._mapped: dict[int, set[int]] = {}
        self.in_vain: int | None = None
        self._pasts: list[Past] = []
        self._endless = endless
        self._latest_new = 0
        self.names = StableNames(stage.fresh())
        self._locks = HeldLocks()
        self._failing_schedule: Schedule = ()
        self._crashes = None
        if scenario.crash != "none" and scenario.check is not None:
            self._crashes = Crashes(scenario, stage, self.trace)
        self._history = TreeHistory(str(stage.top), scenario.caches) if scenario.caches - {"locks"} else None
        self._unsyncable: set[int] = set()
        self._start(processes)

    def _start(self, processes: list[jobs.Process]) -> None:
        self.ranks = [
            RankProcess(process, identity(self.scenario, rank)) for rank, process in enumerate(processes)
        ]
        self.stage.watch.cover(str(self.stage.top))
        try:
            for process in processes:
                process.join()
                process.let_through(Go(traced=self.tracing is not None))
            for number, rank in enumerate(self.ranks):
                self._hear(number)
                if self.scenario.lifetimes:
                    rank.is_alive, rank.first, rank.request = False, rank.request, START
            self._gather()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all processes."""
        jobs.end_all(rank.process for rank in self.ranks)

    def ready(self) -> list[int]:
        """Return the processes that can move; those in a retry loop move only if no other process can."""
        found = self._movable()
        return self._eager(found) or [number for number in found if not self._is_in_vain(number)]

    def _eager(self, movable: list[int]) -> list[int]:
        return [number for number in movable if not self.ranks[number].retries.gives_way]

    def _is_in_vain(self, number: int) -> bool:
        """Return whether a process that gives way is known to make no difference by another round."""
        return self.ranks[number].retries.changes_nothing and self._loop(number) in self._endless

    def waiting(self) -> dict[int, Loop]:
        """Return the processes in retry loops that can also move, if they are impatient, and their loops.

        Loops that are known to be endless are left out: another round makes no difference.
        """
        ready = self.ready()
        loops = {number: self._loop(number) for number in self._movable() if number not in ready}
        return {number: loop for number, loop in loops.items() if loop not in self._endless}

    def _loop(self, number: int) -> Loop:
        retries = self.ranks[number].retries
        return number, retries.origin, retries.cycle

    def _movable(self) -> list[int]:
        return [number for number, rank in enumerate(self.ranks) if self._is_ready(number, rank)]

    def _is_ready(self, number: int, rank: RankProcess) -> bool:
        if rank.killed:
            return rank.identity.life < self.scenario.restarts
        if rank.request is None:
            return False
        if rank.request.lock is not None:
            return self._locks.is_free(number, rank.request.lock)
        if isinstance(rank.request.wait, Meet):
            return rank.gathered is not None
        return not rank.retries.is_stuck

    def given(self, number: int) -> list[int]:
        """Return what a process can get at its next move.

        Args:
            number: The rank of the process.

        Returns:
            `TRUTH` first, then stale answers, newest first; then, with crashes, `KILLED`; then faults. A
            killed process can only get `RESTARTED`, and one that waits for the others in a retry loop
            `IMPATIENT` or `KILLED`.
        """
        rank = self.ranks[number]
        request = rank.request
        if rank.killed:
            return [RESTARTED]
        killed = [KILLED] if self._can_be_killed(rank) else []
        if request is None or not self._is_ready(number, rank):
            return killed
        if rank.retries.gives_way and self._eager(self._movable()):
            return killed if self._loop(number) in self._endless else [IMPATIENT, *killed]
        found = [TRUTH]
        if self._history is not None and request.lookup is not None:
            found += range(1, len(self._answers(number, request.lookup)))
        return found + killed + self._faults(request)

    def _can_be_killed(self, rank: RankProcess) -> bool:
        """Return whether a kill now can have an effect that no other kill has."""
        request, scenario = rank.request, self.scenario
        if scenario.crash == "none" or self._kills >= scenario.kills or request is None or request is START:
            return False
        if request is EXIT:
            return rank.has_changed and rank.identity.life < scenario.restarts
        # a kill after a call that changes nothing is equivalent to a kill before it
        if scenario.lifetimes:
            return rank.has_changed
        mutates = request.mutates if self._crashes is None else self._crashes.can_matter(request)
        return mutates or request.lock is not None

    def doomed(self) -> list[int]:
        """Return the processes that wait, and can be killed meanwhile, while the others continue."""
        if not self.scenario.lifetimes:
            return []
        others = {*self.ready(), *self.waiting()}
        return [
            number
            for number, rank in enumerate(self.ranks)
            if number not in others and self._can_be_killed(rank)
        ]

    def _faults(self, request: CallRequest) -> list[int]:
        if not request.faults or any(move.choice.fault is not None for move in self.trace.moves):
            return []
        needs_no_space = request.creates and not _is_new(request.creates)
        return [
            FAULT_BASE - number
            for number, name in enumerate(self.scenario.faults)
            if name in request.faults and not (name == "ENOSPC" and needs_no_space)
        ]

    def allows(self, choice: Choice) -> bool:
        """Return whether a process can move next, and get this answer."""
        movable = {*self.ready(), *self.waiting(), *self.doomed()}
        return choice.rank in movable and choice.given in self.given(choice.rank)

    def move(self, choice: Choice) -> Move:
        """Let a process make its call, and wait until it is about to make the next one.

        Args:
            choice: The process, and the answer that it gets.

        Returns:
            The move.

        Raises:
            ExploreError: The run has too many calls, or the process cannot move.
        """
        rank = self.ranks[choice.rank]
        if rank.request is None and choice.given != RESTARTED:
            raise ExploreError(f"process {choice.rank} cannot move")
        is_last_resort = not self._eager(self._movable())
        self.preempted += self.preempts(choice)
        rank.retries.is_impatient = rank.retries.is_impatient or choice.given == IMPATIENT
        move = self._moved(choice)
        if not rank.retries.is_repeating or is_last_resort:
            self._spread(move)
        self._gather()
        if rank.retries.is_stuck:
            self._repeats_in_vain(choice.rank)
        if self._crashes is not None and move.has_changed and self.failure is None:
            self._fail(self._crashes.after_last_step())
        if len(self.trace.moves) >= self.scenario.most_moves and self.failure is None and self.ready():
            self._end_too_long()
        return move

    def first_choice(self, number: int) -> Choice:
        """Return the choice of a process that gets the true answer, or that only can start again."""
        return Choice(number, RESTARTED if self.ranks[number].killed else TRUTH)

    def _moved(self, choice: Choice) -> Move:
        rank = self.ranks[choice.rank]
        if choice.given == KILLED:
            return self._killed(choice)
        if rank.request is None:
            return self._restarted(choice)
        if rank.request is START:
            rank.is_alive, rank.request = True, rank.first
            return self._lifetime_move(choice, "start", f"as process {rank.identity.pid}")
        if rank.request is EXIT:
            rank.is_alive, rank.request = False, None
            return self._lifetime_move(choice, "exit")
        if isinstance(rank.request.wait, Census) and not self.scenario.lifetimes:
            raise LifetimesMatter
        return self._made(choice, rank.request)

    def preempts(self, choice: Choice) -> bool:
        """Return whether a choice interrupts a process that can continue, or one that must be waited for."""
        last = self.trace.moves[-1].choice.rank if self.trace.moves else choice.rank
        return choice.given == IMPATIENT or (last != choice.rank and last in self.ready())

    def _repeats_in_vain(self, number: int) -> None:
        """Process the end of the patience with a process that repeats itself."""
        retries, request = self.ranks[number].retries, self.ranks[number].request
        if request is not None:
            place = f"{request.name} {request.target}".rstrip()
            where = f" ({code_places.shown(request.where)})" if request.where else ""
            self._endless[self._loop(number)] = self._shown(f"of process {number} in {place}{where}")
        if retries.is_impatient and any(other != number for other in self._movable()):
            retries.calm_down()
            self.in_vain = number

    def _end_too_long(self) -> None:
        """End a run with too many calls: a livelock if it has made no new call for long."""
        most = self.scenario.most_moves
        if len(self.trace.moves) - self._latest_new >= most // 2:
            self._fail(self._with_stacks(verdict.of_livelock(self.ranks, most)))
            return
        move = self.trace.moves[-1]
        raise ExploreError(
            f"a run makes more than {most} calls; process {move.choice.rank} is in {move.name} {move.target}"
            f" ({move.where}): use a smaller scenario, or raise the limit with `max_calls` (`--max-calls`)"
        )

    def _made(self, choice: Choice, request: CallRequest) -> Move:
        rank = self.ranks[choice.rank]
        answer: Answer | None = None
        if choice.given > TRUTH and self._history is not None and request.lookup is not None:
            answer = self._answers(choice.rank, request.lookup)[choice.given]
        if isinstance(request.wait, Pause):
            rank.now += rank.retries.length(request.wait)
        living = self._living(rank.identity.node) if isinstance(request.wait, Census) else []
        fault = "" if choice.fault is None else self.scenario.faults[choice.fault]
        rank.process.let_through(Go(rank.now, answer, rank.gathered or [], living=living, fault=fault))
        rank.gathered = None
        outcome = self._hear(choice.rank) or CallOutcome("does not return", Footprint())
        # after an error, the kernel forgets that the data was not written: a later sync succeeds for nothing
        self._unsyncable.update(outcome.lost)
        synced = tuple(inode for inode in outcome.synced if inode not in self._unsyncable)
        outcome = outcome._replace(synced=synced)
        rank.made += 1
        move = self._append(self._with_victim(self._as_move(choice, request, outcome), request))
        if self._crashes is not None:
            self._crashes.note(move, outcome)
        self._look_for_retries(rank, request, move)
        if self._history is not None:
            number = len(self.trace.moves) - 1
            self._history.note(choice.rank, number, outcome, changed=move.has_changed)
        return move

    def _living(self, node: int) -> list[Living]:
        return [rank.living for rank in self.ranks if rank.is_alive and rank.identity.node == node]

    def _append(self, move: Move) -> Move:
        rank = self.ranks[move.choice.rank]
        if self.scenario.lifetimes:
            reads = move.footprint.reads | {rank.key("victim")}
            move = move._replace(footprint=move.footprint._replace(reads=reads))
        direct = self.trace.append(move)
        rank.now = max([rank.now, *(self.trace.moves[at].now for at in direct)])
        self.trace.moves[-1] = move = move._replace(now=rank.now)
        self._observe(rank, move, direct)
        rank.has_changed = bool(move.footprint.changes)
        return move

    def _observe(self, rank: RankProcess, move: Move, direct: list[int]) -> None:
        """Add a move, and the moves that it depends on, to what the process has observed."""
        seen = tuple(sorted(self._pasts[at].digest for at in direct))
        said = (move.name, move.target, move.result, move.now)
        digest = hash((rank.past.digest, move.choice, said, seen))
        rank.past = Past(digest, not rank.observed.issuperset(direct))
        rank.observed.update(direct)
        self._pasts.append(rank.past)

    def _look_for_retries(self, rank: RankProcess, request: CallRequest, move: Move) -> None:
        key = rank.retries.key(request, move)
        rank.retries.note(key, move, self._state, rank.past)
        if rank.retries.is_new:
            self._latest_new = len(self.trace.moves)
        rank.now += rank.retries.lag()

    def _spread(self, move: Move) -> None:
        """Let the processes in retry loops continue that a move matters to.

        A call that only repeats itself has no effect that they have not seen, unless all repeat themselves.
        """
        for number, other in enumerate(self.ranks):
            if number != move.choice.rank:
                other.retries.hears_of(move.footprint)

    def _state(self) -> bytes:
        alive = "".join(str(int(rank.is_alive)) for rank in self.ranks)
        return self.stage.fingerprint() + f"{self._locks.state()} {alive}".encode()

    def _answers(self, number: int, lookup: Lookup) -> list[Answer]:
        if self._history is None:
            return []
        return self._history.answers(number, lookup, lambda move: self.must_know(number, move))

    def must_know(self, number: int, move: int) -> bool:
        """Return whether a process has seen the effect of a move, so that it cannot get an older answer."""
        return self.trace.is_known(number, move)

    def _as_move(self, choice: Choice, request: CallRequest, outcome: CallOutcome) -> Move:
        origin = f"{choice.rank}.{self.ranks[choice.rank].made}"
        self.names.created(outcome.created, origin)
        if WORLD in outcome.footprint.writes:
            self.names.found(self.stage.inodes(), origin)
        self._note(map(Unseen, outcome.unobserved))
        self._note_mapped(choice.rank, request, outcome)
        footprint = NamedFootprint(*map(self.names.of_all, outcome.footprint))
        for lock in outcome.released:
            self._locks.drop(choice.rank, lock)
        for lock in outcome.acquired:
            self._locks.take(choice.rank, lock)
        freed = {lock.key for lock in outcome.released} - {lock.key for lock in outcome.acquired}
        dropped = self.names.of_all(freed)
        locks = (name for name in footprint.reads | footprint.changes if name[0] == "lock")
        waited = None if request.lock is None else next(locks, None)
        move = Move(choice, request.name, request.target, request.where, outcome.result, footprint)
        return move._replace(waited=waited, dropped=dropped, stack=tuple(request.stack))

    def _note(self, unseen: Iterable[Unseen]) -> None:
        """Record something that is not controlled, so that not everything can have been explored."""
        for each in unseen:
            self.unfollowed.setdefault((each.what, each.place), self._shown(each.text))

    def _note_mapped(self, rank: int, request: CallRequest, outcome: CallOutcome) -> None:
        """Note that a file changes while another process has mapped it into memory."""
        for inode in outcome.mapped:
            self._mapped.setdefault(inode, set()).add(rank)
        for kind, inode, _ in outcome.footprint.writes if self._mapped else ():
            if kind == "file" and self._mapped.get(inode, set()) - {rank}:
                self._note([Unseen("reads of", request.target, "which another process has mapped")])

    def _killed(self, choice: Choice) -> Move:
        request = self.ranks[choice.rank].request
        self._kills += 1
        locks = self._slay(choice.rank)
        if request is None:
            return self._lifetime_move(choice, "killed", locks=locks)
        target = f"before {request.name} {request.target}".rstrip()
        return self._lifetime_move(choice, "killed", target, request, locks)

    def _slay(self, number: int) -> frozenset[Name]:
        """Kill a process, and return the locks that it held."""
        self.ranks[number].die()
        return self.names.of_all(self._locks.drop_all(number))

    def _restarted(self, choice: Choice) -> Move:
        rank = self.ranks[choice.rank]
        life = rank.identity.life + 1
        rank.now += RESTART_SECONDS
        rank.begin(self._restart(choice.rank, life), identity(self.scenario, choice.rank, life))
        move = self._lifetime_move(choice, "restarted", f"as process {rank.identity.pid}")
        rank.started = rank.now
        rank.process.join()
        rank.process.let_through(Go(rank.now, traced=self.tracing is not None))
        self._hear(choice.rank)
        return move

    def _lifetime_move(
        self,
        choice: Choice,
        name: str,
        target: str = "",
        request: CallRequest | None = None,
        locks: frozenset[Name] = frozenset(),
    ) -> Move:
        """Record that a process starts or ends."""
        rank = self.ranks[choice.rank]
        footprint = NamedFootprint(
            frozenset(), locks | {rank.key("process")}, frozenset({rank.key("processes")})
        )
        move = Move(choice, name, target, "", "", footprint, rank.now, dropped=locks)
        if request is not None:
            move = move._replace(where=request.where, stack=tuple(request.stack))
        return self._append(move)

    def _with_victim(self, move: Move, request: CallRequest) -> Move:
        """Kill the process that a call kills, and add its end to the move."""
        pid = request.wait.victim if isinstance(request.wait, Census) else 0
        node = self.ranks[move.choice.rank].identity.node
        for number, rank in enumerate(self.ranks):
            if rank.is_alive and (rank.identity.pid, rank.identity.node) == (pid, node):
                locks = self._slay(number)
                writes = move.footprint.writes | locks | {rank.key("process"), rank.key("victim")}
                adds = move.footprint.adds | {rank.key("processes")}
                footprint = move.footprint._replace(writes=writes, adds=adds)
                return move._replace(footprint=footprint, dropped=move.dropped | locks, victim=number)
        return move

    def _hear(self, number: int) -> CallOutcome | None:
        rank = self.ranks[number]
        before, rank.request = rank.request, None
        try:
            message = rank.process.hear(
                self.scenario.step_timeout if self.tracing is None else self.tracing.step_timeout
            )
        except jobs.Hung:
            after = f"after {before.name} {before.target}" if before is not None else "at the start"
            stacks = "" if self.tracing is None else self.tracing.stacks(self.ranks)
            self._lost(
                number, f"made no call within {self.scenario.step_timeout:g} s {after}", "hang", stacks
            )
            return None
        except jobs.Gone:
            self._lost(number, "was terminated, or exited by itself", "exit")
            return None
        self._note(message.unseen)
        if isinstance(message, CallRequest):
            rank.request = message
        elif isinstance(message, Ended):
            if message.refused:
                raise ExploreError(message.refused)
            rank.ended = message
            rank.request = EXIT if self.scenario.lifetimes else None
            self._fail(verdict.of_process(number, message, self.scenario))
        return getattr(message, "outcome", None)

    def _lost(self, number: int, text: str, kind: str, details: str = "") -> None:
        self.ranks[number].die()
        self._fail(Failure(kind, f"process {number} {text}", number, details, kind))

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
        met = Past(hash(tuple(rank.past.digest for rank in self.ranks)), is_fresh=True)
        for rank in self.ranks:
            rank.past = met
            rank.gathered = [meet.brought for meet in meets]
            rank.now = latest

    def finish(self) -> None:
        """Judge the end of the run."""
        if self.failure is not None:
            return
        self._fail(self._with_stacks(verdict.of_end(self.ranks, self.stage, self.scenario)))
        found = None if self._crashes is None or self.failure is not None else self._crashes.in_other_orders()
        if found is not None:
            failure, self._failing_schedule = found
            self._fail(failure)

    def _with_stacks(self, failure: Failure | None) -> Failure | None:
        """Add the stacks of all processes if they wait for each other."""
        if failure is None or self.tracing is None or failure.kind not in {"deadlock", "livelock"}:
            return failure
        return failure._replace(details=self.tracing.stacks(self.ranks))

    @property
    def bound(self) -> str:
        """Why some states after crashes were not checked, or ""."""
        return "" if self._crashes is None else self._crashes.bound

    def outcome(self) -> tuple[object, ...]:
        """Return how the run ended: the result or error of each process, and a fingerprint of the tree."""
        return (*(rank.end for rank in self.ranks), self.stage.fingerprint())

    def latest_move(self, number: int) -> int:
        """Return the index of the latest move of a process, or -1."""
        return max((at for at, move in enumerate(self.trace.moves) if move.choice.rank == number), default=-1)

    def schedule(self) -> Schedule:
        """Return the choices that led to the failure, or else to this state."""
        return self._failing_schedule or tuple(move.choice for move in self.trace.moves)


def _is_new(path: str) -> bool:
    """Return whether a call could create a path, which needs space in the directory."""
    return os.path.isdir(os.path.dirname(path)) and not os.path.lexists(path)
