"""The command `prove`."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from support.html import elements, only, parsed, text_of
from support.pages import DOCS

from fsrace_lint.cli.commands.prove import prove as prove_command
from fsrace_lint.cli.main import main
from fsrace_lint.explore import explore
from fsrace_lint.explore.scenario import Bounds

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


    def empty(root):
        assert len(os.listdir(root)) < 3, "two are left"


    def absent(root):
        assert not (root / "given").exists(), "nothing was made"


    def slow(root, rank):
        (root / str(rank)).touch()
        raise Slow


    def immediate(root, rank):
        raise Slow


    def ranks(root, rank):
        return rank


    def locks(root, rank):
        lock = root / str(os.getpid())
        os.mkdir(lock)
        os.rmdir(lock)


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


def test_killed_process_can_start_again(file: Path) -> None:
    assert prove(file, "locks", "--restarts", "1").exit_code == 0
    failed = prove(file, "locks", "--restarts", "1", "--same-pids")
    assert failed.exit_code == 1
    assert "KILLED before rmdir 5000000" in failed.stdout
    assert "STARTED AGAIN as process 5000000" in failed.stdout
    token = failed.stdout.partition("replay: ")[2].split()[0]
    assert re.fullmatch(r"fsr1\.2posix-kill-same-lives\.[a-z0-9]*A[a-z0-9]*a\+[a-z0-9]*\.[0-9a-f]{4}", token)
    assert prove(file, "locks", "--replay", token).exit_code == 1


def test_more_kills_include_crashes(file: Path) -> None:
    assert "KILLED" in prove(file, "locks", "--kills", "2", "--check", "empty").stdout


def test_nodes_share_process_ids(file: Path) -> None:
    assert prove(file, "locks").exit_code == 0
    failed = prove(file, "locks", "--nodes", "2")
    assert "FileExistsError" in failed.stdout
    assert failed.stdout.partition("replay: ")[2].startswith("fsr1.2posix-nodes2.")


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


def test_json_has_the_calls_with_whole_paths(file: Path) -> None:
    result = prove(file, "prepare", "--output-format", "json")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    failure = data["failure"]
    assert (data["ok"], failure["kind"], failure["processes"]) == (False, "exception", 2)
    assert [step["call"] for step in failure["steps"]] == ["exists", "exists", "mkdir", "mkdir"]
    assert failure["reasons"][0]["steps"] == [1, 3, 4]
    assert {step["stack"][0]["file"] for step in failure["steps"]} == {str(file)}
    passing = json.loads(prove(file, "tolerant", "--output-format", "json").stdout)
    assert (passing["ok"], passing["exhaustive"], passing["failure"]) == (True, True, None)


def test_html_page_is_written(file: Path, tmp_path: Path) -> None:
    page = tmp_path / "race.html"
    result = prove(file, "prepare", "--html", str(page))
    assert result.exit_code == 1
    root = parsed(page.read_text())
    assert text_of(only(root, "h1")).startswith("FileExistsError in process ")
    marked = [text_of(line) for line in elements(root, "span", "here")]
    assert sum("os.mkdir(root" in line for line in marked) == 2
    assert prove(file, "prepare", "--html", str(tmp_path / "none" / "race.html")).exit_code == 2


def test_without_minimizing_fewer_runs_are_made(file: Path) -> None:
    def runs(*options: str) -> int:
        return int(prove(file, "prepare", *options).stderr.splitlines()[-1].split()[0])

    assert runs("--no-shrink") == runs("--shrink-runs", "0") < runs("--shrink-runs", "3") < runs()


def test_default_budget_is_that_of_the_library() -> None:
    (option,) = (each for each in prove_command.params if each.name == "shrink_runs")
    assert option.default == Bounds().shrink_runs


def test_page_lists_every_parameter_in_the_order_of_the_help() -> None:
    page = (DOCS / "prove.md").read_text("utf-8")
    table = page[page.index("| parameter | option |") :]
    cells = [row.split("|")[1:3] for row in re.findall(r"^\| `\w+.*", table, re.MULTILINE)]
    rows = cells[: 1 + max(at for at, (named, _) in enumerate(cells) if "raise_signals" in named)]
    parameters = [name for named, _ in rows for name in re.findall(r"`(\w+)(?=[=(])", named)]
    assert sorted(parameters) == sorted(inspect.signature(explore).parameters)

    text = CliRunner().invoke(main, ["prove", "--help"]).stdout
    shown = re.findall(r"^  (?:--shrink / )?(--[a-z-]+)", text, re.MULTILINE)
    on_command_line_only = {"--finding", "--scenario", "--no-cache", "--output-format", "--html"}
    options = [name for _, named in rows for name in re.findall(r"--[a-z-]+", named)]
    assert options == [name for name in shown if name not in on_command_line_only]
    # `--help` is the only option without a group
    assert text.partition("Options:\n")[2].split("\n\n")[0].strip().startswith("-h, --help")


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
        (["{file}::immediate"], "Slow in process 0 (before its first filesystem call)"),
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
