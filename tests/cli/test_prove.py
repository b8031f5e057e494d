"""The command `prove`."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from fsrace_lint.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

SCENARIO = """
    import json
    import os


    class Slow(Exception):
        pass


    def setup(root):
        (root / "given").touch()


    def check(root):
        assert (root / "given").exists()


    def prepare(root, rank):
        if not os.path.exists(root / "out"):
            os.mkdir(root / "out")


    def tolerant(root, rank):
        os.makedirs(root / "out", exist_ok=True)


    def write(root, rank):
        with open(root / "state", "w") as stream:
            json.dump({}, stream)


    def whole(root):
        if (root / "state").exists():
            json.loads((root / "state").read_text())


    def slow(root, rank):
        raise Slow


    def ranks(root, rank):
        return rank


    def spin(root, rank):
        while True:
            pass


    def meet(root, rank):
        import torch.distributed as dist

        if rank == 0:
            dist.barrier()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.py"
    path.write_text(textwrap.dedent(SCENARIO))
    return path


def prove(file: Path, function: str, *options: str) -> Result:
    return CliRunner().invoke(main, ["prove", f"{file}::{function}", *options])


def test_a_failing_schedule_exits_1_and_is_drawn(file: Path) -> None:
    result = prove(file, "prepare")
    assert result.exit_code == 1
    assert "FileExistsError" in result.stdout
    assert "mkdir out -> FileExistsError" in result.stdout
    assert re.search(r"^replay: fsr1\.2posix\.[a-z0-9]+\.[0-9a-f]{4}$", result.stdout, re.MULTILINE)


def test_it_says_that_it_runs_the_code(file: Path) -> None:
    result = prove(file, "prepare", "--processes", "3")
    assert result.stderr.startswith(f"running {file}::prepare for real, in 3 processes\n")
    assert re.search(r"^\d+ runs in \d+\.\d s, \d+ a second$", result.stderr, re.MULTILINE)


def test_no_failing_schedule_exits_0(file: Path) -> None:
    result = prove(file, "tolerant")
    assert (result.exit_code, result.stdout) == (
        0,
        "No schedule fails: 2 schedules, which are all that can differ.\n",
    )


def test_a_token_is_replayed(file: Path) -> None:
    first = prove(file, "prepare").stdout
    token = first.rsplit(" ", 1)[1].strip()
    again = prove(file, "prepare", "--replay", token)
    assert again.exit_code == 1
    assert again.stdout.split("\n\n")[:2] == first.split("\n\n")[:2]
    assert prove(file, "tolerant", "--replay", token).exit_code == 2


@pytest.mark.parametrize(
    ("function", "options", "code", "said"),
    [
        ("tolerant", ["--filesystem", "nfs"], 1, "(old)"),
        ("write", ["--check", "whole", "--processes", "1"], 0, "No schedule fails"),
        ("write", ["--check", "whole", "--crash", "--processes", "1"], 1, "if all are killed"),
        ("write", ["--check", "whole", "--power-loss", "--processes", "1"], 1, "JSONDecodeError"),
        ("slow", [], 1, "Slow in process"),
        ("slow", ["--expect", "Slow, KeyError"], 0, "No schedule fails"),
        ("ranks", ["--agree"], 1, "process 0 gives 0; process 1 gives 1"),
        ("meet", ["--distributed"], 1, "process 0 waits in barrier for ever"),
        ("prepare", ["--preemptions", "0"], 0, "were left out"),
        ("prepare", ["--max-schedules", "0", "--samples", "80", "--seed", "2"], 1, "FileExistsError"),
        ("spin", ["--step-timeout", "1", "--processes", "1"], 1, "came to no call within 1 s"),
        ("write", ["--setup", "whole"], 1, "AssertionError"),
    ],
)
def test_options(file: Path, function: str, options: list[str], code: int, said: str) -> None:
    result = prove(file, function, *options)
    assert result.exit_code == code, result.output
    assert said in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing.py::f"], "there is no file nothing.py"),
        (["{file}"], "write FILE::FUNCTION"),
        (["{file}::prepar"], "did you mean `prepare`?"),
        (["{file}::prepare", "--check", "wole"], "did you mean `whole`?"),
        (["{file}::prepare", "--expect", "NoSuchError"], "no exception is called 'NoSuchError'"),
        (["{file}::prepare", "--processes", "0"], "--processes"),
        (["{file}::prepare", "--replay", "xyz"], "is no token of a schedule"),
    ],
)
def test_wrong_usage_exits_2_and_says_what_is_wrong(file: Path, arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(main, ["prove", *(each.format(file=file) for each in arguments)])
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_file_that_cannot_be_imported_is_shown(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    result = prove(tmp_path / "broken.py", "f")
    assert result.exit_code == 2
    assert "ModuleNotFoundError: No module named 'nothing_of_this_name'" in result.stderr


def test_a_file_finds_its_neighbors(tmp_path: Path) -> None:
    (tmp_path / "neighbor.py").write_text("def act(root, rank): (root / str(rank)).mkdir()\n")
    (tmp_path / "scenario.py").write_text("from neighbor import act\n")
    done = subprocess.run(
        [sys.executable, "-m", "fsrace_lint", "prove", f"{tmp_path / 'scenario.py'}::act"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout[:17]) == (0, "No schedule fails")
