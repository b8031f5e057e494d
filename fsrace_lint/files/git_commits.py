"""Commit changed files with git, as `git commit` does, with the hooks of the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from fsrace_lint.files.git_clean import ELSEWHERE, GitError

if TYPE_CHECKING:
    from collections.abc import Iterable


class Repository:
    """A working tree of git."""

    def __init__(self, git: str, root: Path) -> None:
        """Use a working tree, given by its top directory."""
        self._git = git
        self._root = root

    @staticmethod
    def around(folders: Iterable[Path]) -> Repository:
        """Return the repository that contains all directories.

        Raises:
            GitError: There is no such repository, or git is not installed.
        """
        git = shutil.which("git")
        if git is None:
            raise GitError("git is not installed")
        roots = {Path(_run(git, folder, "rev-parse", "--show-toplevel").rstrip("\n")) for folder in folders}
        if len(roots) != 1:
            raise GitError("the paths do not belong to one git repository")
        return Repository(git, roots.pop())

    def require_clean(self) -> None:
        """Check that nothing but the fixes can get into a commit, and that commits are possible.

        Raises:
            GitError: A tracked file has uncommitted changes, there is no commit, or the author is unknown.
        """
        _run(self._git, self._root, "rev-parse", "--verify", "HEAD")
        rows = _run(self._git, self._root, "status", "--porcelain", "-z", "--untracked-files=no").split("\0")
        changed = [row[3:] for row in rows if row[2:3] == " "]
        if changed:
            raise GitError(f"{changed[0]} has uncommitted changes; commit or stash them first")
        for role in ("author", "committer"):
            self._require_identity(role)

    def _require_identity(self, role: str) -> None:
        try:
            _run(self._git, self._root, "var", f"GIT_{role.upper()}_IDENT")
        except GitError:
            what = "set `user.name` and `user.email` with `git config`"
            raise GitError(f"git does not know the {role} of a commit; {what}") from None

    def commit(self, files: Iterable[Path], message: str) -> str:
        """Commit the content of some files, and return the short name of the commit.

        Raises:
            GitError: Git, or a hook, refuses the commit.
        """
        names = [os.fspath(file) for file in files]
        options = ("--quiet", "--cleanup=whitespace", "--file=-", "--only", "--")
        _run(self._git, self._root, "--literal-pathspecs", "commit", *options, *names, text=message)
        return _run(self._git, self._root, "rev-parse", "--short", "HEAD").strip()

    def restore(self, files: Iterable[Path]) -> None:
        """Put files back to the last commit."""
        names = [os.fspath(file) for file in files]
        if names:
            _run(self._git, self._root, "--literal-pathspecs", "checkout", "--quiet", "HEAD", "--", *names)


def _run(git: str, folder: Path, *words: str, text: str = "") -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    try:
        done = subprocess.run(  # noqa: S603  # runs the git of the user
            [git, "--no-pager", "-C", os.fspath(folder), *words],
            env=environment,
            input=text.encode(),
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise GitError(f"git cannot be started: {error}") from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        lines.append(f"`git {words[0]}` exited with status {done.returncode}")
        first = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[0])
        raise GitError(first.removeprefix("fatal: ").removeprefix("error: "))
    return os.fsdecode(done.stdout)
