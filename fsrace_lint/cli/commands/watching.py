"""`check --watch`: checks again whenever a file of the project changes."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import click

from fsrace_lint.cli import terminal
from fsrace_lint.cli.commands.options import load
from fsrace_lint.cli.commands.proving import PROGRAM
from fsrace_lint.config.validation import SettingsError
from fsrace_lint.files.source import Unreadable
from fsrace_lint.files.stat_signature import Status
from fsrace_lint.pipeline import discover
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fsrace_lint.config.settings import Settings

INTERVAL: Final = 0.3
"""The number of seconds between two looks at the files."""
_CLEAR: Final = "\x1b[2J\x1b[3J\x1b[H"
_FLAGS: Final = re.compile(r"-[enqsv]*w[enqsvw]*")
"""Short options without values, and among them `-w`."""

_State: TypeAlias = "frozenset[tuple[str, Status | str]]"
"""The files of the projects, each with its status, or with the reason why it cannot be read."""


def watch(paths: Sequence[Path], choices: dict[str, Any], arguments: Sequence[str]) -> NoReturn:
    """Check, and check again after each change, until the user interrupts.

    Each check is a process of its own, so memory does not grow, and the cache makes it fast.

    Args:
        paths: The paths that the user named. If empty, the current directory.
        choices: The option values of `check`.
        arguments: The arguments of `check`, which include `--watch`.

    Raises:
        KeyboardInterrupt: Ctrl-C ends the command.
    """
    command = [sys.executable, "-c", PROGRAM, "check", *without_watch(arguments)]
    is_told = not choices["quiet"] and not choices["silent"]
    before: _State | None = None
    while True:
        now = frozenset(_files(paths, choices))
        if now != before:
            before = now
            if terminal.is_terminal(sys.stdout):
                click.echo(_CLEAR, nl=False)
            if is_told:
                click.echo(f"{time.strftime('%H:%M:%S')} Checking", err=True)
            subprocess.run(command, check=False)  # noqa: S603  # the command is this program
            if is_told:
                click.echo("Watching for changes. Press Ctrl-C to stop.", err=True)
        time.sleep(INTERVAL)


def without_watch(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without `--watch`, also where `-w` is joined with other short options."""
    kept = [argument for argument in arguments if argument != "--watch"]
    kept = [text.replace("w", "") if _FLAGS.fullmatch(text) else text for text in kept]
    return [argument for argument in kept if argument != "-"]


def _files(paths: Sequence[Path], choices: dict[str, Any]) -> Iterator[tuple[str, Status | str]]:
    """Yield the files that a check of some paths depends on, or the problems that prevent the check."""
    try:
        chosen, problems = load(paths, choices)
        yield from ((problem.path, problem.message) for problem in problems)
        for project in dict.fromkeys(chosen.values()):
            yield from _files_of(project)
    except SettingsError as error:
        yield "", visible(str(error))


def _files_of(project: Settings) -> Iterator[tuple[str, Status | str]]:
    try:
        yield str(project.file), Status.of(project.file.stat())
    except OSError as error:
        yield str(project.file), type(error).__name__
    for item in discover.look([project.root], project):
        if isinstance(item, Unreadable):
            yield item.path, item.reason
        elif item.status is not None:
            yield item.path, Status.of(item.status)
        else:
            try:
                yield item.path, Status.of((project.root / item.relative).stat())
            except OSError as error:
                yield item.path, type(error).__name__
