"""Read one file from standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STDIN: Final = Path("-")


class Handed(NamedTuple):
    """A file on standard input. Without a name, it is called `-`."""

    name: Path
    data: bytes


def option(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option for the name of the file on standard input."""
    return click.option(
        "--stdin-filename",
        type=click.Path(path_type=Path),
        help="Read the contents of the file PATH from standard input instead of the disk.",
    )(command)


def taken(paths: Sequence[Path], choices: dict[str, Any]) -> Handed | None:
    """Read standard input if the command line requests it.

    Args:
        paths: The paths that the user named.
        choices: The option values, including `--stdin-filename`.

    Returns:
        The name and the bytes of the file, or None to read files from disk.

    Raises:
        click.UsageError: Other files are named too, or the name cannot be that of a file.
    """
    name: Path | None = choices["stdin_filename"]
    if name is None and STDIN not in paths:
        return None
    others = [path for path in paths if path != STDIN]
    if others:
        raise click.UsageError(f"standard input cannot be combined with {visible(str(others[0]))}")
    if name is not None and (not name.name or "\0" in str(name) or name.is_dir()):
        raise click.UsageError(f"--stdin-filename: {visible(str(name))} is not a file name")
    data = sys.stdin.buffer.read() if sys.stdin is not None else b""
    return Handed(name or STDIN, data)
