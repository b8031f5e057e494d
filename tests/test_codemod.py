"""The fixes as a libcst codemod command."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

HAZARD = "import os\n\nif not os.path.isdir('out'):\n    os.makedirs('out')  # here\n"
FIXED = "import os\n\nos.makedirs('out', exist_ok=True)  # here\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "work.py").write_text(HAZARD)
    return tmp_path


def codemod(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["-m", "libcst.tool", "codemod", "-x", "--no-format", "fsrace_lint.codemod.FixCommand"]
    return subprocess.run(
        [sys.executable, *command, *options, "."], cwd=root, capture_output=True, text=True, check=False
    )


def test_codemod_fixes_a_file(root: Path) -> None:
    done = codemod(root)
    assert (root / "work.py").read_text() == FIXED, done.stderr
    assert done.returncode == 0


def test_unselected_rules_are_not_fixed(root: Path) -> None:
    codemod(root, "--select", "FSR103")
    assert (root / "work.py").read_text() == HAZARD
    codemod(root, "--select", "check-then-mkdir")
    assert (root / "work.py").read_text() == FIXED


def test_codemod_reads_the_whole_project(root: Path) -> None:
    """A rank check in another file makes the line safe."""
    (root / "train.py").write_text(
        "import os\n\nif int(os.environ['RANK']) == 0:\n    import work\n\n    work.go()\n"
    )
    (root / "work.py").write_text(
        "import os\n\n\ndef go():\n    if not os.path.exists('out'):\n        os.makedirs('out')\n"
    )
    before = (root / "work.py").read_text()
    codemod(root)
    assert (root / "work.py").read_text() == before


def test_unknown_rule_is_an_error(root: Path) -> None:
    done = codemod(root, "--select", "FSR999")
    assert (root / "work.py").read_text() == HAZARD
    assert done.returncode == 1
    assert "unknown rule" in done.stderr
