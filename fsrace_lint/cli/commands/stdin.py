"""One file on standard input: what it is called, and its bytes."""

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
    """A file that standard input holds; one without a name is called `-`."""

    name: Path
    data: bytes


def option(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option that names what is on standard input."""
    return click.option(
        "--stdin-filename",
        type=click.Path(path_type=Path),
        help="Read one file from standard input, and take it for this file; `-` reads one without a name.",
    )(command)


def taken(paths: Sequence[Path], choices: dict[str, Any]) -> Handed | None:
    """Read standard input if the command line asks for it.

    Args:
        paths: What the user named.
        choices: The values of the options, with that of `--stdin-filename`.

    Returns:
        The name and the bytes of the file, or None where files on the disk are meant.

    Raises:
        click.UsageError: Files are named as well, or what names the input cannot be a file.
    """
    name: Path | None = choices["stdin_filename"]
    if name is None and STDIN not in paths:
        return None
    others = [path for path in paths if path != STDIN]
    if others:
        raise click.UsageError(f"standard input is taken alone, without {visible(str(others[0]))}")
    if name is not None and (not name.name or "\0" in str(name) or name.is_dir()):
        raise click.UsageError(f"--stdin-filename: {visible(str(name))} is not the name of a file")
    data = sys.stdin.buffer.read() if sys.stdin is not None else b""
    return Handed(name or STDIN, data)
