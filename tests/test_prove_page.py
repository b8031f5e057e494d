"""What docs/prove.md shows is what happens."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parent.parent / "docs" / "prove.md").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE, re.DOTALL):
        (tmp_path / name).write_text(f"# {name}\n{text}")
    return tmp_path


def test_the_command_prints_what_the_page_shows(folder: Path) -> None:
    ((command, shown),) = re.findall(r"```console\n\$ (.*?)\n(.*?)```", PAGE, re.DOTALL)
    program, *arguments = shlex.split(command)
    assert program == "fsrace-lint"
    done = subprocess.run(
        [sys.executable, "-m", "fsrace_lint", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == shown
    assert done.returncode == 1
    (token,) = re.findall(r"`--replay (\S+)`", PAGE)
    assert shown.rstrip().endswith(token)


def test_the_test_of_the_page_passes(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_prepare.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        # it is a project of its own, and not measured
        env={name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV"))},
    )
    assert done.returncode == 0, done.stdout


def test_every_option_of_the_page_is_one_of_the_command() -> None:
    told = set(re.findall(r"`(--[a-z-]+)", PAGE))
    done = subprocess.run(
        [sys.executable, "-m", "fsrace_lint", "prove", "--help"], capture_output=True, text=True, check=True
    )
    assert told <= set(re.findall(r"--[a-z-]+", done.stdout))
    assert len(told) > 5
