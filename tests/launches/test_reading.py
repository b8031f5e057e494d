"""Which files are read, and what does not fail.

Shows: `launches/kinds.py`, `launches/reading.py`, `launches/model.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.launching import brief, read

from fsrace_lint.launches import kinds, reading


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("run.sh", True),
        ("a/run.sbatch", True),
        ("a/run.slurm", True),
        ("Makefile", True),
        ("docker/Dockerfile.gpu", True),
        ("gpu.Dockerfile", True),
        ("README.md", True),
        ("README", True),
        ("docs/a.rst", True),
        ("a.ipynb", True),
        (".github/workflows/ci.yaml", True),
        ("conf/a.yml", True),
        ("pyproject.toml", True),
        ("setup.cfg", True),
        ("tox.ini", True),
        ("noxfile.py", True),
        ("bin/launch", True),
        ("train.py", False),
        ("a.json", False),
        ("a.png", False),
        ("a.toml", False),
    ],
)
def test_names(name: str, *, expected: bool) -> None:
    assert kinds.is_launch_file(name) is expected


def test_script_without_a_suffix(tmp_path: Path) -> None:
    files = {
        "bash": "#!/bin/bash\npython a.py\n",
        "env": "#!/usr/bin/env bash\npython b.py\n",
        "python": "#!/usr/bin/env python\npython c.py\n",
        "none": "python d.py\n",
    }
    assert [brief(launch) for launch in read(tmp_path, files)] == ["python 1 a.py", "python 1 b.py"]


def test_order_and_repetition(tmp_path: Path) -> None:
    files = {"b.sh": "python b.py\npython a.py\n", "a.sh": "f() { python c.py; }\nf\nf\n"}
    found = read(tmp_path, files)
    assert [(launch.path, launch.line) for launch in found] == [("a.sh", 1), ("b.sh", 1), ("b.sh", 2)]
    names = [Path(name) for name in files]
    assert reading.read_launches(tmp_path, [*reversed(names), *names]) == found


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "directory.sh").mkdir()
    (tmp_path / "large.sh").write_text(f"python a.py\n{'#' * kinds.LARGEST}", "utf-8")
    (tmp_path / "latin.sh").write_bytes(b"python a.py \xe9\n")
    (tmp_path / "empty.sh").write_bytes(b"")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.sh")
    names = [
        "directory.sh",
        "large.sh",
        "latin.sh",
        "empty.sh",
        "pipe.sh",
        "missing.sh",
        "../x.sh",
        "/etc/x.sh",
    ]
    found = reading.read_launches(tmp_path, [Path(name) for name in names])
    assert [launch.path for launch in found] == ["latin.sh"]


def test_console_scripts(tmp_path: Path) -> None:
    found = read(tmp_path, {"run.sh": "my-tool --x\nsrun -n 2 my-tool\nother\n"}, ["my-tool"])
    assert [brief(launch) for launch in found] == ["command 1 $my-tool --x", "srun 2 $my-tool"]


def test_parsers_are_loaded_if_a_file_can_contain_a_launch(tmp_path: Path) -> None:
    for name in ("a.sh", "a.md", "a.yaml"):
        (tmp_path / name).write_text("echo x\n", "utf-8")
    (tmp_path / "b.md").write_text("```\npython t.py\n```\n", "utf-8")
    program = (
        "import sys; from pathlib import Path; from fsrace_lint.launches.reading import read_launches\n"
        "root = Path(sys.argv[1])\n"
        "for names in (['a.sh', 'a.md', 'a.yaml'], ['b.md']):\n"
        "    found = read_launches(root, [root / name for name in names])\n"
        "    parsers = ('yaml', 'markdown_it', 'tree_sitter')\n"
        "    print(len(found), *(name for name in parsers if name in sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["0", "1 markdown_it tree_sitter"]
