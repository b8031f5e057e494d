"""The sample of exhaustive tests in a run: never empty, different for each seed, complete on request."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support import ROOT, TESTS

if TYPE_CHECKING:
    from pathlib import Path

SUITE = """
import pytest
from support.sampling import bound

@pytest.mark.parametrize("number", range(40))
@pytest.mark.exhaustive(4)
def test_many(number):
    assert bound(1, 9) == 1

@pytest.mark.parametrize("number", range(3))
@pytest.mark.exhaustive(100)
def test_few(number):
    pass

def test_plain():
    pass
"""


def run(directory: Path, *options: str, seed: str = "a") -> tuple[set[str], str]:
    """Run the suite, and return the tests that passed and the output."""
    (directory / "conftest.py").write_text('pytest_plugins = ["support.sampling"]\n')
    (directory / "pytest.ini").write_text("[pytest]\nmarkers = exhaustive\n")
    (directory / "test_it.py").write_text(
        SUITE.replace("== 1", "== 9") if "--exhaustive" in options else SUITE
    )
    command = [sys.executable, "-m", "pytest", "-rp", "-p", "no:cacheprovider", *options]
    around = {**os.environ, "PYTHONPATH": str(TESTS), "FSRACE_TEST_SEED": seed}
    done = subprocess.run(command, cwd=directory, env=around, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return set(re.findall(r"^PASSED test_it.py::(\S+)", done.stdout, re.MULTILINE)), done.stdout


@pytest.mark.parametrize("options", [(), ("-n2",)])
def test_sample_is_run_and_the_rest_is_reported(options: tuple[str, ...], tmp_path: Path) -> None:
    ran, printed = run(tmp_path, *options)
    assert sum(name.startswith("test_many") for name in ran) in (10, 11)
    assert sum(name.startswith("test_few") for name in ran) == 1
    assert "test_plain" in ran
    left = 43 + 1 - len(ran)
    assert f"Left out: {left} tests of 2 exhaustive groups" in printed
    assert "what 1 searches would try" in printed
    assert "python -m pytest -n auto --exhaustive" in printed


def test_seed_determines_the_sample(tmp_path: Path) -> None:
    assert run(tmp_path)[0] == run(tmp_path)[0] != run(tmp_path, seed="b")[0]


def test_exhaustive_option_runs_all_tests(tmp_path: Path) -> None:
    ran, printed = run(tmp_path, "--exhaustive")
    assert len(ran) == 44
    assert "Left out" not in printed


def test_named_test_is_run_completely(tmp_path: Path) -> None:
    assert len(run(tmp_path, "test_it.py::test_many")[0]) == 40


@pytest.mark.skipif(sys.platform == "win32", reason="the gate is a shell script")
@pytest.mark.parametrize(
    ("command", "code", "ends"),
    [
        ("true", 0, "=== it: passed in"),
        ("false", 1, "=== it: FAILED (1) after"),
        ("sleep 9", 124, "=== it: STOPPED at its limit after"),
    ],
)
def test_ci_stage_prints_its_result(command: str, code: int, ends: str) -> None:
    function = re.search(
        r"^stage\(\) \{\n.*?^\}\n", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert function is not None
    script = f"set -euo pipefail\n{function[0]}\nstage 1 it {command}\n"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stdout.splitlines()[-1].startswith(ends)
