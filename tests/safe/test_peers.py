"""The safe helpers with adversarial peers and stale caches."""

from __future__ import annotations

import errno
import os
import shutil
import tarfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from support.trees import TREE, hidden, make_tar, prepare, read_tree, remove_tree, visible

from fsrace_lint import safe

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def failing(monkeypatch: Any, module: Any, name: str, *errors: Any) -> Iterator[list[Any]]:
    """Make the first calls of a function fail, or run something else before them."""
    calls: list[Any] = []
    original = getattr(module, name)

    def replacement(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) <= len(errors):
            error = errors[len(calls) - 1]
            if isinstance(error, int):
                raise OSError(error, os.strerror(error), str(args[0]))
            error()
        return original(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, replacement)
        yield calls


def test_ensure_dir_retries_stale_answers(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "there").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os.path, "isdir", lambda _: False)
        with pytest.raises(FileExistsError):
            os.makedirs(tmp_path / "there", exist_ok=True)
        there = safe.ensure_dir(tmp_path / "there", timeout=0)
    assert there.is_dir()
    with failing(monkeypatch, os, "mkdir", errno.ESTALE, errno.EEXIST, errno.ENOENT) as calls:
        assert safe.ensure_dir(tmp_path / "new").is_dir()
    assert len(calls) > 3
    with failing(monkeypatch, os, "open", errno.ESTALE, errno.ENOENT) as calls:
        assert safe.ensure_dir(tmp_path / "there").is_dir()
    assert len(calls) == 3
    with failing(monkeypatch, os, "mkdir", *[errno.EEXIST] * 1000), pytest.raises(FileExistsError):
        safe.ensure_dir(tmp_path / "never", timeout=0.01)


def test_ensure_dir_recreates_directory_removed_by_peer(tmp_path: Path, monkeypatch: Any) -> None:
    def remove() -> None:
        shutil.rmtree(tmp_path / "a")

    with failing(monkeypatch, os, "mkdir", lambda: None, lambda: None, remove) as calls:
        assert safe.ensure_dir(tmp_path / "a" / "b").is_dir()
    assert len(calls) > 3


def test_ensure_dir_accepts_unreadable_directory(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "there").mkdir()
    with failing(monkeypatch, os, "open", errno.EACCES):
        assert safe.ensure_dir(tmp_path / "there", timeout=0).is_dir()


def test_remove_tree_retries_when_peers_add_files(tmp_path: Path, monkeypatch: Any) -> None:
    for errors in ((errno.ENOTEMPTY, errno.ENOENT, errno.ESTALE), ()):
        (tmp_path / "tree" / "a").mkdir(parents=True)
        with failing(monkeypatch, shutil, "rmtree", *errors):
            safe.remove_tree(tmp_path / "tree")
        assert os.listdir(tmp_path) == []
    (tmp_path / "tree").mkdir()
    with (
        failing(monkeypatch, shutil, "rmtree", *[errno.ENOTEMPTY] * 1000),
        pytest.raises(OSError, match="not empty"),
    ):
        safe.remove_tree(tmp_path / "tree", timeout=0.01)
    with failing(monkeypatch, shutil, "rmtree", errno.EACCES), pytest.raises(PermissionError):
        safe.remove_tree(tmp_path / hidden(tmp_path)[0])
    assert visible(tmp_path) == []


@pytest.mark.parametrize("number", [errno.EXDEV, errno.ENOSYS])
def test_remove_tree_without_directory_rename(number: int, tmp_path: Path, monkeypatch: Any) -> None:
    prepare(tmp_path, remove_tree)
    with failing(monkeypatch, os, "replace", number):
        safe.remove_tree(tmp_path / "tree")
    assert sorted(os.listdir(tmp_path)) == ["archive", "file", "link"]


def test_remove_tree_accepts_tree_removed_by_peer(tmp_path: Path, monkeypatch: Any) -> None:
    prepare(tmp_path, remove_tree)
    with failing(monkeypatch, os, "replace", lambda: shutil.rmtree(tmp_path / "tree")):
        safe.remove_tree(tmp_path / "tree")
    assert hidden(tmp_path) == []


def test_extract_once_uses_tree_extracted_by_peer(tmp_path: Path, monkeypatch: Any) -> None:
    make_tar(tmp_path / "archive")

    def faster() -> None:
        monkeypatch.undo()
        safe.extract_once(tmp_path / "archive", tmp_path / "tree")

    with failing(monkeypatch, os, "replace", faster):
        safe.extract_once(tmp_path / "archive", tmp_path / "tree")
    assert (read_tree(tmp_path / "tree"), hidden(tmp_path)) == (TREE, [])


def test_extract_once_accepts_archive_removed_by_peer(tmp_path: Path, monkeypatch: Any) -> None:
    def faster() -> None:
        monkeypatch.undo()
        safe.extract_once(make_tar(tmp_path / "archive"), tmp_path / "tree")
        (tmp_path / "archive").unlink()

    with failing(monkeypatch, tarfile, "is_tarfile", faster):
        safe.extract_once(tmp_path / "archive", tmp_path / "tree")
    assert read_tree(tmp_path / "tree") == TREE
    with pytest.raises(FileNotFoundError):
        safe.extract_once(tmp_path / "archive", tmp_path / "other")
    assert os.listdir(tmp_path) == ["tree"]


def test_extract_once_fills_empty_destination_and_keeps_filled_one(tmp_path: Path) -> None:
    make_tar(tmp_path / "archive")
    (tmp_path / "empty").mkdir()
    (tmp_path / "filled").mkdir()
    (tmp_path / "filled" / "half").touch()
    (tmp_path / "link").symlink_to("empty")
    assert read_tree(safe.extract_once(tmp_path / "archive", tmp_path / "link")) == TREE
    assert read_tree(tmp_path / "empty") == TREE
    assert os.listdir(safe.extract_once(tmp_path / "archive", tmp_path / "filled")) == ["half"]
    assert read_tree(safe.extract_once(tmp_path / "archive", tmp_path / "new" / "parents")) == TREE


def test_wait_for_path_opens_path_and_timeout_describes_directory(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(os, "stat", lambda *_, **__: pytest.fail("a stat may be stale"))
    with failing(monkeypatch, os, "open", errno.ENOENT, errno.ENOENT, errno.ESTALE, errno.ESTALE) as calls:
        assert safe.wait_for_path(tmp_path) == tmp_path
    assert [path for path, _ in calls] == [tmp_path.parent, tmp_path] * 3, "the directory first, each time"
    monkeypatch.undo()
    (tmp_path / "other").touch()
    with pytest.raises(TimeoutError, match=rf"file after 0.01 s \(entries in {tmp_path}: 1 found\)"):
        safe.wait_for_path(tmp_path / "file", timeout=0.01)
    with pytest.raises(TimeoutError, match="missing or unreadable"):
        safe.wait_for_path(tmp_path / "no" / "file", timeout=0)
    with pytest.raises(NotADirectoryError):
        safe.wait_for_path(tmp_path / "other" / "file")
