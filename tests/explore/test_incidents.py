"""The five incidents reproduce, their fixed versions pass, and docs/incidents.md shows the output."""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from click.testing import CliRunner
from support import FIXTURES, ROOT

from fsrace_lint import explore
from fsrace_lint.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore import Result

PAGE = ROOT / "docs" / "incidents.md"
INCIDENTS = FIXTURES / "explore" / "incidents"
UPDATE = os.environ.get("FSRACE_UPDATE_INCIDENTS") == "1"
"""Write the output to the page instead of comparing it; review the diff afterward."""

BLOCK = re.compile(r"```console\n\$ fsrace-lint (?P<command>.*)\n(?P<output>(?s:.*?))```\n")


class Case(NamedTuple):
    """The expected result of one command on the page.

    Attributes:
        command: The part after `prove .../incidents/`.
        last: The last calls of the failure, as `(rank, call, result)`; empty if the command passes.
        text: The failure message.
    """

    command: str
    last: tuple[tuple[int, str, str], ...] = ()
    text: str = ""


CASES = (
    Case(
        "sagemaker.py::broken",
        ((1, "mkdir ml/code", "FileExistsError"),),
        "FileExistsError in process 1: [Errno 17] File exists: 'ml/code'",
    ),
    Case("sagemaker.py::repaired"),
    # the race does not occur on a local filesystem
    Case("lingua.py::broken"),
    Case(
        "lingua.py::broken --filesystem nfs",
        ((1, "mkdir traces", "FileExistsError"), (1, "isdir traces", "False")),
        "FileExistsError in process 1: [Errno 17] File exists: 'traces'",
    ),
    Case("lingua.py::repaired --filesystem nfs"),
    Case("lingua.py::repaired_by_main --filesystem nfs --distributed"),
    Case(
        "webdataset.py::broken",
        ((1, "unlink x.tar.lock", "done"), (0, "unlink x.tar.lock", "FileNotFoundError")),
        "FileNotFoundError in process 0: [Errno 2] No such file or directory: 'x.tar.lock'",
    ),
    Case(
        "webdataset.py::broken --processes 3 --expect FileNotFoundError",
        (
            (2, "flock[EX] x.tar.lock", "done"),
            (2, "mkdir x.tar.owner", "FileExistsError"),
            (2, "flock[UN] x.tar.lock", "done"),
            (2, "close x.tar.lock", "done"),
        ),
        "FileExistsError in process 2: [Errno 17] File exists: 'x.tar.owner'",
    ),
    Case("webdataset.py::repaired --processes 3"),
    Case(
        "olmo.py::broken",
        ((1, "sleep 0.1 s", "until 11.3 s"), (1, "exists step100/model", "False")),
        "TimeoutError in process 1: Waiting for checkpoint model directory timed out",
    ),
    Case("olmo.py::repaired --distributed"),
    Case(
        "flyte.py::broken",
        ((0, "unlink code/main/task.py", "FileNotFoundError"), (0, "close code.tar", "done")),
        "FileExistsError in process 0: [Errno 17] File exists: 'code/main/task.py'",
    ),
    Case(
        "flyte.py::broken_later --expect FileExistsError",
        ((0, "read code/main/task.py", "0 bytes"), (0, "close code/main/task.py", "done")),
        "ImportError in process 0: main/task.py is not what was unpacked",
    ),
    Case("flyte.py::repaired"),
)


LONG = "--processes 3 --expect"
"""Part of the command whose search takes as long as all the others; every run replays its schedule."""


class Run(NamedTuple):
    code: int
    output: str
    result: Result


@pytest.fixture
def prove(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Run]:
    """Run a command from the page and return its result."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", [*sys.path])
    results: list[Result] = []
    explored = explore.explore

    def recorded(*arguments: Any, **options: Any) -> Result:
        results.append(explored(*arguments, **options))
        return results[-1]

    monkeypatch.setattr(explore, "explore", recorded)

    def run(command: str) -> Run:
        name = Path(command.partition("::")[0]).stem
        monkeypatch.delitem(sys.modules, name, raising=False)
        done = CliRunner().invoke(main.main, shlex.split(f"prove {INCIDENTS.relative_to(ROOT)}/{command}"))
        monkeypatch.delitem(sys.modules, name, raising=False)
        assert results, done.output
        return Run(done.exit_code, done.stdout, results[-1])

    return run


def shown(command: str) -> str:
    """Return the output that the page shows for a command."""
    blocks = {block["command"]: block["output"] for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))}
    return blocks[f"prove {INCIDENTS.relative_to(ROOT).as_posix()}/{command}"]


def buffered(output: str) -> str:
    """Return the output as it is with the smaller file buffers of Python before 3.14."""
    return output.replace("-> 10240 bytes ", "-> 8192 bytes  ")


def write(command: str, output: str) -> None:
    def filled(block: re.Match[str]) -> str:
        same = block["command"].endswith(f"/{command}")
        return f"```console\n$ fsrace-lint {block['command']}\n{output}```\n" if same else block[0]

    PAGE.write_text(BLOCK.sub(filled, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.exhaustive(4) if LONG in case.command else ()) for case in CASES],
    ids=[case.command for case in CASES],
)
def test_page_shows_actual_output(case: Case, prove: Callable[[str], Run]) -> None:
    run = prove(case.command)
    if UPDATE:
        write(case.command, run.output)
    assert shown(case.command) == buffered(run.output)
    failure = run.result.failure
    if not case.text:
        assert (run.code, failure, run.result.exhaustive) == (0, None, True)
        return
    assert failure is not None
    assert (run.code, failure.kind, failure.text) == (1, "exception", case.text)
    moves = tuple((move.choice.rank, f"{move.name} {move.target}", move.result) for move in failure.moves)
    assert moves[-len(case.last) :] == case.last
    assert buffered(failure.timeline) in shown(case.command)

    again = prove(f"{case.command} --replay {failure.token}").result
    assert again.schedules == 1
    assert again.failure is not None
    assert (again.failure.kind, again.failure.text) == (failure.kind, failure.text)
    assert again.failure.timeline == failure.timeline


def test_two_processes_hold_the_lock(prove: Callable[[str], Run]) -> None:
    """The third process locks the new file while the second one still holds the lock on the old file."""
    command = "webdataset.py::broken --processes 3 --expect FileNotFoundError"
    token = shown(command).rpartition("replay: ")[2].strip()
    failure = prove(f"{command} --replay {token}").result.failure
    assert failure is not None
    calls = [(move.choice.rank, f"{move.name} {move.target}", move.result) for move in failure.moves]
    assert (1, "open[a] x.tar.lock", "opened") in calls
    assert (2, "open[a] x.tar.lock", "created") in calls
    until = calls.index((2, "flock[EX] x.tar.lock", "done"))
    locks = [call.split("[")[1] for rank, call, _ in calls[:until] if rank == 1 and call.startswith("flock")]
    assert locks == ["EX] x.tar.lock"]


def test_every_scenario_has_a_case_and_is_on_the_page() -> None:
    commands = [block["command"] for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
    prefix = f"prove {INCIDENTS.relative_to(ROOT).as_posix()}/"
    assert commands == [prefix + case.command for case in CASES]
    scenarios = set()
    for file in INCIDENTS.glob("*.py"):
        if file.stem.startswith("sagemaker_"):
            continue
        spec = importlib.util.spec_from_file_location(f"incident_{file.stem}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        scenarios |= {
            f"{file.name}::{name}"
            for name, function in inspect.getmembers(module, inspect.isfunction)
            if name.startswith(("broken", "repaired"))
        }
    assert {case.command.split()[0] for case in CASES} == scenarios
