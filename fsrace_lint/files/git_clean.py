"""Ask git whether files are unchanged since the last commit, without running programs of the repository.

`git status` may run programs from the configuration of a repository: filesystem monitors and attribute
filters. Therefore git is only asked for the contents of the last commit and the index, and they are compared
here.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections import defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

_QUIET: Final = (
    *("--no-pager", "--no-optional-locks", "--literal-pathspecs"),
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", "safe.bareRepository=explicit"),
)
ELSEWHERE: Final = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"),
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX", "GIT_NAMESPACE"),
)
"""Variables that make git use another repository than that of the directory. Git sets some for hooks."""
_ALONE: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    # do not fetch objects that a partial clone left out
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
}
_PATIENCE: Final = 60.0
_MOST: Final = 200
"""The maximum number of names in one call of git, because command lines are limited."""
_SHA256: Final = 64
"""The number of hex digits of an object name in a SHA-256 repository."""
_DIRTY: Final = "has uncommitted changes"
_FOREIGN: Final = "is not tracked by git"


class GitError(Exception):
    """Git is missing or fails. The message gives the reason."""


def uncommitted(held: Mapping[Path, bytes]) -> dict[Path, str]:
    """Return the files whose content is not in the last commit of their repository.

    Args:
        held: The content of each file. Symbolic links are followed: the state of the target counts.

    Returns:
        The reason for each file that git could not restore.

    Raises:
        GitError: Git is not installed.
    """
    git = shutil.which("git")
    if git is None:
        raise GitError("git is not installed")
    folders: dict[Path, dict[str, Path]] = defaultdict(dict)
    for file in held:
        target = file.resolve()
        folders[target.parent][target.name] = file
    found: dict[Path, str] = {}
    for folder, files in sorted(folders.items()):
        for names in _parts(sorted(files)):
            try:
                staged, known = _staged(git, folder, names), _known(git, folder, names)
            except GitError as error:
                found.update((files[name], str(error)) for name in names)
                continue
            for name in names:
                reason = _reason(held[files[name]], staged[name], known[name])
                if reason:
                    found[files[name]] = reason
    return found


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _MOST):
        yield names[start : start + _MOST]


def _reason(held: bytes, staged: Sequence[str], known: Sequence[str]) -> str:
    """Return why a file differs from the last commit, or "" if it does not."""
    if not staged and not known:
        return _FOREIGN
    if len(known) != 1 or list(staged) != list(known):
        return _DIRTY
    # a checkout may have changed the line endings
    digests = {_digest(data, len(known[0])) for data in (held, held.replace(b"\r\n", b"\n"))}
    return "" if known[0] in digests else _DIRTY


def _digest(data: bytes, length: int) -> str:
    """Return the git object name of a content, in a repository whose names have `length` digits."""
    made = hashlib.sha256() if length == _SHA256 else hashlib.sha1(usedforsecurity=False)
    made.update(b"blob %d\0" % len(data))
    made.update(data)
    return made.hexdigest()


def _staged(git: str, folder: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the objects that the index has for each file: multiple during an unfinished merge."""
    rows = _rows(_asked(git, folder, "ls-files", "--stage", "-z", "--", *names))
    return _by_name((name, about.split()[1]) for about, name in rows)


def _known(git: str, folder: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the objects that the last commit has for each file."""
    rows = _rows(_asked(git, folder, "ls-tree", "-z", "HEAD", "--", *names))
    return _by_name((name, about.split()[2]) for about, name in rows)


def _rows(answer: bytes) -> Iterator[tuple[str, str]]:
    for row in filter(None, answer.split(b"\0")):
        about, _, name = row.partition(b"\t")
        yield about.decode("ascii", "replace"), os.fsdecode(name)


def _by_name(rows: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name, content in rows:
        found[name].append(content)
    return found


def _asked(git: str, folder: Path, *question: str) -> bytes:
    """Run a git command that reads only the files of git itself."""
    kept = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    try:
        done = subprocess.run(  # noqa: S603  # runs the git of the user
            [git, *_QUIET, "-C", os.fspath(folder), *question],
            env={**kept, **_ALONE},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"cannot be checked with git: {error}") from error
    if done.returncode != 0:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines() or [
            f"git exited with status {done.returncode}"
        ]
        raise GitError(f"cannot be checked with git: {told[0].removeprefix('fatal: ')}")
    return done.stdout
