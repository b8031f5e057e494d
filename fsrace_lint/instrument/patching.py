"""Replaces Python's filesystem functions with intercepted ones wherever they are stored; restores them."""

from __future__ import annotations

import contextlib
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fsrace_lint.instrument.data_calls import DataCalls
from fsrace_lint.instrument.descriptor_calls import DescriptorCalls
from fsrace_lint.instrument.file_objects import FileObjects
from fsrace_lint.instrument.holders import Holders, Site
from fsrace_lint.instrument.kernel import posix
from fsrace_lint.instrument.listing_calls import ListingCalls
from fsrace_lint.instrument.lock_calls import LockCalls
from fsrace_lint.instrument.lookup_calls import LookupCalls
from fsrace_lint.instrument.opaque_calls import OpaqueCalls
from fsrace_lint.instrument.path_calls import PathCalls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.instrument.file_table import FileTable
    from fsrace_lint.instrument.interception import Interceptor


AUDITED: Final = (
    "open", "open_code", "chdir", "listdir", "scandir", "mkdir", "rmdir", "remove", "unlink", "rename",
    "replace", "link", "symlink", "truncate", "ftruncate", "utime", "chmod", "fchmod", "lchmod", "chown",
    "fchown", "lchown", "setxattr", "removexattr", "flock", "lockf", "posix_spawn", "posix_spawnp", "system",
    "fork", "forkpty",
)  # fmt: skip
"""Functions whose calls `sys.addaudithook()` reports."""


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
def replaced(table: dict[Any, Any], exempt: tuple[str, ...]) -> Iterator[list[str]]:
    """Replace functions wherever they are stored.

    Args:
        table: The replacements, by original function.
        exempt: Prefixes of the names of modules that keep the original functions.

    Yields:
        Descriptions of the objects that keep an original function, because they cannot be changed.
    """
    supported = [os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids]
    added = [{table[call] for call in calls if call in table} for calls in supported]
    own = (*exempt, str(__package__))
    found = Holders(table, own, [vars(posix), *supported])
    sites = [*found.sites, *_classes(table, own)]
    try:
        for site in sites:
            site.put(site.replacement)
        for calls, more in zip(supported, added, strict=True):
            calls.update(more)
        yield found.fixed(AUDITED)
    finally:
        for site in reversed(sites):
            site.put(site.kept)
        for calls, more in zip(supported, added, strict=True):
            calls.difference_update(more)


def _classes(table: dict[Any, Any], exempt: tuple[str, ...]) -> Iterator[Site]:
    """Find the modules that store a class to replace; in other places, subclasses need the original."""
    classes = {id(old): new for old, new in table.items() if isinstance(old, type)}
    modules: list[tuple[str, Any]] = list(sys.modules.items())
    for module_name, module in modules:
        if module is None or module_name.startswith((*exempt, "_frozen_importlib")):
            continue
        for name, value in list(vars(module).items()):
            if id(value) in classes:
                yield Site(partial(setattr, module, name), value, classes[id(value)])
