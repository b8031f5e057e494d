"""What the commands show: on the screen, or in a file."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from typing import TYPE_CHECKING, Final, TextIO

import click

from fsrace_lint.files.atomic_write import put, within
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from pathlib import Path

CLEAN, FOUND, FAILED = 0, 1, 2
"""The exit codes: nothing found; something found; wrong usage, bad settings or a failure of the run."""
_DESCRIPTOR: Final = re.compile(
    r"/dev/(?P<stream>stdout|stderr)|(?:/dev|/proc/self)/fd/(?P<number>[0-9]{1,9})"
)
_STREAMS: Final = {"stdout": 1, "stderr": 2}


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a stream is a terminal that can move its cursor."""
    return os.environ.get("TERM") != "dumb" and stream is not None and stream.isatty()


def width(otherwise: int) -> int:
    """Give the columns of the screen, as `shutil.get_terminal_size` does, which takes longer to load.

    Args:
        otherwise: The answer where standard output is no terminal, and COLUMNS is not set.

    Returns:
        The number of columns.
    """
    with contextlib.suppress(KeyError, ValueError):
        columns = int(os.environ["COLUMNS"])
        if columns > 0:
            return columns
    columns = 0
    with contextlib.suppress(OSError, ValueError):
        columns = 0 if sys.__stdout__ is None else os.get_terminal_size(sys.__stdout__.fileno()).columns
    return columns or otherwise


def is_colored(choice: bool | None, stream: TextIO | None = None) -> bool:  # noqa: FBT001  # None leaves it to the terminal
    """Decide as the Python interpreter does for its own tracebacks.

    Args:
        choice: What the user said.
        stream: Where the text goes; None is standard output.

    Returns:
        True if text is to be colored.
    """
    if choice is not None:
        return choice
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(sys.stdout if stream is None else stream)


def show(shown: str) -> None:
    """Write text to standard output, with escapes for what it cannot take."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    emit(shown.encode(encoding, "backslashreplace"))


def emit(data: bytes) -> None:
    """Write to standard output; a reader that wants no more (`| head`) is no failure."""
    try:
        click.echo(data, nl=False)
    except OSError as error:
        # Python flushes what is left at exit, and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno not in {errno.EPIPE, errno.EINVAL}:
            click.echo(f"Error: standard output cannot be written: {error.strerror}", err=True)
            sys.exit(FAILED)


def descriptor_of(file: Path) -> int | None:
    """Tell which of the open files of this process a name means: `/dev/stdout` is one; None for others."""
    named = _DESCRIPTOR.fullmatch(str(file)) if os.name == "posix" else None
    if named is None:
        return None
    return int(named["number"]) if named["number"] else _STREAMS[named["stream"]]


def is_stream(file: Path) -> bool:
    """Tell whether there is something else than a regular file: a pipe, a device."""
    return file.exists() and not file.is_file()


def write(file: Path, shown: str) -> bool:
    """Write a report; a reader sees the old one or the new one.

    Args:
        file: Where to.
        shown: The report.

    Returns:
        Whether that could be done; if not, the reason is on standard error.
    """
    data = shown.encode("utf-8", "backslashreplace")
    try:
        descriptor = descriptor_of(file)
        if descriptor is not None:
            # to open it anew would empty a file that somebody appends to
            if sys.stdout is not None:
                sys.stdout.flush()
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                stream.write(data)
        elif is_stream(within(file)):
            file.write_bytes(data)
        else:
            put(file, data)
    except OSError as error:
        click.echo(visible(f"Error: {file} cannot be written: {error.strerror}"), err=True)
        return False
    return True
