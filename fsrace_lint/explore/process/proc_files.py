"""The directory /proc as a process of the job sees it: its neighbors on the node, by their process ids."""

from __future__ import annotations

import io
import os
import re
import stat
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fsrace_lint.explore.identity import LAUNCHER
from fsrace_lint.explore.messages import Census, Living
from fsrace_lint.explore.process.process_calls import INIT, is_child
from fsrace_lint.instrument.kernel import posix
from fsrace_lint.instrument.listing_calls import DirectoryEntry, Entries

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore.process.gate import Gate
    from fsrace_lint.instrument.model import Answer
    from fsrace_lint.instrument.recorder import Recorder

ROOT: Final = "/proc"
_PLACE: Final = re.compile(rf"{ROOT}/+(self|thread-self|\d+)(/.*)?")
_OPENING: Final = (posix.open, io.open)
_LISTING: Final = (posix.listdir, posix.scandir)
_PATHS: Final = (
    *_OPENING,
    *_LISTING,
    posix.stat,
    posix.lstat,
    posix.access,
    posix.readlink,
    os.path.exists,
    os.path.lexists,
    os.path.isfile,
    os.path.isdir,
    os.path.islink,
)
_STEADY: Final = ("", "/stat", "/status", "/cmdline", "/comm", "/environ", "/exe", "/cwd", "/root")
"""The files of a process that are the same in every run."""
_VOLATILE: Final = re.compile(r"(?m)^(\w*(?:Vm|Rss|Hugetlb|ctxt)\w*):(\s*)\d+")
_STATUS: Final = {"pid": "Tgid|Pid|NStgid|NSpid", "parent": "PPid|NSpgid|NSsid"}
_open = io.open
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_FIELDS_OF_STAT: Final = 52


class ProcFiles:
    """Calls on paths below /proc, with the process ids of the job in place of the real ones.

    Args:
        gate: The gate where the calls stop.
        table: The replacements of the calls on all other paths.
    """

    def __init__(self, gate: Gate, table: dict[Any, Any]) -> None:
        self._gate = gate
        self._table = table

    def replacements(self) -> dict[Any, Any]:
        """Return the replacement of each original function."""
        return {original: self._with_proc(original, self._table[original]) for original in _PATHS}

    def _with_proc(self, original: Callable[..., Any], usual: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            path = args[0] if args else options.get("file", options.get("path", ""))
            text = path if isinstance(path, str) else _text(path)
            if not text.startswith(ROOT) or not self._gate.is_active():
                return usual(*args, **options)
            rest = (args[1:], {name: each for name, each in options.items() if name not in ("file", "path")})
            return self._called(original, path, os.path.normpath(text), rest)

        return call

    def _called(self, original: Callable[..., Any], path: Any, text: str, rest: Any) -> Any:
        if text == ROOT and original in _LISTING:
            return self._all(original, encode=isinstance(path, bytes))
        found = _PLACE.fullmatch(text)
        if found is None:
            return original(path, *rest[0], **rest[1])
        who, below = found[1], found[2] or ""
        own = self._gate.identity.pid
        if not who.isdigit() or int(who) == own:
            return self._own(original, text, below, rest)
        pid = int(who)
        if pid == INIT or is_child(pid):
            return original(path, *rest[0], **rest[1])
        if pid == LAUNCHER:
            return self._of(Living(LAUNCHER, posix.getppid(), 0.0), original, path, below, rest)

        def act(recorder: Recorder, _: Answer | None) -> Any:
            recorder.reads("process", pid, str(self._gate.identity.node))
            there = self._gate.living.get(pid)
            recorder.result = "gone" if there is None else "alive"
            if there is not None and below not in _STEADY:
                recorder.unobserved.append(f"{ROOT}/<pid>{below} is that of the real process")
            # no kernel gives a process this id
            there = there or Living(pid, LAUNCHER, 0.0)
            return self._of(there, original, path, below, rest)

        return self._gate.wait(original.__name__, text, act, Census())

    def _own(self, original: Callable[..., Any], text: str, below: str, rest: Any) -> Any:
        if original is posix.readlink and not below and "self" in text:
            return str(self._gate.identity.pid)
        own = Living(self._gate.identity.pid, posix.getpid(), self._gate.started)
        return self._of(own, original, text, below, rest)

    def _of(self, process: Living, original: Callable[..., Any], path: Any, below: str, rest: Any) -> Any:
        place = f"{ROOT}/{process.real}{below}"
        try:
            if original in _OPENING and below in ("/stat", "/status"):
                content = (_stat if below == "/stat" else _status)(process, self._gate.start)
                if process.pid == self._gate.identity.pid:
                    content = content.replace(" S ", " R ", 1).replace("S (sleeping)", "R (running)")
                return _opened(original, content, rest)
            found = original(os.fsencode(place) if isinstance(path, bytes) else place, *rest[0], **rest[1])
        except OSError as error:
            error.filename = path
            raise
        if isinstance(found, os.stat_result) and not below:
            return _as_old_as(process, found, self._gate.start)
        return found

    def _all(self, original: Callable[..., Any], *, encode: bool) -> Any:
        def act(recorder: Recorder, _: Answer | None) -> list[int]:
            recorder.reads("processes", 0, str(self._gate.identity.node))
            recorder.result = ", ".join(map(str, sorted(self._gate.living)))
            return sorted(self._gate.living)

        pids = [INIT, LAUNCHER, *self._gate.wait("listdir", ROOT, act, Census())]
        with posix.scandir(ROOT) as entries:
            others = [
                entry.name for entry in entries if not entry.name.isdigit() or is_child(int(entry.name))
            ]
        names = sorted({*map(str, pids), *others})
        if original is posix.listdir:
            return [os.fsencode(name) for name in names] if encode else names
        made = partial(DirectoryEntry, folder=ROOT, descriptor=None, encode=encode)
        return Entries([made(name, stat.S_IFDIR if name.isdigit() else stat.S_IFREG) for name in names])


def _text(path: Any) -> str:
    try:
        return os.fsdecode(path)
    except TypeError:  # a descriptor, or an error that the original function reports
        return ""


def _opened(original: Callable[..., Any], content: str, rest: Any) -> Any:
    descriptor = os.memfd_create("proc")
    posix.write(descriptor, content.encode())
    posix.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor if original is posix.open else original(descriptor, *rest[0], **rest[1])


def _read(process: Living, name: str) -> str:
    with _open(f"{ROOT}/{process.real}/{name}", errors="surrogateescape") as file:
        return file.read()


def _stat(process: Living, start: float) -> str:
    """Return the file `stat` of proc(5): everything that a run cannot repeat is 0."""
    fields = [process.pid, f"({_read(process, 'comm').strip()})", "S", LAUNCHER, LAUNCHER, LAUNCHER, 0, -1]
    numbers = [0] * (_FIELDS_OF_STAT - len(fields))
    numbers[20 - 9] = 1  # the number of threads
    numbers[22 - 9] = int((start + process.started - _boot_time()) * _TICKS)
    return " ".join(map(str, [*fields, *numbers])) + "\n"


def _status(process: Living, _: float) -> str:
    """Return the file `status` of proc(5): everything that a run cannot repeat is 0."""
    text = _VOLATILE.sub(r"\1:\g<2>0", _read(process, "status"))
    for who, names in _STATUS.items():
        pid = process.pid if who == "pid" else LAUNCHER
        text = re.sub(rf"(?m)^({names}):.*$", rf"\1:\t{pid}", text)
    return re.sub(r"(?m)^State:.*$", "State:\tS (sleeping)", text)


def _boot_time() -> int:
    with _open(f"{ROOT}/stat") as file:
        return int(next(line for line in file if line.startswith("btime ")).split()[1])


def _as_old_as(process: Living, found: os.stat_result, start: float) -> os.stat_result:
    moment = start + process.started
    times = dict.fromkeys(("st_atime", "st_mtime", "st_ctime"), moment)
    times |= {f"{name}_ns": int(moment * 1e9) for name in list(times)}
    return os.stat_result((*found[:7], *[int(moment)] * 3), times)
