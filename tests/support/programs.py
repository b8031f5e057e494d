"""Random small programs, and the outcomes of all orders of their calls, with and without reduction."""

from __future__ import annotations

import fcntl
import functools
import itertools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, assume, settings

from fsrace_lint.explore.identity import FIRST_PID
from fsrace_lint.explore.scenario import Scenario
from fsrace_lint.explore.search.bounded import Bounded
from fsrace_lint.explore.search.dpor import Dpor
from support.exploring import directed
from support.sampling import bound

MOST_ORDERS = 400
"""Programs with more orders are skipped, because each order is a run of real processes."""

Call = Callable[[Path, int], object]
Program = list[list[str]]


captured_mkdir = functools.partial(os.mkdir)
captured_unlink = functools.partial(os.unlink)
captured_listdir = functools.partial(os.listdir)
captured_open = functools.partial(os.open)
"""Functions that the explorer cannot replace here, so that an audit hook notices each call instead."""


def append(root: Path, rank: int) -> None:
    with open(root / "f", "a") as stream:
        stream.write(str(rank))


def overwrite(root: Path, rank: int) -> None:
    with open(root / "f", "w") as stream:
        stream.write(str(rank))


MUCH = 3 * 4096


def append_much(root: Path, rank: int) -> int:
    descriptor = os.open(root / "f", os.O_WRONLY | os.O_APPEND)
    return os.write(descriptor, str(rank).encode() * MUCH)


def overwrite_much(root: Path, rank: int) -> int:
    descriptor = os.open(root / "f", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    return os.write(descriptor, str(rank).encode() * MUCH)


def read_much(root: Path, rank: int) -> str:
    found = os.read(os.open(root / "m", os.O_RDONLY), 10 * MUCH)
    return f"{len(found)} {sorted(set(found))}"


def change_much(root: Path, rank: int) -> int:
    return os.pwrite(os.open(root / "m", os.O_WRONLY), str(rank).encode() * MUCH, 4096)


def copy_much(root: Path, rank: int) -> int:
    source, target = os.open(root / "m", os.O_RDONLY), os.open(root / "f", os.O_WRONLY)
    return os.sendfile(target, source, 0, 10 * MUCH)


def locked(root: Path, operation: int) -> bool:
    descriptor = os.open(root / "lock", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(descriptor, operation)
        return os.path.exists(root / "f")
    finally:
        os.close(descriptor)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def locked_by_pid(root: Path) -> str:
    try:
        descriptor = os.open(root / "owner", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        owner = int((root / "owner").read_text() or 0)
        if is_alive(owner):
            return "busy"
        os.unlink(root / "owner")
        return "stale"
    os.write(descriptor, str(os.getpid()).encode())
    os.close(descriptor)
    return "mine"


def synced(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def held_lock(root: Path, rank: int) -> tuple[bool, ...]:
    descriptor, other = os.open(root / "lock", os.O_CREAT | os.O_RDWR), FIRST_PID + 1 - rank
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    seen = is_alive(other), os.path.exists(root / "x"), is_alive(other)
    os.close(descriptor)
    return seen


def waited_lock(root: Path) -> None:
    descriptor = os.open(root / "lock", os.O_CREAT | os.O_RDWR)
    os.mkdir(root / "x")
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.close(descriptor)


def slept(root: Path, rank: int) -> float:
    time.sleep(1)
    os.path.exists(root / "f")
    return time.monotonic()


def retried(act: Callable[[], bool], pause: float = 0) -> bool:
    """Try four times: the last two are repetitions, before which the other process comes first."""
    for _ in range(4):
        if act():
            return True
        if pause:
            time.sleep(pause)
    return False


def created(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def tried_lock(root: Path) -> bool:
    descriptor = os.open(root / "lock", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def made_and_unmade(root: Path, rank: int) -> bool:
    """Fail while the other process does the same, and leave nothing behind then."""
    os.mkdir(root / f"r{rank}")
    if os.path.exists(root / "x"):
        os.rmdir(root / f"r{rank}")
        return False
    return True


def aged(root: Path, rank: int) -> bool:
    """Wait for a file, but no longer than a minute."""
    end = time.monotonic() + 60
    while not os.path.exists(root / "x"):
        if time.monotonic() > end:
            return False
        time.sleep(1)
    return True


RETRIES: dict[str, Call] = {
    "spin for x": lambda root, _: retried(lambda: created(root / "x")),
    "sleep for x": lambda root, _: retried(lambda: created(root / "x"), 1),
    "await x": lambda root, _: retried(lambda: os.path.exists(root / "x"), 1),
    "await no x": lambda root, _: retried(lambda: not os.path.exists(root / "x")),
    "retry lock": lambda root, _: retried(lambda: tried_lock(root), 1),
    "undo": lambda root, rank: retried(lambda: made_and_unmade(root, rank)),
    "await x for a minute": aged,
}
ACTIONS: dict[str, Call] = {
    "create x": lambda root, _: os.close(os.open(root / "x", os.O_CREAT | os.O_EXCL)),
    "unlink x": lambda root, _: os.unlink(root / "x"),
    "exists x": lambda root, _: os.path.exists(root / "x"),
    "exists r0": lambda root, _: os.path.exists(root / "r0"),
    "lock": lambda root, _: locked(root, fcntl.LOCK_EX),
}
CALLS: dict[str, Call] = {
    "mkdir d": lambda root, _: os.mkdir(root / "d"),
    "mkdir d/e": lambda root, _: os.mkdir(root / "d" / "e"),
    "rmdir d": lambda root, _: os.rmdir(root / "d"),
    "exists d": lambda root, _: os.path.exists(root / "d"),
    "overwrite f": overwrite,
    "append f": append,
    "read f": lambda root, _: (root / "f").read_text(),
    "size of f": lambda root, _: os.stat(root / "f").st_size,
    "truncate f": lambda root, _: os.truncate(root / "f", 0),
    "unlink f": lambda root, _: os.unlink(root / "f"),
    "rename f": lambda root, _: os.rename(root / "f", root / "g"),
    "rename d": lambda root, _: os.rename(root / "d", root / "e"),
    "list": lambda root, _: os.listdir(root),
    "list d": lambda root, _: [entry.name for entry in os.scandir(root / "d")],
    "link f": lambda root, _: os.link(root / "f", root / "h"),
    "symlink s": lambda root, _: os.symlink("f", root / "s"),
    "read s": lambda root, _: (root / "s").read_text(),
    "create x": lambda root, _: os.close(os.open(root / "x", os.O_CREAT | os.O_EXCL)),
    "lock": lambda root, _: locked(root, fcntl.LOCK_EX),
    "try lock": lambda root, _: locked(root, fcntl.LOCK_EX | fcntl.LOCK_NB),
    "share lock": lambda root, _: locked(root, fcntl.LOCK_SH),
    "sleep": slept,
    "append much": append_much,
    "overwrite much": overwrite_much,
    "read much": read_much,
    "change much": change_much,
    "copy much": copy_much,
    "truncate m": lambda root, _: os.truncate(root / "m", 5000),
}
PROCESS_CALLS: dict[str, Call] = {
    "other is alive": lambda _, rank: is_alive(FIRST_PID + 1 - rank),
    "other is in /proc": lambda _, rank: os.path.exists(f"/proc/{FIRST_PID + 1 - rank}"),
    "other is listed": lambda _, rank: str(FIRST_PID + 1 - rank) in os.listdir("/proc"),
    "kill other": lambda _, rank: os.kill(FIRST_PID + 1 - rank, signal.SIGKILL),
    "pid lock": lambda root, _: locked_by_pid(root),
    "my pid": lambda root, rank: (root / f"pid{rank}").symlink_to(str(os.getpid())),
}
DISK_CALLS: dict[str, Call] = {
    "sync f": lambda root, _: synced(root / "f"),
    "sync d": lambda root, _: synced(root),
    "sync": lambda *_: os.sync(),
}
held: list[int] = []
HELD_CALLS: dict[str, Call] = {
    "hold f": lambda root, _: held.append(os.open(root / "f", os.O_RDWR)),
    "read held": lambda *_: [os.pread(each, 99, 0) for each in held],
    "size of held": lambda *_: [os.fstat(each).st_size for each in held],
}
CAPTURED_CALLS: dict[str, Call] = {
    "captured mkdir d": lambda root, _: captured_mkdir(root / "d"),
    "captured unlink f": lambda root, _: captured_unlink(root / "f"),
    "captured list": lambda root, _: captured_listdir(root),
    "captured open f": lambda root, _: os.close(captured_open(root / "f", os.O_WRONLY | os.O_CREAT)),
}
OPAQUE_CALLS: dict[str, Call] = {
    "program makes d": lambda root, _: os.system(f"mkdir {root}/d 2> {os.devnull}"),
    "program removes d": lambda root, _: os.system(f"rmdir {root}/d 2> {os.devnull}"),
    "program moves f": lambda root, _: os.system(f"mv {root}/f {root}/g 2> {os.devnull}"),
}
LOCK_CALLS: dict[str, Call] = {
    "hold lock and look": held_lock,
    "wait for lock": lambda root, _: waited_lock(root),
}
EVERY_CALL = {
    **LOCK_CALLS,
    **CALLS,
    **PROCESS_CALLS,
    **ACTIONS,
    **RETRIES,
    **DISK_CALLS,
    **HELD_CALLS,
    **CAPTURED_CALLS,
    **OPAQUE_CALLS,
}
DATA = [name for name in CALLS if name.endswith((" f", " m", " much"))]
MUCH_CALLS = [name for name in CALLS if name.endswith((" much", " m"))]


def scenario_of(program: Program, **options: object) -> Scenario:
    def setup(root: Path) -> None:
        (root / "d").mkdir()
        (root / "f").write_text("old")
        (root / "m").write_text("m" * 2 * MUCH)

    def function(root: Path, rank: int) -> list[object]:
        results: list[object] = []
        for name in program[rank]:
            try:
                results.append(EVERY_CALL[name](root, rank))
            except OSError as error:
                results.append(type(error).__name__)
        return results

    return Scenario(function, processes=len(program), setup=setup)._replace(**options)  # type: ignore[arg-type]


def reduced(scenario: Scenario) -> set[object]:
    with directed(scenario) as director:
        search = Dpor(director)
        outcomes: set[object] = {run.outcome() for run in search.runs()}
        assert search.is_exhausted
        return outcomes


def outcomes_of_all_orders(scenario: Scenario, most: int = MOST_ORDERS) -> set[object] | None:
    """Return the outcomes of all orders, or None if there are too many orders."""
    with directed(scenario) as director:
        search = Bounded(director, None)
        outcomes: set[object] = {run.outcome() for run in itertools.islice(search.runs(), most)}
        return outcomes if search.is_exhausted else None


def assert_same_outcomes(scenario: Scenario) -> None:
    every = outcomes_of_all_orders(scenario)
    assume(every is not None)
    assert reduced(scenario) == every


checked = settings(
    max_examples=bound(2, 8),
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
