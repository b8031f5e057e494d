"""The main function of one process of a scenario."""

from __future__ import annotations

import contextlib
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

from fsrace_lint.explore import messages
from fsrace_lint.explore.process.collectives import Collectives
from fsrace_lint.explore.process.gate import OWN
from fsrace_lint.instrument.model import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore.process.gate import Gate
    from fsrace_lint.explore.scenario import Scenario


def live(scenario: Scenario, rank: int, gate: Gate, reader: int, writer: int) -> NoReturn:
    """Run the function as one process of the job, and exit.

    Args:
        scenario: The scenario.
        rank: The rank of this process.
        gate: The gate where calls stop after its `begin()`.
        reader: The descriptor for messages from the scheduler.
        writer: The descriptor for messages to the scheduler.
    """
    sys.settrace(None)
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # the scheduler prepares the tree before it sends this message; do not touch the tree earlier
    messages.receive_go(reader)
    top = gate.files.tree.top
    root = pathlib.Path(top, "root")
    posix.chdir(root)
    os.environ.update(_environment(top, str(rank), str(scenario.processes)))
    tempfile.tempdir = os.environ["TMPDIR"]
    random.seed(rank)
    if scenario.distributed:
        Collectives(gate, scenario.processes).install()
    gate.begin(reader, writer, rank)
    try:
        value = scenario.function(root, rank)
        _close_all(gate)
    except BaseException as error:  # noqa: BLE001  # every exception is an outcome
        with contextlib.suppress(OSError, ValueError):
            _close_all(gate)
        # the calls below, such as reading source lines, do not belong to the scenario
        gate.finish()
        if isinstance(error, SystemExit) and not error.code:
            gate.end(shown="None")
        trace = traceback.extract_tb(error.__traceback__)
        frames = [frame for frame in trace if not frame.filename.startswith(OWN)]
        lines = traceback.format_list(frames) + traceback.format_exception_only(type(error), error)
        kinds = [kind.__name__ for kind in type(error).__mro__[:-1]]
        gate.end(error=kinds, message=plain(_said(str, error)), trace=plain("".join(lines)))
    gate.finish()
    gate.end(value=_pickled(value), shown=plain(_said(repr, value)))


def _environment(top: str, rank: str, size: str) -> dict[str, str]:
    return {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": size,
        "GROUP_RANK": "0",
        "NODE_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        "HOME": f"{top}/home",
        "TMPDIR": f"{top}/tmp",  # noqa: S108  # below the scratch directory
    }


def _close_all(gate: Gate) -> None:
    """Flush buffers and release locks, as the end of a program does."""
    for reference in gate.files.streams:
        stream = reference()
        if stream is not None and not stream.closed:
            stream.close()
    for descriptor, file in list(gate.files.by_descriptor.items()):
        if file.flock or gate.files.record_locks:
            os.close(descriptor)


def _said(say: Callable[[object], str], value: object) -> str:
    try:
        return say(value)
    except Exception as error:  # noqa: BLE001  # `repr()` of an object can raise anything
        return f"<{type(value).__name__} whose text raises {type(error).__name__}>"


def _pickled(value: object) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception:  # noqa: BLE001  # pickling an object can raise anything; it is then compared as text
        return b""
