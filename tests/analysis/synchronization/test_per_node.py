"""How certain it is that a program runs on several nodes, so that each has a process with local rank 0.

Shows: `analysis/synchronization/per_node.py`
"""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from support.mdtest import run

if TYPE_CHECKING:
    from pathlib import Path

SAVE = """\
import torch


def save(args, model):
    if args.local_rank in [-1, 0]:
        torch.save(model.state_dict(), args.output_dir + "/model.pt")
"""
PROGRAM = f"""{SAVE}

if __name__ == "__main__":
    print(torch.distributed.get_rank())
    save(None, None)
"""
LIBRARY = {"lib/__init__.py": "from lib.saving import *\n", "lib/saving.py": SAVE, "other.py": "import os\n"}


def confidence(root: Path, texts: dict[str, str]) -> str:
    """Return the confidence of the only finding."""
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(dedent(text), "utf-8")
    _, checked = run(root)
    (finding,) = (each for each in checked.outcome.findings if each.code == "FSR405")
    return finding.confidence


@pytest.mark.parametrize(
    "command",
    [
        "python train.py",
        "torchrun --nproc_per_node 8 train.py --gpus_per_node 8",
        "torchrun --nnodes=1 --nproc_per_node 8 train.py",
        "torchrun --nproc_per_node 2 train.py\npython train.py --debug",
        "python other.py",
    ],
)
def test_one_node(tmp_path: Path, command: str) -> None:
    texts = {"train.py": PROGRAM, "other.py": "import os\n", "run.sh": f"{command}\n"}
    assert confidence(tmp_path, texts) == "low"


@pytest.mark.parametrize(
    "command",
    [
        "torchrun --nnodes=$NODES --nproc_per_node 8 train.py",
        "torchrun --nproc_per_node 8 train.py\nsrun python train.py",
        "accelerate launch train.py",
        "python train.py --num_machines 2",
        "python train.py --world-size=16",
        "echo",
    ],
)
def test_perhaps_multiple_nodes(tmp_path: Path, command: str) -> None:
    assert confidence(tmp_path, {"train.py": PROGRAM, "run.sh": f"{command}\n"}) == "medium"


def test_library_that_the_repository_does_not_start(tmp_path: Path) -> None:
    assert confidence(tmp_path, {**LIBRARY, "run.sh": "torchrun other.py\n"}) == "medium"


def test_library_that_only_a_demonstration_calls(tmp_path: Path) -> None:
    demo = {"examples/demo.py": "from lib.saving import save\n\nsave(None, None)\n"}
    assert confidence(tmp_path, {**LIBRARY, **demo, "run.sh": "torchrun --nnodes=1 other.py\n"}) == "medium"


def test_settings_say_that_nodes_share_the_path(tmp_path: Path) -> None:
    settings = '[tool.fsrace-lint]\nfilesystem = "shared"\n'
    texts = {"train.py": PROGRAM, "run.sh": "python train.py\n", "pyproject.toml": settings}
    assert confidence(tmp_path, texts) == "medium"
