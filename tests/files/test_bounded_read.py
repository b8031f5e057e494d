"""Reading of small files: whatever the path names, no file descriptor remains open."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from support.bad_input import posix

from fsrace_lint.engine.store import seal
from fsrace_lint.files.bounded_read import LARGEST, read

if TYPE_CHECKING:
    from pathlib import Path


def left_open(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the file descriptors that `os.open()` returns from now on."""
    opened: list[int] = []
    real = os.open

    def record(*args: object, **keywords: object) -> int:
        opened.append(real(*args, **keywords))  # type: ignore[arg-type]
        return opened[-1]

    monkeypatch.setattr(os, "open", record)
    return opened


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_content_is_returned(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\r\nb")
    assert read(tmp_path / "a") == b"a\r\nb"


@posix
@pytest.mark.parametrize("kind", ["file", "directory", "pipe", "large"])
def test_no_descriptor_remains_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    path = tmp_path / kind
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.touch()
        os.truncate(path, LARGEST + 1 if kind == "large" else 0)
    opened = left_open(monkeypatch)
    if kind == "file":
        read(path)
    else:
        with pytest.raises(OSError, match=r"regular file|directory|limit"):
            read(path)
    assert len(opened) == 1
    assert not is_open(opened[0])


@posix
def test_directory_in_place_of_the_cache_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache.key").mkdir()
    opened = left_open(monkeypatch)
    seal.read_key.cache_clear()
    with pytest.raises(OSError, match="directory"):
        seal.read_key(str(tmp_path))
    assert len(opened) == 1
    assert not is_open(opened[0])
