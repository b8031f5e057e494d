"""Processes without a framework: `python processes_job.py DIRECTORY ROUNDS PROCESSES`."""

from __future__ import annotations

import json
import multiprocessing
import sys
from pathlib import Path
from typing import Any

from rounds import Job, hammer


def work(directory: Path, rank: int, size: int, barrier: Any, rounds: int) -> None:
    try:
        seconds = hammer(Job(directory, rank, size, lambda: barrier.wait(60), is_job=False), rounds)
    except BaseException:
        barrier.abort()
        raise
    if rank == 0:
        print("DONE", json.dumps({"size": size, **seconds}), flush=True)


def main() -> int:
    context = multiprocessing.get_context("spawn")
    size = int(sys.argv[3])
    barrier = context.Barrier(size)
    arguments = [(Path(sys.argv[1]), rank, size, barrier, int(sys.argv[2])) for rank in range(size)]
    processes = [context.Process(target=work, args=given) for given in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return max(abs(process.exitcode or 0) for process in processes)


if __name__ == "__main__":
    sys.exit(main())
