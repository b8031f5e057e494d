"""Commands that are put together in more steps than are followed.

Shows: `analysis/accesses/command_words.py`, `analysis/accesses/command_runners.py`,
`analysis/accesses/shell_commands.py`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.mdtest import run

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = "import subprocess\n\nimport torch.distributed as dist\n\ndist.barrier()\n"


def codes(root: Path, text: str) -> list[str]:
    (root / "main.py").write_text(BEGIN + text, "utf-8")
    _, checked = run(root)
    return [finding.code for finding in checked.outcome.findings]


@pytest.mark.parametrize(("count", "found"), [(10, ["FSR301"]), (60, [])])
def test_concatenations(tmp_path: Path, count: int, found: list[str]) -> None:
    words = "".join(" + ['-v']" for _ in range(count))
    assert codes(tmp_path, f"subprocess.run(['tar', 'xf', 'a.tar', '-C', 'data']{words})\n") == found
    parts = "".join(" + ' -v'" for _ in range(count))
    assert codes(tmp_path, f"subprocess.run('tar xf a.tar -C data'{parts}, shell=True)\n") == found


@pytest.mark.parametrize(("count", "found"), [(3, ["FSR301"]), (9, [])])
def test_commands_that_run_commands(tmp_path: Path, count: int, found: list[str]) -> None:
    words = "".join("'nice', " for _ in range(count))
    assert codes(tmp_path, f"subprocess.run([{words}'tar', 'xf', 'a.tar', '-C', 'data'])\n") == found


@pytest.mark.parametrize(("count", "found"), [(2, ["FSR301"]), (6, [])])
def test_functions_that_run_commands(tmp_path: Path, count: int, found: list[str]) -> None:
    steps = "".join(f"def run{n}(command):\n    run{n - 1}(command)\n\n" for n in range(1, count + 1))
    first = "def run0(command):\n    subprocess.run(command)\n\n"
    called = f"def main():\n    dist.barrier()\n    run{count}(['tar', 'xf', 'a.tar', '-C', 'data'])\n"
    assert codes(tmp_path, first + steps + called) == found


def test_branches(tmp_path: Path) -> None:
    branches = "".join(f"if dist.a{n}:\n    command = command + ['-v']\n" for n in range(60))
    text = f"command = ['tar', 'xf', 'a.tar', '-C', 'data']\n{branches}subprocess.run(command)\n"
    assert codes(tmp_path, text) == []
