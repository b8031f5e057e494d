"""The safe helpers under real launchers: 4 processes, 1,000 rounds of each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support import ROOT, TESTS

JOBS = TESTS / "launchers"
ROUNDS = int(os.environ.get("FSRACE_LAUNCHER_ROUNDS", "1000"))
SIZE = 4

pytestmark = pytest.mark.launchers


def python_with(module: str, launcher: str) -> str:
    """Return an interpreter that has the module: this one, or the one next to the launcher."""
    for python in (sys.executable, str(Path(launcher).with_name("python"))):
        command = [python, "-c", f"import {module}"]
        if (
            Path(python).exists()
            and subprocess.run(command, capture_output=True, check=False).returncode == 0
        ):
            return python
    pytest.skip(f"no Python at hand has {module}")


def launched(command: list[str], directory: Path, needed: str) -> None:
    launcher = shutil.which(command[0])
    if launcher is None:
        pytest.skip(f"{command[0]} is not on PATH")
    python = python_with(needed, launcher)
    words = ("RANK", "SIZE", "SLURM", "PMI", "FSRACE")
    environment = {key: value for key, value in os.environ.items() if not any(word in key for word in words)}
    environment |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    filled = [launcher, *(word.format(python=python) for word in command[1:]), str(directory), str(ROUNDS)]
    # torchrun leaves a directory behind
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as environment["TMPDIR"]:
        done = subprocess.run(
            filled, env=environment, capture_output=True, text=True, timeout=1800, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("DONE "))
    report = json.loads(line.removeprefix("DONE "))
    assert report.pop("size") == SIZE
    assert len(report) == 15
    print(line)


def test_torchrun(tmp_path: Path) -> None:
    script = str(JOBS / "torchrun_job.py")
    launched(["torchrun", "--standalone", "--nproc-per-node", str(SIZE), script], tmp_path, "torch, numpy")


def test_mpirun(tmp_path: Path) -> None:
    script = str(JOBS / "mpirun_job.py")
    launched(["mpirun", "-n", str(SIZE), "--oversubscribe", "{python}", script], tmp_path, "mpi4py")
