"""Read launches and installed commands from the files of a repository."""

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
from fsrace_lint.launches.installed import read_packaging
from fsrace_lint.launches.kinds import PACKAGING, SCRIPT, content, kind_of, relative
from fsrace_lint.launches.launchers import trigger
from fsrace_lint.launches.model import Launch, Origin
from fsrace_lint.launches.scripts import follow_scripts
from fsrace_lint.launches.shell import Script, Shell
from fsrace_lint.launches.yaml_files import processes_of, read_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

_SHEBANG: Final = re.compile(rb"#!\s*\S*?(?:/|env\s+(?:-S\s+)?)(?:ba|z|da|k)?sh\b")


def _read_script(text: str, shell: Shell) -> None:
    shell.read(text)


_READERS: Final[Mapping[str, Callable[[str, Shell], None]]] = {
    "makefile": read_makefile,
    "justfile": read_justfile,
    "dockerfile": read_dockerfile,
    "tox": read_tox,
    "ini": read_ini,
    "noxfile": read_noxfile,
    "tasks": read_tasks,
    "yaml": read_yaml,
    SCRIPT: _read_script,
    "markdown": read_markdown,
    "rst": read_rst,
    "notebook": read_notebook,
}
"""The readers by the names in `launches.kinds`."""


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
    for path in sorted({relative(root, file) for file in files} - {""}):
        found += _read_file(root, path, scripts, wanted)
    return tuple(sorted(set(follow_scripts(found)), key=lambda launch: launch.position))


def read_installed(root: Path, files: Iterable[Path]) -> dict[str, str]:
    """Read the commands that the packaging files of a repository install.

    Args:
        root: The root of the repository.
        files: The files, absolute or relative to the root. Other files are skipped.

    Returns:
        For each command, `module:function`.
    """
    found: dict[str, str] = {}
    for path in sorted({relative(root, file) for file in files} - {""}):
        name = posixpath.basename(path)
        if name in PACKAGING:
            found |= read_packaging(name, content(root / path).decode("utf-8", "replace"))
    return found


def _read_file(
    root: Path, path: str, commands: frozenset[str], wanted: re.Pattern[bytes]
) -> Iterator[Launch]:
    kind = kind_of(path)
    data = content(root / path) if kind is not None else b""
    if kind is None or not wanted.search(data):
        return
    origin, reader = kind
    is_named = "." in posixpath.basename(path) or reader != SCRIPT
    if not is_named and not _SHEBANG.match(data):
        return
    script = Script(root, path, origin, commands, functools.partial(_configured, root, path))
    shell = Shell(script, script.folder if origin is Origin.BUILD else "")
    _READERS[reader](data.decode("utf-8", "replace").replace("\r\n", "\n"), shell)
    yield from shell.finish()


def _configured(root: Path, script: str, path: str, folder: str) -> int | None:
    """Return the number of processes in a configuration file of Accelerate, from a path in a command."""
    for base in dict.fromkeys((folder, posixpath.dirname(script), "")):
        below = posixpath.normpath(posixpath.join(base, path.lstrip("\ue000\ue001/")))
        data = b"" if below.startswith(("..", "/")) or "\0" in below else content(root / below)
        if data:
            return processes_of(data.decode("utf-8", "replace"))
    return None
