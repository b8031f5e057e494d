"""The calls of `os` and `os.path` that look up a path; most can return a stale answer."""

from __future__ import annotations

import errno
import os
import stat
from functools import partial
from typing import TYPE_CHECKING, Any

from fsrace_lint.instrument.interception import Calls
from fsrace_lint.instrument.kernel import posix
from fsrace_lint.instrument.model import Lookup, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.instrument.model import Answer
    from fsrace_lint.instrument.recorder import Recorder
    from fsrace_lint.instrument.watched_tree import Path


class LookupCalls(Calls):
    """Calls that look up a path, each intercepted."""

    def replacements(self) -> dict[Any, Any]:
        """Return the replacement of each original function."""
        return {
            posix.readlink: self.readlink,
            posix.stat: self.stat,
            posix.fstat: self.fstat,
            posix.lstat: self.lstat,
            posix.access: self.access,
            posix.chdir: self.chdir,
            os.path.exists: self._asking("exists", os.path.exists),
            os.path.lexists: self._asking("lexists", os.path.lexists),
            os.path.isfile: self._asking("isfile", os.path.isfile),
            os.path.isdir: self._asking("isdir", os.path.isdir),
            os.path.islink: self._asking("islink", os.path.islink),
        }

    def readlink(self, path: Path, *, dir_fd: int | None = None) -> str | bytes:
        """Return the target of a link."""
        place = self._place(path, dir_fd)
        if place is None:
            return posix.readlink(path, dir_fd=dir_fd)  # type: ignore[type-var,return-value]

        def act(recorder: Recorder, _: Answer | None) -> str | bytes:
            recorder.resolve(path, dir_fd, follow=False)
            recorder.result = os.fsdecode(posix.readlink(path, dir_fd=dir_fd))  # type: ignore[type-var,arg-type]
            return os.fsencode(recorder.result) if isinstance(path, bytes) else recorder.result

        return self._intercept("readlink", self._tree.shown(place), act, mutates=False)

    def chdir(self, path: Path) -> None:
        """Change the working directory."""
        place = self._place(path)
        if place is None:
            return posix.chdir(path)  # type: ignore[arg-type]

        def act(recorder: Recorder, _: Answer | None) -> None:
            recorder.resolve(path)
            posix.chdir(path)  # type: ignore[arg-type]

        return self._intercept("chdir", self._tree.shown(place), act, mutates=False)

    def stat(self, path: Path, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        """Return the status of a path."""
        if isinstance(path, int) and self._is_watched(path):
            return self.fstat(path)
        place = self._place(path, dir_fd)
        if place is None:
            return posix.stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)  # type: ignore[arg-type]

        def act(recorder: Recorder, answer: Answer | None) -> os.stat_result:
            recorder.looked_up(path, dir_fd, follow=follow_symlinks)
            if answer is None:
                found = posix.stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)  # type: ignore[arg-type]
            elif answer.there:
                found = _as_stat(answer)
            else:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))  # type: ignore[arg-type]
            recorder.result = _kind(found.st_mode)
            return found

        name = "stat" if follow_symlinks else "lstat"
        lookup = Lookup(name, plain(place))
        return self._intercept(name, self._tree.shown(place), act, mutates=False, lookup=lookup)

    def fstat(self, descriptor: int) -> os.stat_result:
        """Return the status of an open file."""
        if not self._is_watched(descriptor):
            return posix.fstat(descriptor)

        inode = posix.fstat(descriptor).st_ino

        def act(recorder: Recorder, answer: Answer | None) -> os.stat_result:
            recorder.reads("file", inode)
            recorder.reads("links", inode)
            if answer is not None and not answer.there:
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
            if self._files.caches and answer is None:
                recorder.refreshed_cache(inode)
            found = posix.fstat(descriptor) if answer is None else _as_stat(answer)
            recorder.result = _kind(found.st_mode)
            return found

        lookup = Lookup("fstat", "", inode)
        return self._intercept("fstat", self._files.shown(descriptor), act, mutates=False, lookup=lookup)

    def lstat(self, path: Path, *, dir_fd: int | None = None) -> os.stat_result:
        """Return the status of a path, without following a link."""
        return self.stat(path, dir_fd=dir_fd, follow_symlinks=False)

    def access(
        self,
        path: Path,
        mode: int,
        *,
        dir_fd: int | None = None,
        effective_ids: bool = False,
        follow_symlinks: bool = True,
    ) -> bool:
        """Return whether the process may access a path in a mode."""
        options = {"dir_fd": dir_fd, "effective_ids": effective_ids, "follow_symlinks": follow_symlinks}
        original = partial(posix.access, path, mode, **options)  # type: ignore[arg-type]
        place = self._place(path, dir_fd)
        if place is None:
            return original()

        def act(recorder: Recorder, answer: Answer | None) -> bool:
            recorder.looked_up(path, dir_fd, follow=follow_symlinks)
            found = original() if answer is None else answer.there
            recorder.result = str(found)
            return found

        shown = self._tree.shown(place)
        lookup = Lookup("access", plain(place))
        try:
            return self._intercept("access", shown, act, mutates=False, lookup=lookup)
        except OSError:
            return False

    def _asking(self, name: str, original: Callable[..., bool]) -> Callable[..., bool]:
        follow = name not in {"lexists", "islink"}
        test = {"isfile": stat.S_ISREG, "isdir": stat.S_ISDIR, "islink": stat.S_ISLNK}.get(name, bool)

        def ask(path: Path) -> bool:
            place = self._place(path)
            if place is None:
                return original(path)

            def act(recorder: Recorder, answer: Answer | None) -> bool:
                at = recorder.resolve(path, follow=follow)
                mode = at.mode if answer is None else int(answer.stat[0]) if answer.there else 0
                found = test(mode)
                recorder.result = str(found)
                return found

            lookup = Lookup(name, plain(place))
            try:
                return self._intercept(name, self._tree.shown(place), act, mutates=False, lookup=lookup)
            except OSError:
                return False

        return ask


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "file" if stat.S_ISREG(mode) else "special file"


def _as_stat(answer: Answer) -> os.stat_result:
    values = [int(value) for value in answer.stat[:10]]
    names = ("st_atime", "st_mtime", "st_ctime")
    times: dict[str, Any] = {name: answer.stat[7 + at] for at, name in enumerate(names)}
    times |= {f"{name}_ns": int(value * 1e9) for name, value in times.items()}
    return os.stat_result(values, times)
