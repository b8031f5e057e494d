"""The output of commands: to the terminal or to a file."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from typing import TYPE_CHECKING, Final, TextIO

import click

from fsrace_lint.files.atomic_write import ObstacleError, put, within
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from pathlib import Path

CLEAN, FOUND, FAILED = 0, 1, 2
"""The exit statuses: no findings; findings; and a usage error, invalid settings, or a failed run."""
_DESCRIPTOR: Final = re.compile(
    r"/dev/(?P<stream>stdout|stderr)|(?:/dev|/proc/self)/fd/(?P<number>[0-9]{1,9})"
)
_STREAMS: Final = {"stdout": 1, "stderr": 2}


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal that can move its cursor."""
    return os.environ.get("TERM") != "dumb" and stream is not None and stream.isatty()


def width(otherwise: int) -> int:
    """Return the width of the terminal like `shutil.get_terminal_size()`, which takes longer to load.

    Args:
        otherwise: The width if standard output is not a terminal and `COLUMNS` is not set.
    """
    with contextlib.suppress(KeyError, ValueError):
        columns = int(os.environ["COLUMNS"])
        if columns > 0:
            return columns
    columns = 0
    with contextlib.suppress(OSError, ValueError):
        columns = 0 if sys.__stdout__ is None else os.get_terminal_size(sys.__stdout__.fileno()).columns
    return columns or otherwise


def is_colored(choice: bool | None, stream: TextIO | None = None) -> bool:  # noqa: FBT001  # None detects a terminal
    """Return whether to color text, by the rules of the Python interpreter for tracebacks.

    Args:
        choice: The choice of the user.
        stream: The stream of the text. None for standard output.
    """
    if choice is not None:
        return choice
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(sys.stdout if stream is None else stream)


def show(shown: str) -> None:
    """Write text to standard output, with escapes for unsupported characters."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    emit(shown.encode(encoding, "backslashreplace"))


def emit(data: bytes) -> None:
    """Write to standard output. A closed pipe (`| head`) is not an error."""
    try:
        click.echo(data, nl=False)
    except OSError as error:
        # Python flushes the buffer at exit, and would report the error again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno not in {errno.EPIPE, errno.EINVAL}:
            click.echo(f"Error: cannot write to standard output: {error.strerror}", err=True)
            sys.exit(FAILED)


def descriptor_of(file: Path) -> int | None:
    """Return the file descriptor that a path such as `/dev/stdout` names, or None."""
    named = _DESCRIPTOR.fullmatch(str(file)) if os.name == "posix" else None
    if named is None:
        return None
    return int(named["number"]) if named["number"] else _STREAMS[named["stream"]]


def is_stream(file: Path) -> bool:
    """Return whether a path exists and is not a regular file, but for example a pipe or device."""
    return file.exists() and not file.is_file()


def write(file: Path, shown: str) -> bool:
    """Write a report. Readers see the old or the new report, never a part.

    Args:
        file: The path.
        shown: The report.

    Returns:
        Whether the report was written. If not, the reason is printed to standard error.
    """
    data = shown.encode("utf-8", "backslashreplace")
    try:
        descriptor = descriptor_of(file)
        if descriptor is not None:
            # opening it again would truncate a file that another process appends to
            if sys.stdout is not None:
                sys.stdout.flush()
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                stream.write(data)
        elif is_stream(within(file)):
            file.write_bytes(data)
        else:
            put(file, data)
    except OSError as error:
        reason = f"the file {error.strerror}" if isinstance(error, ObstacleError) else error.strerror
        if isinstance(error, FileNotFoundError) and not file.parent.is_dir():
            reason = f"no directory {file.parent}; create it first"
        click.echo(visible(f"Error: cannot write {file}: {reason}"), err=True)
        return False
    return True
