"""Network filesystems: what each level of the model adds, and that each leaves out what the others find."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.programs import (
    Program,
    assert_same_outcomes,
    checked,
    outcomes_of_all_orders,
    reduced,
    scenario_of,
)

from fsrace_lint.explore import explore
from fsrace_lint.explore.scenario import FILESYSTEMS

Function = Callable[[Path, int], object]


def old_state(root: Path) -> None:
    (root / "state").write_text("old")


def is_done(root: Path) -> bool:
    """Return whether another process is done, as the server knows, and not a cache."""
    try:
        os.close(os.open(root / "done", os.O_RDONLY))
    except FileNotFoundError:
        return False
    return True


def make_directory(root: Path, _: int) -> None:
    os.makedirs(root / "d", exist_ok=True)


def append(root: Path) -> None:
    with open(root / "state", "a") as stream:
        stream.write("more")
    (root / "done").touch()


def look_for_size(root: Path, rank: int) -> None:
    if rank == 0:
        return append(root)
    assert not is_done(root) or os.stat(root / "state").st_size == 7
    return None


def look_for_size_of_open_file(root: Path, rank: int) -> None:
    if rank == 0:
        return append(root)
    with open(root / "state") as stream:
        assert not is_done(root) or os.fstat(stream.fileno()).st_size == 7
    return None


def read_through_open_file(root: Path, rank: int) -> None:
    if rank == 0:
        return append(root)
    with open(root / "state") as stream:
        assert not is_done(root) or stream.read() == "oldmore"
    return None


def reopen_to_read(root: Path, rank: int) -> None:
    """Open the file again, which asks the server."""
    if rank == 0:
        return append(root)
    with open(root / "state") as stream:
        if is_done(root):
            assert (root / "state").read_text() == "oldmore"
            assert stream.read() == "oldmore"
    return None


def replace_while_read(root: Path, rank: int) -> None:
    if rank == 0:
        (root / "tmp").write_text("new")
        os.replace(root / "tmp", root / "state")
    else:
        with open(root / "state") as stream:
            assert stream.read() in ("old", "new")


def delete_directory_with_open_file(root: Path, _: int) -> None:
    (root / "d").mkdir()
    with open(root / "d" / "x", "w"):
        os.unlink(root / "d" / "x")
        os.rmdir(root / "d")


def increment_under_lock(root: Path, _: int) -> None:
    with open(root / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        count = (root / "state").read_text()
        (root / "state").write_text(count + "+")


def both_counted(root: Path) -> None:
    assert (root / "state").read_text() == "old++"


FOUND: dict[Function, set[str]] = {
    make_directory: {"nfs-names", "nfs"},
    look_for_size: {"nfs-attributes", "nfs-names", "nfs"},
    look_for_size_of_open_file: {"nfs-attributes", "nfs-names", "nfs"},
    read_through_open_file: {"nfs-data", "nfs"},
    reopen_to_read: set(),
    replace_while_read: {"nfs-handles", "nfs"},
    delete_directory_with_open_file: {"nfs-handles", "nfs"},
}


@pytest.mark.exhaustive(4)
@pytest.mark.parametrize("filesystem", FILESYSTEMS)
@pytest.mark.parametrize("function", FOUND)
def test_level_finds_only_its_own_failures(function: Function, filesystem: str) -> None:
    processes = 1 if function is delete_directory_with_open_file else 2
    result = explore(function, processes=processes, setup=old_state, filesystem=filesystem)
    assert result.ok is (filesystem not in FOUND[function])
    assert result.exhaustive is result.ok


@pytest.mark.parametrize(
    ("filesystem", "fails"),
    [("nfs-handles", False), ("nfs-nolock", True), ("nfs-attributes,nfs-nolock", True)],
)
def test_lock_excludes_nobody_without_a_lock_manager(filesystem: str, fails: bool) -> None:
    result = explore(
        increment_under_lock, setup=old_state, check=both_counted, filesystem=filesystem, shrink=False
    )
    assert result.ok is not fails
    if result.failure is not None:
        assert result.failure.token.startswith(f"fsr1.2{filesystem}.")
        again = explore(
            increment_under_lock, setup=old_state, check=both_counted, replay=result.failure.token
        )
        assert again.failure is not None


@pytest.mark.parametrize("take", [fcntl.flock, fcntl.lockf])
def test_local_lock_excludes_within_its_process(take: Callable[[int, int], object]) -> None:
    def function(root: Path, _: int) -> str:
        one, two = (os.open(root / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
        take(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            take(two, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return "excluded"
        return "shared"

    def expected(root: Path, rank: int) -> None:
        assert function(root, rank) == ("excluded" if take is fcntl.flock else "shared")

    assert explore(expected, processes=1, filesystem="nfs-nolock").ok


def test_stale_handle_is_named_in_the_report() -> None:
    failure = explore(replace_while_read, setup=old_state, filesystem="nfs-handles").failure
    assert failure is not None
    assert failure.text.startswith(f"OSError in process 1: [Errno {errno.ESTALE}]")
    assert explore(replace_while_read, setup=old_state, replay=failure.token).failure is not None


def test_deleted_open_file_keeps_a_hidden_name_until_it_is_closed() -> None:
    def function(root: Path, _: int) -> None:
        descriptor = os.open(root / "state", os.O_RDONLY)
        os.unlink(root / "state")
        (hidden,) = os.listdir(root)
        assert hidden.startswith(".nfs")
        with pytest.raises(OSError, match="busy"):
            os.unlink(root / hidden)
        assert os.read(descriptor, 9) == b"old"
        os.close(descriptor)
        assert os.listdir(root) == []

    assert explore(function, processes=1, setup=old_state, filesystem="nfs-handles").ok


def test_replaced_open_file_keeps_a_hidden_name() -> None:
    def function(root: Path, _: int) -> None:
        (root / "tmp").write_text("new")
        with open(root / "state") as stream:
            os.replace(root / "tmp", root / "state")
            assert len(os.listdir(root)) == 2
            assert stream.read() == "old"
        assert os.listdir(root) == ["state"]

    assert explore(function, processes=1, setup=old_state, filesystem="nfs").ok


def test_hidden_name_does_not_outlive_its_process() -> None:
    def function(root: Path, _: int) -> None:
        os.open(root / "state", os.O_RDONLY)
        os.unlink(root / "state")

    def check(root: Path) -> None:
        assert os.listdir(root) == []

    assert explore(function, processes=1, setup=old_state, check=check, filesystem="nfs").ok


def test_stale_read_moves_the_position_of_the_file() -> None:
    def function(root: Path, rank: int) -> None:
        if rank == 0:
            return append(root)
        descriptor = os.open(root / "state", os.O_RDONLY)
        if is_done(root):
            os.read(descriptor, 2)
            assert os.lseek(descriptor, 0, os.SEEK_CUR) == 2
            data = os.pread(descriptor, 3, 2) + os.read(descriptor, 9)
            assert data == b"dmodmore", data
        return None

    result = explore(function, setup=old_state, filesystem="nfs-data")
    assert result.failure is not None
    assert "process 1: b'ddmore'" in result.failure.text


def test_lock_refreshes_the_data_of_an_open_file() -> None:
    def function(root: Path, rank: int) -> None:
        with open(root / "state", "r+") as stream:
            for _ in range(2):
                fcntl.flock(stream, fcntl.LOCK_EX)
                stream.seek(0)
                count = stream.read()
                stream.seek(0)
                stream.write(count + str(rank))
                stream.flush()
                fcntl.flock(stream, fcntl.LOCK_UN)

    def check(root: Path) -> None:
        assert sorted((root / "state").read_text()) == sorted("old0011")

    result = explore(function, setup=old_state, check=check, filesystem="nfs-data")
    assert result.ok
    assert result.exhaustive


READS = st.sampled_from(["read held", "size of held", "exists d", "unlink f"])
CHANGES = st.sampled_from(["append f", "overwrite f", "unlink f", "rename f", "mkdir d"])


def test_reduction_finds_a_handle_that_becomes_stale_at_a_close() -> None:
    """The last name of the deleted file vanishes when the process that deleted it closes it."""
    scenario = scenario_of([["hold f", "unlink f", "exists d"], ["append f"]], filesystem="nfs-handles")
    assert reduced(scenario) == outcomes_of_all_orders(scenario)


@checked
@given(st.lists(READS, min_size=1, max_size=2), st.lists(CHANGES, min_size=1, max_size=2))
@example(["exists d", "read held"], ["append f", "mkdir d"])
@example(["read held"], ["unlink f"])
def test_reduction_finds_every_outcome_with_open_files(reads: list[str], changes: list[str]) -> None:
    program: Program = [["hold f", *reads], changes]
    assert_same_outcomes(scenario_of(program, filesystem="nfs"))
