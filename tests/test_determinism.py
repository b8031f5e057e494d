"""The same bytes, whatever the environment is: hash seed, jobs, locale, time zone, umask, order of files."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from test_cli import HAZARD, here, write

from fsrace_lint.report import FORMATS

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["here"]

SHUFFLE = """
import os, random
scandir = os.scandir
class Shuffled:
    def __init__(self, path="."):
        self.inner = scandir(path)
        self.entries = list(self.inner)
        random.Random(int(os.environ["SHUFFLE"])).shuffle(self.entries)
    def __iter__(self): return iter(self.entries)
    def __next__(self): raise NotImplementedError
    def __enter__(self): return self
    def __exit__(self, *_): self.inner.close()
    def close(self): self.inner.close()
os.scandir = Shuffled
"""
WAYS = [
    ({"PYTHONHASHSEED": "0", "LC_ALL": "C", "TZ": "UTC", "SHUFFLE": "1"}, ["--jobs=1", "--no-cache", "."]),
    ({"PYTHONHASHSEED": "1", "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo", "SHUFFLE": "2"}, ["--jobs=3", "."]),
    ({"PYTHONHASHSEED": "77", "LC_ALL": "tr_TR.UTF-8", "SHUFFLE": "3"}, ["--jobs=2", "."]),
    ({"PYTHONHASHSEED": "4242", "LC_ALL": "C", "SHUFFLE": "4"}, ["b.py", "pkg", "a.py", "é.py", "start.py"]),
    ({"PYTHONHASHSEED": "9", "LC_ALL": "C", "SHUFFLE": "5"}, ["start.py", "é.py", "a.py", "b.py", "pkg"]),
]


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_every_run_says_the_same(form: str, here: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert form in FORMATS
    site = tmp_path_factory.mktemp("site")
    (site / "sitecustomize.py").write_text(SHUFFLE)
    write(dict.fromkeys(("a.py", "b.py", "é.py", "pkg/__init__.py", "pkg/io.py"), HAZARD))
    write({"start.py": "import a, b, pkg.io\nimport torch.distributed as dist\ndist.init_process_group()\n"})
    said = set()
    for number, (environment, arguments) in enumerate(WAYS):
        done = subprocess.run(
            [sys.executable, "-m", "fsrace_lint", "check", f"--format={form}", *arguments],
            capture_output=True,
            env={**os.environ, "PYTHONPATH": str(site), **environment},
            umask=(0o022, 0o077, 0)[number % 3],
            check=False,
        )
        assert done.returncode == 1, done.stderr
        said.add(done.stdout)
    assert len(said) == 1
