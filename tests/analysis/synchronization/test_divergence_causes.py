"""How certain it is that ranks disagree before a collective.

Shows: `analysis/synchronization/divergence_causes.py`
"""

from __future__ import annotations

import ast
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


def called(text: str) -> str:
    """Return the calls of the functions that nothing in a file calls."""
    functions = [each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef)]
    roots = [each for each in functions if text.count(f"{each.name}(") == 1]
    return "".join(f"{each.name}({', '.join(name.arg for name in each.args.args)})\n" for each in roots)


def confidence(root: Path, text: str) -> str:
    """Return the confidence of the only divergent collective, in a program that joins a job."""
    text = dedent(text)
    (root / "main.py").write_text(HEAD + text + called(text), "utf-8")
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
        pytest.param(
            """
            from huggingface_hub import hf_hub_download


            def main(tensor):
                if os.path.exists("model/model.pt"):
                    dist.all_reduce(tensor)
                hf_hub_download("org/model", "model.pt", local_dir="model")
            """,
            id="downloaded later without a barrier",
        ),
        pytest.param(
            """
            def prepare(path, build, tensor):
                dist.barrier()
                if not os.path.exists(path):
                    build(path)
                    dist.all_reduce(tensor)
            """,
            id="passed to unknown code after a barrier before the check",
        ),
        pytest.param(
            """
            def prepare(path, build, tensor):
                if os.path.exists(path):
                    return
                if dist.get_rank() != 0:
                    print("waits")
                else:
                    build(path)
                dist.all_reduce(tensor)
            """,
            id="passed to unknown code before the collective",
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
            def load(tensor):
                if os.path.exists(f"{dist.get_rank()}.pt"):
                    dist.all_reduce(tensor)
            """,
            id="each rank checks its own file",
        ),
        pytest.param(
            """
            class Manager:
                def __init__(self, folder):
                    self.saves = os.listdir(folder)

                def load(self, tensor):
                    if self.saves:
                        dist.all_reduce(tensor)
            """,
            id="the constructor lists the directory",
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
    ],
)
def test_each_rank_checks_its_own_files(text: str, tmp_path: Path) -> None:
    assert confidence(tmp_path, text) == "medium"


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
            def resume(folder, tensor):
                os.makedirs(folder, exist_ok=True)
                if os.path.exists(os.path.join(folder, "state.pt")):
                    dist.all_reduce(tensor)
            """,
            id="a directory above is created",
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
        pytest.param(
            """
            def last_step(folder):
                if not os.path.exists(folder):
                    os.makedirs(folder)
                    return 0
                return len(os.listdir(folder))


            def resume(folder, tensor):
                step = last_step(folder)
                dist.barrier()
                if step > 0:
                    dist.all_reduce(tensor)
            """,
            id="a callee creates an empty directory",
        ),
        pytest.param(
            """
            def load(path, tell, tensor):
                if not os.path.exists(path):
                    tell(f"{path} is missing", "no {} here".format(path))
                    print(path)
                    dist.all_reduce(tensor)
            """,
            id="the path is a part of a message",
        ),
        pytest.param(
            """
            def load(path, other, build, tensor):
                if not os.path.exists(other):
                    build(other)
                if not os.path.exists(path):
                    dist.all_reduce(tensor)
            """,
            id="another path is created",
        ),
    ],
)
def test_the_program_does_not_change_what_ranks_check(text: str, tmp_path: Path) -> None:
    assert confidence(tmp_path, text) == "low"


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
            def infer(path, generate, open_lines):
                if os.path.exists(path):
                    return
                answers = generate()
                dist.barrier()
                if dist.get_rank() == 0:
                    with open_lines(path, mode="w") as lines:
                        lines.write(answers)
            """,
            id="passed to unknown code after the collective",
        ),
        pytest.param(
            """
            def prepare(path, build, tensor, several):
                if not os.path.exists(path):
                    if several:
                        dist.all_reduce(tensor)
                    build(path)
            """,
            id="passed to unknown code after a collective of a setting",
        ),
        pytest.param(
            """
            def fetch(load):
                if dist.get_rank() != 0:
                    dist.barrier()
                load()
                if dist.get_rank() == 0:
                    dist.barrier()


            def evaluate(path, load, tensor):
                if not os.path.exists(path):
                    fetch(load)
                    if dist.get_rank() == 0:
                        torch.save(tensor, path)
            """,
            id="written after a two-sided barrier",
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
        pytest.param(
            """
            from huggingface_hub import hf_hub_download


            def fetch():
                hf_hub_download("org/model", "model.pt", local_dir="model")


            def main(tensor):
                fetch()
                dist.barrier()
                if os.path.exists("model/model.pt"):
                    dist.all_reduce(tensor)
                fetch()
            """,
            id="downloaded again",
        ),
    ],
)
def test_all_ranks_get_the_same_answer(text: str, tmp_path: Path) -> None:
    assert confidence(tmp_path, text) == "low"


FLAG = """\
class Callbacks:
    def __init__(self):
        self.stopped = False
    OTHER


def train(callbacks):
    for epoch in range(3):
        if rank == 0:
            if callbacks.stopped:
                return
        dist.barrier()
"""


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("", "low"),
        ("def go_on(self):\n        self.stopped = None", "low"),
        ("def set(self, other, name, value):\n        setattr(other, 'started', value)", "low"),
        ("\n\ndef start(job, name):\n    setattr(job, name, True)", "low"),
        ("def stop(self):\n        self.stopped = True", "high"),
        ("def stop(self, value):\n        self.stopped = value", "high"),
        ("def stop(self, job):\n        job.callbacks.stopped, job.last = True, 1", "high"),
        ("def set(self, name, value):\n        setattr(self, name, value)", "high"),
        ("\n\ndef set_up(callbacks, name):\n    setattr(callbacks, name, True)", "high"),
    ],
)
def test_exit_for_a_flag(tmp_path: Path, other: str, expected: str) -> None:
    """A flag that is never set to true does not end a loop early."""
    assert confidence(tmp_path, FLAG.replace("OTHER", other)) == expected


def test_exit_for_a_flag_that_is_set_elsewhere(tmp_path: Path) -> None:
    """A flag that no code of the project sets can have any value."""
    text = FLAG.replace("        self.stopped = False\n", "        pass\n").replace("OTHER", "")
    assert confidence(tmp_path, text) == "high"
