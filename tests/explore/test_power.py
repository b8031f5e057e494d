"""Power failures: data and names that were not synced are lost, in all ways that the model allows."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from support.exploring import directed
from support.programs import Program, checked, scenario_of

from fsrace_lint.explore import explore
from fsrace_lint.explore.running import power_loss
from fsrace_lint.explore.running.crashes import Crashes
from fsrace_lint.explore.search.bounded import Bounded
from fsrace_lint.explore.search.dpor import Dpor

if TYPE_CHECKING:
    from fsrace_lint.explore import Result
    from fsrace_lint.explore.running.verdict import Failure
    from fsrace_lint.explore.scenario import Scenario

BLOCK = 4096
Function = Callable[[Path, int], object]


def lost(result: Result) -> str:
    """Return what the report says that the disk has lost, or "" if nothing fails."""
    if result.failure is None:
        return ""
    return result.failure.text.partition("(if power fails after the last step: ")[2].removesuffix(")")


def write(path: Path, data: str = "new", *, sync: bool = True) -> None:
    with open(path, "w") as stream:
        stream.write(data)
        stream.flush()
        if sync:
            os.fsync(stream.fileno())


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def old_state(root: Path) -> None:
    (root / "state").write_text("old")


def is_whole(root: Path) -> None:
    assert (root / "state").read_text() in ("old", "new")


def later_needs_earlier(root: Path) -> None:
    assert (root / "a").exists() or not (root / "b").exists()


def marked_is_new(root: Path) -> None:
    """Expect what was promised before the mark was set."""
    assert not (root / "mark").exists() or (root / "state").read_text() == "new"


def replace_unsynced(root: Path, _: int) -> None:
    write(root / "tmp", sync=False)
    os.replace(root / "tmp", root / "state")


def replace(root: Path, _: int) -> None:
    write(root / "tmp")
    os.replace(root / "tmp", root / "state")


def replace_and_mark(root: Path, rank: int) -> None:
    replace(root, rank)
    (root / "mark").mkdir()


def replace_durably_and_mark(root: Path, rank: int) -> None:
    replace(root, rank)
    sync_directory(root)
    (root / "mark").mkdir()


def make_both(root: Path, _: int) -> None:
    (root / "a").mkdir()
    (root / "b").mkdir()


def make_both_durably(root: Path, _: int) -> None:
    (root / "a").mkdir()
    os.sync()
    (root / "b").mkdir()


def rename_into_new_directory(root: Path, _: int) -> None:
    (root / "d").mkdir()
    write(root / "tmp")
    os.rename(root / "tmp", root / "d" / "state")
    sync_directory(root / "d")
    os.unlink(root / "state")
    sync_directory(root)


def has_state(root: Path) -> None:
    assert (root / "state").exists() or (root / "d" / "state").exists()


@pytest.mark.parametrize(
    ("function", "check", "crash", "said"),
    [
        (replace_unsynced, is_whole, "kill", ""),
        (
            replace_unsynced,
            is_whole,
            "power",
            "`replace tmp -> state` is on the disk, but 0 of 3 bytes of state are",
        ),
        (replace, is_whole, "power", ""),
        (replace, is_whole, "power-unordered", ""),
        (replace_and_mark, marked_is_new, "power", ""),
        (replace_and_mark, marked_is_new, "power-unordered", "`replace tmp -> state` is not on the disk"),
        (replace_durably_and_mark, marked_is_new, "power-unordered", ""),
        (make_both, later_needs_earlier, "power", ""),
        (make_both, later_needs_earlier, "power-unordered", "`mkdir a` is not on the disk"),
        (make_both_durably, later_needs_earlier, "power-unordered", ""),
        (rename_into_new_directory, has_state, "power", ""),
        (rename_into_new_directory, has_state, "power-unordered", "`mkdir d` is not on the disk"),
    ],
)
def test_names_are_lost_unless_their_directory_is_synced(
    function: Function, check: Callable[[Path], None], crash: str, said: str
) -> None:
    result = explore(function, processes=1, setup=old_state, check=check, crash=crash)
    assert lost(result) == said
    assert result.exhaustive is not bool(said)


@pytest.mark.parametrize("crash", ["power", "power-unordered"])
def test_created_name_is_lost_though_its_file_was_synced(crash: str) -> None:
    """POSIX: fsync of a file says nothing about its name."""

    def check(root: Path) -> None:
        assert (root / "log").read_text() == "" or (root / "state").exists()

    def function(root: Path, _: int) -> None:
        write(root / "state")
        write(root / "log", "1")

    result = explore(
        function, processes=1, setup=lambda root: (root / "log").touch(), check=check, crash=crash
    )
    assert lost(result).startswith("`open[w] state` is not on the disk")


@pytest.mark.parametrize("flags", [0, os.O_SYNC, os.O_DSYNC])
def test_synchronous_writes_are_on_the_disk(flags: int) -> None:
    def function(root: Path, _: int) -> None:
        descriptor = os.open(root / "tmp", os.O_WRONLY | os.O_CREAT | flags)
        os.write(descriptor, b"new")
        os.close(descriptor)
        os.replace(root / "tmp", root / "state")

    result = explore(function, processes=1, setup=old_state, check=is_whole, crash="power")
    assert result.ok is bool(flags)


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="this system has no `O_TMPFILE`")
def test_nameless_file_that_was_synced_keeps_its_data() -> None:
    def function(root: Path, rank: int) -> None:
        descriptor = os.open(root, os.O_WRONLY | os.O_TMPFILE)
        os.write(descriptor, b"new")
        if rank == 0:
            os.fsync(descriptor)
        os.link(f"/proc/self/fd/{descriptor}", root / "state", src_dir_fd=descriptor)

    def check(root: Path) -> None:
        assert not (root / "state").exists() or (root / "state").read_text() == "new"

    assert explore(function, processes=1, check=check, crash="power").ok
    unsynced = explore(lambda root, _: function(root, 1), processes=1, check=check, crash="power")
    assert lost(unsynced).endswith("but 0 of 3 bytes of state are")


def test_multiple_files_lose_data_at_once() -> None:
    def function(root: Path, _: int) -> None:
        write(root / "a", sync=False)
        write(root / "b", sync=False)
        (root / "mark").mkdir()

    def one_copy(root: Path) -> None:
        assert not (root / "mark").exists() or any((root / name).read_text() == "new" for name in "ab")

    assert "bytes of a" in lost(explore(function, processes=1, check=one_copy, crash="power"))


def test_later_write_is_on_the_disk_without_an_earlier_one() -> None:
    def function(root: Path, _: int) -> None:
        with open(root / "state", "r+b", buffering=0) as stream:
            stream.write(b"data")
            stream.seek(8)
            stream.write(b"done")

    def check(root: Path) -> None:
        data = (root / "state").read_bytes()
        assert not data.endswith(b"done") or data.startswith(b"data")

    def empty(root: Path) -> None:
        (root / "state").write_bytes(b"." * 12)

    result = explore(function, processes=1, setup=empty, check=check, crash="power")
    assert lost(result) == "a write to state is not, and a later one is on the disk"


@pytest.mark.parametrize(
    ("crash", "said"),
    [("power", ""), ("power-unordered", "a write to log is not, and a later one is on the disk")],
)
def test_appended_data_is_in_order_if_names_are(crash: str, said: str) -> None:
    def function(root: Path, _: int) -> None:
        with open(root / "log", "ab", buffering=0) as stream:
            stream.write(b"1111")
            stream.write(b"2222")

    def check(root: Path) -> None:
        assert b"\0" not in (root / "log").read_bytes()

    result = explore(
        function, processes=1, setup=lambda root: (root / "log").touch(), check=check, crash=crash
    )
    assert lost(result) == said


@pytest.mark.parametrize(
    ("before", "after", "torn"),
    [
        (b"", b"abcd", b"ab"),
        (b"abcd", b"ab12", b"ab1d"),
        (b"ab", b"abcdef", b"abcd"),
        (b"", b"x" * (3 * BLOCK + 1), b"x" * BLOCK),
        (b"y" * 4 * BLOCK, b"x" * 4 * BLOCK, b"x" * 2 * BLOCK + b"y" * 2 * BLOCK),
    ],
)
def test_write_is_torn_in_its_middle_or_between_blocks(before: bytes, after: bytes, torn: bytes) -> None:
    assert power_loss.torn(before, after) == torn


def test_data_of_a_deleted_file_returns_with_its_name() -> None:
    def function(root: Path, _: int) -> None:
        os.unlink(root / "state")
        write(root / "state", "other")

    def check(root: Path) -> None:
        assert not (root / "state").exists() or (root / "state").read_text() in ("old", "other", "", "ot")

    assert explore(function, processes=1, setup=old_state, check=check, crash="power").ok


def test_report_says_that_there_were_too_many_states() -> None:
    def function(root: Path, _: int) -> None:
        for number in range(5):
            write(root / str(number), sync=False)

    result = explore(function, processes=1, check=lambda root: None, crash="power")
    assert not result.exhaustive
    assert "more than the 64 states" in str(result)


def test_data_can_be_lost_just_before_a_sync_while_another_process_goes_on() -> None:
    def function(root: Path, rank: int) -> None:
        if rank == 1:
            (root / "b").mkdir()
            return
        descriptor = os.open(root / "state", os.O_WRONLY)
        os.write(descriptor, b"new")
        os.fsync(descriptor)

    def check(root: Path) -> None:
        assert not (root / "b").exists() or (root / "state").read_text() in ("old", "new")

    assert "last write to state" in lost(explore(function, setup=old_state, check=check, crash="power"))


def states(scenario: Scenario, search: Callable[..., Dpor | Bounded], most: int | None) -> set[bytes] | None:
    """Return the fingerprints of all trees that the check gets, or None if a bound was reached."""
    with directed(scenario) as director:
        systematic = search(director)
        runs = list(itertools.islice(systematic.runs(), most))
        is_all = systematic.is_exhausted and {run.bound for run in runs} == {""}
        return set(runs[-1].stage.verdicts) if is_all else None


def assert_same_states(program: Program, crash: str) -> None:
    scenario = scenario_of(program, crash=crash, check=lambda root: None)
    every = states(scenario, lambda director: Bounded(director, None), 400)
    assume(every is not None)
    assert states(scenario, Dpor, None) == every


CHANGES = ["mkdir d", "mkdir d/e", "overwrite f", "append f", "unlink f", "rename f", "rename d", "create x"]
CHANGES += ["link f", "symlink s", "sync f", "sync d", "sync", "exists d"]
changes = st.lists(st.sampled_from(CHANGES), min_size=1, max_size=2)


@checked
@given(st.lists(changes, min_size=2, max_size=2), st.sampled_from(["power", "power-unordered"]))
@example([["append f"], ["rename f", "sync d"]], "power")
def test_reduction_finds_every_state_of_the_disk(program: Program, crash: str) -> None:
    assert_same_states(program, crash)


@checked
@given(
    st.lists(changes.map(lambda calls: calls[:1]), min_size=3, max_size=3), st.sampled_from(["kill", "power"])
)
@example([["mkdir d/e"], ["create x"], ["symlink s"]], "kill")
def test_reduction_finds_every_state_after_three_processes_are_killed(program: Program, crash: str) -> None:
    assert_same_states(program, crash)


def test_failure_in_another_order_has_a_schedule() -> None:
    """Nothing orders the three calls, so one run stands for all orders."""

    def function(root: Path, rank: int) -> None:
        (root / "abc"[rank]).mkdir()

    def check(root: Path) -> None:
        assert os.listdir(root) != ["c"], "only c"

    result = explore(function, processes=3, check=check, crash="kill")
    assert result.failure is not None
    assert [move.target for move in result.failure.moves if move.name == "mkdir"] == ["c"]
    assert explore(function, check=check, crash="kill", replay=result.failure.token).failure is not None


def test_write_that_is_not_seen_is_on_the_disk_or_lost() -> None:
    def function(root: Path, _: int) -> None:
        (root / "tmp").touch()
        written = os.path.getsize(root / "tmp")
        thread = threading.Thread(target=lambda: (root / "tmp").write_text("new"))
        thread.start()
        thread.join()
        assert written == 0
        os.replace(root / "tmp", root / "state")

    result = explore(function, processes=1, setup=old_state, check=is_whole, crash="power")
    assert lost(result).endswith("but 0 of 3 bytes of state are")


@checked
@given(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=5))
@example(["rename d", "mkdir d", "unlink f", "create x", "link f"])
def test_derived_tree_is_the_real_one(calls: list[str]) -> None:
    """The state in which nothing is lost, derived from the steps of the run, is the tree on the disk."""
    compared = []

    def compare(crashes: Crashes) -> Failure | None:
        journal = crashes.journal
        assert journal is not None
        contents = {number: data for step in journal.steps for number, data in step.data}
        tree = journal.tree(journal.steps, journal.steps, contents)
        compared.append(crashes.stage.fingerprint(tree) == crashes.stage.fingerprint())
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Crashes, "after_last_step", compare)
        scenario = scenario_of([["overwrite f", *calls]], crash="power", check=lambda root: None)
        with directed(scenario) as director:
            list(Dpor(director).runs())
    assert compared
    assert all(compared)
