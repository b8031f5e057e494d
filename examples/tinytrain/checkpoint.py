"""Save, rotate and load checkpoints."""

import logging
import os
from pathlib import Path

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from .distributed import get_rank, is_main_process

logger = logging.getLogger(__name__)


def make_checkpoint_dir(checkpoint_dir: Path) -> None:
    """Create the directory of the checkpoints."""
    try:
        os.mkdir(checkpoint_dir)
    except FileExistsError:
        logger.debug("reusing %s", checkpoint_dir)


def save_epoch(checkpoint_dir: Path, model: DDP, optimizer: torch.optim.Optimizer, epoch: int) -> None:
    """Save all that is needed to go on after this epoch."""
    state = {
        "model": model.module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": epoch,
    }
    torch.save(state, checkpoint_dir / f"epoch_{epoch:04d}.pt")


def save_random_state(checkpoint_dir: Path) -> None:
    """Save the state of the random numbers, which differs in each process."""
    rank = get_rank()
    torch.save(torch.get_rng_state(), checkpoint_dir / f"random_{rank}.pt")


def rotate(checkpoint_dir: Path, epoch: int, keep: int) -> None:
    """Delete the checkpoint that has become too old."""
    stale = checkpoint_dir / f"epoch_{epoch - keep:04d}.pt"
    if os.path.exists(stale):
        os.remove(stale)


def save_best(checkpoint_dir: Path, model: DDP) -> None:
    """Replace the best weights so far."""
    part = checkpoint_dir / "best.pt.part"
    torch.save(model.module.state_dict(), part)
    os.replace(part, checkpoint_dir / "best.pt")


def forget_all(checkpoint_dir: Path) -> None:
    """Remove the checkpoints of an earlier run in the same directory."""
    for path in checkpoint_dir.glob("*.pt"):
        path.unlink(missing_ok=True)


def load_best(checkpoint_dir: Path, model: nn.Module, device: torch.device) -> None:
    """Load the best weights into an unwrapped model."""
    model.load_state_dict(torch.load(checkpoint_dir / "best.pt", map_location=device, weights_only=True))


def export(run_dir: Path, model: nn.Module) -> None:
    """Write the weights for use outside this project."""
    if is_main_process():
        torch.save(model.state_dict(), run_dir / "model.pt")


def load_latest(
    checkpoint_dir: Path, model: nn.Module, optimizer: torch.optim.Optimizer, device: torch.device
) -> int:
    """Resume with as many processes as before; return the epoch to start with."""
    paths = sorted(checkpoint_dir.glob("epoch_*.pt"))
    if not paths:
        return 0
    state = torch.load(paths[-1], map_location=device, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(torch.load(checkpoint_dir / f"random_{get_rank()}.pt", weights_only=True))
    return state["epoch"] + 1
