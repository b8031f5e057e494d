"""The files that can contain launches or install commands. Knowing them needs no parser."""

from __future__ import annotations

import functools
import posixpath
import re
from typing import TYPE_CHECKING, Final

from fsrace_lint.launches.launchers import trigger
from fsrace_lint.launches.model import Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

LARGEST: Final = 1_000_000
"""The maximum size of a file in bytes."""
PACKAGING: Final = ("pyproject.toml", "setup.cfg", "setup.py")
"""The names of the packaging files."""
SCRIPT: Final = "script"
"""The name of the reader of shell scripts."""
_KINDS: Final[tuple[tuple[str, Origin, str], ...]] = (
    (r"(?:.*/)?(?:GNU)?[Mm]akefile(?:\..*)?|.*\.(?:mk|mak)", Origin.BUILD, "makefile"),
    (r"(?:.*/)?\.?[Jj]ustfile|.*\.just", Origin.BUILD, "justfile"),
    (
        r"(?:.*/)?(?:Docker|Container)file(?:[.-].*)?|.*\.(?:[Dd]ocker|[Cc]ontainer)file",
        Origin.CONTAINER,
        "dockerfile",
    ),
    (r"(?:.*/)?tox\.ini", Origin.BUILD, "tox"),
    (r"(?:.*/)?(?:\.?pytest\.ini|setup\.cfg)", Origin.BUILD, "ini"),
    (r"(?:.*/)?noxfile\.py", Origin.BUILD, "noxfile"),
    (r"(?:.*/)?(?:pyproject|pixi|hatch|poe_tasks)\.toml", Origin.BUILD, "tasks"),
    (
        (
            r"(?:.*/)?(?:\.github/(?:workflows|actions)/.*|\.gitlab-ci.*|\.gitlab/.*|\.circleci/.*"
            r"|azure-pipelines.*|\.azure.*/.*|\.buildkite/.*|\.travis|\.ci/.*|cloudbuild)\.ya?ml"
        ),
        Origin.CI,
        "yaml",
    ),
    (
        r"(?:.*/)?(?:(?:docker-)?compose.*|k8s/.*|kubernetes/.*|kustomize/.*)\.ya?ml",
        Origin.CONTAINER,
        "yaml",
    ),
    (r".*\.ya?ml", Origin.CONFIGURATION, "yaml"),
    (r"(?:\.circleci|\.buildkite|\.ci|\.jenkins|\.github)/.*\.(?:ba)?sh", Origin.CI, SCRIPT),
    (r".*\.(?:sh|bash|zsh|sbatch|slurm|pbs|qsub|job|lsf)", Origin.SCRIPT, SCRIPT),
    (r".*\.(?:md|mdx|markdown)|(?:.*/)?README(?:\.txt)?", Origin.DOCUMENTATION, "markdown"),
    (r".*\.rst", Origin.DOCUMENTATION, "rst"),
    (r".*\.ipynb", Origin.DOCUMENTATION, "notebook"),
    (r"(?:.*/)?[^./]+", Origin.SCRIPT, SCRIPT),
)
"""Patterns of paths, with the kind and the name of the reader of such files. The first match counts."""


def is_launch_file(path: str) -> bool:
    """Return whether a file can contain launches or install commands, by its path from the root.

    Files without a suffix are read if they begin with `#!` and a shell.
    """
    return kind_of(path) is not None or posixpath.basename(path) in PACKAGING


def kind_of(path: str) -> tuple[Origin, str] | None:
    """Return the kind of a file and the name of its reader, or None if it is not a launch file."""
    return next(((origin, read) for pattern, origin, read in _patterns() if pattern.fullmatch(path)), None)


@functools.cache
def _patterns() -> tuple[tuple[re.Pattern[str], Origin, str], ...]:
    return tuple((re.compile(pattern), origin, read) for pattern, origin, read in _KINDS)


def relevant(root: Path, files: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield the relative path and the content of each file that can have an effect on the other functions.

    Args:
        root: The root of the repository.
        files: The files, absolute or relative to the root.
    """
    wanted = re.compile(trigger(()).pattern + b"|num_processes")
    for path in sorted({relative(root, file) for file in files} - {""}):
        data = content(root / path)
        if posixpath.basename(path) in PACKAGING or (kind_of(path) is not None and wanted.search(data)):
            yield path, data


def relative(root: Path, file: Path) -> str:
    """Return a path relative to the root, or an empty string for a file elsewhere."""
    try:
        return (root / file).relative_to(root).as_posix()
    except ValueError:
        return ""


def content(file: Path) -> bytes:
    """Return the content of a file, or nothing if it is too large or cannot be read."""
    try:
        if not file.is_file() or file.stat().st_size > LARGEST:
            return b""
        return file.read_bytes()
    except OSError:
        return b""
