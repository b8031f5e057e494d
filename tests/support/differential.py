"""Runs programs in one process on states of a directory, and compares their results and the files they leave.

This module uses `os` as the programs do: `Path` treats links differently, and normalizes dots.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import importlib.abc
import importlib.machinery
import inspect
import io
import json
import os
import signal
import stat
import sys
import tempfile
import traceback
import types
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, cast
from unittest import mock

from fsrace_lint.pipeline import repair
from support.mdtest import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fsrace_lint.fixes import Patch

PARENT: Final = "data"
PLACE: Final = f"{PARENT}/place"
"""The path that programs act on, in the private directory of each run."""
SIBLING: Final = f"{PARENT}/beside"
"""The target of links."""
_MEMORY: Final = "/dev/shm"
"""A file system in memory, where thousands of small trees are cheap, if the system has one."""
_NOBODY: Final = 65534
_FOLDERS: Final = 0o40755
_OUT_OF_TIME: Final = 5
"""The number of seconds that a program may run, and that it may sleep."""


class Outcome(NamedTuple):
    """The outcome of a run.

    Attributes:
        result: The return value of the program.
        printed: Its standard output.
        error: The type of the exception that ended it, and its errno.
        tree: Every path that exists afterward, with its type, mode, and content.
        left_open: The number of files that it did not close.
    """

    result: str
    printed: str
    error: str
    tree: tuple[str, ...]
    left_open: int


class Difference(NamedTuple):
    """A difference between the outcomes of two programs."""

    name: str
    state: str
    before: Outcome
    after: Outcome

    def __str__(self) -> str:
        """Return the fields that differ, with both values."""
        rows = [
            f"  {field}: {old!r} -> {new!r}"
            for field, old, new in zip(Outcome._fields, self.before, self.after, strict=True)
            if old != new
        ]
        return "\n".join([f"{self.name}, {self.state}:", *rows])


# States: each function creates the files that exist when a program starts, in the current directory.


def _nothing() -> None:
    return


def _data() -> None:
    os.mkdir(PARENT)


def _file(path: str = PLACE) -> None:
    if not os.path.isdir(PARENT):
        os.mkdir(PARENT)
    _write(path)


def _write(path: str) -> None:
    Path(path).write_text("old")


def _directory(path: str = PLACE) -> None:
    os.makedirs(path)


def _full(path: str = PLACE) -> None:
    os.makedirs(path)
    _file(f"{path}/kept.txt")


def _link(make: Callable[[str], None] | None, target: str = "beside") -> None:
    if make is not None:
        make(SIBLING)
    elif not os.path.isdir(PARENT):
        os.mkdir(PARENT)
    os.symlink(target, PLACE)


def _fifo() -> None:
    _data()
    os.mkfifo(PLACE)


def _linked_parent(target: str) -> None:
    if target == "real":
        os.mkdir(target)
    os.symlink(target, PARENT)


def _with_mode(mode: int, make: Callable[[], None], path: str = PARENT) -> None:
    make()
    os.chmod(path, mode)


def _refused(number: int) -> None:
    """A directory on a filesystem that checks permissions before existence, as NFS does."""
    _directory()

    def mkdir(path: Any, *_: object, **__: object) -> NoReturn:
        raise OSError(number, os.strerror(number), path)

    os.mkdir = mkdir


STATES: Final[Mapping[str, Callable[[], None]]] = {
    "absent": _data,
    "parent absent": _nothing,
    "file": _file,
    "directory": _directory,
    "directory with a file": _full,
    "link to a directory": lambda: _link(_directory),
    "link to a file": lambda: _link(_file),
    "dangling link": lambda: _link(None),
    "link to itself": lambda: _link(None, "place"),
    "fifo": _fifo,
    "parent is a file": lambda: _write(PARENT),
    "parent is a dangling link": lambda: _linked_parent("nowhere"),
    "parent is a link": lambda: _linked_parent("real"),
    "read-only parent": lambda: _with_mode(0o555, _data),
    "file, read-only parent": lambda: _with_mode(0o555, _file),
    "directory, read-only parent": lambda: _with_mode(0o555, _directory),
    "inaccessible parent, absent": lambda: _with_mode(0, _data),
    "inaccessible parent, file": lambda: _with_mode(0, _file),
    "inaccessible parent, directory": lambda: _with_mode(0, _directory),
    "unreadable file": lambda: _with_mode(0, _file, PLACE),
    "inaccessible directory": lambda: _with_mode(0, _full, PLACE),
    "directory, mkdir fails with EACCES": lambda: _refused(errno.EACCES),
    "directory, mkdir fails with EROFS": lambda: _refused(errno.EROFS),
}
"""The possible states of `PLACE` when a program starts."""


# Programs.


def repaired(directory: Path, text: str) -> Patch:
    """Return the result of `fix` on a program, in a separate project."""
    directory.mkdir()
    (directory / "pyproject.toml").write_text("[tool.fsrace-lint]\n")
    (directory / "main.py").write_text(text)
    found, checked = run(directory)
    patches = repair.repair(found, checked, unsafe=False)
    return patches[0] if patches else NOTHING_TO_FIX


NOTHING_TO_FIX: Final[Any] = types.SimpleNamespace(before=b"", after=b"", applied=(), refused=())


def differences(
    before: str,
    after: str,
    drives: Mapping[str, Callable[[dict[str, Any]], object]],
    states: Sequence[str] = tuple(STATES),
    *,
    reload: bool = True,
) -> list[Difference]:
    """Run two programs separately from each state, and return the differences between them.

    Args:
        before: The first program.
        after: The second program.
        drives: Functions that use the names of a loaded program.
        states: The names of the initial states.
        reload: Whether to load a program again for each run, as required if its module code has effects.

    Returns:
        The differences, with the names of `drives`.
    """
    both = outcomes([before, after], drives, states, reload=reload)
    return [Difference(name, state, old, new) for (name, state), (old, new) in both.items() if old != new]


def outcomes(
    programs: Sequence[str],
    drives: Mapping[str, Callable[[dict[str, Any]], object]],
    states: Sequence[str] = tuple(STATES),
    *,
    reload: bool = True,
) -> dict[tuple[str, str], tuple[Outcome, ...]]:
    """Run programs in a separate process, as the user nobody if this process is root.

    Returns:
        The outcome of each program, by the name of the drive and the state.
    """
    with tempfile.TemporaryDirectory(dir=_MEMORY if os.path.isdir(_MEMORY) else None) as directory:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _serve(directory, writing, programs, drives, states, reload=reload)
        os.close(writing)
        with os.fdopen(reading) as stream:
            text = stream.read()
        os.waitpid(child, 0)
    found = iter(json.loads(text))
    return {
        (name, state): tuple(
            Outcome(result, printed, error, tuple(tree), left_open)
            for result, printed, error, tree, left_open in next(found)
        )
        for name in drives
        for state in states
    }


def _serve(
    directory: str,
    writing: int,
    programs: Sequence[str],
    drives: Mapping[str, Callable[[dict[str, Any]], object]],
    states: Sequence[str],
    *,
    reload: bool,
) -> NoReturn:
    """Run all programs in this process, and exit."""
    try:
        os.chdir(directory)
        _become_nobody()
        os.umask(0o022)
        warnings.simplefilter("ignore")
        gc.freeze()
        sys.meta_path.append(_Libraries())
        loaders = [_loader(text, reload=reload) for text in programs]
        found = [
            [_outcome(load, drive, STATES[state]) for load in loaders]
            for drive in drives.values()
            for state in states
        ]
        with os.fdopen(writing, "w") as stream:
            json.dump(found, stream)
    except BaseException:  # the waiting process raises its own error
        traceback.print_exc()
    finally:
        os._exit(0)


def _loader(text: str, *, reload: bool) -> Callable[[], dict[str, Any]]:
    """Return a function that loads a program: again for each run, or only once if loading has no effects."""
    code = compile(text, "program.py", "exec")

    def load() -> dict[str, Any]:
        page: dict[str, Any] = {"__name__": "program"}
        exec(code, page)
        return page

    if reload:
        return load
    loaded = load()
    return lambda: loaded


class _Anything(str):
    """A path that is also an object, a mapping, and a list of such paths."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) if isinstance(key, slice) else self

    def __iter__(self) -> Iterator[Any]:
        return iter([self])

    def __call__(self, *_: object, **__: object) -> Any:
        return self


def called(name: str) -> Callable[[dict[str, Any]], object]:
    """Return a drive that calls a function or method, with the path as every required argument."""

    def drive(page: dict[str, Any]) -> object:
        *owners, last = name.split(".")
        if last == "<module>":
            return None
        found: Any = types.SimpleNamespace(**page)
        for owner in owners:
            found = getattr(found, owner)
            if not isinstance(found, type):
                return _given(found)
            found = _given(found)
        return _given(getattr(found, last))

    return drive


def _given(function: Any) -> object:
    parameters = inspect.signature(function).parameters.values()
    wanted = [
        each
        for each in parameters
        if each.default is each.empty and each.kind in {each.POSITIONAL_OR_KEYWORD, each.POSITIONAL_ONLY}
    ]
    arguments = [Path(PLACE) if "Path" in str(each.annotation) else _Anything(PLACE) for each in wanted]
    result = function(*arguments)
    if not inspect.iscoroutine(result):
        return result
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        return loop.run_until_complete(result)


class _Libraries(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every library that is not installed, as a mock with all names."""

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec:
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = mock.MagicMock(spec=None, name=spec.name, __path__=[], __spec__=spec)
        return cast("types.ModuleType", module)

    def exec_module(self, module: types.ModuleType) -> None:
        return


def _become_nobody() -> None:
    """Switch to a user who is subject to file permissions."""
    if os.geteuid() == 0:
        os.chown(".", _NOBODY, _NOBODY)
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)


def _outcome(
    load: Callable[[], dict[str, Any]], drive: Callable[[dict[str, Any]], object], state: Callable[[], None]
) -> Outcome:
    mkdir = os.mkdir
    os.mkdir("run")
    os.chdir("run")
    result, error, printed = "", "", io.StringIO()
    opened = _open_files()
    try:
        state()
        with contextlib.redirect_stdout(printed), _limited():
            result = repr(drive(load()))
    except BaseException as raised:  # any exception can end the program
        number = getattr(raised, "errno", None)
        error = f"{type(raised).__name__} {number}" if number else type(raised).__name__
    os.mkdir = mkdir
    left_open = _open_files() - opened
    tree = tuple(_removed("."))
    os.chdir("..")
    os.rmdir("run")
    return Outcome(result, printed.getvalue(), error, tree, left_open)


def _open_files() -> int:
    return len(os.listdir("/dev/fd"))


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Stop a program that waits for another process; sleeping takes no time."""
    slept = 0.0

    def end(*_: object) -> NoReturn:
        raise TimeoutError

    def sleep(seconds: float) -> None:
        nonlocal slept
        slept += seconds
        if slept > _OUT_OF_TIME:
            end()

    signal.signal(signal.SIGALRM, end)
    signal.alarm(_OUT_OF_TIME)
    try:
        with mock.patch("time.sleep", sleep):
            yield
    finally:
        signal.alarm(0)


def _removed(directory: str) -> Iterator[str]:
    """Yield a description of each path in a directory, and remove the path."""
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        mode = os.lstat(path).st_mode
        entry = f"{path[2:]} {stat.filemode(mode)}"
        if stat.S_ISLNK(mode):
            yield f"{entry} -> {os.readlink(path)}"
        elif stat.S_ISDIR(mode):
            os.chmod(path, 0o755)
            yield entry
            yield from _removed(path)
        elif stat.S_ISREG(mode):
            os.chmod(path, 0o644)
            yield f"{entry} {Path(path).read_bytes()!r}"
        else:
            yield entry
        (os.rmdir if stat.S_ISDIR(mode) else os.unlink)(path)
