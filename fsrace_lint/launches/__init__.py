"""Launches: how a repository starts its programs, read from scripts and documents. Nothing is run."""

from __future__ import annotations

import functools
import posixpath
import re
from typing import TYPE_CHECKING, Final

from fsrace_lint.launches.build_files import (
    read_dockerfile,
    read_ini,
    read_justfile,
    read_makefile,
    read_noxfile,
    read_tasks,
    read_tox,
)
from fsrace_lint.launches.documents import read_markdown, read_notebook, read_rst
from fsrace_lint.launches.installed import FILES, read_packaging
from fsrace_lint.launches.launchers import trigger
from fsrace_lint.launches.model import Launch, Origin
from fsrace_lint.launches.scripts import follow_scripts
from fsrace_lint.launches.shell import Script, Shell
from fsrace_lint.launches.yaml_files import processes_of, read_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

LARGEST: Final = 1_000_000
"""The maximum size of a file in bytes."""
_SHEBANG: Final = re.compile(rb"#!\s*\S*?(?:/|env\s+(?:-S\s+)?)(?:ba|z|da|k)?sh\b")


def _read_script(text: str, shell: Shell) -> None:
    shell.read(text)


_KINDS: Final[tuple[tuple[str, Origin, Callable[[str, Shell], None]], ...]] = (
    (r"(?:.*/)?(?:GNU)?[Mm]akefile(?:\..*)?|.*\.(?:mk|mak)", Origin.BUILD, read_makefile),
    (r"(?:.*/)?\.?[Jj]ustfile|.*\.just", Origin.BUILD, read_justfile),
    (
        r"(?:.*/)?(?:Docker|Container)file(?:[.-].*)?|.*\.(?:[Dd]ocker|[Cc]ontainer)file",
        Origin.CONTAINER,
        read_dockerfile,
    ),
    (r"(?:.*/)?tox\.ini", Origin.BUILD, read_tox),
    (r"(?:.*/)?(?:\.?pytest\.ini|setup\.cfg)", Origin.BUILD, read_ini),
    (r"(?:.*/)?noxfile\.py", Origin.BUILD, read_noxfile),
    (r"(?:.*/)?(?:pyproject|pixi|hatch|poe_tasks)\.toml", Origin.BUILD, read_tasks),
    (
        (
            r"(?:.*/)?(?:\.github/(?:workflows|actions)/.*|\.gitlab-ci.*|\.gitlab/.*|\.circleci/.*"
            r"|azure-pipelines.*|\.azure.*/.*|\.buildkite/.*|\.travis|\.ci/.*|cloudbuild)\.ya?ml"
        ),
        Origin.CI,
        read_yaml,
    ),
    (
        r"(?:.*/)?(?:(?:docker-)?compose.*|k8s/.*|kubernetes/.*|kustomize/.*)\.ya?ml",
        Origin.CONTAINER,
        read_yaml,
    ),
    (r".*\.ya?ml", Origin.CONFIGURATION, read_yaml),
    (r"(?:\.circleci|\.buildkite|\.ci|\.jenkins|\.github)/.*\.(?:ba)?sh", Origin.CI, _read_script),
    (r".*\.(?:sh|bash|zsh|sbatch|slurm|pbs|qsub|job|lsf)", Origin.SCRIPT, _read_script),
    (r".*\.(?:md|mdx|markdown)|(?:.*/)?README(?:\.txt)?", Origin.DOCUMENTATION, read_markdown),
    (r".*\.rst", Origin.DOCUMENTATION, read_rst),
    (r".*\.ipynb", Origin.DOCUMENTATION, read_notebook),
    (r"(?:.*/)?[^./]+", Origin.SCRIPT, _read_script),
)
"""Patterns of paths, with the kind and the reader of such files. The first pattern that matches counts."""


def is_launch_file(path: str) -> bool:
    """Return whether a file can contain launches or install commands, by its path from the root.

    Files without a suffix are read if they begin with `#!` and a shell.
    """
    return _kind(path) is not None or posixpath.basename(path) in FILES


def _kind(path: str) -> tuple[Origin, Callable[[str, Shell], None]] | None:
    return next(((origin, read) for pattern, origin, read in _patterns() if pattern.fullmatch(path)), None)


@functools.cache
def _patterns() -> tuple[tuple[re.Pattern[str], Origin, Callable[[str, Shell], None]], ...]:
    return tuple((re.compile(pattern), origin, read) for pattern, origin, read in _KINDS)


def read_launches(root: Path, files: Iterable[Path], commands: Collection[str] = ()) -> tuple[Launch, ...]:
    """Read the commands in which a repository starts its programs.

    Nothing is run. A file that cannot be read or parsed contains no launches.

    Args:
        root: The root of the repository.
        files: The files, absolute or relative to the root. Files that are not launch files are skipped.
        commands: The names of the console scripts of the repository.

    Returns:
        The launches, sorted by file and line.
    """
    scripts = frozenset(commands)
    wanted = trigger(scripts)
    found: list[Launch] = []
    for path in sorted({_relative(root, file) for file in files} - {""}):
        found += _read_file(root, path, scripts, wanted)
    return tuple(sorted(set(follow_scripts(found)), key=lambda launch: launch.position))


def relevant(root: Path, files: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield the relative path and the content of each file that can have an effect on the other functions.

    Args:
        root: The root of the repository.
        files: The files, absolute or relative to the root.
    """
    wanted = re.compile(trigger(()).pattern + b"|num_processes")
    for path in sorted({_relative(root, file) for file in files} - {""}):
        data = _bytes(root / path)
        if posixpath.basename(path) in FILES or (_kind(path) is not None and wanted.search(data)):
            yield path, data


def read_installed(root: Path, files: Iterable[Path]) -> dict[str, str]:
    """Read the commands that the packaging files of a repository install.

    Args:
        root: The root of the repository.
        files: The files, absolute or relative to the root. Other files are skipped.

    Returns:
        For each command, `module:function`.
    """
    found: dict[str, str] = {}
    for path in sorted({_relative(root, file) for file in files} - {""}):
        name = posixpath.basename(path)
        if name in FILES:
            found |= read_packaging(name, _bytes(root / path).decode("utf-8", "replace"))
    return found


def _relative(root: Path, file: Path) -> str:
    """Return a path relative to the root, or an empty string for a file elsewhere."""
    try:
        return (root / file).relative_to(root).as_posix()
    except ValueError:
        return ""


def _read_file(
    root: Path, path: str, commands: frozenset[str], wanted: re.Pattern[bytes]
) -> Iterator[Launch]:
    kind = _kind(path)
    data = _bytes(root / path) if kind is not None else b""
    if kind is None or not wanted.search(data):
        return
    origin, read = kind
    is_named = "." in posixpath.basename(path) or read is not _read_script
    if not is_named and not _SHEBANG.match(data):
        return
    script = Script(root, path, origin, commands, functools.partial(_configured, root, path))
    shell = Shell(script, script.folder if origin is Origin.BUILD else "")
    read(data.decode("utf-8", "replace").replace("\r\n", "\n"), shell)
    yield from shell.finish()


def _bytes(file: Path) -> bytes:
    """Return the content of a file, or nothing if it is too large or cannot be read."""
    try:
        if not file.is_file() or file.stat().st_size > LARGEST:
            return b""
        return file.read_bytes()
    except OSError:
        return b""


def _configured(root: Path, script: str, path: str, folder: str) -> int | None:
    """Return the number of processes in a configuration file of Accelerate, from a path in a command."""
    for base in dict.fromkeys((folder, posixpath.dirname(script), "")):
        below = posixpath.normpath(posixpath.join(base, path.lstrip("\ue000\ue001/")))
        data = b"" if below.startswith(("..", "/")) or "\0" in below else _bytes(root / below)
        if data:
            return processes_of(data.decode("utf-8", "replace"))
    return None
