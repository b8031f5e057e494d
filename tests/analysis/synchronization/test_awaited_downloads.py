"""Downloads and extractions after which all ranks wait for each other.

Shows: `analysis/queries/ordering.py`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.mdtest import run

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
import os
import shutil
import urllib.request

import torch
import torch.distributed as dist

dist.init_process_group("nccl")


"""
LOAD = """\
def load(url, verbose):
    if url:
        if not os.path.exists("weights.bin"):
            urllib.request.urlretrieve(url, "weights.bin")
"""
BARRIER, READ = "    dist.barrier()\n", "    weights = open('weights.bin').read()\n"
UNKNOWN = """\
    for name in os.listdir("."):
        name = name.strip()
    open(name).read()
"""
UNPACK = """\
def load(url, verbose):
    if not os.path.exists("images"):
        shutil.unpack_archive("images.zip", "images")
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LOAD + BARRIER + READ, "note"),
        (LOAD + "    print(url)\n    if dist.is_initialized():\n        dist.barrier()\n" + READ, "note"),
        (LOAD + "    print(open('notes.txt').read())\n" + BARRIER + READ, "note"),
        (UNPACK + BARRIER + "    os.listdir('images')\n", "note"),
        (LOAD + READ + BARRIER, "warning"),
        (
            LOAD
            + "    for name in os.listdir('.'):\n        name = name.strip()\n    open(name).read()\n"
            + BARRIER,
            "warning",
        ),
        (LOAD + "    shutil.copy('weights.bin', 'copy.bin')\n" + BARRIER + READ, "warning"),
        (LOAD + "    dist.barrier(group=verbose)\n" + READ, "warning"),
        (LOAD + READ, "warning"),
        (LOAD + "    if verbose:\n        dist.barrier()\n" + READ, "warning"),
        (LOAD + "            dist.barrier()\n" + READ, "warning"),
        (LOAD.replace('if not os.path.exists("weights.bin")', "if verbose") + BARRIER + READ, "warning"),
        (UNPACK + "    os.listdir('images')\n", "warning"),
    ],
)
def test_barrier(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "train.py").write_text(HEAD + text, "utf-8")
    _, checked = run(tmp_path)
    found = [each for each in checked.outcome.findings if each.code in {"FSR301", "FSR302"}]
    assert [each.severity.value for each in found] == [expected]
