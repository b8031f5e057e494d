"""One process as the scheduler sees it, and what can be wrong with a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fsrace_lint.explore.running.polls import Polls

if TYPE_CHECKING:
    from fsrace_lint.explore.messages import CallRequest, Ended
    from fsrace_lint.explore.running import jobs


class Failure(NamedTuple):
    """What is wrong in the end of a run.

    Attributes:
        kind: "exception", "check", "disagreement", "deadlock", "crash", "hang" or "exit".
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


class RankProcess:
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
        self.request: CallRequest | None = None
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

    @property
    def end(self) -> str:
        """How it ended."""
        if self.killed:
            return "killed"
        if self.ended is None:
            return "waits"
        return self.ended.error[0] if self.ended.error else self.ended.shown
