"""Puts the stopping calls in the place of Python's own, wherever these are kept, and takes them out again."""

from __future__ import annotations

import contextlib
import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from typing import TYPE_CHECKING, Any, NamedTuple

from fsrace_lint.explore.process.clock import Clock
from fsrace_lint.explore.process.descriptors import DescriptorCalls
from fsrace_lint.explore.process.files import Files
from fsrace_lint.explore.process.gate import Gate
from fsrace_lint.explore.process.listings import Listings
from fsrace_lint.explore.process.opaque import Opaque
from fsrace_lint.explore.process.paths import PathCalls
from fsrace_lint.explore.process.questions import Questions

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = __name__.partition(".explore.")[0] + ".explore"
"""Our own modules, which go on with the functions as they were."""
HOLDERS = (pathlib, glob, shutil, tempfile, zipfile)
"""Modules that are to be loaded before, or whose classes keep functions of `os`."""


class _Site(NamedTuple):
    holder: Any
    name: str
    kept: Any
    function: Any


@contextlib.contextmanager
def installed(start: float) -> Iterator[Gate]:
    """Replace every call that is to stop, in all loaded modules; in this process they still go through.

    Args:
        start: The wall clock of the processes at their start.

    Yields:
        Where the calls will stop, in a process that begins it.
    """
    gate = Gate()
    calls = DescriptorCalls(gate)
    rooms = (
        PathCalls(gate),
        Questions(gate),
        Listings(gate),
        calls,
        Files(gate, calls),
        Clock(gate, start),
        Opaque(gate),
    )
    table: dict[Any, Any] = {}
    for room in rooms:
        table.update(room.all())
    sites = _find_sites(table)
    supported = [os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids]
    added = [{table[function] for function in functions if function in table} for functions in supported]
    try:
        for site in sites:
            replacement = table[site.function]
            is_static = isinstance(site.holder, type) and site.holder is not subprocess.Popen
            setattr(site.holder, site.name, staticmethod(replacement) if is_static else replacement)
        for functions, more in zip(supported, added, strict=True):
            functions.update(more)
        yield gate
    finally:
        for site in sites:
            setattr(site.holder, site.name, site.kept)
        for functions, more in zip(supported, added, strict=True):
            functions.difference_update(more)


def _find_sites(table: dict[Any, Any]) -> list[_Site]:
    """Find every name under which one of these functions is kept, in modules and in classes of some."""
    by_id = {id(function): function for function in table}
    popen: Any = subprocess.Popen
    found = [_Site(popen, "__init__", popen.__init__, popen.__init__)]
    modules: list[tuple[str, Any]] = list(sys.modules.items())
    for module_name, module in modules:
        if module is None or module_name == "posix" or module_name.startswith((OURS, "_frozen_importlib")):
            continue
        for name, value in list(vars(module).items()):
            if id(value) in by_id:
                found.append(_Site(module, name, value, value))
    for module in HOLDERS:
        for kept in vars(module).values():
            if isinstance(kept, type):
                for name, value in vars(kept).items():
                    function = getattr(value, "__func__", value)
                    if id(function) in by_id:
                        found.append(_Site(kept, name, value, function))
    return found
