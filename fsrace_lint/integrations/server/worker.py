"""One thread for slow work, so that the server can answer messages meanwhile."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from fsrace_lint.engine.parallel.progress import CancelledError

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = TypeVar("Answer")


class SupersededError(CancelledError):
    """The work is obsolete, because a newer job is waiting."""


class Worker:
    """A thread that runs jobs in order; it does not keep the process alive."""

    def __init__(self) -> None:
        """Start the thread."""
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="fsrace-lint", daemon=True).start()

    def submit(self, job: Callable[[], Answer]) -> Future[Answer]:
        """Add a job to the queue.

        Args:
            job: The job.

        Returns:
            The future result of the job.
        """
        future: Future[Answer] = Future()
        self._jobs.put((future, job))
        return future

    def _work(self) -> None:
        while True:
            future, job = self._jobs.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(job())
            except Exception as error:  # noqa: BLE001  # the caller that awaits the result gets it
                future.set_exception(error)
