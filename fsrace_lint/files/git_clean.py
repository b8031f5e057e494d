"""Ask git whether files hold just what is committed, without running anything that their repository names.

`git status` may run programs from the configuration of a repository: a monitor of the filesystem, and filters
of attributes. So git is only asked for what the last commit and the index hold, and that is compared here.
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
_ELSEWHERE: Final = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"),
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX", "GIT_NAMESPACE"),
)
"""What would make git take another repository than that of the folder: a hook sets it for its own."""
_ALONE: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    # nothing is fetched that a partial clone has left out
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
}
_PATIENCE: Final = 60.0
_MOST: Final = 200
"""The names that are asked for at once: a command line has an end."""
_SHA256: Final = 64
"""The digits of a name in a repository of the newer kind."""
_DIRTY: Final = "has uncommitted changes"
_FOREIGN: Final = "is not in git"


class GitError(Exception):
    """Git cannot be asked, or does not answer; the message says why."""


def uncommitted(held: Mapping[Path, bytes]) -> dict[Path, str]:
    """Tell which files hold something that is not in the last commit of their repository.

    Args:
        held: What each file holds. Links are followed: it is their target that counts.

    Returns:
        The reason by file, for those that git could not bring back.

    Raises:
        GitError: There is no git, or it does not answer.
    """
    git = shutil.which("git")
    if git is None:
        raise GitError("git is needed, and is not there")
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
    """Say why a file is not as it was committed; "" if it is."""
    if not staged and not known:
        return _FOREIGN
    if len(known) != 1 or list(staged) != list(known):
        return _DIRTY
    # a checkout may have given it other line endings
    digests = {_digest(data, len(known[0])) for data in (held, held.replace(b"\r\n", b"\n"))}
    return "" if known[0] in digests else _DIRTY


def _digest(data: bytes, length: int) -> str:
    """Give the name that git has for a content, in a repository whose names are so long."""
    made = hashlib.sha256() if length == _SHA256 else hashlib.sha1(usedforsecurity=False)
    made.update(b"blob %d\0" % len(data))
    made.update(data)
    return made.hexdigest()


def _staged(git: str, folder: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Give what the index holds of files: several contents in a merge that is not finished."""
    rows = _rows(_asked(git, folder, "ls-files", "--stage", "-z", "--", *names))
    return _by_name((name, about.split()[1]) for about, name in rows)


def _known(git: str, folder: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Give what the last commit holds of files."""
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
    """Ask git something that it answers from its own files."""
    kept = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    try:
        done = subprocess.run(  # noqa: S603  # of the user's own git
            [git, *_QUIET, "-C", os.fspath(folder), *question],
            env={**kept, **_ALONE},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"is unknown to git: {error}") from error
    if done.returncode != 0:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines() or [
            f"it ended with {done.returncode}"
        ]
        raise GitError(f"is unknown to git: {told[0].removeprefix('fatal: ')}")
    return done.stdout
