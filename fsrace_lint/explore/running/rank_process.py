"""One process as the scheduler sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.explore.messages import CallRequest, Living
from fsrace_lint.explore.running.retry_detector import Past, RetryDetector

if TYPE_CHECKING:
    from fsrace_lint.explore.identity import Identity
    from fsrace_lint.explore.messages import Ended
    from fsrace_lint.explore.moves import Name
    from fsrace_lint.explore.running import jobs

START: Final = CallRequest("start", "", "", mutates=False)
EXIT: Final = CallRequest("exit", "", "", mutates=False)
"""Moves that the scheduler makes for a process: from then on, the other processes see that it lives or that
it does not."""


class RankProcess:
    """One process as the scheduler sees it.

    Attributes:
        process: The operating system process.
        identity: Its process id and its node.
        request: The call that the process is about to make, or None.
        first: Its first call, until it has started.
        ended: The last message of the process, or None.
        past: A digest of what the process has observed, also before a restart.
        observed: The indices of the moves of other processes that its own moves depend on.
        killed: Whether the process was killed, and has not started again.
        has_changed: Whether its last move changed anything, such as that it has started.
        is_alive: Whether other processes can see it.
        started: Seconds between the start of the run and its start.
        gathered: The values from a collective call that all processes have reached, or None.
    """

    def __init__(self, process: jobs.Process, identity: Identity) -> None:
        self.made = 0
        self.now = 0.0
        self.past = Past(0, is_fresh=False)
        self.observed: set[int] = set()
        self.begin(process, identity)

    def begin(self, process: jobs.Process, identity: Identity) -> None:
        """Let a new process have this rank."""
        self.process = process
        self.identity = identity
        self.started = self.now
        self.request: CallRequest | None = None
        self.first: CallRequest | None = None
        self.ended: Ended | None = None
        self.killed = False
        self.has_changed = True
        self.is_alive = True
        self.gathered: list[bytes] | None = None
        self.retries = RetryDetector()

    def die(self) -> None:
        """End the process by a kill."""
        self.process.end()
        self.killed = True
        self.is_alive = False
        self.retries.is_repeating = False
        self.request = self.ended = self.gathered = None

    @property
    def is_over(self) -> bool:
        """Whether the process will make no more calls."""
        return self.killed or (self.ended is not None and self.request is None)

    @property
    def end(self) -> str:
        """How the process ended."""
        if self.killed:
            return "killed"
        if self.ended is None:
            return "waits"
        return self.ended.error[0] if self.ended.error else self.ended.shown

    @property
    def living(self) -> Living:
        """What the processes of its node see of it."""
        return Living(self.identity.pid, self.process.pid, self.started)

    def key(self, kind: str) -> Name:
        """Return a key that is about this process; `kind` is that of a `Key`."""
        pid = 0 if kind == "processes" else self.identity.pid
        return kind, str(pid), str(self.identity.node)
