"""How certain it is that ranks disagree before a collective.

Shows: `analysis/synchronization/divergence_causes.py`
"""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from support.mdtest import run

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
import os
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
"""


def confidence(root: Path, text: str) -> str:
    """Return the confidence of the only divergent collective."""
    (root / "main.py").write_text(HEAD + dedent(text), "utf-8")
    _, checked = run(root)
    (found,) = (each for each in checked.outcome.findings if each.code in {"FSR402", "FSR403"})
    return found.confidence


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            """
            def prepare(folder):
                if not os.path.exists(folder):
                    if dist.get_rank() == 0:
                        os.makedirs(folder)
                    dist.barrier()
            """,
            id="created in the branch",
        ),
        pytest.param(
            """
            def prepare(tensor):
                if dist.get_rank() == 0:
                    torch.save(tensor, "state.pt")
                if os.path.exists("state.pt"):
                    dist.all_reduce(tensor)
            """,
            id="written without a barrier",
        ),
        pytest.param(
            """
            def prepare(tensor):
                if os.path.exists("state.pt"):
                    dist.all_reduce(tensor)
                if dist.get_rank() == 0:
                    os.remove("state.pt")
            """,
            id="deleted later without a barrier",
        ),
        pytest.param(
            """
            def load(path, tensor):
                if os.path.exists(path):
                    dist.all_reduce(tensor)


            def ordered(tensor):
                torch.save(tensor, "state.pt")
                dist.barrier()
                load("state.pt", tensor)


            def unordered(tensor):
                if dist.get_rank() == 0:
                    torch.save(tensor, "state.pt")
                load("state.pt", tensor)
            """,
            id="written without a barrier by one of two callers",
        ),
        pytest.param(
            """
            def prepare(tensor):
                if os.path.exists("/tmp/state.pt"):
                    dist.all_reduce(tensor)
            """,
            id="node-local",
        ),
        pytest.param(
            """
            def prepare(tensor, end):
                if time.time() > end:
                    dist.all_reduce(tensor)
            """,
            id="clock",
        ),
        pytest.param(
            """
            def prepare(tensor):
                try:
                    os.mkdir("run")
                except FileExistsError:
                    return
                dist.all_reduce(tensor)
            """,
            id="only one rank can create it",
        ),
        pytest.param(
            """
            def prepare(tensor):
                if dist.get_rank() == 0:
                    torch.save(tensor, "data/state.pt")
                for name in os.listdir("data"):
                    dist.all_reduce(tensor)
            """,
            id="loop over a directory in which one rank creates a file",
        ),
        pytest.param(
            """
            def prepare(path, build, tensor):
                if os.path.exists(path):
                    return
                print("building")
                build(path)
                dist.all_reduce(tensor)
            """,
            id="passed to unknown code because it is missing",
        ),
        pytest.param(
            """
            def prepare(path, build, tensor):
                if not os.path.exists(path):
                    build(options={"target": path})
                    dist.all_reduce(tensor)
            """,
            id="passed in a dictionary because it is missing",
        ),
        pytest.param(
            """
            from speechbrain.utils.distributed import run_on_main


            def prepare(path, train):
                if not os.path.exists(path):
                    run_on_main(train)
            """,
            id="one rank runs an unknown function because it is missing",
        ),
    ],
)
def test_the_program_changes_what_ranks_check(text: str, tmp_path: Path) -> None:
    assert confidence(tmp_path, text) == "high"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            """
            def resume(path, tensor):
                if os.path.exists(path):
                    dist.all_reduce(tensor)
            """,
            id="checkpoint of an earlier run",
        ),
        pytest.param(
            """
            def train(path, tensor):
                if os.path.exists(path):
                    dist.all_reduce(tensor)
                for _ in range(3):
                    if dist.get_rank() == 0:
                        torch.save(tensor, path)
            """,
            id="saved later in the training loop",
        ),
        pytest.param(
            """
            def load(path, tensor):
                try:
                    torch.load(path)
                except FileNotFoundError:
                    return
                dist.all_reduce(tensor)
            """,
            id="handler of a file error",
        ),
        pytest.param(
            """
            def load(path, tensor):
                try:
                    torch.load(path)
                except Exception:
                    return
                dist.all_reduce(tensor)
            """,
            id="handler of any error",
        ),
        pytest.param(
            """
            def load(path, read, tensor):
                if not os.path.exists(path):
                    read("defaults.json")
                    dist.all_reduce(tensor)
            """,
            id="another path is passed because it is missing",
        ),
        pytest.param(
            """
            def load(tensor):
                try:
                    torch.save(tensor, f"{dist.get_rank()}.pt")
                except OSError:
                    return
                dist.all_reduce(tensor)
            """,
            id="each rank writes its own file",
        ),
        pytest.param(
            """
            def count(folder, tensor):
                for name in os.listdir(folder):
                    dist.all_reduce(tensor)
            """,
            id="loop over a directory of data",
        ),
        pytest.param(
            """
            def count(tensor):
                if dist.get_rank() == 0:
                    os.makedirs("data")
                dist.barrier()
                for name in os.listdir("data"):
                    dist.all_reduce(tensor)
            """,
            id="loop over a directory that one rank creates",
        ),
    ],
)
def test_the_program_does_not_change_what_ranks_check(text: str, tmp_path: Path) -> None:
    assert confidence(tmp_path, text) == "medium"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            """
            def prepare(tensor):
                if dist.get_rank() == 0:
                    torch.save(tensor, "state.pt")
                dist.barrier()
                if os.path.exists("state.pt"):
                    dist.all_reduce(tensor)
            """,
            id="written before a barrier",
        ),
        pytest.param(
            """
            def load(path, tensor):
                if os.path.exists(path):
                    dist.all_reduce(tensor)


            def main(tensor):
                if dist.get_rank() == 0:
                    torch.save(tensor, "state.pt")
                dist.barrier()
                load("state.pt", tensor)
            """,
            id="written before a barrier in the caller",
        ),
        pytest.param(
            """
            def prepare(tensor):
                try:
                    import apex
                except ImportError:
                    dist.all_reduce(tensor)
            """,
            id="missing module",
        ),
    ],
)
def test_all_ranks_get_the_same_answer(text: str, tmp_path: Path) -> None:
    assert confidence(tmp_path, text) == "low"
