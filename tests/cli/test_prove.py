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


    def absent(root):
        assert not (root / "given").exists(), "nothing was made"


    def slow(root, rank):
        (root / str(rank)).touch()
        raise Slow


    def ranks(root, rank):
        return rank


    def spin(root, rank):
        while True:
            pass


    def configured(root, rank, config):
        (root / "out").mkdir()


    def reads_missing(root, rank):
        (root / "missing").read_text()


    async def asynchronous(root, rank):
        (root / "out").mkdir()


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


def test_failing_interleaving_exits_1_and_is_shown(file: Path) -> None:
    result = prove(file, "prepare")
    assert result.exit_code == 1
    assert "FileExistsError" in result.stdout
    assert "mkdir out -> FileExistsError" in result.stdout
    assert re.search(r"^replay: fsr1\.2posix\.[a-z0-9]+\.[0-9a-f]{4}$", result.stdout, re.MULTILINE)


def test_stderr_announces_the_run(file: Path) -> None:
    result = prove(file, "prepare", "--processes", "3")
    assert result.stderr.startswith(f"Running {file}::prepare in 3 processes\n")
    assert re.search(r"^\d+ runs in \d+\.\d s$", result.stderr, re.MULTILINE)


def test_no_failing_interleaving_exits_0(file: Path) -> None:
    result = prove(file, "tolerant")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "OK: 2 of 2 distinct interleavings pass.",
        "coverage: 3 calls followed, 0 not (each name and line counts once)",
    ]


def test_failure_without_interference_is_not_called_a_race(file: Path) -> None:
    result = prove(file, "reads_missing")
    assert result.exit_code == 1
    assert "fails without interference from the other process; not a race" in result.stdout
    assert 'in reads_missing\n    (root / "missing").read_text()' in result.stdout
    assert "not a race" not in prove(file, "prepare").stdout


def test_end_line_says_how_the_failure_was_found(file: Path) -> None:
    found = prove(file, "prepare").stdout
    assert "\nFound after 2 interleavings. The schedule above has 2 context switches; a second" in found
    replayed = prove(file, "prepare", "--replay", found.split()[-1])
    assert "\nThe failure was reproduced by a replay of one interleaving, with 2 context" in replayed.stdout
    assert replayed.stderr.startswith(f"Running {file}::prepare with the schedule fsr1.2posix.")


def test_function_without_filesystem_calls_is_refused(file: Path) -> None:
    refused = prove(file, "ranks")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "Error: no process made a filesystem call" in refused.stderr
    failed = prove(file, "ranks", "--check", "absent").stdout
    assert failed.startswith("The check failed: AssertionError: nothing was made\n")
    assert "note: no process made a filesystem call" in failed


def test_replay_reproduces_the_failure(file: Path) -> None:
    first = prove(file, "prepare").stdout
    token = first.rsplit(" ", 1)[1].strip()
    again = prove(file, "prepare", "--replay", token)
    assert again.exit_code == 1
    assert again.stdout.split("\n\n")[:2] == first.split("\n\n")[:2]
    assert prove(file, "tolerant", "--replay", token).exit_code == 2


@pytest.mark.parametrize(
    ("function", "options", "code", "message"),
    [
        ("tolerant", ["--filesystem", "nfs"], 1, "(stale)"),
        ("write", ["--check", "whole", "--processes", "1"], 0, "OK: "),
        ("write", ["--check", "whole", "--crash", "--processes", "1"], 1, "if all processes are killed"),
        ("write", ["--check", "whole", "--power-loss", "--processes", "1"], 1, "JSONDecodeError"),
        ("slow", [], 1, "Slow in process"),
        ("slow", ["--expect", "Slow, KeyError"], 0, "OK: "),
        ("ranks", ["--agree"], 1, "process 0 returned 0; process 1 returned 1"),
        ("meet", ["--distributed"], 1, "process 0 waits in barrier forever"),
        ("prepare", ["--preemptions", "0"], 0, "were skipped"),
        ("prepare", ["--max-schedules", "0", "--samples", "80", "--seed", "2"], 1, "FileExistsError"),
        ("spin", ["--step-timeout", "1", "--processes", "1"], 1, "made no call within 1 s"),
        ("write", ["--setup", "whole"], 1, "AssertionError"),
    ],
)
def test_options(file: Path, function: str, options: list[str], code: int, message: str) -> None:
    result = prove(file, function, *options)
    assert result.exit_code == code, result.output
    assert message in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.py::f"], "nothing.py: no such file"),
        (["{file}"], "does not name a function; use FILE::FUNCTION"),
        (["::prepare"], "does not name a file; use FILE::FUNCTION"),
        (["{file.parent}::prepare"], "is a directory; name a Python file"),
        (["{file}::prepar"], "did you mean `prepare`?"),
        (["{file}::prepare", "--check", "wole"], "did you mean `whole`?"),
        (["{file}::prepare", "--expect", "NoSuchError"], "unknown exception `NoSuchError`"),
        (["{file}::prepare", "--processes", "0"], "--processes"),
        (["{file}::prepare", "--replay", "xyz"], "is not a schedule token"),
        (["{file}::configured"], "missing a required argument: 'config'"),
        (["{file}::prepare", "--check", "prepare"], "the check is called as `prepare(root)`"),
        (["{file}::asynchronous"], "`asynchronous` is an `async` function"),
    ],
)
def test_usage_error_exits_2_with_a_message(file: Path, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["prove", *(each.format(file=file) for each in arguments)])
    assert result.exit_code == 2
    assert message in result.stderr


def test_import_error_is_shown(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    result = prove(tmp_path / "broken.py", "f")
    assert result.exit_code == 2
    assert "ModuleNotFoundError: No module named 'nothing_of_this_name'" in result.stderr


def test_scenario_can_import_modules_in_its_directory(tmp_path: Path) -> None:
    (tmp_path / "neighbor.py").write_text("def act(root, rank): (root / str(rank)).mkdir()\n")
    (tmp_path / "scenario.py").write_text("from neighbor import act\n")
    done = subprocess.run(
        [sys.executable, "-m", "fsrace_lint", "prove", f"{tmp_path / 'scenario.py'}::act"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout[:4]) == (0, "OK: ")
