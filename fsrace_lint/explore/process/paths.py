"""The calls of `os` that take a path."""

from __future__ import annotations

import errno
import os
import posix
import stat
from typing import TYPE_CHECKING, Any

from fsrace_lint.explore.messages import Answer, Probe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fsrace_lint.explore.messages import Go
    from fsrace_lint.explore.process.gate import Gate, Path
    from fsrace_lint.explore.process.places import Place, Recorder

STAT_FIELDS = 19
"""How much of a stat result an answer holds: all that Linux and macOS agree on, and times in nanoseconds."""


class PathCalls:
    """Calls that take a path, each stopped at the gate.

    Args:
        gate: Where they stop.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def all(self) -> dict[Callable[..., Any], Callable[..., Any]]:
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
            posix.readlink: self.readlink,
            posix.stat: self.stat,
            posix.fstat: self.fstat,
            posix.lstat: self.lstat,
            posix.access: self.access,
            posix.listdir: self.listdir,
            posix.scandir: self.scandir,
            os.path.exists: self._asking("exists", os.path.exists),
            os.path.lexists: self._asking("lexists", os.path.lexists),
            os.path.isfile: self._asking("isfile", os.path.isfile),
            os.path.isdir: self._asking("isdir", os.path.isdir),
            os.path.islink: self._asking("islink", os.path.islink),
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
            at = recorder.look(place, follow=False)
            posix.mkdir(place, mode)
            recorder.added(at, posix.lstat(at.path).st_ino)

        return self._gate.step("mkdir", self._gate.shown(place), act)

    def _making(self, name: str) -> Callable[..., Any]:
        original = getattr(posix, name)

        def make(path: Path, *args: Any, dir_fd: int | None = None, **options: Any) -> None:
            place = self._gate.place(path, dir_fd)
            if place is None:
                return original(path, *args, dir_fd=dir_fd, **options)

            def act(recorder: Recorder, _: Go) -> None:
                at = recorder.look(place, follow=False)
                original(place, *args, **options)
                recorder.added(at, posix.lstat(at.path).st_ino)

            return self._gate.step(name, self._gate.shown(place), act)

        return make

    def rmdir(self, path: Path, *, dir_fd: int | None = None) -> None:
        """Remove an empty directory."""
        place = self._gate.place(path, dir_fd)
        if place is None:
            return posix.rmdir(path, dir_fd=dir_fd)  # type: ignore[arg-type]

        def act(recorder: Recorder, _: Go) -> None:
            at = recorder.look(place, follow=False)
            if at.is_folder:
                recorder.listed(at.inode)
            posix.rmdir(place)
            recorder.changed(at)
            recorder.emptied(at.inode)

        return self._gate.step("rmdir", self._gate.shown(place), act)

    def unlink(self, path: Path, *, dir_fd: int | None = None) -> None:
        """Remove a name."""
        place = self._gate.place(path, dir_fd)
        if place is None:
            return posix.unlink(path, dir_fd=dir_fd)  # type: ignore[arg-type]

        def act(recorder: Recorder, _: Go) -> None:
            at = recorder.look(place, follow=False)
            posix.unlink(place)
            recorder.changed(at)

        return self._gate.step("unlink", self._gate.shown(place), act)

    def _renaming(self, original: Callable[..., None]) -> Callable[..., None]:
        def rename(
            src: Path, dst: Path, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
        ) -> None:
            old, new = self._gate.place(src, src_dir_fd), self._gate.place(dst, dst_dir_fd)
            if old is None and new is None:
                return original(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

            def act(recorder: Recorder, _: Go) -> None:
                places = [recorder.look(place, follow=False) for place in (old, new) if place is not None]
                if places[-1].is_folder:
                    recorder.listed(places[-1].inode)
                original(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
                if len(places) == 1 or places[0].inode != places[1].inode:
                    for at in places:
                        recorder.changed(at)
                    if places[-1].is_folder:
                        recorder.emptied(places[-1].inode)

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
        if new is None:
            options |= {"src_dir_fd": src_dir_fd, "dst_dir_fd": dst_dir_fd}
            return posix.link(src, dst, **options)  # type: ignore[arg-type]

        def act(recorder: Recorder, _: Go) -> None:
            source = recorder.look(old, follow=follow_symlinks) if old else None
            at = recorder.look(new, follow=False)
            posix.link(old or src, new, **options)  # type: ignore[arg-type]
            recorder.changed(at)
            if source is not None:
                recorder.wrote_file(source.inode)

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
            at = recorder.look(place, follow=False)
            posix.symlink(src, place, target_is_directory)  # type: ignore[arg-type]
            recorder.added(at, posix.lstat(at.path).st_ino)

        return self._gate.step("symlink", f"{self._gate.shown(place)} -> {os.fsdecode(src)}", act)  # type: ignore[arg-type]

    def readlink(self, path: Path, *, dir_fd: int | None = None) -> str | bytes:
        """Read what a link says."""
        place = self._gate.place(path, dir_fd)
        if place is None:
            return posix.readlink(path, dir_fd=dir_fd)  # type: ignore[arg-type,type-var,no-any-return]

        def act(recorder: Recorder, _: Go) -> str | bytes:
            recorder.look(place, follow=False)
            recorder.result = posix.readlink(place)
            return os.fsencode(recorder.result) if isinstance(path, bytes) else recorder.result

        return self._gate.step("readlink", self._gate.shown(place), act, mutates=False)

    def _altering(self, name: str) -> Callable[..., Any]:
        original = getattr(posix, name)
        follows = name not in {"lchmod", "lchown"}

        def alter(path: Path, *args: Any, dir_fd: int | None = None, **options: Any) -> None:
            if isinstance(path, int):
                return self._altering_open(original, path, *args, **options)
            place = self._gate.place(path, dir_fd)
            if place is None:
                given = options if dir_fd is None else {**options, "dir_fd": dir_fd}
                return original(path, *args, **given)

            def act(recorder: Recorder, _: Go) -> None:
                at = recorder.look(place, follow=follows and options.get("follow_symlinks", True))
                original(place, *args, **options)
                recorder.wrote_file(at.inode)
                recorder.seen.append(at.path)

            return self._gate.step(name, self._gate.shown(place), act)

        return alter

    def _altering_open(self, original: Callable[..., None], descriptor: int, *args: Any, **options: Any) -> None:
        if not self._gate.watches(descriptor):
            return original(descriptor, *args, **options)

        def act(recorder: Recorder, _: Go) -> None:
            original(descriptor, *args, **options)
            recorder.wrote_file(posix.fstat(descriptor).st_ino)

        return self._gate.step(original.__name__, self._gate.name_of(descriptor), act)

    def stat(self, path: Path, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        """Ask what is there."""
        if isinstance(path, int) and self._gate.watches(path):
            return self.fstat(path)
        place = self._gate.place(path, dir_fd)
        if place is None:
            return posix.stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)  # type: ignore[arg-type]
        return self._stat(place, path, follow=follow_symlinks)

    def fstat(self, descriptor: int) -> os.stat_result:
        """Ask what an open file is."""
        if not self._gate.watches(descriptor):
            return posix.fstat(descriptor)

        def act(recorder: Recorder, _: Go) -> os.stat_result:
            found = posix.fstat(descriptor)
            if stat.S_ISREG(found.st_mode):
                recorder.read_file(found.st_ino)
            recorder.result = _kind(found.st_mode)
            return found

        return self._gate.step("fstat", self._gate.name_of(descriptor), act, mutates=False)

    def lstat(self, path: Path, *, dir_fd: int | None = None) -> os.stat_result:
        """Ask what is there, and not what a link leads to."""
        return self.stat(path, dir_fd=dir_fd, follow_symlinks=False)

    def _stat(self, place: str, path: Path, *, follow: bool) -> os.stat_result:
        def act(recorder: Recorder, go: Go) -> os.stat_result:
            recorder.probed(place, follow=follow)
            recorder.result = "FileNotFoundError"
            if go.answer is None:
                try:
                    found = posix.stat(place, follow_symlinks=follow)
                except FileNotFoundError as error:
                    error.filename = path
                    raise
            elif go.answer.there:
                found = _as_stat(go.answer)
            else:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            recorder.result = _kind(found.st_mode)
            return found

        name = "stat" if follow else "lstat"
        probe = Probe(name, place)
        return self._gate.step(name, self._gate.shown(place), act, mutates=False, probe=probe)

    def access(
        self,
        path: Path,
        mode: int,
        *,
        dir_fd: int | None = None,
        effective_ids: bool = False,
        follow_symlinks: bool = True,
    ) -> bool:
        """Ask whether something may be done there."""
        place = self._gate.place(path, dir_fd)
        if place is None:
            return posix.access(  # a call of the user, passed on
                path,  # type: ignore[arg-type]
                mode,
                dir_fd=dir_fd,
                effective_ids=effective_ids,
                follow_symlinks=follow_symlinks,
            )

        def act(recorder: Recorder, go: Go) -> bool:
            recorder.probed(place)
            found = posix.access(place, mode) if go.answer is None else go.answer.there
            recorder.result = str(found)
            return found

        shown = self._gate.shown(place)
        return self._gate.step("access", shown, act, mutates=False, probe=Probe("stat", place))

    def _asking(self, name: str, original: Callable[..., bool]) -> Callable[..., bool]:
        follow = name not in {"lexists", "islink"}

        def ask(path: Path) -> bool:
            place = self._gate.place(path)
            if place is None:
                return original(path)

            def act(recorder: Recorder, go: Go) -> bool:
                at = recorder.look(place, follow=follow)
                mode = at.mode if go.answer is None else int(go.answer.stat[0]) if go.answer.there else 0
                found = {"isfile": stat.S_ISREG, "isdir": stat.S_ISDIR, "islink": stat.S_ISLNK}.get(name, bool)(mode)
                recorder.result = str(found)
                return found

            probe = Probe(name, place)
            return self._gate.step(name, self._gate.shown(place), act, mutates=False, probe=probe)

        return ask

    def listdir(self, path: Path = ".") -> list[Any]:
        """Read the names in a directory; they come sorted, so that every run sees the same."""
        names = self._names(path, "listdir")
        if names is None:
            return posix.listdir(path)
        return [os.fsencode(name) if isinstance(path, bytes) else name for name, _ in names]

    def scandir(self, path: Path = ".") -> Any:
        """Read the names in a directory, as entries; they come sorted."""
        names = self._names(path, "scandir")
        if names is None:
            return posix.scandir(path)
        folder = "" if isinstance(path, int) else os.fsdecode(path or ".")
        descriptor = path if isinstance(path, int) else None
        encode = isinstance(path, bytes)
        return Entries([Entry(name, mode, folder, descriptor, encode=encode) for name, mode in names])

    def _names(self, path: Path, name: str) -> list[tuple[str, int]] | None:
        path = "." if path is None else path
        is_open = isinstance(path, int)
        place = self._gate.descriptor_place(path) if isinstance(path, int) else self._gate.place(path)
        if place is None:
            return None

        def act(recorder: Recorder, go: Go) -> list[tuple[str, int]]:
            if is_open:
                recorder.listed(posix.fstat(path).st_ino)
            else:
                at = recorder.look(place)
                if at.is_folder:
                    recorder.listed(at.inode)
            if go.answer is None:
                names = _listing(path if is_open else place)
            elif go.answer.there:
                names = list(go.answer.names)
            else:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            recorder.result = ", ".join(each for each, _ in names) or "nothing"
            return names

        probe = None if is_open else Probe("listdir", place)
        return self._gate.step(name, self._gate.shown(place), act, mutates=False, probe=probe)


class Entry:
    """What `os.scandir` tells of a name: its kind comes with it, all else is a call of its own.

    Args:
        name: The name.
        mode: What kind of thing it was when the directory was read.
        folder: The directory as the caller wrote it.
        descriptor: The directory, where it was given open.
        encode: Whether names are bytes.
    """

    def __init__(self, name: str, mode: int, folder: str, descriptor: int | None, *, encode: bool) -> None:
        path = os.path.join(folder, name)
        self._mode = mode
        self.name: Any = os.fsencode(name) if encode else name
        self.path: Any = os.fsencode(path) if encode else path
        self._descriptor = descriptor

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def inode(self) -> int:
        """Give its inode."""
        return self.stat(follow_symlinks=False).st_ino

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Tell whether it is a directory."""
        return self._is(stat.S_ISDIR, follow=follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Tell whether it is a file."""
        return self._is(stat.S_ISREG, follow=follow_symlinks)

    def is_symlink(self) -> bool:
        """Tell whether it is a link."""
        return self._is(stat.S_ISLNK, follow=False)

    def is_junction(self) -> bool:
        """Tell whether it is what only Windows has."""
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Ask what is there."""
        return os.stat(self.path, dir_fd=self._descriptor, follow_symlinks=follow_symlinks)

    def _is(self, test: Callable[[int], bool], *, follow: bool) -> bool:
        if not follow or not stat.S_ISLNK(self._mode):
            return test(self._mode)
        try:
            return test(self.stat(follow_symlinks=follow).st_mode)
        except FileNotFoundError:
            return False


class Entries:
    """What `os.scandir` gives."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = iter(entries)

    def __enter__(self) -> Entries:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Entry]:
        return self._entries

    def __next__(self) -> Entry:
        return next(self._entries)

    def close(self) -> None:
        """Give nothing more."""
        self._entries = iter([])


def _listing(path: Any) -> list[tuple[str, int]]:
    with posix.scandir(path) as entries:
        return sorted((entry.name, _type(entry)) for entry in entries)


def _type(entry: os.DirEntry[str]) -> int:
    if entry.is_symlink():
        return stat.S_IFLNK
    if entry.is_dir(follow_symlinks=False):
        return stat.S_IFDIR
    return stat.S_IFREG if entry.is_file(follow_symlinks=False) else stat.S_IFCHR


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
