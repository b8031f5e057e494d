"""One process of an MPI job: `mpirun -n 4 python mpirun_job.py DIRECTORY ROUNDS`."""

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
    world: Any = importlib.import_module("mpi4py.MPI").COMM_WORLD
    job = Job(Path(sys.argv[1]), world.rank, world.size, world.Barrier, is_job=True)
    seconds = hammer(job, int(sys.argv[2]))
    if job.rank == 0:
        print("DONE", json.dumps({"size": job.size, **seconds}))


if __name__ == "__main__":
    main()
