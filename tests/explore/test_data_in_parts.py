"""Reads, writes, and copies of more than one page are two calls: others see nothing, a part, or all of it."""

from __future__ import annotations

import json
import os
import shutil
import time
from typing import TYPE_CHECKING

import pytest

from fsrace_lint.explore import explore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGE = 4096
BIG = 8 * PAGE


def write_bytes(root: Path) -> None:
    (root / "f").write_bytes(b"x" * BIG)


def write_descriptor(root: Path) -> None:
    assert os.write(os.open(root / "f", os.O_CREAT | os.O_WRONLY), b"x" * BIG) == BIG


def write_at(root: Path) -> None:
    assert os.pwrite(os.open(root / "f", os.O_CREAT | os.O_WRONLY), b"x" * BIG, 0) == BIG


def write_vector(root: Path) -> None:
    buffers = [b"x" * PAGE, b"x" * (BIG - PAGE)]
    assert os.writev(os.open(root / "f", os.O_CREAT | os.O_WRONLY), buffers) == BIG


def copy_file(root: Path) -> None:
    shutil.copyfile(root / "big", root / "f")


def send_file(root: Path) -> None:
    with open(root / "big", "rb") as source, open(root / "f", "wb") as target:
        assert os.sendfile(target.fileno(), source.fileno(), 0, 1 << 30) == BIG


def copy_range(root: Path) -> None:
    with open(root / "big", "rb") as source, open(root / "f", "wb") as target:
        assert os.copy_file_range(source.fileno(), target.fileno(), 1 << 30) == BIG


def with_big_file(root: Path) -> None:
    (root / "big").write_bytes(b"x" * BIG)


@pytest.mark.parametrize(
    "write", [write_bytes, write_descriptor, write_at, write_vector, copy_file, send_file, copy_range]
)
def test_file_that_is_not_empty_can_be_incomplete(write: Callable[[Path], None]) -> None:
    def wait_for_size(root: Path, rank: int) -> None:
        if rank == 0:
            write(root)
            return
        while not os.path.exists(root / "f") or not os.path.getsize(root / "f"):
            time.sleep(0.1)
        assert len((root / "f").read_bytes()) == BIG

    failure = explore(wait_for_size, setup=with_big_file).failure
    assert failure is not None
    assert failure.text.startswith("AssertionError in process 1")


@pytest.mark.parametrize("size", [1, PAGE, PAGE + 1, BIG])
def test_one_page_is_written_at_once(size: int) -> None:
    def look(root: Path, rank: int) -> None:
        if rank == 0:
            (root / "f").write_bytes(b"x" * size)
        elif os.path.exists(root / "f"):
            assert os.path.getsize(root / "f") in {0, size}

    assert explore(look).ok is (size <= PAGE)


def appended(root: Path, rank: int) -> None:
    descriptor = os.open(root / "log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(descriptor, str(rank).encode() * BIG)


def replaced(root: Path, rank: int) -> None:
    os.write(os.open(root / "log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC), str(rank).encode() * BIG)


def truncated(root: Path, rank: int) -> None:
    if rank == 0:
        appended(root, rank)
    elif os.path.exists(root / "log"):
        os.truncate(root / "log", 0)


def is_whole(root: Path) -> None:
    text = (root / "log").read_text()
    assert len(text) % BIG == 0
    assert text in {"", "0" * BIG, "1" * BIG, "0" * BIG + "1" * BIG, "1" * BIG + "0" * BIG}


@pytest.mark.parametrize("write", [appended, replaced, truncated])
def test_writers_of_one_file_exclude_each_other_on_local_filesystems_only(
    write: Callable[[Path, int], None],
) -> None:
    result = explore(write, check=is_whole)
    result.assert_ok()
    assert result.exhaustive
    failure = explore(write, check=is_whole, filesystem="nfs").failure
    assert failure is not None
    assert failure.kind == "check"


def test_killed_writer_leaves_half_and_no_lock() -> None:
    def sizes(root: Path) -> None:
        assert not (root / "log").exists() or (root / "log").stat().st_size % BIG == 0

    failure = explore(appended, crash="kill", check=sizes).failure
    assert failure is not None
    assert failure.kind == "crash"
    explore(appended, crash="kill", check=lambda root: None).assert_ok()


def test_read_to_the_end_can_mix_an_old_and_a_new_file() -> None:
    def setup(root: Path) -> None:
        (root / "f").write_text('{"a": 1}')

    def load(root: Path, rank: int) -> None:
        if rank == 0:
            (root / "f").write_text('{"a": 1000000}')
        else:
            text = (root / "f").read_text()
            assert not text or json.loads(text)

    failure = explore(load, setup=setup).failure
    assert failure is not None
    assert failure.text.startswith("JSONDecodeError in process 1: Extra data")


def test_read_of_multiple_pages_can_see_a_later_change_without_an_earlier_one() -> None:
    def change(root: Path, rank: int) -> None:
        descriptor = os.open(root / "big", os.O_RDWR)
        if rank == 0:
            os.pwrite(descriptor, b"1", 0)
            os.pwrite(descriptor, b"1", BIG - 1)
        else:
            found = os.read(descriptor, BIG)
            assert found[-1:] == b"x" or found[:1] == b"1"

    assert not explore(change, setup=with_big_file).ok
