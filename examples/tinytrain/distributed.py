"""Thin helpers around torch.distributed."""

import os

import torch
import torch.distributed as dist


def get_rank() -> int:
    """Return the rank of this process in the whole job, 0 outside a job."""
    return dist.get_rank() if dist.is_initialized() else 0


def get_world_size() -> int:
    """Return the number of processes in the job, 1 outside a job."""
    return dist.get_world_size() if dist.is_initialized() else 1


def is_main_process() -> bool:
    """Tell whether this process is the one that speaks for the job."""
    return get_rank() == 0


def barrier() -> None:
    """Wait until every process of the job has come here."""
    if dist.is_initialized():
        dist.barrier()


def select_device() -> torch.device:
    """Return the device of this process, one GPU for each local rank."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    return device


def average(value: float, device: torch.device) -> float:
    """Average a number over all processes; every process must call this."""
    total = torch.tensor(value, dtype=torch.float32, device=device)
    dist.all_reduce(total)
    return total.item() / get_world_size()
