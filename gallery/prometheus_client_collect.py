"""Prometheus client: a request for metrics fails while a new worker starts.

Promise: In the multiprocess mode, each worker writes its own file in `PROMETHEUS_MULTIPROC_DIR`, and
`MultiProcessCollector` reads the files of all workers at any time. It expects that files can vanish while
it reads.

Failure: A worker creates its file, and extends it to 64 KiB afterwards. In between, the file is empty, and
`read_all_values_from_file()` fails when it unpacks the first four bytes.

Harm: `/metrics` fails with `struct.error` whenever a request arrives while a worker starts or restarts.

Fix: Skip files that are shorter than their header.
"""

import os

from prometheus_client import CollectorRegistry, mmap_dict, multiprocess
from prometheus_client.values import MultiProcessValue


def broken(root, rank):
    """Process 0 is a worker that starts; process 1 collects the metrics."""
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(root)
    if rank == 0:
        MultiProcessValue(os.getpid)("counter", "requests", "requests", (), (), "Number of requests.").inc(1)
    else:
        list(multiprocess.MultiProcessCollector(CollectorRegistry(), str(root)).collect())


original = mmap_dict.MmapedDict.read_all_values_from_file


def read_existing(name):
    """Read like `read_all_values_from_file()`, but skip an empty file."""
    return iter(()) if os.path.getsize(name) == 0 else original(name)


def repaired(root, rank):
    """The same, with the fix."""
    mmap_dict.MmapedDict.read_all_values_from_file = staticmethod(read_existing)
    broken(root, rank)
