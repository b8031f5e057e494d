"""The state of each project: its changes, its current analysis, and its results."""

from __future__ import annotations

import asyncio
import functools
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fsrace_lint.config.roots import find_root, is_project
from fsrace_lint.config.validation import SettingsError
from fsrace_lint.integrations.server.analysis import Analysis, Where
from fsrace_lint.integrations.server.answers import Document, Wishes, Writer
from fsrace_lint.integrations.server.worker import SupersededError, Worker
from fsrace_lint.pipeline import internal_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from lsprotocol import types

    from fsrace_lint.findings.finding import Finding

_logger: Final = logging.getLogger(__name__)
DEBOUNCE: Final = 0.25
"""Seconds without a change before a project is analyzed."""


class SessionResult(NamedTuple):
    """The findings in one version of a document."""

    document: Document
    file: Path
    found: tuple[tuple[Finding, types.Diagnostic], ...] = ()


class _Means(NamedTuple):
    """The arguments of the analysis in addition to the documents.

    Attributes:
        wishes: The capabilities of the client.
        pulse: Called while documents are checked; an exception from it ends the work.
        reading: Called while a project is read; an exception from it ends the work.
        post: Receives the results.
    """

    wishes: Wishes
    pulse: Callable[[], None]
    reading: Callable[[], None]
    post: Callable[[Any], None]


class Session:
    """One project with its documents; only the analysis runs outside of the message loop."""

    def __init__(self, where: Where, worker: Worker, tell: Callable[[Session, Any], None]) -> None:
        """Initialize for a project.

        Args:
            where: The project.
            worker: The thread of the analysis.
            tell: Called in the message loop with each `SessionResult`, with an error text, or with None at
                the end.
        """
        self.where = where
        self.documents: dict[str, Path] = {}
        self.results: dict[str, SessionResult] = {}
        self.analysis = Analysis(where)
        self._worker = worker
        self._tell = tell
        self._generation = 0
        self._finished = 0
        self._fresh: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._disk: set[Path] | None = set()
        self._waiting: list[asyncio.Future[None]] = []

    def is_fresh(self, uri: str) -> bool:
        """Return whether the results of a document are up to date."""
        return self._generation in (self._finished, self._fresh.get(uri, -1))

    def changed_on_disk(self, files: Iterable[Path] | None) -> None:
        """Add files that may have changed on the disk; None means all files and the settings."""
        self._disk = None if files is None or self._disk is None else {*self._disk, *files}

    def touch(
        self, look: Callable[[], tuple[Sequence[Document], Wishes]], delay: float | None = None
    ) -> None:
        """Analyze the project again after a period without changes.

        Args:
            look: Returns the documents at that time, in order of priority, and the capabilities of the
                client.
            delay: The length of the period in seconds; `DEBOUNCE` by default.
        """
        self._generation += 1
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(
            DEBOUNCE if delay is None else delay, self._start, look
        )

    def _start(self, look: Callable[[], tuple[Sequence[Document], Wishes]]) -> None:
        self._timer = None
        generation = self._generation
        documents, wishes = look()
        placed = [(document, self.documents[document.uri]) for document in documents]
        disk, self._disk = self._disk, set()
        loop = asyncio.get_running_loop()

        def post(answer: Any) -> None:
            loop.call_soon_threadsafe(self._answered, generation, answer)

        def pulse() -> None:
            if self._generation != generation:
                raise SupersededError

        def reading() -> None:
            # Do not stop if only a buffer has changed, because the project would have to be read again.
            if not self.documents or self._disk is None:
                raise SupersededError

        def failed(future: Future[None]) -> None:
            error = future.exception()
            if error is not None:
                _logger.error("analysis of %s failed", self.where.root, exc_info=error)
                post(f"{type(error).__name__}: {error}")

        job = functools.partial(_work, self.analysis, placed, disk, _Means(wishes, pulse, reading, post))
        self._worker.submit(job).add_done_callback(failed)

    def _answered(self, generation: int, answer: Any) -> None:
        if generation != self._generation:
            return
        if isinstance(answer, SessionResult):
            if answer.document.uri not in self.documents:
                return
            self.results[answer.document.uri] = answer
            self._fresh[answer.document.uri] = generation
        else:
            self._finished = generation
            if answer is not None:
                self.results.clear()
        self._tell(self, answer)
        self.wake()

    def wake(self) -> None:
        """Resume all coroutines that wait for results."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def settle(self) -> None:
        """Wait for the next result."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    async def newest(self, uri: str) -> SessionResult | None:
        """Wait until the results of a document are up to date, and return them; None if there are none."""
        while uri in self.documents and not self.is_fresh(uri):
            await self.settle()
        return self.results.get(uri)

    def forget(self, uri: str) -> None:
        """Remove a document, and resume all coroutines that wait for it."""
        self.documents.pop(uri, None)
        self.results.pop(uri, None)
        self._fresh.pop(uri, None)
        self.wake()

    async def do(self, job: Callable[[], Any]) -> Any:
        """Run a job in the worker thread."""
        return await asyncio.wrap_future(self._worker.submit(job))

    def end(self) -> None:
        """Stop the analysis, and resume all waiting coroutines."""
        self._generation += 1
        if self._timer is not None:
            self._timer.cancel()
        self.documents.clear()
        self.wake()


def _work(
    analysis: Analysis,
    placed: Sequence[tuple[Document, Path]],
    disk: Iterable[Path] | None,
    means: _Means,
) -> None:
    """Update an analysis, and post the findings of each document, then None; or an error text."""
    try:
        with internal_error.guard(SettingsError, SupersededError):
            analysis.update({file: document.text for document, file in placed}, disk, means.reading)
            for document, file in placed:
                means.pulse()
                findings = analysis.judge(file, means.pulse)
                writer = Writer(document, analysis.sources(), means.wishes)
                means.post(
                    SessionResult(document, file, tuple((one, writer.diagnostic(one)) for one in findings))
                )
    except SupersededError:
        return
    except (SettingsError, internal_error.InternalError) as error:
        means.post(str(error))
        return
    means.post(None)


def place(path: Path, folders: Iterable[Path]) -> Where:
    """Return the project of a file.

    Args:
        path: The file.
        folders: The workspace folders of the client.

    Returns:
        The project that contains the file, or the outermost workspace folder, or the file by itself.
    """
    folders = list(folders)
    root = find_root(path, folders)
    is_alone = root == path.parent and not is_project(root) and root not in folders
    return Where(root, alone=is_alone)
