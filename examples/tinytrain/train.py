"""Train the character model on all processes of a job.

Usage, on every node:

    torchrun --nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=HOST:29400 \
        -m tinytrain.train --data-url https://example.org/tinytrain --run-dir /shared/runs/first
"""

import logging
import shutil
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel as DDP

from . import checkpoint, metrics
from .cache import encode, load_shard, load_vocabulary, open_cache
from .config import Config, dump_config, make_run_dir, parse_args, write_environment
from .data import load_prompts, prepare_data, read_text
from .distributed import average, barrier, get_rank, is_main_process, select_device
from .model import CharacterModel, generate, sample_batch


def start_fresh(run_dir: Path, checkpoint_dir: Path) -> None:
    """Clear away what an earlier run in the same directory has produced."""
    samples = run_dir / "samples"
    if samples.exists():
        shutil.rmtree(samples)
    checkpoint.forget_all(checkpoint_dir)


def train_epoch(
    model: DDP, optimizer: torch.optim.Optimizer, tokens: torch.Tensor, config: Config, device: torch.device
) -> float:
    """Run one epoch on this process's shard; return the mean loss of the job."""
    model.train()
    total = 0.0
    for _ in range(config.steps):
        contexts, targets = sample_batch(tokens, config.batch_size, config.context)
        loss = cross_entropy(model(contexts.to(device)), targets.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return average(total / config.steps, device)


@torch.no_grad()
def evaluate(model: CharacterModel, tokens: torch.Tensor, config: Config, device: torch.device) -> float:
    """Return the held-out loss, averaged over the draws of all processes."""
    model.eval()
    contexts, targets = sample_batch(tokens, 16 * config.batch_size, config.context)
    return average(cross_entropy(model(contexts.to(device)), targets.to(device)).item(), device)


def fit(
    model: DDP, vocabulary: dict[str, int], shard: torch.Tensor, heldout: torch.Tensor, config: Config
) -> None:
    """Train, evaluate and save, epoch by epoch."""
    device = next(model.parameters()).device
    checkpoint_dir = config.run_dir / "checkpoints"
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate)
    characters = list(vocabulary)
    prompts = [encode(prompt, vocabulary) for prompt in load_prompts(config.data_dir)]
    first = checkpoint.load_latest(checkpoint_dir, model.module, optimizer, device) if config.resume else 0
    best = float("inf")
    rows: list[tuple[int, float, float]] = []
    for epoch in range(first, config.epochs):
        started = time.perf_counter()
        train_loss = train_epoch(model, optimizer, shard, config, device)
        speed = config.steps / (time.perf_counter() - started)
        heldout_loss = evaluate(model.module, heldout, config, device)
        rows.append((epoch, train_loss, heldout_loss))
        checkpoint.save_epoch(checkpoint_dir, model, optimizer, epoch)
        checkpoint.save_random_state(checkpoint_dir)
        checkpoint.rotate(checkpoint_dir, epoch, config.keep)
        if heldout_loss < best:
            best = heldout_loss
            if is_main_process():
                checkpoint.save_best(checkpoint_dir, model)
        texts = ["".join(characters[i] for i in generate(model.module, prompt, 80)) for prompt in prompts]
        metrics.write_samples(config.run_dir, epoch, texts)
        metrics.write_curve(config.run_dir, [row[1] for row in rows])
        metrics.write_table(config.run_dir, rows)
        metrics.write_throughput(config.run_dir, speed)
    metrics.write_summary(config.run_dir, config.epochs, best)


def main() -> None:
    """Set up the job, train, and export the best weights."""
    logging.basicConfig(level=logging.INFO)
    config = parse_args()
    dist.init_process_group(backend="nccl" if torch.cuda.is_available() else "gloo")
    device = select_device()
    torch.manual_seed(1234 + get_rank())

    checkpoint_dir = config.run_dir / "checkpoints"
    make_run_dir(config.run_dir)
    dump_config(config, config.run_dir)
    write_environment(config.run_dir)
    checkpoint.make_checkpoint_dir(checkpoint_dir)
    if not config.resume:
        start_fresh(config.run_dir, checkpoint_dir)

    prepare_data(config.data_dir, config.data_url)
    open_cache(config.cache_dir, rebuild_vocabulary=config.rebuild_vocabulary)
    barrier()
    text = read_text(config.data_dir / "corpus")
    vocabulary = load_vocabulary(config.cache_dir, text)
    shard = load_shard(text, vocabulary)
    heldout = encode(read_text(config.data_dir / "heldout"), vocabulary)

    model = DDP(CharacterModel(len(vocabulary), config.context).to(device))
    fit(model, vocabulary, shard, heldout, config)
    barrier()
    checkpoint.load_best(checkpoint_dir, model.module, device)
    checkpoint.export(config.run_dir, model.module)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
