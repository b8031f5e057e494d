"""How certain it is that no code orders two accesses by different ranks.

Shows: `analysis/synchronization/order_doubts.py`
"""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from support.mdtest import run

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
import os

import torch
import torch.distributed as dist
"""


def confidence(root: Path, text: str) -> str:
    """Return the confidence of the only missing barrier."""
    (root / "main.py").write_text(HEAD + dedent(text), "utf-8")
    _, checked = run(root)
    (found,) = (each for each in checked.outcome.findings if each.code == "FSR401")
    return found.confidence


@pytest.mark.parametrize(
    "between",
    [
        "print(path)",
        "trainer = make_trainer()",
        "train_set = load_train_set()",
        "report_evaluation(path)",
        "train_nothing()",
    ],
)
def test_nothing_orders_them(between: str, tmp_path: Path) -> None:
    text = f"""
        def train_nothing():
            print("nothing")


        def index(path, rows, trainer):
            if dist.get_rank() == 0:
                torch.save(rows, path)
            {between}
            return torch.load(path)
    """
    assert confidence(tmp_path, text) == "medium"


@pytest.mark.parametrize(
    "between",
    [
        "trainer.train()",
        "trainer.fit(rows)",
        "trainer.evaluate(rows)",
        "train_one_epoch(rows)",
        "backend.rendezvous_here()",
        "Backend().rendezvous_here()",
    ],
)
def test_unknown_code_may_wait(between: str, tmp_path: Path) -> None:
    text = f"""
        from elsewhere import backend, train_one_epoch


        class Backend:
            def rendezvous_here(self):
                raise NotImplementedError


        def index(path, rows, trainer):
            if dist.get_rank() == 0:
                torch.save(rows, path)
            {between}
            return torch.load(path)
    """
    assert confidence(tmp_path, text) == "low"


def test_training_between_the_refusal_and_the_save(tmp_path: Path) -> None:
    text = """
        def run(folder, trainer, model):
            if os.path.exists(folder):
                raise ValueError(folder)
            trainer.train()
            if dist.get_rank() == 0:
                os.makedirs(folder)
    """
    assert confidence(tmp_path, text) == "low"


def test_wait_in_the_functions_of_the_accesses(tmp_path: Path) -> None:
    text = """
        def fetch(path, rows, group):
            if dist.get_rank() == 0:
                torch.save(rows, path)
            group.rendezvous_here()


        def read(path, group):
            print(path)
            return torch.load(path)


        def index(path, rows, group):
            fetch(path, rows, group)
            return read(path, group)
    """
    assert confidence(tmp_path, text) == "low"


def test_run_that_continues_another_one(tmp_path: Path) -> None:
    text = """
        def find(args):
            if dist.get_rank() == 0:
                os.makedirs(args.output_dir, exist_ok=True)
            if args.resume_from_checkpoint == "latest":
                return os.listdir(args.output_dir)
    """
    assert confidence(tmp_path, text) == "low"
    assert confidence(tmp_path, text.replace("resume_from_checkpoint", "kind")) == "medium"


def test_the_main_rank_of_the_job_and_of_the_node(tmp_path: Path) -> None:
    text = """
        def save(args, rows, path):
            if args.local_rank == -1 or dist.get_rank() == 0:
                torch.save(rows, path)
            if args.local_rank in [-1, 0]:
                torch.load(path)
    """
    assert confidence(tmp_path, text) == "low"
