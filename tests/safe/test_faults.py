"""The safe helpers when the process is killed at any step, and when the disk is full or read-only."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.trees import NEW, OLD, TREE, hidden, make_tar, prepare, read_tree, remove_tree, visible

from fsrace_lint import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHANGES = (
    "open",
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.chmod",
    "os.symlink",
    "os.utime",
    "os.link",
)


# a crash between any two steps


def write(folder: Path, step: Callable[[], None]) -> None:
    with safe.atomic_write(folder / "file", "wb") as stream:
        for start in range(0, len(NEW), 3000):
            stream.write(NEW[start : start + 3000])
            stream.flush()
            step()


def write_path(folder: Path, step: Callable[[], None]) -> None:
    with safe.atomic_path(folder / "file") as path, open(path, "wb") as stream:
        stream.write(NEW[:1000])
        stream.flush()
        step()
        stream.write(NEW[1000:])
        step()


def naive_write(folder: Path, step: Callable[[], None]) -> None:
    with open(folder / "file", "wb", buffering=0) as stream:
        stream.write(NEW[:1000])
        step()
        stream.write(NEW[1000:])


def write_tree(folder: Path, step: Callable[[], None]) -> None:
    if (folder / "tree").exists():
        return
    with safe.atomic_path(folder / "tree") as tree:
        for name, data in TREE.items():
            safe.ensure_dir((tree / name).parent)
            (tree / name).write_bytes(data)
            step()


def extract(folder: Path, step: Callable[[], None]) -> None:
    safe.extract_once(folder / "archive", folder / "tree")


def download(folder: Path, step: Callable[[], None]) -> None:
    def fetch(path: Path) -> None:
        with open(path, "wb") as stream:
            stream.write(NEW[:1000])
            stream.flush()
            step()
            stream.write(NEW[1000:])

    safe.download_once(fetch, folder / "file", digest="sha256:" + hashlib.sha256(NEW).hexdigest())


def link(folder: Path, step: Callable[[], None]) -> None:
    safe.publish_symlink("new", folder / "link")


def ensure_dir(folder: Path, step: Callable[[], None]) -> None:
    safe.ensure_dir(folder / "x" / "y" / "z")


def assert_old_or_new(folder: Path) -> None:
    assert (folder / "file").read_bytes() in (OLD, NEW)
    assert os.readlink(folder / "link") in ("old", "new")
    assert not (folder / "tree").exists() or read_tree(folder / "tree") == TREE
    assert set(visible(folder)) <= {"archive", "file", "link", "tree", "x"}


def killed_at(number: int, act: Any, folder: Path) -> bool:
    """Run in a child that is killed before its change `number` to the filesystem; tell whether it was."""
    child = os.fork()
    if child == 0:
        left = [number]

        def step() -> None:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

        def watch(event: str, arguments: tuple[Any, ...]) -> None:
            if event in CHANGES and str(folder) in str(arguments[0]):
                step()

        try:
            sys.addaudithook(watch)
            act(folder, step)
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize(
    "act", [write, write_path, write_tree, extract, download, link, remove_tree, ensure_dir]
)
def test_killed_between_any_two_steps(act: Any, tmp_path: Path) -> None:
    for number in range(1000):
        folder = tmp_path / str(number)
        folder.mkdir()
        prepare(folder, act)
        was_killed = killed_at(number, act, folder)
        assert_old_or_new(folder)
        left = hidden(folder)
        assert len(left) <= was_killed
        act(folder, lambda: None)
        assert_old_or_new(folder)
        assert hidden(folder) == left, "a later caller leaves nothing behind"
        assert_done(folder, act)
        if not was_killed:
            assert number >= 3, "there are steps to be killed between"
            break


def assert_done(folder: Path, act: Any) -> None:
    if act in (write, write_path, download):
        assert (folder / "file").read_bytes() == NEW
    elif act in (write_tree, extract):
        assert read_tree(folder / "tree") == TREE
    elif act is remove_tree:
        assert not os.path.lexists(folder / "tree")
    elif act is link:
        assert os.readlink(folder / "link") == "new"
    else:
        assert (folder / "x" / "y" / "z").is_dir()


def test_the_same_check_catches_a_naive_write(tmp_path: Path) -> None:
    prepare(tmp_path, naive_write)
    assert killed_at(2, naive_write, tmp_path) or killed_at(1, naive_write, tmp_path)
    with pytest.raises(AssertionError):
        assert_old_or_new(tmp_path)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, OSError, ValueError])
@pytest.mark.parametrize("act", [write, write_path, write_tree, download])
def test_an_exception_leaves_the_old_and_nothing_else(act: Any, error: Any, tmp_path: Path) -> None:
    prepare(tmp_path, act)

    def step() -> None:
        raise error(error.__name__)

    with pytest.raises(error, match=error.__name__):
        act(tmp_path, step)
    assert (tmp_path / "file").read_bytes() == OLD
    assert sorted(os.listdir(tmp_path)) == ["archive", "file", "link"]


# the disk


@pytest.mark.parametrize("name", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("act", [write, write_path, download])
def test_an_error_of_any_step_leaves_the_old(act: Any, name: str, tmp_path: Path, monkeypatch: Any) -> None:
    prepare(tmp_path, act)
    (tmp_path / "file").chmod(0o640)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, name, full)
    with pytest.raises(OSError, match="No space"):
        act(tmp_path, lambda: None)
    monkeypatch.undo()
    assert (tmp_path / "file").read_bytes() == OLD
    assert hidden(tmp_path) == []


def limited(act: Any, folder: Path, prepare_child: Callable[[], None]) -> str:
    """Run in a child with less rights or room; give the name of the exception, or nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            prepare_child()
            act(folder, lambda: None)
        except (OSError, ValueError) as error:
            os.write(writing, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as stream:
        name = stream.read().decode()
    os.waitpid(child, 0)
    return name


@pytest.mark.parametrize("act", [write, write_path, write_tree, extract, download])
def test_no_room(act: Any, tmp_path: Path) -> None:
    prepare(tmp_path, act)

    def no_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    assert limited(act, tmp_path, no_room) == "OSError"
    assert (tmp_path / "file").read_bytes() == OLD
    assert sorted(os.listdir(tmp_path)) == ["archive", "file", "link"]


@pytest.mark.parametrize("act", [write, extract])
def test_a_full_disk(act: Any, tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small filesystem cannot be mounted here")
    try:
        prepare(tmp_path, act)
        with open(tmp_path / "filler", "wb", buffering=0) as stream, suppress(OSError):
            while stream.write(bytes(4096)):
                pass
        with pytest.raises(OSError, match="No space"):
            act(tmp_path, lambda: None)
        assert (tmp_path / "file").read_bytes() == OLD
        assert sorted(os.listdir(tmp_path)) == ["archive", "file", "filler", "link"]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Give a folder that other users can reach, which pytest's are not."""
    folder = (
        Path(os.path.realpath(os.environ.get("TMPDIR", "/tmp")))
        / f"fsrace-{os.getpid()}-{os.urandom(4).hex()}"
    )
    folder.mkdir()
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "act", [write, write_path, write_tree, extract, download, link, remove_tree, ensure_dir]
)
def test_a_read_only_directory(act: Any, open_folder: Path) -> None:
    prepare(open_folder, act)
    before = read_tree(open_folder)
    open_folder.chmod(0o555)

    def nobody() -> None:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

    assert limited(act, open_folder, nobody) == "PermissionError"
    assert read_tree(open_folder) == before
    assert hidden(open_folder) == []


def test_a_file_or_a_directory_in_the_way(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("there is nothing to wait for"))
    (tmp_path / "file").touch()
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "dangling").symlink_to("nowhere")
    make_tar(tmp_path / "archive")
    for path, error in (
        ("file", FileExistsError),
        ("file/x", NotADirectoryError),
        ("dangling", FileExistsError),
    ):
        with pytest.raises(error):
            safe.ensure_dir(tmp_path / path)
    with pytest.raises(NotADirectoryError):
        safe.extract_once(tmp_path / "archive", tmp_path / "file")
    with pytest.raises(IsADirectoryError):
        safe.download_once(lambda path: path.write_bytes(b""), tmp_path / "folder", digest="sha256:0")
    with pytest.raises((IsADirectoryError, PermissionError)):
        safe.remove(tmp_path / "folder")
    with pytest.raises(OSError, match="not empty"), safe.atomic_path(tmp_path / "folder") as made:
        made.mkdir()
    with pytest.raises(NotADirectoryError), safe.atomic_path(tmp_path / "file") as made:
        made.mkdir()
    with pytest.raises(FileNotFoundError), safe.atomic_path(tmp_path / "nothing"):
        pass
    assert sorted(os.listdir(tmp_path)) == ["archive", "dangling", "file", "folder"]


@pytest.mark.parametrize("sync", [True, False])
def test_content_is_on_the_disk_before_it_gets_its_name(sync: bool, tmp_path: Path, monkeypatch: Any) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def flushed(descriptor: int) -> None:
        steps.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def renamed(src: Any, dst: Any) -> None:
        steps.append("rename")
        replace(src, dst)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    make_tar(tmp_path / "archive")
    safe.extract_once(tmp_path / "archive", tmp_path / "tree", sync=sync)
    assert sorted(steps[:-2]) == (sorted(["a", "c", "e", "d", "b", "tree"]) if sync else [])
    assert steps[-2:] == (["rename", tmp_path.name] if sync else ["rename"])
    steps.clear()
    with safe.atomic_write(tmp_path / "file", sync=sync) as stream:
        stream.write("x")
        name = os.path.basename(stream.name)
    assert steps == ([name, "rename", tmp_path.name] if sync else ["rename"])
    assert f".{os.getpid()}." in name
