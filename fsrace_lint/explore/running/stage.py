"""The scratch directory: the same tree at the start of every run, and nothing left at the end."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fsrace_lint.explore.errors import ExploreError
from fsrace_lint.explore.running import jobs, private_directory
from fsrace_lint.instrument.model import plain
from fsrace_lint.instrument.tree_watch import watching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fsrace_lint.explore.running.disk_tree import DiskTree

FOLDERS = ("root", "tmp", "home")
FRESH_MODE = 0o755
MEMORY = Path("/dev/shm")  # noqa: S108  # a private directory is created there


class Stage:
    """The place where runs happen.

    Args:
        folder: A directory that is private to the exploration.
        setup: Creates the initial tree of every run.
        check: Raises if the final tree is wrong.
        timeout: The maximum number of seconds for `setup` and for `check`.

    Attributes:
        top: The watched directory.
        watch: Reports changes of the watched directory.
        verdicts: What the check found in each distinct tree, by fingerprint.
        began: The wall clock before the first run; nothing that `setup` creates has a later timestamp.
    """

    def __init__(
        self,
        folder: Path,
        setup: Callable[[Path], object] | None,
        check: Callable[[Path], object] | None,
        timeout: float,
    ) -> None:
        self.top = folder / "top"
        self._first = folder / "first"
        self._copy = folder / "copy"
        self._check = check
        self._timeout = timeout
        self.verdicts: dict[bytes, str | None] = {}
        self._initial: dict[str, bytes] = {}
        self._is_bare = setup is None
        self.watch = watching()
        self.began = int(time.time())
        for name in FOLDERS:
            (self._first / name).mkdir(parents=True)
        self._fresh()
        if setup is not None:
            self._set_up(setup)

    def _set_up(self, setup: Callable[[Path], object]) -> None:
        def run() -> None:
            os.chdir(self.top / "root")
            setup(self.top / "root")

        try:
            problem = jobs.aside(run, self._timeout)
        except jobs.Hung:
            raise ExploreError(f"setup did not finish within {self._timeout:g} s") from None
        if problem is not None:
            raise ExploreError(f"setup failed: {problem}")
        private_directory.remove(self._first)
        self.top.rename(self._first)
        for _, path in _walk(self._first):
            if os.lstat(path).st_mtime >= self.began:
                os.utime(path, (self.began, self.began), follow_symlinks=False)
        self._fresh()

    def fresh(self) -> dict[int, str]:
        """Restore the initial tree; its three directories themselves stay, unless a run has deleted them.

        Returns:
            The paths in the tree by inode, relative to the top.
        """
        self._fresh()
        return self.inodes()

    def inodes(self) -> dict[int, str]:
        """Return the paths in the tree by inode, relative to the top."""
        return {os.lstat(path).st_ino: plain(name) for name, path in _walk(self.top)}

    def _fresh(self) -> None:
        self.top.mkdir(exist_ok=True)
        for name in set(os.listdir(self.top)).difference(FOLDERS):
            private_directory.remove(self.top / name)
        for name in FOLDERS:
            self._refill(name)

    def _refill(self, name: str) -> None:
        folder = self.top / name
        if folder.is_symlink() or not folder.is_dir():
            private_directory.remove(folder)
            folder.mkdir(exist_ok=True)
        if stat.S_IMODE(folder.stat().st_mode) != FRESH_MODE:
            folder.chmod(FRESH_MODE)
        for inner in os.listdir(folder):
            private_directory.remove(folder / inner)
        if not self._is_bare:
            _copy(self._first / name, folder)

    def initial(self, path: str) -> bytes:
        """Return the contents of a file in the initial tree."""
        if path not in self._initial:
            self._initial[path] = (self._first / path).read_bytes()
        return self._initial[path]

    def problem(self, tree: DiskTree | None = None) -> str | None:
        """Run the check of the scenario.

        Each distinct tree is checked once. The check works on a copy, because it may restart what was killed.

        Args:
            tree: The tree to check, instead of the current one.

        Returns:
            The problem that the check found, or None.
        """
        if self._check is None:
            return None
        key = self.fingerprint(tree)
        if key not in self.verdicts:
            self.verdicts[key] = self._ask(self._check, tree)
        return self.verdicts[key]

    def _ask(self, check: Callable[[Path], object], tree: DiskTree | None) -> str | None:
        private_directory.remove(self._copy)  # noqa: FSR203  # below the scratch directory of this process
        self._copy.mkdir(exist_ok=True)
        if tree is None:
            _copy(self.top, self._copy)
        else:
            tree.write(self._copy)
        root = self._copy / "root"

        def run() -> None:
            os.chdir(root)
            check(root)

        try:
            problem = jobs.aside(run, self._timeout)
        except jobs.Hung:
            problem = f"the check did not finish within {self._timeout:g} s"
        return None if problem is None else problem.replace(str(self._copy), str(self.top))

    def fingerprint(self, tree: DiskTree | None = None) -> bytes:
        """Return a digest of a tree, by default the current one: names, types, modes, contents, and links."""
        if tree is not None and tree.digest:
            return tree.digest
        digest = hashlib.blake2b(digest_size=16)
        for name, mode, data in _entries(self.top) if tree is None else tree.entries():
            digest.update(f"\0{name}\0{mode}\0".encode(errors="surrogateescape"))
            digest.update(data)
        if tree is not None:
            tree.digest = digest.digest()
        return digest.digest()


def _entries(top: Path) -> Iterator[tuple[str, int, bytes]]:
    for name, path in _walk(top):
        found, data = os.lstat(path), b""
        if stat.S_ISLNK(found.st_mode):
            data = os.fsencode(os.readlink(path))
        elif stat.S_ISREG(found.st_mode):
            with open(path, "rb") as file:
                data = file.read()
        yield name, found.st_mode, data


def _walk(top: Path) -> Iterator[tuple[str, str]]:
    folders = [("", str(top))]
    yield "", str(top)
    while folders:
        prefix, folder = folders.pop()
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                yield prefix + entry.name, entry.path
                if entry.is_dir(follow_symlinks=False):
                    folders.append((f"{prefix}{entry.name}/", entry.path))


def _copy(source: Path, target: Path) -> None:
    """Copy the contents of a directory, with hard links, symbolic links, and pipes; skip sockets."""
    copied: dict[int, str] = {}
    folders = []
    for name, path in _walk(source):
        found, there = os.lstat(path), os.path.join(target, name)
        if not name:
            continue
        if stat.S_ISDIR(found.st_mode):
            os.mkdir(there)  # noqa: FSR105  # below the scratch directory of this process
            folders.append((path, there))
        elif stat.S_ISLNK(found.st_mode):
            os.symlink(os.readlink(path), there)
        elif stat.S_ISFIFO(found.st_mode):
            os.mkfifo(there, stat.S_IMODE(found.st_mode))
        elif found.st_ino in copied:
            os.link(copied[found.st_ino], there)
        elif stat.S_ISREG(found.st_mode):
            shutil.copy2(path, there)
            copied[found.st_ino] = there
    for path, there in reversed(folders):
        shutil.copystat(path, there)


@contextlib.contextmanager
def scratch(name: str = "") -> Iterator[Path]:
    """Yield a private directory, in memory if possible, and delete it at the end.

    Its path is the same in every exploration of a scenario, so that names which are made from paths are too.

    Args:
        name: Identifies the scenario.
    """
    place = MEMORY if os.access(MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    with private_directory.held(place.resolve(), name) as folder:
        yield folder
