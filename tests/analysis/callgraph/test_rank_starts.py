"""Code that one process runs before the framework starts the other ranks.

Shows: `analysis/callgraph/rank_starts.py`
"""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from support.mdtest import run

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = """\
import os
import shutil

from pytorch_lightning import Trainer


def learn(trainer: Trainer):
    trainer.fit(build())


def run(trainer):
    learn(trainer)


trainer = Trainer.from_argparse_args(parse())
if trainer.global_rank == 0:
    print("first")
"""
CHECKED = 'if not os.path.exists("runs"):\n    os.makedirs("runs")\n'
COPIED = 'if not os.path.exists("a.yaml"):\n    shutil.copyfile("b.yaml", "a.yaml")\n'
CALLED = """\
def make():
    if not os.path.exists("runs"):
        os.makedirs("runs")


if name:
    make()
"""
FITTED = "trainer.fit(build())\n"
ONE_OF_TWO = """\
if evaluates:
    if not os.path.exists("runs"):
        os.makedirs("runs")
else:
    trainer.fit(build())
"""
IN_LOOP = """\
for number in range(3):
    if not os.path.exists("runs"):
        os.makedirs("runs")
    trainer.fit(build())
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CHECKED + FITTED, "note"),
        (COPIED + FITTED, "note"),
        (CALLED + FITTED, "note"),
        (CHECKED + "learn(trainer)\n", "note"),
        (CHECKED + "run(trainer)\n", "note"),
        (CHECKED + "for number in range(3):\n    trainer.fit(build())\n", "note"),
        (CHECKED, "warning"),
        (FITTED + CHECKED, "warning"),
        (FITTED + CHECKED + FITTED, "warning"),
        (ONE_OF_TWO, "warning"),
        (IN_LOOP, "warning"),
    ],
)
def test_ranks_that_are_started_later(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "train.py").write_text(BEGIN + text, "utf-8")
    _, checked = run(tmp_path)
    assert [finding.severity.value for finding in checked.outcome.findings] == [expected]


@pytest.mark.parametrize("start", ["LightningCLI(Model)", "Fabric(devices=8).launch()"])
def test_other_starts(tmp_path: Path, start: str) -> None:
    text = f"""\
        import os

        import torch.distributed as dist
        from lightning.fabric import Fabric
        from lightning.pytorch.cli import LightningCLI

        if not os.path.exists("runs"):
            os.makedirs("runs")
        {start}
        if int(os.environ["RANK"]) == 0:
            print("first")
    """
    (tmp_path / "train.py").write_text(dedent(text), "utf-8")
    _, checked = run(tmp_path)
    assert [f.severity.value for f in checked.outcome.findings] == ["note"]


def test_launched_at_once(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("srun --ntasks 8 python train.py\n", "utf-8")
    (tmp_path / "train.py").write_text(BEGIN + CHECKED + FITTED, "utf-8")
    _, checked = run(tmp_path)
    assert "error" in [f.severity.value for f in checked.outcome.findings]
