"""Where a call was made: the line that matters, and the lines that led to it."""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import sys
import traceback
from typing import TYPE_CHECKING, Final

from fsrace_lint.instrument.model import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Frame = tuple[str, int, str]
"""One line of a stack: its file, its number, and the name of its function."""

THIN: Final = frozenset(
    (
        *("_pyio", "asyncio", "bz2", "codecs", "contextlib", "copy", "csv", "fileinput", "fnmatch"),
        *("functools", "genericpath", "glob", "gzip", "importlib", "io", "json", "linecache", "lzma"),
        *("ntpath", "os", "pathlib", "pickle", "posixpath", "pprint", "random", "runpy", "selectors"),
        *("shutil", "socket", "stat", "subprocess", "tarfile", "tempfile", "threading", "tokenize"),
        *("traceback", "types", "uuid", "zipfile"),
    )
)
"""Modules of the standard library that make filesystem calls only in the name of their caller."""
_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OWN: Final = (os.path.join(_PACKAGE, "explore"), os.path.join(_PACKAGE, "instrument"))
"""The directories of the explorer's own code."""
_STANDARD: Final = os.path.realpath(os.path.dirname(os.__file__))
_INSTALLED: Final = ("/site-packages/", "/dist-packages/")


def place_of(stack: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame of a library or of the user.

    Args:
        stack: The frames, innermost first.

    Returns:
        The frame; the innermost frame if all are thin wrappers, and None if there is none.
    """
    return next((frame for frame in stack if not is_thin(frame[0])), stack[0] if stack else None)


def callers_of(stack: Sequence[Frame]) -> list[Frame]:
    """Return the frames that led to the place of a call, innermost first, without thin wrappers."""
    place = place_of(stack)
    if place is None:
        return []
    return [frame for frame in stack[stack.index(place) + 1 :] if not is_thin(frame[0])]


@functools.cache
def is_thin(path: str) -> bool:
    """Return whether the code of a file only makes calls in the name of its caller."""
    if path.startswith(("<", _PACKAGE)):
        return True
    inner = _below_standard(path)
    return inner is not None and inner.split("/")[0].removesuffix(".py") in THIN


def _below_standard(path: str) -> str | None:
    if any(part in path for part in _INSTALLED):
        return None
    real = os.path.realpath(path)
    return real[len(_STANDARD) + 1 :] if real.startswith(f"{_STANDARD}/") else None


def shown(where: str) -> str:
    """Shorten the file of a place, such as `numba/core/caching.py:431`."""
    path, _, line = where.rpartition(":")
    return f"{shown_path(path)}:{line}" if path else ""


def _told(frame: Frame) -> str:
    return f"{shown_path(frame[0])}:{frame[1]} in {frame[2]}"


def shown_path(path: str) -> str:
    """Return a path below the entry of `sys.path` that contains it, or below the current directory."""
    library = _below_library(path)
    if library:
        return library
    bases = (os.path.abspath(entry) for entry in (*sys.path, ""))
    base = max((base for base in bases if path.startswith(f"{base}/")), key=len, default="")
    return path.removeprefix(f"{base}/") if base else path


def file_name(path: str) -> str:
    """Return the path of a module below the directory of its library, or its last part."""
    return _below_library(path) or os.path.basename(path)


def _below_library(path: str) -> str | None:
    for part in _INSTALLED:
        _, found, inner = path.rpartition(part)
        if found:
            return inner
    return _below_standard(path)


def called_from(stack: Sequence[Frame]) -> str:
    """Return a place and its callers in one line, or "" if there are none."""
    place, callers = place_of(stack), callers_of(stack)
    return f"{_told(place)}, called from {', '.join(map(_told, callers))}" if place and callers else ""


def file_of(function: object) -> str:
    """Return the file of a function, or "" if it is unknown."""
    function = getattr(function, "func", function)  # of `functools.partial`
    function = inspect.unwrap(function) if callable(function) else function
    code = getattr(function, "__code__", None)
    return getattr(code, "co_filename", "")


def relative(text: str) -> str:
    """Shorten the paths in a traceback that are below the current directory."""
    return text.replace(f'File "{os.getcwd()}/', 'File "')


def listed(stack: Iterable[Frame]) -> str:
    """Format a stack like a traceback, with whole paths.

    Args:
        stack: The frames, innermost first.

    Returns:
        Multiple lines, innermost last.
    """
    lines = []
    for path, number, name in reversed(list(stack)):
        lines.append(f'  File "{path}", line {number}, in {name}')
        source = linecache.getline(path, number).strip()
        if source:
            lines.append(f"    {source}")
    return "\n".join(lines)


def traceback_of(error: BaseException) -> tuple[list[Frame], str]:
    """Return the innermost frame of an exception and of those that led to it, and its traceback.

    The traceback has no frames of the explorer, and no thin wrappers unless it has nothing else.
    """
    found = traceback.TracebackException.from_exception(error)
    seen: set[int] = set()
    origins: list[Frame] = []
    todo: list[traceback.TracebackException | None] = [found]
    while todo:
        each = todo.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        frames = [frame for frame in each.stack if not frame.filename.startswith(OWN)]
        stack = [(plain(frame.filename), frame.lineno or 0, plain(frame.name)) for frame in reversed(frames)]
        origins += stack[:1]
        telling = [frame for frame in frames if not is_thin(frame.filename)]
        # without columns, so that the text is the same in every version of Python
        each.stack = traceback.StackSummary.from_list(
            [(frame.filename, frame.lineno or 0, frame.name, frame.line) for frame in telling or frames]
        )
        todo += [each.__cause__, each.__context__, *(getattr(each, "exceptions", None) or ())]
    return origins, "".join(found.format())
