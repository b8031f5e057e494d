"""The main function of one process of a scenario."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import pathlib
import pickle
import platform
import random
import signal
import sys
import tempfile
from typing import TYPE_CHECKING, NoReturn

from fsrace_lint.explore import messages
from fsrace_lint.explore.code_places import traceback_of
from fsrace_lint.explore.faults import Faults
from fsrace_lint.explore.process import evidence, leaving
from fsrace_lint.explore.process.audit import Audit
from fsrace_lint.explore.process.collectives import Collectives
from fsrace_lint.instrument.kernel import posix
from fsrace_lint.instrument.model import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore.identity import Identity
    from fsrace_lint.explore.process.gate import Gate
    from fsrace_lint.explore.scenario import Scenario


def prepare(scenario: Scenario, who: Identity, gate: Gate) -> None:
    """Do what all processes of a rank would do first, in the process that forks them.

    Args:
        scenario: The scenario.
        who: The identity of the first process.
        gate: The gate where their calls stop after its `begin()`.
    """
    sys.settrace(None)
    # the caches of modules are outside of the tree
    sys.dont_write_bytecode = True
    sys.path[:] = [path if path.startswith("/") else os.path.abspath(path) for path in sys.path]
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.update(_environment(gate.files.tree.top, who, scenario))
    tempfile.tempdir = os.environ["TMPDIR"]
    leaving.forget_inherited()
    if scenario.nodes > 1:
        platform._uname_cache = None  # type: ignore[attr-defined]  # it holds the name of the real host
    if scenario.distributed:
        Collectives(gate, scenario.processes).install()
    gate.files.client = f"{who.rank:08x}" if "handles" in scenario.caches else ""
    gate.files.caches = bool(scenario.caches)
    gate.files.has_local_locks = "locks" in scenario.caches
    gate.excludes_writers = not scenario.caches
    gate.faults = Faults(scenario.faults, is_network=bool(scenario.caches))
    gate.host = who.host if scenario.nodes > 1 else None


def live(scenario: Scenario, who: Identity, gate: Gate, reader: int, writer: int) -> NoReturn:
    """Run the function as one process of the job, and exit.

    Args:
        scenario: The scenario.
        who: The identity of this process.
        gate: The gate where calls stop after its `begin()`.
        reader: The descriptor for messages from the scheduler.
        writer: The descriptor for messages to the scheduler.
    """
    sys.settrace(None)
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # the scheduler prepares the tree before it sends this message; do not touch the tree earlier
    begun = messages.receive_go(reader)
    end = functools.partial(gate.end, lingers=scenario.lifetimes)
    top = gate.files.tree.top
    if begun.traced:
        evidence.keep(who.rank, top)
        gate.is_traced = True
    root = pathlib.Path(top, "root")
    posix.chdir(root)
    random.seed(who.seed)
    Audit(gate, allow_outside=scenario.allow_outside).install()
    gate.identity, gate.now, gate.started = who, begun.now, begun.now
    gate.begin(reader, writer, who.rank)
    try:
        value = scenario.function(root, who.rank)
        leaving.leave()
        _close_all(gate)
    except BaseException as error:  # noqa: BLE001  # every exception is an outcome
        leaving.leave()
        with contextlib.suppress(OSError, ValueError):
            _close_all(gate)
        # the calls below, such as reading source lines, do not belong to the scenario
        gate.finish()
        if isinstance(error, SystemExit) and error.code in (None, 0):
            end(shown="None")
        kinds = [kind.__name__ for kind in type(error).__mro__[:-1]]
        origins, trace = traceback_of(error)
        end(
            error=kinds,
            message=plain(_said(str, error)),
            trace=plain(trace),
            raised=origins,
            is_by_fault=gate.faults.explain(error),
        )
    gate.finish()
    end(value=_pickled(value), shown=plain(_said(repr, value)))


def _environment(top: str, who: Identity, scenario: Scenario) -> dict[str, str]:
    host = {"HOSTNAME": who.host} if scenario.nodes > 1 else {}
    return host | {
        "RANK": str(who.rank),
        "LOCAL_RANK": str(who.local_rank),
        "WORLD_SIZE": str(scenario.processes),
        "LOCAL_WORLD_SIZE": str(scenario.processes // scenario.nodes),
        "GROUP_RANK": str(who.node),
        "NODE_RANK": str(who.node),
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
        if file.flock or gate.files.record_locks or gate.files.hidden:
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
