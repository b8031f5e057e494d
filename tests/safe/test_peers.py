"""The safe helpers when peers and caches do what hurts most, at the moment when it does."""

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
    """Let the first calls of a function fail, or do something else first."""
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


def test_stale_answers_about_a_directory(tmp_path: Path, monkeypatch: Any) -> None:
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


def test_a_directory_that_a_peer_removes_in_between(tmp_path: Path, monkeypatch: Any) -> None:
    def remove() -> None:
        shutil.rmtree(tmp_path / "a")

    with failing(monkeypatch, os, "mkdir", lambda: None, lambda: None, remove) as calls:
        assert safe.ensure_dir(tmp_path / "a" / "b").is_dir()
    assert len(calls) > 3


def test_a_directory_that_cannot_be_read_is_there(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "there").mkdir()
    with failing(monkeypatch, os, "open", errno.EACCES):
        assert safe.ensure_dir(tmp_path / "there", timeout=0).is_dir()


def test_peers_that_add_to_a_tree_while_it_is_removed(tmp_path: Path, monkeypatch: Any) -> None:
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
def test_a_filesystem_that_cannot_rename_directories(number: int, tmp_path: Path, monkeypatch: Any) -> None:
    prepare(tmp_path, remove_tree)
    with failing(monkeypatch, os, "replace", number):
        safe.remove_tree(tmp_path / "tree")
    assert sorted(os.listdir(tmp_path)) == ["archive", "file", "link"]


def test_a_peer_removes_the_tree_first(tmp_path: Path, monkeypatch: Any) -> None:
    prepare(tmp_path, remove_tree)
    with failing(monkeypatch, os, "replace", lambda: shutil.rmtree(tmp_path / "tree")):
        safe.remove_tree(tmp_path / "tree")
    assert hidden(tmp_path) == []


def test_a_peer_extracts_first(tmp_path: Path, monkeypatch: Any) -> None:
    make_tar(tmp_path / "archive")

    def faster() -> None:
        monkeypatch.undo()
        safe.extract_once(tmp_path / "archive", tmp_path / "tree")

    with failing(monkeypatch, os, "replace", faster):
        safe.extract_once(tmp_path / "archive", tmp_path / "tree")
    assert (read_tree(tmp_path / "tree"), hidden(tmp_path)) == (TREE, [])


def test_a_peer_has_extracted_and_removed_the_archive(tmp_path: Path, monkeypatch: Any) -> None:
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


def test_an_empty_destination_is_replaced_and_a_filled_one_is_complete(tmp_path: Path) -> None:
    make_tar(tmp_path / "archive")
    (tmp_path / "empty").mkdir()
    (tmp_path / "filled").mkdir()
    (tmp_path / "filled" / "half").touch()
    (tmp_path / "link").symlink_to("empty")
    assert read_tree(safe.extract_once(tmp_path / "archive", tmp_path / "link")) == TREE
    assert read_tree(tmp_path / "empty") == TREE
    assert os.listdir(safe.extract_once(tmp_path / "archive", tmp_path / "filled")) == ["half"]
    assert read_tree(safe.extract_once(tmp_path / "archive", tmp_path / "new" / "parents")) == TREE


def test_waiting_opens_what_it_waits_for_and_says_what_it_saw(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(os, "stat", lambda *_, **__: pytest.fail("a stat may be stale"))
    with failing(monkeypatch, os, "open", errno.ENOENT, errno.ENOENT, errno.ESTALE, errno.ESTALE) as calls:
        assert safe.wait_for_path(tmp_path) == tmp_path
    assert [path for path, _ in calls] == [tmp_path.parent, tmp_path] * 3, "the directory first, each time"
    monkeypatch.undo()
    (tmp_path / "other").touch()
    with pytest.raises(TimeoutError, match=rf"after 0.01 s, 1 others in {tmp_path}"):
        safe.wait_for_path(tmp_path / "file", timeout=0.01)
    with pytest.raises(TimeoutError, match="nor is"):
        safe.wait_for_path(tmp_path / "no" / "file", timeout=0)
    with pytest.raises(NotADirectoryError):
        safe.wait_for_path(tmp_path / "other" / "file")
