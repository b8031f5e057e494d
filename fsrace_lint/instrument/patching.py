"""Replaces Python's filesystem functions with intercepted ones wherever they are stored; restores them."""

from __future__ import annotations

import contextlib
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

from fsrace_lint.instrument.data_calls import DataCalls
from fsrace_lint.instrument.descriptor_calls import DescriptorCalls
from fsrace_lint.instrument.file_objects import FileObjects
from fsrace_lint.instrument.listing_calls import ListingCalls
from fsrace_lint.instrument.lock_calls import LockCalls
from fsrace_lint.instrument.lookup_calls import LookupCalls
from fsrace_lint.instrument.opaque_calls import OpaqueCalls
from fsrace_lint.instrument.path_calls import PathCalls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fsrace_lint.instrument.file_table import FileTable
    from fsrace_lint.instrument.interception import Interceptor

HOLDERS = (pathlib, glob, shutil, tempfile, zipfile)
"""Modules that must be loaded before the replacement, or whose classes store functions of `os`."""


class _Site(NamedTuple):
    """A place that stores a function, and the setter that replaces it."""

    put: Callable[[Any], None]
    kept: Any
    replacement: Any


def replacements(interceptor: Interceptor, files: FileTable) -> dict[Any, Any]:
    """Return the replacement of each original function, so that every filesystem call is intercepted.

    Args:
        interceptor: The interceptor of the calls.
        files: The open files of the process.

    Returns:
        The replacements, by original function.
    """
    kinds = (PathCalls, LookupCalls, ListingCalls, LockCalls, OpaqueCalls)
    calls, data = DescriptorCalls(interceptor, files), DataCalls(interceptor, files)
    table = calls.replacements() | data.replacements()
    table |= FileObjects(interceptor, files, calls, data).replacements()
    for kind in kinds:
        table |= kind(interceptor, files).replacements()
    return table


@contextlib.contextmanager
def replaced(
    table: dict[Any, Any], function: Callable[..., object], exempt: tuple[str, ...]
) -> Iterator[None]:
    """Replace functions in all loaded modules.

    Args:
        table: The replacements, by original function.
        function: The function that will run; functions that it has captured are replaced too.
        exempt: Prefixes of the names of modules that keep the original functions.
    """
    supported = [os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids]
    added = [{table[call] for call in calls if call in table} for calls in supported]
    by_id = {id(call): replacement for call, replacement in table.items()}
    own = (*exempt, __package__, "_frozen_importlib")
    sites = [*_in_modules(by_id, own), *_in_classes(by_id), *_in_function(function, by_id)]
    try:
        for site in sites:
            site.put(site.replacement)
        for calls, more in zip(supported, added, strict=True):
            calls.update(more)
        yield
    finally:
        for site in sites:
            site.put(site.kept)
        for calls, more in zip(supported, added, strict=True):
            calls.difference_update(more)


def _in_modules(by_id: dict[int, Any], exempt: tuple[str, ...]) -> Iterator[_Site]:
    modules: list[tuple[str, Any]] = list(sys.modules.items())
    for module_name, module in modules:
        if module is None or module_name == "posix" or module_name.startswith(exempt):
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
    """Find functions that a function, and the functions that it has captured, store in cells and defaults."""
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
