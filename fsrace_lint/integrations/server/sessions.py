"""What is going on for each project: what has changed, what is being worked out, and what is known."""

from __future__ import annotations

import asyncio
import functools
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fsrace_lint.config import settings
from fsrace_lint.config.settings import SettingsError
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
"""Seconds without a change after which a project is looked at."""


class SessionResult(NamedTuple):
    """What was found in a document at one version."""

    document: Document
    file: Path
    found: tuple[tuple[Finding, types.Diagnostic], ...] = ()


class _Means(NamedTuple):
    """What the work is given beside the documents.

    `pulse` is called while documents are judged, `reading` while a project is read; what
    they raise ends the work. `post` takes the answers.
    """

    wishes: Wishes
    pulse: Callable[[], None]
    reading: Callable[[], None]
    post: Callable[[Any], None]


class Session:
    """One project: its documents, and the work on them. All but the work is done by the message loop."""

    def __init__(self, where: Where, worker: Worker, tell: Callable[[Session, Any], None]) -> None:
        """Prepare for a project.

        Args:
            where: The project.
            worker: The thread that does the work.
            tell: Takes each Result, a text about what is wrong, or None at the end, in the message loop.
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
        """Tell whether nothing newer is to come for a document."""
        return self._generation in (self._finished, self._fresh.get(uri, -1))

    def changed_on_disk(self, files: Iterable[Path] | None) -> None:
        """Remember which files on the disk may have changed; None is all, and the settings."""
        self._disk = None if files is None or self._disk is None else {*self._disk, *files}

    def touch(
        self, look: Callable[[], tuple[Sequence[Document], Wishes]], delay: float | None = None
    ) -> None:
        """Look at the project again, once nothing has changed for a while.

        Args:
            look: Gives the documents as they are then, the most wanted first, and what the client can take.
            delay: How long that is, in seconds (`DEBOUNCE`).
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
            # Not where only a buffer has changed: the project would have to be read from the start again.
            if not self.documents or self._disk is None:
                raise SupersededError

        def failed(future: Future[None]) -> None:
            error = future.exception()
            if error is not None:
                _logger.error("the work on %s failed", self.where.root, exc_info=error)
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
        """Let those go on who wait for results."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def settle(self) -> None:
        """Wait for the next news."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    async def newest(self, uri: str) -> SessionResult | None:
        """Give what is known of a document once nothing newer is to come; None if there is nothing."""
        while uri in self.documents and not self.is_fresh(uri):
            await self.settle()
        return self.results.get(uri)

    def forget(self, uri: str) -> None:
        """Let a document go; who waits for it is told so."""
        self.documents.pop(uri, None)
        self.results.pop(uri, None)
        self._fresh.pop(uri, None)
        self.wake()

    async def do(self, job: Callable[[], Any]) -> Any:
        """Have something done by the thread that does the work."""
        return await asyncio.wrap_future(self._worker.submit(job))

    def end(self) -> None:
        """Stop the work, and let go who waits for it."""
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
    """Bring an analysis up to date, and post what is found in each document; then None, or what is wrong."""
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
    """Say which project a file belongs to.

    Args:
        path: The file.
        folders: The folders that the client has open.

    Returns:
        The nearest project above the file; else the nearest folder that is open; else the file by itself.
    """
    root = settings.find_root(path)
    if any((root / marker).exists() for marker in settings.ROOT_MARKERS):
        return Where(root)
    above = [folder for folder in folders if folder in path.parents]
    if above:
        return Where(max(above, key=lambda folder: len(folder.parts)))
    return Where(path.parent, alone=True)
