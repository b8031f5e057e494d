"""Loss curves, samples and the summary of a run."""

import csv
import json
import logging
import os
from pathlib import Path

import numpy as np
import torch.distributed as dist

from .distributed import get_rank, get_world_size, is_main_process

logger = logging.getLogger(__name__)


def write_curve(run_dir: Path, losses: list[float]) -> None:
    """Save the training loss of all epochs so far."""
    np.save(run_dir / "losses.npy", np.asarray(losses))


def write_table(run_dir: Path, rows: list[tuple[int, float, float]]) -> None:
    """Write one line for each epoch: number, training loss, held-out loss."""
    if not is_main_process():
        logger.debug("rank %d has the same %d rows", get_rank(), len(rows))
    else:
        with open(run_dir / "metrics.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("epoch", "train", "heldout"))
            writer.writerows(rows)


def write_samples(run_dir: Path, epoch: int, texts: list[str]) -> None:
    """Keep what the model makes of the prompts; each process draws its own."""
    folder = run_dir / "samples" / f"epoch_{epoch:04d}"
    os.makedirs(folder)
    (folder / f"rank_{get_rank()}.txt").write_text("\n\n".join(texts), encoding="utf-8")


def write_throughput(run_dir: Path, steps_per_second: float) -> None:
    """Collect the speed of every process and write one table."""
    rank = get_rank()
    is_main = rank == 0
    speeds: list[float] = [0.0] * get_world_size()
    dist.all_gather_object(speeds, steps_per_second)
    logger.info("rank %d: %.1f of %.1f steps/s", rank, steps_per_second, sum(speeds))
    if is_main:
        np.savetxt(run_dir / "throughput.txt", np.asarray(speeds), fmt="%.2f")


def write_summary(run_dir: Path, epochs: int, best: float) -> None:
    """Write the numbers that the results page reads."""
    summary = {"epochs": epochs, "best_heldout_loss": best}
    (run_dir / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
