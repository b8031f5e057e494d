"""Barriers and collectives under the explorer: ordering, exchanged values, and deadlocks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from fsrace_lint.explore import ScenarioError, explore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def dist() -> Any:
    """Return `torch.distributed` as the code under test imports it."""
    import torch.distributed  # type: ignore[import-not-found,unused-ignore]

    return torch.distributed


def made_then_read(root: Path, rank: int) -> str:
    if rank == 0:
        (root / "state").write_text("made")
    dist().barrier()
    return (root / "state").read_text()


def gathered(root: Path, rank: int) -> list[object]:
    everybody: list[object] = [None] * dist().get_world_size()
    dist().all_gather_object(everybody, f"of {rank}")
    assert everybody == [f"of {other}" for other in range(3)]
    box = [rank, "x"] if rank == 1 else [None, None]
    dist().broadcast_object_list(box, src=1)
    assert box == [1, "x"]
    got: list[object] | None = [None] * 3 if rank == 2 else None
    dist().gather_object(rank, got, dst=2)
    assert got == ([0, 1, 2] if rank == 2 else None)
    return everybody


def test_barrier_orders_calls_before_and_after_it() -> None:
    result = explore(made_then_read, processes=3, distributed=True, agree=True)
    result.assert_ok()
    assert result.exhaustive


def test_collectives_deliver_values_to_every_rank() -> None:
    explore(gathered, processes=3, distributed=True, agree=True).assert_ok()


def test_rank_is_set_in_launcher_variables() -> None:
    def check_rank(root: Path, rank: int) -> None:
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
        assert [os.environ[name] for name in names] == [str(rank), str(rank), "2", "2"]
        assert (dist().get_rank(), dist().is_initialized(), dist().is_available()) == (rank, True, True)
        assert os.listdir(root) == []

    explore(check_rank, distributed=True).assert_ok()


def by_rank(root: Path, rank: int) -> None:
    if rank == 0:
        dist().barrier()


def by_file(root: Path, rank: int) -> None:
    if not os.path.exists(root / "state"):
        (root / "state").touch()
        dist().barrier()


def unlike(root: Path, rank: int) -> None:
    if rank == 0:
        dist().barrier()
    else:
        dist().all_gather_object([None, None], rank)


@pytest.mark.parametrize(
    ("function", "waiting"),
    [(by_rank, ["barrier"]), (by_file, ["barrier"]), (unlike, ["barrier", "all_gather_object"])],
)
def test_divergent_collective_is_a_deadlock_with_stacks(
    function: Callable[[Path, int], None], waiting: list[str]
) -> None:
    failure = explore(function, distributed=True).failure
    assert failure is not None
    assert failure.kind == "deadlock"
    for name in waiting:
        assert f"in {name}:" in failure.details
    assert failure.details.count(f"in {function.__name__}\n") == len(waiting)


def test_process_group_argument_is_rejected() -> None:
    with pytest.raises(ScenarioError, match="NotImplementedError"):
        explore(lambda root, rank: dist().barrier(group=[0]), distributed=True)


def test_barrier_does_not_wait_for_killed_process() -> None:
    explore(made_then_read, distributed=True, crash="kill").assert_ok()


def test_barrier_synchronizes_clocks() -> None:
    def slow(root: Path, rank: int) -> None:
        if rank == 0:
            time.sleep(100)
        dist().barrier()
        os.path.exists(root)
        assert time.monotonic() >= 100

    explore(slow, distributed=True).assert_ok()


def test_barrier_fails_without_distributed_option() -> None:
    from fsrace_lint import safe

    with pytest.raises(ScenarioError, match="RuntimeError"):
        explore(lambda root, rank: safe.barrier())


def test_explorer_is_importable_on_unsupported_platforms() -> None:
    code = """
import ctypes, gc, hashlib, itertools, math, msgspec, random, select, shutil, sys, tempfile, traceback
for name in ("posix", "fcntl"):
    sys.modules[name] = None
sys.platform = "win32"
from fsrace_lint.explore import ExploreError, explore
try:
    explore(lambda root, rank: None)
except ExploreError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "`prove` needs `os.fork()`, so it runs on Linux and macOS, not on win32\n", (
        done.stderr
    )
