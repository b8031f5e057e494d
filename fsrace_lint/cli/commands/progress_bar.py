"""What a command tells of its run besides its report: how far it is, and what it did, on standard error."""

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
"""The seconds after which somebody wonders whether anything happens."""
PERIOD: Final = 0.1
"""The seconds between two drawings."""


def talking(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say how much is told."""
    flag = functools.partial(click.option, is_flag=True)
    for option in (
        flag("-s", "--silent", help="Show nothing: the exit code and written files tell."),
        flag("-q", "--quiet", help="Show findings and errors only: no summary, no hints, no progress."),
        flag("-v", "--verbose", help="Say what is read, what is left out and why, and what takes how long."),
    ):
        command = option(command)
    return command


class Watch(Observer):
    """Measures a run, and tells of it what was asked for; on a terminal it shows how far a long one is."""

    def __init__(self, choices: dict[str, Any], *, color: bool | None) -> None:
        """Read the options of `talking`.

        Args:
            choices: Their values; a command may be without them.
            color: Whether to color; None leaves it to the terminal.

        Raises:
            click.UsageError: They contradict each other.
        """
        given = [name for name in ("quiet", "silent", "verbose") if choices.get(name)]
        if len(given) > 1:
            raise click.UsageError(f"--{given[0]} and --{given[1]} contradict each other")
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
        """Say what may help, unless only findings are wanted."""
        if not self.quiet:
            click.echo(visible(message), err=True)

    def _tell(self, message: str) -> None:
        if self.curious:
            click.echo(visible(message), err=True)

    def reads_settings(self, file: str, *, there: bool) -> None:
        """Say where the settings come from."""
        self._tell(
            f"settings: {file}{'' if there else ': there is no such file; everything has its default'}"
        )

    def begins(self, settings: Settings, *, targets: int, files: int) -> None:
        """Say what is about to be read."""
        self._tell(f"root: {settings.root}: {count(targets, 'file')} to check, {files} to link")

    def leaves_out(self, path: str, reason: str) -> None:
        """Say what is left out, and why."""
        with contextlib.suppress(ValueError):  # another drive
            path = os.path.relpath(path)
        self._tell(f"left out: {path}: {reason}")

    def note(self, message: str) -> None:
        """Say what does not change what is found."""
        self._tell(message)

    def stage(self, title: str, total: int) -> None:
        """Begin to count anew."""
        self._title, self._total, self._done = title, total, 0
        self._draw()

    def step(self) -> None:
        """Count."""
        self._done += 1
        self._draw()

    @contextlib.contextmanager
    def phase(self, name: Phase) -> Iterator[None]:
        """Measure, without what is done in other rooms meanwhile."""
        self._clock()
        self._rooms.append(name)
        try:
            yield
        finally:
            self._clock()
            self._rooms.pop()

    def _clock(self) -> None:
        """Book the time since the last call on the room that it was spent in."""
        now = perf_counter()
        if self._rooms:
            room = self._rooms[-1]
            self._seconds[room] = self._seconds.get(room, 0.0) + now - self._since
        self._since = now

    def seconds(self) -> dict[str, float]:
        """Tell what each room took so far."""
        self._clock()
        return dict(self._seconds)

    def books(self, seconds: Mapping[str, float]) -> None:
        """Add what was measured elsewhere."""
        for room, taken in seconds.items():
            self._seconds[room] = self._seconds.get(room, 0.0) + taken

    def is_copied(self) -> None:
        """Show nothing any more: the other process does."""
        self._shows = self.curious = False

    @contextlib.contextmanager
    def progress(self) -> Iterator[None]:
        """Show how far it is, where that takes long, and wipe it away in the end."""
        self._began = monotonic()
        try:
            yield
        finally:
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

    def finish(self) -> None:
        """Say at the end what took how long."""
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
    # rich is loaded only where a run takes long enough
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("files"))
    console = Console(stderr=True, no_color=not color)
    # a thread that draws by itself would be in the way of processes
    return Progress(*columns, console=console, transient=True, auto_refresh=False)
