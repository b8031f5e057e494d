"""Command line, run directory and the record of what was run."""

import argparse
import json
import logging
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from .distributed import get_rank, get_world_size

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Config:
    """Everything a run depends on."""

    data_url: str
    data_dir: Path
    run_dir: Path
    cache_dir: Path
    epochs: int
    steps: int
    batch_size: int
    context: int
    learning_rate: float
    keep: int
    resume: bool
    rebuild_vocabulary: bool


def parse_args() -> Config:
    """Read the configuration from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-url", required=True, help="folder that holds the archives")
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--run-dir", type=Path, default=Path("runs/default"))
    parser.add_argument("--cache-dir", type=Path, default=Path("data/cache"))
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=200, help="optimizer steps in an epoch")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--context", type=int, default=16, help="characters the model can see")
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--keep", type=int, default=3, help="epoch checkpoints to keep")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--rebuild-vocabulary", action="store_true")
    return Config(**vars(parser.parse_args()))


def make_run_dir(run_dir: Path) -> None:
    """Create the directory that receives all output of this run."""
    if not run_dir.is_dir():
        logger.info("creating run directory %s", run_dir)
        run_dir.mkdir(parents=True, exist_ok=True)


def dump_config(config: Config, run_dir: Path) -> None:
    """Write the configuration next to the results."""
    with open(run_dir / "config.json", "w", encoding="utf-8") as file:
        json.dump(asdict(config), file, indent=2, default=str)


def write_environment(run_dir: Path) -> None:
    """Record the versions and the size of the job."""
    if get_rank() != 0:
        return
    lines = [
        f"python {platform.python_version()}",
        f"torch {torch.__version__}",
        f"processes {get_world_size()}",
    ]
    (run_dir / "environment.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
