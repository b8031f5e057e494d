"""One process as the scheduler sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.explore.running.poll_detector import PollDetector

if TYPE_CHECKING:
    from fsrace_lint.explore.messages import CallRequest, Ended
    from fsrace_lint.explore.running import jobs


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
        self.polls = PollDetector()

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
