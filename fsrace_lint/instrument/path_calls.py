"""The calls of `os` that change a path."""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import TYPE_CHECKING, Any

from fsrace_lint.instrument.interception import Calls, available
from fsrace_lint.instrument.kernel import posix

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.instrument.model import Answer
    from fsrace_lint.instrument.recorder import Recorder
    from fsrace_lint.instrument.watched_tree import Path, ResolvedPath


_UNAUDITED = available("mkfifo", "mknod")
"""Calls that `sys.addaudithook()` does not report."""


class PathCalls(Calls):
    """Calls that change a path, each intercepted."""

    def replacements(self) -> dict[Any, Any]:
        """Return the replacement of each original function."""
        made: dict[Callable[..., Any], Callable[..., Any]] = {
            posix.mkdir: self._changing(posix.mkdir, _made_directory, creates=True),
            posix.mkfifo: self._changing(posix.mkfifo, _made, creates=True),
            posix.mknod: self._changing(posix.mknod, _made, creates=True),
            posix.rmdir: self._changing(posix.rmdir, _removed, creates=False),
            posix.unlink: self._changing(posix.unlink, _removed, creates=False),
            posix.remove: self._changing(posix.unlink, _removed, creates=False),
            posix.rename: self._renaming(posix.rename),
            posix.replace: self._renaming(posix.replace),
            posix.link: self.link,
            posix.symlink: self.symlink,
        }
        altering = ("chmod", "lchmod", "chown", "lchown", "utime", "truncate", "setxattr", "removexattr")
        return made | {original: self._altering(original) for original in available(*altering)}

    def _changing(
        self, original: Callable[..., None], note: Callable[[Recorder, ResolvedPath], None], *, creates: bool
    ) -> Callable[..., None]:
        def change(path: Path, *args: Any, dir_fd: int | None = None, **options: Any) -> None:
            place = self._place(path, dir_fd)
            if place is None:
                if original in _UNAUDITED and self._interceptor.is_active():
                    sys.audit(f"os.{original.__name__}", path)
                return original(path, *args, dir_fd=dir_fd, **options)

            def act(recorder: Recorder, _: Answer | None) -> None:
                at = recorder.resolve(path, dir_fd, follow=False)
                if original is posix.rmdir and at.is_folder:
                    recorder.reads("listing", at.inode)
                if original is posix.unlink and self._hidden(recorder, at):
                    return recorder.changed_entry(at)
                original(path, *args, dir_fd=dir_fd, **options)
                return note(recorder, at)

            shown = self._tree.shown(place)
            return self._intercept(original.__name__, shown, act, creates=place if creates else "")

        return change

    def _renaming(self, original: Callable[..., None]) -> Callable[..., None]:
        def rename(
            src: Path, dst: Path, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
        ) -> None:
            old, new = self._place(src, src_dir_fd), self._place(dst, dst_dir_fd)
            if old is None and new is None:
                return original(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

            given = ((old, src, src_dir_fd), (new, dst, dst_dir_fd))
            watched = [(path, dir_fd) for place, path, dir_fd in given if place is not None]

            def act(recorder: Recorder, _: Answer | None) -> None:
                places = [recorder.resolve(*each, follow=False) for each in watched]
                if places[-1].is_folder:
                    recorder.reads("listing", places[-1].inode)
                if new is not None and places[0].inode not in (0, places[-1].inode):
                    self._hidden(recorder, places[-1])
                original(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
                if len(places) == 1 or places[0].inode != places[1].inode:
                    for at in places:
                        recorder.changed_entry(at)
                    if places[-1].is_folder:
                        recorder.writes("listing", places[-1].inode)
                    if new is not None:
                        recorder.changed_links(places[-1])

            shown = [str(src) if old is None else self._tree.shown(old)]
            shown.append(str(dst) if new is None else self._tree.shown(new))
            return self._intercept(original.__name__, " -> ".join(shown), act, creates=new or "")

        return rename

    def _hidden(self, recorder: Recorder, at: ResolvedPath) -> bool:
        """Rename a file that this process has open, as an NFS client does instead of deleting it.

        Args:
            recorder: Records the change.
            at: The file.

        Returns:
            Whether it was renamed.

        Raises:
            OSError: It was renamed before (`EBUSY`).
        """
        if not self._files.client or not stat.S_ISREG(at.mode) or not self._files.is_open(at.inode):
            return False
        if at.inode in self._files.hidden:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), at.path)
        path = f"{at.path.rpartition('/')[0]}/{self._files.new_hidden_name()}"
        posix.rename(at.path, path)
        self._files.hidden[at.inode] = path
        recorder.changed_entry(recorder.resolve(path, follow=False))
        return True

    def link(
        self,
        src: Path,
        dst: Path,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        """Create another name for a file."""
        old, new = self._place(src, src_dir_fd), self._place(dst, dst_dir_fd)
        options: dict[str, Any] = {} if follow_symlinks else {"follow_symlinks": False}
        options |= {"src_dir_fd": src_dir_fd, "dst_dir_fd": dst_dir_fd}
        if new is None:
            return posix.link(src, dst, **options)  # type: ignore[arg-type]

        def act(recorder: Recorder, _: Answer | None) -> None:
            source = recorder.resolve(src, src_dir_fd, follow=follow_symlinks) if old else None
            at = recorder.resolve(dst, dst_dir_fd, follow=False)
            posix.link(src, dst, **options)  # type: ignore[arg-type]
            recorder.changed_entry(at)
            if source is not None:
                recorder.changed_links(source)

        shown = f"{self._tree.shown(old) if old else src!s} -> {self._tree.shown(new)}"
        return self._intercept("link", shown, act, creates=new)

    def symlink(
        self, src: Path, dst: Path, target_is_directory: bool = False, *, dir_fd: int | None = None
    ) -> None:
        """Create a symbolic link."""
        place = self._place(dst, dir_fd)
        if place is None:
            return posix.symlink(src, dst, target_is_directory, dir_fd=dir_fd)  # type: ignore[arg-type]

        def act(recorder: Recorder, _: Answer | None) -> None:
            at = recorder.resolve(dst, dir_fd, follow=False)
            posix.symlink(src, dst, target_is_directory, dir_fd=dir_fd)  # type: ignore[arg-type]
            _made(recorder, at)

        shown = f"{self._tree.shown(place)} -> {os.fsdecode(src)}"  # type: ignore[arg-type]
        return self._intercept("symlink", shown, act, creates=place)

    def _altering(self, original: Callable[..., None]) -> Callable[..., Any]:
        name = original.__name__
        follows = name not in {"lchmod", "lchown"}

        def alter(path: Path, *args: Any, dir_fd: int | None = None, **options: Any) -> Any:
            if isinstance(path, int):
                return self._altering_open(original, path, *args, **options)
            given = options if dir_fd is None else {**options, "dir_fd": dir_fd}
            place = self._place(path, dir_fd)
            if place is None:
                return original(path, *args, **given)
            lock = self._write_lock(0, place) if name == "truncate" else None

            def act(recorder: Recorder, _: Answer | None) -> None:
                follow = follows and options.get("follow_symlinks", True)
                at = recorder.resolve(path, dir_fd, follow=follow)
                original(path, *args, **given)
                recorder.writes("file", at.inode)
                if name == "truncate":
                    recorder.dirtied.append(at.inode)
                    if lock is not None:
                        recorder.changed_lock(lock._replace(inode=at.inode))
                if name == "truncate" or _is_now(name, *args, **options):
                    recorder.modified.append(at.path)
                recorder.seen.append(at.path)

            return self._intercept(name, self._tree.shown(place), act, lock=lock)

        return alter

    def _altering_open(
        self, original: Callable[..., None], descriptor: int, *args: Any, **options: Any
    ) -> None:
        if not self._is_watched(descriptor):
            return original(descriptor, *args, **options)

        def act(recorder: Recorder, _: Answer | None) -> None:
            original(descriptor, *args, **options)
            recorder.writes("file", posix.fstat(descriptor).st_ino)
            if _is_now(original.__name__, *args, **options):
                recorder.modified.append(descriptor)

        return self._intercept(original.__name__, self._files.shown(descriptor), act)


def _made(recorder: Recorder, at: ResolvedPath) -> None:
    recorder.added_entry(at, posix.lstat(at.path).st_ino)


def _made_directory(recorder: Recorder, at: ResolvedPath) -> None:
    recorder.modified.append(at.path)
    _made(recorder, at)


def _removed(recorder: Recorder, at: ResolvedPath) -> None:
    recorder.changed_entry(at)
    recorder.changed_links(at)
    if at.is_folder:
        recorder.writes("listing", at.inode)


def _is_now(name: str, *args: Any, **options: Any) -> bool:
    """Return whether a call sets the timestamps to the current time."""
    return name == "utime" and not any(args) and not options.get("times") and not options.get("ns")
