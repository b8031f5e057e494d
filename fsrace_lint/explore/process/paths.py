"""The calls of `os` that change what a path leads to."""

from __future__ import annotations

import os
import posix
from typing import TYPE_CHECKING, Any

from fsrace_lint.explore.process.gate import Calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore.messages import Go
    from fsrace_lint.explore.process.gate import Path
    from fsrace_lint.explore.process.places import Recorder


class PathCalls(Calls):
    """Calls that take a path, each stopped at the gate."""

    def all(self) -> dict[Any, Any]:
        """Give what replaces what."""
        made: dict[Callable[..., Any], Callable[..., Any]] = {
            posix.mkdir: self.mkdir,
            posix.rmdir: self.rmdir,
            posix.unlink: self.unlink,
            posix.remove: self.unlink,
            posix.rename: self._renaming(posix.rename),
            posix.replace: self._renaming(posix.replace),
            posix.link: self.link,
            posix.symlink: self.symlink,
        }
        for name in ("mkfifo", "mknod"):
            made[getattr(posix, name)] = self._making(name)
        for name in ("chmod", "lchmod", "chown", "lchown", "utime", "truncate", "setxattr", "removexattr"):
            if hasattr(posix, name):
                made[getattr(posix, name)] = self._altering(name)
        return made

    def mkdir(self, path: Path, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        """Make a directory."""
        place = self._gate.place(path, dir_fd)
        if place is None:
            return posix.mkdir(path, mode, dir_fd=dir_fd)  # type: ignore[arg-type]

        def act(recorder: Recorder, _: Go) -> None:
            at = recorder.look(path, dir_fd, follow=False)
            posix.mkdir(path, mode, dir_fd=dir_fd)  # type: ignore[arg-type]
            self._gate.stamp(at.path)
            recorder.added(at, posix.lstat(at.path).st_ino)

        return self._gate.step("mkdir", self._gate.shown(place), act)

    def _making(self, name: str) -> Callable[..., Any]:
        original = getattr(posix, name)

        def make(path: Path, *args: Any, dir_fd: int | None = None, **options: Any) -> Any:
            place = self._gate.place(path, dir_fd)
            if place is None:
                return original(path, *args, dir_fd=dir_fd, **options)

            def act(recorder: Recorder, _: Go) -> None:
                at = recorder.look(path, dir_fd, follow=False)
                original(path, *args, dir_fd=dir_fd, **options)
                recorder.added(at, posix.lstat(at.path).st_ino)

            return self._gate.step(name, self._gate.shown(place), act)

        return make

    def rmdir(self, path: Path, *, dir_fd: int | None = None) -> None:
        """Remove an empty directory."""
        place = self._gate.place(path, dir_fd)
        if place is None:
            return posix.rmdir(path, dir_fd=dir_fd)  # type: ignore[arg-type]

        def act(recorder: Recorder, _: Go) -> None:
            at = recorder.look(path, dir_fd, follow=False)
            if at.is_folder:
                recorder.listed(at.inode)
            posix.rmdir(path, dir_fd=dir_fd)  # type: ignore[arg-type]
            recorder.changed(at)
            recorder.emptied(at.inode)

        return self._gate.step("rmdir", self._gate.shown(place), act)

    def unlink(self, path: Path, *, dir_fd: int | None = None) -> None:
        """Remove a name."""
        place = self._gate.place(path, dir_fd)
        if place is None:
            return posix.unlink(path, dir_fd=dir_fd)  # type: ignore[arg-type]

        def act(recorder: Recorder, _: Go) -> None:
            at = recorder.look(path, dir_fd, follow=False)
            posix.unlink(path, dir_fd=dir_fd)  # type: ignore[arg-type]
            recorder.changed(at)
            recorder.changed_links(at)

        return self._gate.step("unlink", self._gate.shown(place), act)

    def _renaming(self, original: Callable[..., None]) -> Callable[..., None]:
        def rename(
            src: Path, dst: Path, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
        ) -> None:
            old, new = self._gate.place(src, src_dir_fd), self._gate.place(dst, dst_dir_fd)
            if old is None and new is None:
                return original(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

            given = ((old, src, src_dir_fd), (new, dst, dst_dir_fd))
            watched = [(path, dir_fd) for place, path, dir_fd in given if place is not None]

            def act(recorder: Recorder, _: Go) -> None:
                places = [recorder.look(*each, follow=False) for each in watched]
                if places[-1].is_folder:
                    recorder.listed(places[-1].inode)
                original(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
                if len(places) == 1 or places[0].inode != places[1].inode:
                    for at in places:
                        recorder.changed(at)
                    if places[-1].is_folder:
                        recorder.emptied(places[-1].inode)
                    if new is not None:
                        recorder.changed_links(places[-1])

            shown = [str(src) if old is None else self._gate.shown(old)]
            shown.append(str(dst) if new is None else self._gate.shown(new))
            return self._gate.step(original.__name__, " -> ".join(shown), act)

        return rename

    def link(
        self,
        src: Path,
        dst: Path,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        """Give a file another name."""
        old, new = self._gate.place(src, src_dir_fd), self._gate.place(dst, dst_dir_fd)
        options: dict[str, Any] = {} if follow_symlinks else {"follow_symlinks": False}
        options |= {"src_dir_fd": src_dir_fd, "dst_dir_fd": dst_dir_fd}
        if new is None:
            return posix.link(src, dst, **options)  # type: ignore[arg-type]

        def act(recorder: Recorder, _: Go) -> None:
            source = recorder.look(src, src_dir_fd, follow=follow_symlinks) if old else None
            at = recorder.look(dst, dst_dir_fd, follow=False)
            posix.link(src, dst, **options)  # type: ignore[arg-type]
            recorder.changed(at)
            if source is not None:
                recorder.changed_links(source)

        shown = f"{self._gate.shown(old) if old else src!s} -> {self._gate.shown(new)}"
        return self._gate.step("link", shown, act)

    def symlink(
        self, src: Path, dst: Path, target_is_directory: bool = False, *, dir_fd: int | None = None
    ) -> None:
        """Make a link that says something."""
        place = self._gate.place(dst, dir_fd)
        if place is None:
            return posix.symlink(src, dst, target_is_directory, dir_fd=dir_fd)  # type: ignore[arg-type]

        def act(recorder: Recorder, _: Go) -> None:
            at = recorder.look(dst, dir_fd, follow=False)
            posix.symlink(src, dst, target_is_directory, dir_fd=dir_fd)  # type: ignore[arg-type]
            recorder.added(at, posix.lstat(at.path).st_ino)

        return self._gate.step("symlink", f"{self._gate.shown(place)} -> {os.fsdecode(src)}", act)  # type: ignore[arg-type]

    def _altering(self, name: str) -> Callable[..., Any]:
        original = getattr(posix, name)
        follows = name not in {"lchmod", "lchown"}

        def alter(path: Path, *args: Any, dir_fd: int | None = None, **options: Any) -> Any:
            if isinstance(path, int):
                return self._altering_open(original, path, *args, **options)
            given = options if dir_fd is None else {**options, "dir_fd": dir_fd}
            place = self._gate.place(path, dir_fd)
            if place is None:
                return original(path, *args, **given)

            def act(recorder: Recorder, _: Go) -> None:
                follow = follows and options.get("follow_symlinks", True)
                at = recorder.look(path, dir_fd, follow=follow)
                original(path, *args, **given)
                (recorder.wrote_data if name == "truncate" else recorder.wrote_file)(at.inode)
                if name == "truncate" or _is_now(name, *args, **options):
                    self._gate.stamp(at.path)
                recorder.seen.append(at.path)

            return self._gate.step(name, self._gate.shown(place), act)

        return alter

    def _altering_open(
        self, original: Callable[..., None], descriptor: int, *args: Any, **options: Any
    ) -> None:
        if not self._gate.watches(descriptor):
            return original(descriptor, *args, **options)

        def act(recorder: Recorder, _: Go) -> None:
            original(descriptor, *args, **options)
            recorder.wrote_file(posix.fstat(descriptor).st_ino)
            if _is_now(original.__name__, *args, **options):
                self._gate.stamp(descriptor)

        return self._gate.step(original.__name__, self._gate.name_of(descriptor), act)


def _is_now(name: str, *args: Any, **options: Any) -> bool:
    """Tell whether a call says that something was changed just now."""
    return name == "utime" and not any(args) and not options.get("times") and not options.get("ns")
