"""Messages about a run on standard error: progress, settings, skipped files, and timings."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, Final

import click

from fsrace_lint.cli import terminal
from fsrace_lint.engine.parallel.progress import Observer
from fsrace_lint.report.words import count, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.progress import Progress

    from fsrace_lint.config.settings import Settings
    from fsrace_lint.engine.parallel.progress import Phase

PATIENCE: Final = 0.5
"""The number of seconds after which a user wants to see progress."""
PERIOD: Final = 0.1
"""The minimum number of seconds between two updates."""


def talking(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for the amount of messages."""
    flag = functools.partial(click.option, is_flag=True)
    for option in (
        flag("-s", "--silent", help="Print nothing; use the exit code."),
        flag("-q", "--quiet", help="Print only findings and errors."),
        flag("-v", "--verbose", help="Log settings, skipped files, and timings."),
    ):
        command = option(command)
    return command


class Watch(Observer):
    """Measures a run, prints the requested messages, and shows a progress bar on a terminal."""

    def __init__(self, choices: dict[str, Any], *, color: bool | None) -> None:
        """Read the options of `talking`.

        Args:
            choices: The option values. The options may be missing.
            color: Whether to use color. None detects a terminal.

        Raises:
            click.UsageError: The options contradict each other.
        """
        given = [name for name in ("quiet", "silent", "verbose") if choices.get(name)]
        if len(given) > 1:
            raise click.UsageError(f"--{given[0]} cannot be used with --{given[1]}")
        self.silent = "silent" in given
        self.quiet = self.silent or "quiet" in given
        self.curious = "verbose" in given
        self._color = terminal.is_colored(color, sys.stderr)
        self._shows = not given and terminal.is_terminal(sys.stderr)
        self._seconds: dict[str, float] = {}
        self._rooms: list[Phase] = []
        self._since = 0.0
        self._began = monotonic()
        self._bar: Progress | None = None
        self._title, self._total, self._done = "", 0, 0
        self._drawn = 0.0

    def hint(self, message: str) -> None:
        """Print a message, unless only findings are wanted."""
        if not self.quiet:
            click.echo(visible(message), err=True)

    def _tell(self, message: str) -> None:
        if self.curious:
            click.echo(visible(message), err=True)

    def reads_settings(self, file: str, *, there: bool) -> None:
        """Log the file of the settings."""
        self._tell(f"settings: {file}{'' if there else ' does not exist; using defaults'}")

    def begins(self, settings: Settings, *, targets: int, files: int) -> None:
        """Log the other files with settings, and the numbers of files to read."""
        for one in settings.nested:
            self.reads_settings(str(one.file), there=True)
        self._tell(
            f"root: {settings.root}: {count(targets, 'file')} to check, {count(files, 'file')} in the project"
        )

    def leaves_out(self, path: str, reason: str) -> None:
        """Log a skipped path and the reason."""
        with contextlib.suppress(ValueError):  # a different drive
            path = os.path.relpath(path)
        self._tell(f"skipped: {path}: {reason}")

    def note(self, message: str) -> None:
        """Log a message that does not affect the findings."""
        self._tell(message)

    def stage(self, title: str, total: int) -> None:
        """Start a new stage with a new count."""
        self._title, self._total, self._done = title, total, 0
        self._draw()

    def step(self) -> None:
        """Count one file."""
        self._done += 1
        self._draw()

    @contextlib.contextmanager
    def phase(self, name: Phase) -> Iterator[None]:
        """Measure a phase, without the phases inside it."""
        self._clock()
        self._rooms.append(name)
        try:
            yield
        finally:
            self._clock()
            self._rooms.pop()

    def _clock(self) -> None:
        """Add the time since the last call to the current phase."""
        now = perf_counter()
        if self._rooms:
            room = self._rooms[-1]
            self._seconds[room] = self._seconds.get(room, 0.0) + now - self._since
        self._since = now

    def seconds(self) -> dict[str, float]:
        """Return the time of each phase so far."""
        self._clock()
        return dict(self._seconds)

    def books(self, seconds: Mapping[str, float]) -> None:
        """Add times that were measured in another process."""
        for room, taken in seconds.items():
            self._seconds[room] = self._seconds.get(room, 0.0) + taken

    def is_copied(self) -> None:
        """Print nothing more, because this process is now a forked worker."""
        self._shows = self.curious = False

    @contextlib.contextmanager
    def progress(self) -> Iterator[None]:
        """Show a progress bar if the run takes long, and remove it at the end."""
        self._began = monotonic()
        try:
            yield
        finally:
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

    def finish(self) -> None:
        """Log the time of each phase."""
        taken = ", ".join(f"{name} {seconds:.3f} s" for name, seconds in self.seconds().items())
        self._tell(f"time: {taken}")

    def _draw(self) -> None:
        if not self._shows or (self._bar is None and monotonic() - self._began < PATIENCE):
            return
        if self._bar is None:
            self._bar = _bar(color=self._color)
            self._bar.add_task(self._title, total=self._total)
            self._bar.start()
        now = monotonic()
        is_due = self._done in {0, self._total} or now - self._drawn >= PERIOD
        if is_due:
            self._drawn = now
            self._bar.update(
                self._bar.task_ids[0],
                description=self._title,
                total=self._total,
                completed=self._done,
                refresh=True,
            )


def _bar(*, color: bool) -> Progress:
    # rich is loaded only if a run takes long
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("files"))
    console = Console(stderr=True, no_color=not color)
    # an automatic refresh would need a thread, which does not mix with forking
    return Progress(*columns, console=console, transient=True, auto_refresh=False)
