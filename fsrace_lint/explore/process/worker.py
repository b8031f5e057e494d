"""The life of one process of a scenario."""

from __future__ import annotations

import gc
import os
import pathlib
import pickle
import posix
import random
import signal
import sys
import tempfile
import traceback
from typing import TYPE_CHECKING, NoReturn

from fsrace_lint.explore.process.collectives import Collectives
from fsrace_lint.explore.process.gate import OWN

if TYPE_CHECKING:
    from fsrace_lint.explore.process.gate import Gate
    from fsrace_lint.explore.process.told import Told


def live(told: Told, gate: Gate, reader: int, writer: int) -> NoReturn:
    """Be a process of the job: run the function, and end.

    Args:
        told: What to do.
        gate: Where calls stop, once it is begun.
        reader: Where the scheduler is heard.
        writer: Where it is spoken to.
    """
    sys.settrace(None)
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    root = pathlib.Path(told.top, "root")
    posix.chdir(root)
    os.environ.update(_environment(told))
    tempfile.tempdir = told.temporary
    random.seed(0)
    if told.distributed:
        Collectives(gate, told.size).install()
    gate.begin(reader, writer, told.top, told.rank)
    try:
        value = told.function(root, told.rank)
        _drop_locks(gate)
    except BaseException as error:  # noqa: BLE001  # whatever it is, it is the outcome
        _try_to_drop_locks(gate)
        # what follows, such as looking for lines of source, is none of the scenario's calls
        gate.finish()
        trace = traceback.extract_tb(error.__traceback__)
        frames = [frame for frame in trace if not frame.filename.startswith(OWN)]
        lines = traceback.format_list(frames) + traceback.format_exception_only(type(error), error)
        kinds = [kind.__name__ for kind in type(error).__mro__[:-1]]
        gate.end(error=kinds, message=str(error), trace="".join(lines))
    gate.finish()
    gate.end(value=_pickled(value), shown=repr(value))


def _environment(told: Told) -> dict[str, str]:
    rank, size = str(told.rank), str(told.size)
    return {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": size,
        "GROUP_RANK": "0",
        "NODE_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        "HOME": f"{told.top}/home",
        "TMPDIR": told.temporary,
    }


def _drop_locks(gate: Gate) -> None:
    for descriptor, file in list(gate.files.items()):
        if file.flock or gate.record_locks:
            os.close(descriptor)


def _try_to_drop_locks(gate: Gate) -> None:
    try:
        _drop_locks(gate)
    except OSError:
        return


def _pickled(value: object) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception:  # noqa: BLE001  # whatever an object's own reduction raises: it is compared as text
        return b""
