"""One process of a `torchrun` job: `torchrun --nproc-per-node 4 torchrun_job.py DIRECTORY ROUNDS`."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from rounds import Job, hammer

from fsrace_lint import safe


def main() -> None:
    try:
        safe.barrier()
    except RuntimeError:
        pass
    else:
        raise AssertionError("silence before the framework is initialized")
    dist: Any = importlib.import_module("torch.distributed")
    dist.init_process_group("gloo")
    job = Job(Path(sys.argv[1]), dist.get_rank(), dist.get_world_size(), dist.barrier, is_job=True)
    seconds = hammer(job, int(sys.argv[2]))
    if job.rank == 0:
        print("DONE", json.dumps({"size": job.size, **seconds}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
