"""Puts the stopping calls in the place of Python's own, wherever these are kept, and takes them out again."""

from __future__ import annotations

import contextlib
import copyreg
import datetime
import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import zipfile
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from fsrace_lint.explore.process.clock import Clock, reduced
from fsrace_lint.explore.process.descriptors import DescriptorCalls
from fsrace_lint.explore.process.files import Files
from fsrace_lint.explore.process.gate import Gate
from fsrace_lint.explore.process.listings import ListingCalls
from fsrace_lint.explore.process.locks import LockCalls
from fsrace_lint.explore.process.opaque import OpaqueCalls
from fsrace_lint.explore.process.paths import PathCalls
from fsrace_lint.explore.process.questions import Questions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OURS = __name__.partition(".explore.")[0] + ".explore"
"""Our own modules, which go on with the functions as they were."""
_datetime = datetime.datetime
HOLDERS = (pathlib, glob, shutil, tempfile, zipfile)
"""Modules that are to be loaded before, or whose classes keep functions of `os`."""


class _Site(NamedTuple):
    """Where a function is kept, with what puts another in its place."""

    put: Callable[[Any], None]
    kept: Any
    replacement: Any


@contextlib.contextmanager
def installed(start: float, function: Callable[..., object]) -> Iterator[Gate]:
    """Replace every call that is to stop, in all loaded modules; in this process they still go through.

    Args:
        start: The wall clock of the processes at their start.
        function: What they run: calls that it has captured are replaced too.

    Yields:
        Where the calls will stop, in a process that begins it.
    """
    gate = Gate(start)
    table = _table(gate)
    supported = [os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids]
    added = [{table[call] for call in calls if call in table} for calls in supported]
    by_id = {id(call): replacement for call, replacement in table.items()}
    sites = [*_in_modules(by_id), *_in_classes(by_id), *_in_function(function, by_id)]
    # moments that C code makes are of the class as it was
    copyreg.dispatch_table[_datetime] = reduced
    try:
        for site in sites:
            site.put(site.replacement)
        for calls, more in zip(supported, added, strict=True):
            calls.update(more)
        yield gate
    finally:
        copyreg.dispatch_table.pop(_datetime, None)
        for site in sites:
            site.put(site.kept)
        for calls, more in zip(supported, added, strict=True):
            calls.difference_update(more)


def _table(gate: Gate) -> dict[Any, Any]:
    """Give what replaces what."""
    calls = DescriptorCalls(gate)
    others = (LockCalls(gate), Files(gate, calls), Clock(gate), OpaqueCalls(gate))
    table: dict[Any, Any] = {}
    for room in (PathCalls(gate), Questions(gate), ListingCalls(gate), calls, *others):
        table.update(room.all())
    return table


def _in_modules(by_id: dict[int, Any]) -> Iterator[_Site]:
    modules: list[tuple[str, Any]] = list(sys.modules.items())
    for module_name, module in modules:
        if module is None or module_name == "posix" or module_name.startswith((OURS, "_frozen_importlib")):
            continue
        for name, value in list(vars(module).items()):
            if id(value) in by_id:
                yield _Site(partial(setattr, module, name), value, by_id[id(value)])


def _in_classes(by_id: dict[int, Any]) -> Iterator[_Site]:
    popen: Any = subprocess.Popen
    yield _Site(partial(setattr, popen, "__init__"), popen.__init__, by_id[id(popen.__init__)])
    for module in HOLDERS:
        for kept in vars(module).values():
            for name, value in list(vars(kept).items()) if isinstance(kept, type) else ():
                function = getattr(value, "__func__", value)
                if id(function) in by_id:
                    yield _Site(partial(setattr, kept, name), value, staticmethod(by_id[id(function)]))


def _in_function(function: Any, by_id: dict[int, Any], depth: int = 4) -> Iterator[_Site]:
    """Find what a function, and those that it has captured, keep in cells and in defaults."""
    if not isinstance(function, types.FunctionType) or not depth:
        return
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        if id(value) in by_id:
            yield _Site(partial(setattr, cell, "cell_contents"), value, by_id[id(value)])
        else:
            yield from _in_function(value, by_id, depth - 1)
    defaults = function.__defaults__
    if defaults and any(id(value) in by_id for value in defaults):
        replaced = tuple(by_id.get(id(value), value) for value in defaults)
        yield _Site(partial(setattr, function, "__defaults__"), defaults, replaced)
