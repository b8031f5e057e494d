"""The life of one process of a scenario."""

from __future__ import annotations

import gc
import glob
import os
import pathlib
import pickle
import posix
import random
import shutil
import signal
import sys
import tempfile
import traceback
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from fsrace_lint.explore.process.clock import Clock
from fsrace_lint.explore.process.collectives import Collectives
from fsrace_lint.explore.process.descriptors import DescriptorCalls
from fsrace_lint.explore.process.files import Files
from fsrace_lint.explore.process.gate import HIDDEN, Gate
from fsrace_lint.explore.process.opaque import Opaque
from fsrace_lint.explore.process.paths import PathCalls

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OURS = __name__.partition(".explore.")[0] + ".explore"
"""Our own modules, which go on with the functions as they were."""
HOLDERS = (pathlib, glob, shutil, tempfile)
"""Modules whose classes keep functions of `os`."""


class Told(NamedTuple):
    """What a process is told when it is started.

    Attributes:
        function: What to run.
        top: The folder below which calls are watched; the scenario's root is in it.
        rank: Which process this is.
        size: How many there are.
        start: The wall clock at the start.
        distributed: Whether `torch.distributed` is stood in for.
    """

    function: Callable[[Path, int], object]
    top: str
    rank: int
    size: int
    start: float
    distributed: bool


class Site(NamedTuple):
    """Where a function is kept under some name."""

    holder: Any
    name: str
    function: Any


def originals() -> dict[Any, Any]:
    """Give all that is replaced, by something that never runs."""
    return replacements(Gate(-1, -1, "/nowhere", 0), 0.0)[0]


def replacements(gate: Gate, start: float) -> tuple[dict[Any, Any], Opaque]:
    """Give what replaces what for a process.

    Args:
        gate: Where its calls stop.
        start: Its wall clock at the start.

    Returns:
        The replacements; the opaque calls, which have more to install.
    """
    calls, clock, opaque = DescriptorCalls(gate), Clock(gate, start), Opaque(gate)
    table = {**PathCalls(gate).all(), **calls.all(), **Files(gate, calls).all(), **clock.all(), **opaque.all()}
    return table, opaque


def find_sites(wanted: dict[Any, Any]) -> list[Site]:
    """Find every name in loaded modules under which one of these functions is kept.

    Args:
        wanted: The functions.

    Returns:
        The places, to be overwritten in each process.
    """
    by_id = {id(function): function for function in wanted}
    found = []
    for module_name, module in list(sys.modules.items()):
        if module is None or module_name == "posix" or module_name.startswith((OURS, "_frozen_importlib")):
            continue
        for name, value in list(vars(module).items()):
            if id(value) in by_id:
                found.append(Site(module, name, value))
    for module in HOLDERS:
        for kept in vars(module).values():
            if isinstance(kept, type):
                for name, value in vars(kept).items():
                    function = getattr(value, "__func__", value)
                    if id(function) in by_id:
                        found.append(Site(kept, name, function))
    return found


def live(told: Told, reader: int, writer: int, sites: list[Site]) -> NoReturn:
    """Be a process of the job: run the function, and end.

    Args:
        told: What to do.
        reader: Where the scheduler is heard.
        writer: Where it is spoken to.
        sites: What is to be replaced.
    """
    sys.settrace(None)
    gc.disable()
    posix.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gate = Gate(reader, writer, told.top, told.rank)
    root = pathlib.Path(told.top, "root")
    posix.chdir(root)
    os.environ.update(_environment(told))
    tempfile.tempdir = f"{told.top}/tmp"
    random.seed(0)
    if told.distributed:
        Collectives(gate, told.size).install()
    _replace(gate, told.start, sites)
    try:
        value = told.function(root, told.rank)
        _drop_locks(gate)
    except BaseException as error:  # noqa: BLE001  # whatever it is, it is the outcome
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(HIDDEN[0])]
        lines = traceback.format_list(frames) + traceback.format_exception_only(type(error), error)
        kinds = [kind.__name__ for kind in type(error).__mro__[:-1]]
        _try_to_drop_locks(gate)
        gate.end(error=kinds, message=str(error), trace="".join(lines))
    gate.end(value=_pickled(value), shown=repr(value))


def _replace(gate: Gate, start: float, sites: list[Site]) -> None:
    table, opaque = replacements(gate, start)
    for holder, name, function in sites:
        replacement = table[function]
        setattr(holder, name, staticmethod(replacement) if isinstance(holder, type) else replacement)
    for supported in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        supported.update(table[function] for function in list(supported) if function in table)
    opaque.install()


def _environment(told: Told) -> dict[str, str]:
    rank, size = str(told.rank), str(told.size)
    return {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": size,
        "GROUP_RANK": "0",
        "NODE_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        "HOME": f"{told.top}/home",
        "TMPDIR": f"{told.top}/tmp",
    }


def _drop_locks(gate: Gate) -> None:
    for descriptor, file in list(gate.files.items()):
        if file.locked or gate.record_locks:
            os.close(descriptor)


def _try_to_drop_locks(gate: Gate) -> None:
    try:
        _drop_locks(gate)
    except OSError:
        return


def _pickled(value: object) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception:  # noqa: BLE001  # whatever an object's own reduction raises: it is compared as text
        return b""
