"""Copies of the helpers in other projects: creates them, and detects changes by other authors."""

from __future__ import annotations

import enum
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fsrace_lint import __version__
from fsrace_lint.config.roots import find_root
from fsrace_lint.config.settings import Settings
from fsrace_lint.files import bounded_read
from fsrace_lint.files.atomic_write import exchange, within
from fsrace_lint.integrations.excerpt import excerpt, public, used
from fsrace_lint.pipeline import discover

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME: Final = "fs_safe.py"
"""The file name of a copy in a directory."""

_MARKS: Final = """\
# flake8: noqa
# fmt: off
# isort: skip_file
# mypy: ignore-errors
# pylint: skip-file
# ruff: noqa
"""
"""Tools of the project leave the copy alone, because it does not follow the style of the project."""
_HEADER: Final = re.compile(
    rb"# Written by fsrace-lint (\S+) vendor, sha256:([0-9a-f]{64})\. Do not edit it\.\r?\n"
)


class Copy(enum.Enum):
    """The state of the file at the path of a copy."""

    MISSING = "does not exist; run `fsrace-lint vendor` to create it"
    CURRENT = "is up to date"
    OLD = "has other helpers, or is of another version of fsrace-lint; run `fsrace-lint vendor` to update it"
    CHANGED = "was changed after `fsrace-lint vendor` wrote it; use `--force` to overwrite it"
    FOREIGN = "is not a copy of the helpers; use `--force` to overwrite it"

    @property
    def is_ours(self) -> bool:
        """Whether the file can be overwritten without losing changes of other authors."""
        return self in {Copy.MISSING, Copy.CURRENT, Copy.OLD}


def helpers() -> tuple[str, ...]:
    """Return the names of all helpers."""
    return public(_source())


def names_in_use(file: Path) -> frozenset[str]:
    """Return the helpers that the project of a copy imports from it."""
    root = find_root(file)
    files = (each for each in discover.find([root], Settings(root=root)) if isinstance(each, Path))
    return used(file.stem, helpers(), files)


def look(file: Path, names: Iterable[str] = ()) -> Copy:
    """Return the state of the file at the path of a copy.

    Args:
        file: The path.
        names: The helpers that it should contain; none means all.

    Returns:
        The state.

    Raises:
        OSError: The file cannot be read.
    """
    return _told(_read(file), names)


def _read(file: Path) -> bytes | None:
    try:
        return bounded_read.read(file)
    except FileNotFoundError:
        return None


def _told(data: bytes | None, names: Iterable[str]) -> Copy:
    if data is None:
        return Copy.MISSING
    header = _HEADER.match(data)
    if header is None:
        return Copy.FOREIGN
    # A checkout may have changed the line endings.
    body = data[header.end() :].replace(b"\r\n", b"\n")
    if hashlib.sha256(body).hexdigest().encode() != header[2]:
        return Copy.CHANGED
    return Copy.CURRENT if body == _body(names) else Copy.OLD


def write(file: Path, names: Iterable[str] = (), *, force: bool = False) -> Copy:
    """Write a copy with a header that contains its version and digest, unless this would lose changes.

    Args:
        file: The path; its directory must exist.
        names: The helpers that it should contain; none means all.
        force: Whether to overwrite any file.

    Returns:
        The previous state. Nothing is written if the copy is up to date, or if the file is not ours and
        `force` is false.

    Raises:
        OSError: The file cannot be read or written, or another process changed it; the previous file remains.
    """
    before = _read(file)
    copy = _told(before, names)
    if copy is not Copy.CURRENT and (copy.is_ours or force):
        body = _body(names)
        digest = hashlib.sha256(body).hexdigest()
        header = f"# Written by fsrace-lint {__version__} vendor, sha256:{digest}. Do not edit it.\n"
        exchange(within(file), before, header.encode() + body)
    return copy


def _body(names: Iterable[str]) -> bytes:
    text = _source()
    return (_MARKS + (excerpt(text, names) if names else text)).encode()


def _source() -> str:
    return Path(__file__).parents[1].joinpath("safe.py").read_text(encoding="utf-8")
