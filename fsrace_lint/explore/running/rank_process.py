"""One process as the scheduler sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.explore.running.retry_detector import RetryDetector

if TYPE_CHECKING:
    from fsrace_lint.explore.messages import CallRequest, Ended
    from fsrace_lint.explore.running import jobs


class RankProcess:
    """One process as the scheduler sees it.

    Attributes:
        process: The operating system process.
        request: The call that the process is about to make, or None.
        ended: The last message of the process, or None.
        killed: Whether the process was killed.
        gathered: The values from a collective call that all processes have reached, or None.
    """

    def __init__(self, process: jobs.Process) -> None:
        self.process = process
        self.request: CallRequest | None = None
        self.ended: Ended | None = None
        self.killed = False
        self.gathered: list[bytes] | None = None
        self.now = 0.0
        self.made = 0
        self.retries = RetryDetector()

    @property
    def is_over(self) -> bool:
        """Whether the process will make no more calls."""
        return self.ended is not None or self.killed

    @property
    def end(self) -> str:
        """How the process ended."""
        if self.killed:
            return "killed"
        if self.ended is None:
            return "waits"
        return self.ended.error[0] if self.ended.error else self.ended.shown
