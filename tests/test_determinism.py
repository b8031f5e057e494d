"""The same bytes, whatever the environment is: hash seed, jobs, locale, time zone, umask, order of files."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from shuffled import surroundings
from test_cli import HAZARD, here, write

from fsrace_lint.report import FORMATS

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["here"]

WAYS = [
    ["--jobs=1", "--no-cache", "."],
    ["--jobs=3", "."],
    ["--jobs=2", "."],
    ["b.py", "pkg", "a.py", "é.py", "start.py"],
    ["start.py", "é.py", "a.py", "b.py", "pkg"],
]


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_every_run_says_the_same(form: str, here: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert form in FORMATS
    around = surroundings(tmp_path_factory.mktemp("site"))
    write(dict.fromkeys(("a.py", "b.py", "é.py", "pkg/__init__.py", "pkg/io.py"), HAZARD))
    write({"start.py": "import a, b, pkg.io\nimport torch.distributed as dist\ndist.init_process_group()\n"})
    said = set()
    for number, arguments in enumerate(WAYS):
        done = subprocess.run(
            [sys.executable, "-m", "fsrace_lint", "check", f"--format={form}", *arguments],
            capture_output=True,
            env=next(around),
            umask=(0o022, 0o077, 0)[number % 3],
            check=False,
        )
        assert done.returncode == 1, done.stderr
        said.add(done.stdout)
    assert len(said) == 1
