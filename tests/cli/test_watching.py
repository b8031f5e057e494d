"""`check --watch`: which changes cause another check, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.cli import HAZARD, run, write

from fsrace_lint.cli.commands import watching

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("here")

CLEAN = "import os\n"


class Watched:
    """A running `check --watch`, whose output is read up to a text."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "fsrace_lint", "check", "--watch", *arguments]
        with Path("output.txt").open("wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        self.seen = 0

    def until(self, wanted: str) -> str:
        """Return the output since the last call, once it contains a text."""
        deadline = time.monotonic() + 60
        while True:
            text = Path("output.txt").read_text(encoding="utf-8")[self.seen :]
            if wanted in text:
                self.seen += len(text)
                return text
            assert time.monotonic() < deadline, text
            assert self.process.poll() is None, text
            time.sleep(0.05)

    def interrupted(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)


@pytest.fixture
def watched() -> Iterator[type[Watched]]:
    started: list[Watched] = []

    class Started(Watched):
        def __init__(self, *arguments: str) -> None:
            super().__init__(*arguments)
            started.append(self)

    yield Started
    for each in started:
        each.process.kill()
        each.process.wait()


END = "Watching for changes. Press Ctrl-C to stop.\n"


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGINT for one process")
def test_each_change_is_checked(watched: type[Watched]) -> None:
    write({"a.py": HAZARD})
    job = watched()
    assert "warning[FSR101]" in job.until(END)
    write({"a.py": CLEAN})
    assert "No filesystem races found in 1 file." in job.until(END)
    write({"lib/b.py": HAZARD})
    assert " --> lib/b.py:4:5" in job.until(END)
    write({"pyproject.toml": "[tool.fsrace-lint\n"})
    assert "not valid TOML" in job.until(END)
    write({"pyproject.toml": '[tool.fsrace-lint]\nignore = ["FSR1"]\n'})
    assert "No filesystem races found in 2 files." in job.until(END)
    assert job.interrupted() == 130


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGINT for one process")
def test_quiet_output_consists_of_findings(watched: type[Watched]) -> None:
    write({"a.py": HAZARD})
    job = watched("-q")
    assert job.until("\n").startswith("a.py:4:5: FSR101")
    assert job.interrupted() == 130


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["--watch", "src"], ["src"]),
        (["-w", "src"], ["src"]),
        (["-qw", "-j2", "src"], ["-q", "-j2", "src"]),
        (["-wn", "-o", "w.txt"], ["-n", "-o", "w.txt"]),
        (["--select", "FSR1", "-w"], ["--select", "FSR1"]),
    ],
)
def test_arguments_of_each_check(given: list[str], kept: list[str]) -> None:
    assert watching.without_watch(given) == kept


@pytest.mark.parametrize(
    "others",
    [
        ["--diff"],
        ["--add-noqa"],
        ["--write-baseline=f"],
        ["--prune-baseline"],
        ["--prove=1"],
        ["-"],
        ["--stdin-filename=a.py", "-"],
    ],
)
def test_options_that_check_once_are_rejected(others: list[str]) -> None:
    done = run("check", "--watch", *others, code=2)
    name = "standard input" if others[-1] == "-" else others[0].partition("=")[0]
    assert f"--watch cannot be used with {name}" in done.stderr
