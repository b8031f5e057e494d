"""One run: the processes of a scenario, let through call by call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.explore import jobs
from fsrace_lint.explore.errors import ExploreError
from fsrace_lint.explore.locks import Locks
from fsrace_lint.explore.messages import Acquire, Answer, Ended, Footprint, Go, Meet, Outcome, Pause, Probe, Request
from fsrace_lint.explore.moves import EVERYTHING, KILLED, TRUTH, Choice, Move, Touched, Trace
from fsrace_lint.explore.polls import Polls
from fsrace_lint.explore.stale import History

if TYPE_CHECKING:
    from fsrace_lint.explore.messages import Key
    from fsrace_lint.explore.moves import Name, Schedule
    from fsrace_lint.explore.scenario import Scenario
    from fsrace_lint.explore.stage import Stage

STACK_TIMEOUT: Final = 2.0


class Failure(NamedTuple):
    """What is wrong in the end of a run.

    Attributes:
        kind: "exception", "check", "disagreement", "deadlock", "crash" or "hang".
        text: What is wrong, in a line.
        rank: Whose failure it is, where it is that of one process.
        details: A traceback, results, or where everybody stands.
        subject: What makes two failures the same: the exception's name, or what the check said.
    """

    kind: str
    text: str
    rank: int | None = None
    details: str = ""
    subject: str = ""

    def is_like(self, other: Failure | None) -> bool:
        """Tell whether this is the same kind of failure."""
        return other is not None and (self.kind, self.subject) == (other.kind, other.subject)


class Rank:
    """One process as the scheduler sees it.

    Attributes:
        process: The process itself.
        request: The call that it stands before, or None.
        ended: What it said in the end, or None.
        killed: Whether it was killed.
        gathered: What it gets from the collective call that all have come to, or None.
    """

    def __init__(self, process: jobs.Process) -> None:
        self.process = process
        self.request: Request | None = None
        self.ended: Ended | None = None
        self.killed = False
        self.gathered: list[bytes] | None = None
        self.now = 0.0
        self.made = 0
        self.polls = Polls()

    @property
    def is_over(self) -> bool:
        """Whether it will make no call any more."""
        return self.ended is not None or self.killed


class Run:
    """The processes of a scenario, from their start to their end.

    Args:
        scenario: What they run.
        stage: Where.
        processes: Freshly started, one for each rank.
    """

    def __init__(self, scenario: Scenario, stage: Stage, processes: list[jobs.Process]) -> None:
        self.scenario = scenario
        self.stage = stage
        self.trace = Trace(scenario.processes)
        self.failure: Failure | None = None
        self.notes: list[str] = []
        self.preempted = 0
        self._names = {inode: (path or "top") for inode, path in stage.fresh().items()}
        self._locks = Locks()
        self._dirty: set[int] = set()
        self._history = History(str(stage.top)) if scenario.filesystem == "nfs" else None
        self._start(processes)

    def _start(self, processes: list[jobs.Process]) -> None:
        self.ranks = [Rank(process) for process in processes]
        try:
            for number, process in enumerate(processes):
                process.join()
                self._hear(number)
            self._gather()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all processes."""
        for rank in self.ranks:
            rank.process.end()

    def ready(self) -> list[int]:
        """Tell which processes can move."""
        return [number for number, rank in enumerate(self.ranks) if self._is_ready(number, rank)]

    def _is_ready(self, number: int, rank: Rank) -> bool:
        if rank.request is None or rank.is_over:
            return False
        wait = rank.request.wait
        if isinstance(wait, Acquire):
            return self._locks.is_free(wait)
        if isinstance(wait, Meet):
            return rank.gathered is not None
        return not rank.polls.is_parked

    def given(self, number: int) -> list[int]:
        """Tell what a process can be given at its next move.

        Args:
            number: Its rank.

        Returns:
            The truth first, then older answers, the newest first; then, where there are crashes, its death.
        """
        request = self.ranks[number].request
        if request is None:
            return []
        found = [TRUTH]
        if self._history is not None and request.probe is not None:
            found += range(1, len(self._answers(number, request.probe)))
        if self.scenario.crash != "none" and (request.mutates or isinstance(request.wait, Acquire)) and not self.has_killed:
            found.append(KILLED)
        return found

    @property
    def has_killed(self) -> bool:
        """Whether a process was killed."""
        return any(rank.killed for rank in self.ranks)

    def move(self, choice: Choice) -> Move:
        """Let a process make its call, and wait until it stands before the next one.

        Args:
            choice: Which one, and what it is given.

        Returns:
            What it did.

        Raises:
            ExploreError: It makes calls without end.
        """
        if len(self.trace.moves) >= self.scenario.most_moves:
            raise ExploreError(f"a run of more than {self.scenario.most_moves} calls: a smaller scenario is needed")
        rank = self.ranks[choice.rank]
        if rank.request is None:
            raise ExploreError(f"process {choice.rank} cannot move")
        last = self.trace.moves[-1].choice.rank if self.trace.moves else choice.rank
        self.preempted += last != choice.rank and last in self.ready()
        move = self._killed(choice) if choice.given == KILLED else self._made(choice, rank.request)
        for number, other in enumerate(self.ranks):
            if number != choice.rank:
                other.polls.hears_of(move.touched)
        self._gather()
        if self.scenario.crash != "none" and self.failure is None and (move.touched.writes or move.touched.adds):
            self._crash()
        return move

    def _made(self, choice: Choice, request: Request) -> Move:
        rank = self.ranks[choice.rank]
        answer: Answer | None = None
        if choice.given != TRUTH and self._history is not None and request.probe is not None:
            answer = self._answers(choice.rank, request.probe)[choice.given]
        if isinstance(request.wait, Pause):
            rank.now += rank.polls.length(request.wait)
        rank.process.let_through(Go(rank.now, answer, rank.gathered or []))
        rank.gathered = None
        outcome = self._hear(choice.rank) or Outcome("does not return", Footprint())
        rank.made += 1
        move = self._as_move(choice, request, outcome)
        direct = self.trace.append(move)
        rank.now = max([rank.now, *(self.trace.moves[at].now for at in direct)])
        self.trace.moves[-1] = move = move._replace(now=rank.now)
        rank.polls.note(move, is_pause=isinstance(request.wait, Pause))
        pending = rank.request.wait if rank.request is not None else None
        if isinstance(pending, Pause):
            rank.polls.before(pending)
        if self._history is not None:
            changed = bool(move.touched.writes or move.touched.adds)
            self._history.note(choice.rank, len(self.trace.moves) - 1, outcome.seen, changed=changed)
        return move

    def _answers(self, number: int, probe: Probe) -> list[Answer]:
        if self._history is None:
            return []
        return self._history.answers(number, probe, lambda move: self.trace.is_known(number, move))

    def _as_move(self, choice: Choice, request: Request, outcome: Outcome) -> Move:
        for inode in outcome.made:
            self._names[inode] = f"{choice.rank}.{self.ranks[choice.rank].made}"
        self._dirty.update(outcome.dirtied)
        self._dirty.difference_update(outcome.synced)
        self.notes += [note for note in outcome.notes if note not in self.notes]
        footprint = outcome.footprint
        touched = Touched(self._named(footprint.reads), self._named(footprint.writes), self._named(footprint.adds))
        dropped = set()
        for held in outcome.locks:
            self._locks.note(held)
            if not held.taken:
                dropped.add(self._name(("lock", held.inode, "")))
        waited = None
        if isinstance(request.wait, Acquire):
            waited = self._name(("lock", request.wait.inode, ""))
        return Move(
            choice, request.name, request.target, request.where, outcome.result, touched,
            waited=waited, dropped=frozenset(dropped),
        )  # fmt: skip

    def _killed(self, choice: Choice) -> Move:
        rank = self.ranks[choice.rank]
        rank.process.end()
        rank.killed = True
        request = rank.request
        held = self._locks.drop_all(choice.rank)
        names = frozenset(self._name(("lock", inode, "")) for inode in held)
        target = f"before {request.name} {request.target}" if request is not None else ""
        touched = Touched(frozenset(), names, frozenset())
        move = Move(choice, "killed", target, request.where if request else "", "", touched, rank.now, dropped=names)
        self.trace.append(move)
        rank.request = None
        return move

    def _hear(self, number: int) -> Outcome | None:
        rank = self.ranks[number]
        before, rank.request = rank.request, None
        try:
            message = rank.process.hear(self.scenario.step_timeout)
        except jobs.Hung:
            after = f"after {before.name} {before.target}" if before is not None else "at the start"
            text = f"process {number} came to no call within {self.scenario.step_timeout:g} s {after}"
            self._fail(Failure("hang", text, number, subject=str(number)))
            rank.killed = True
            rank.process.end()
            return None
        except jobs.Gone:
            rank.killed = True
            rank.process.end()
            self._fail(Failure("exception", f"process {number} was ended from outside", number, subject="gone"))
            return None
        if isinstance(message, Request):
            rank.request = message
        elif isinstance(message, Ended):
            rank.ended = message
            self._judge(number, message)
        return getattr(message, "outcome", None)

    def _judge(self, number: int, ended: Ended) -> None:
        expected = {kind.__name__ for kind in self.scenario.expected}
        if ended.error and not expected.intersection(ended.error):
            kind = ended.error[0]
            text = f"{kind} in process {number}: {ended.message}" if ended.message else f"{kind} in process {number}"
            self._fail(Failure("exception", text, number, ended.trace, kind))

    def _fail(self, failure: Failure) -> None:
        if self.failure is None:
            self.failure = failure._replace(text=self._shown(failure.text), details=self._shown(failure.details))

    def _shown(self, text: str) -> str:
        root = f"{self.stage.top}/root"
        return text.replace(root + "/", "").replace(root, ".").replace(f"{self.stage.top}/", "")

    def _gather(self) -> None:
        waiting = [rank.request.wait for rank in self.ranks if rank.request is not None and rank.gathered is None]
        meets = [wait for wait in waiting if isinstance(wait, Meet)]
        if len(meets) < len(self.ranks) or len({meet.kind for meet in meets}) > 1:
            return
        self.trace.meet(list(range(len(self.ranks))))
        latest = max(rank.now for rank in self.ranks)
        for rank in self.ranks:
            rank.gathered = [meet.brought for meet in meets]
            rank.now = latest

    def _crash(self) -> None:
        problem = self.stage.problem()
        if problem is not None:
            self._fail(Failure("crash", _first_line(problem), details=f"If all were killed now: {problem}", subject=_subject(problem)))
        elif self.scenario.crash == "power":
            for variant in self.stage.variants(self._dirty):
                problem = self.stage.problem(variant)
                if problem is not None:
                    text = f"{_first_line(problem)} (the power goes, and {variant.path.removeprefix('root/')} has {variant.kept} bytes)"
                    self._fail(Failure("crash", text, details=problem, subject=_subject(problem)))
                    return

    def finish(self) -> None:
        """Judge the end of the run: who still waits, what the check says, whether all agree."""
        self._gather()
        if self.failure is not None:
            return
        left = [number for number, rank in enumerate(self.ranks) if not rank.is_over]
        if left:
            self._stuck(left)
            return
        if not self.has_killed and self.scenario.agree:
            self._compare()
        if self.failure is None:
            problem = self.stage.problem()
            if problem is not None:
                self._fail(Failure("check", _first_line(problem), details=problem, subject=_subject(problem)))

    def _stuck(self, left: list[int]) -> None:
        requests = [(number, self.ranks[number].request) for number in left]
        if self.has_killed and any(request and isinstance(request.wait, Meet) for _, request in requests):
            # the launcher ends a job that has lost a process
            problem = self.stage.problem()
            if problem is not None:
                self._fail(Failure("check", _first_line(problem), details=problem, subject=_subject(problem)))
            return
        said, details = [], []
        for number, request in requests:
            if request is not None:
                said.append(f"process {number} waits in {request.name} {request.target}".rstrip())
                stack = self.ranks[number].process.stack(STACK_TIMEOUT)
                details.append(f"process {number}, in {request.name} {request.target}:\n{stack}")
        details += [
            f"process {number} has ended" for number, rank in enumerate(self.ranks) if rank.is_over
        ]
        subject = ",".join(request.name for _, request in requests if request)
        self._fail(Failure("deadlock", "all wait: " + "; ".join(said), details="\n".join(details), subject=subject))

    def _compare(self) -> None:
        ended = [rank.ended for rank in self.ranks if rank.ended is not None and not rank.ended.error]
        values, texts = {each.value for each in ended}, {each.shown for each in ended}
        if len(ended) > 1 and len(texts) > 1 and (len(values) > 1 or b"" in values):
            shown = [
                f"process {number} gives {rank.ended.shown if rank.ended else '?'}" for number, rank in enumerate(self.ranks)
            ]
            self._fail(Failure("disagreement", "; ".join(shown), details="\n".join(shown), subject="results"))

    def _named(self, keys: list[Key]) -> frozenset[Name]:
        return frozenset(map(self._name, keys))

    def _name(self, key: Key) -> Name:
        kind, inode, name = key
        if kind == "world":
            return EVERYTHING
        return kind, self._names.get(inode) or self._names.setdefault(inode, f"?{inode}"), name

    def outcome(self) -> tuple[object, ...]:
        """Tell how it ended: what each process gave or raised, and the tree."""
        ends = tuple(
            "killed" if rank.killed else "waits" if rank.ended is None else (rank.ended.error[0] if rank.ended.error else rank.ended.shown)
            for rank in self.ranks
        )
        return (*ends, self.stage.fingerprint())

    def schedule(self) -> Schedule:
        """Give the choices that led here."""
        return tuple(move.choice for move in self.trace.moves)


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]


def _subject(problem: str) -> str:
    return _first_line(problem).partition(":")[0]

