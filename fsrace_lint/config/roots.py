"""The root of a project, which is the same for all ways to check a file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fsrace_lint.config.tables import FILE, OWN_FILES, read_nested_table, settings_file
from fsrace_lint.config.validation import SettingsError
from fsrace_lint.files.bounded_read import read

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

_GIT: Final = ".git"
SETTINGS_FILES: Final = (*OWN_FILES, FILE)
ROOT_MARKERS: Final = (*SETTINGS_FILES, _GIT, "setup.py", "setup.cfg")
_OF_SUBMODULE: Final = re.compile(rb"[/\\]\.git[/\\](worktrees[/\\][^/\\]+[/\\])?modules[/\\]")
"""In the `.git` file of a submodule, which names a directory of the repository above."""


def find_root(path: Path, named: Iterable[Path] = ()) -> Path:
    """Find the project that a path belongs to.

    Args:
        path: A file or a directory, which need not exist.
        named: The paths that the user named.

    Returns:
        The top directory of the git repository. A submodule belongs to the repository around it. Without
        git, the outermost directory upward with a file of `ROOT_MARKERS`. Without these, the outermost of
        the named directories, or the directory of the path. The nearest table that sets `root` takes
        precedence.
    """
    folder = Path(os.path.abspath(path))  # noqa: PTH100  # links are not resolved
    folder = folder if folder.is_dir() else folder.parent
    above = (folder, *folder.parents)
    top = _repository(above) or next(filter(is_project, reversed(above)), None)
    if top is None:
        around = {Path(os.path.abspath(name)) for name in named}  # noqa: PTH100  # links are not resolved
        return next((candidate for candidate in reversed(above) if candidate in around), folder)
    below = above[: above.index(top) + 1]
    return next((root for candidate in below if (root := _root_setting(candidate))), top)


def is_other(folder: Path, names: Collection[str], root: Path) -> bool:
    """Return whether a directory below the root of a project belongs to another project.

    Args:
        folder: The directory, whose parent belongs to the project.
        names: The names of its entries. One of them is a marker.
        root: The root of the project.
    """
    has_table = not frozenset(SETTINGS_FILES).isdisjoint(names)
    has_own_root = _GIT in names or (has_table and _root_setting(folder) is not None)
    return (has_own_root or not is_project(root)) and find_root(folder) != root


def is_project(root: Path) -> bool:
    """Return whether a directory contains a file that marks a project."""
    return any(os.path.lexists(root / marker) for marker in ROOT_MARKERS)


def _repository(above: Sequence[Path]) -> Path | None:
    """Return the top directory of the repository that contains the first of some nested directories."""
    found = None
    for folder in above:
        if os.path.lexists(folder / _GIT):
            found = folder
            if not _is_submodule(folder / _GIT):
                break
    return found


def _is_submodule(git: Path) -> bool:
    try:
        return _OF_SUBMODULE.search(read(git)) is not None
    except OSError:  # a directory
        return False


def _root_setting(folder: Path) -> Path | None:
    """Return the root that the table of a directory names, if it is valid."""
    try:
        table = read_nested_table(settings_file(folder)) or {}
    except SettingsError:  # reported when the settings are read
        return None
    root = table.get("root")
    return root_above(folder, root) if isinstance(root, str) else None


def root_above(folder: Path, text: str) -> Path | None:
    """Return the directory that the setting `root` names, or None if it does not contain `folder`."""
    root = Path(os.path.normpath(folder / text))
    return root if root in (folder, *folder.parents) else None
