"""Processes that others can see: their ids, their ends, kills, restarts, and nodes."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import platform
import signal
import socket
import sys
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fsrace_lint.explore import ExploreError, explore, schedule_tokens
from fsrace_lint.explore.identity import FIRST_PID, LAUNCHER
from fsrace_lint.explore.moves import KILLED, RESTARTED
from fsrace_lint.explore.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


def by_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def by_proc(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


def by_stat(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().startswith(b"%d (" % pid)
    except FileNotFoundError:
        return False


def by_list(pid: int) -> bool:
    return str(pid) in os.listdir("/proc")


def by_session(pid: int) -> bool:
    try:
        return os.getsid(pid) == os.getsid(0)
    except ProcessLookupError:
        return False


WAYS = [by_signal, by_session] + ([by_proc, by_stat, by_list] if sys.platform == "linux" else [])


def results(*programs: Callable[[Path], object], **options: Any) -> set[tuple[str, ...]]:
    """Return every combination of results of the processes, found by rejecting one at a time."""
    found: set[tuple[str, ...]] = set()

    def function(root: Path, rank: int) -> None:
        result = str(programs[rank](root))
        (root.parent / "home" / str(rank)).write_text(result)

    def check(root: Path) -> None:
        files = [root.parent / "home" / str(rank) for rank in range(len(programs))]
        got = tuple(file.read_text() if file.exists() else "killed" for file in files)
        assert got in found, "|".join(got)

    while True:
        result = explore(function, processes=len(programs), check=check, shrink=False, **options)
        if result.failure is None:
            assert result.exhaustive, str(result)
            return found
        assert result.failure.kind in ("check", "crash"), str(result)
        told = result.failure.details.rpartition("AssertionError: ")[2].split("\n")[0]
        new = tuple(told.split("|"))
        assert new not in found, str(result)
        found.add(new)


def named(root: Path, name: str = "peer") -> None:
    (root / name).symlink_to(str(os.getpid()))


@pytest.mark.exhaustive(2)
@pytest.mark.parametrize("is_alive", WAYS)
def test_process_is_alive_until_its_end(is_alive: Callable[[int], bool]) -> None:
    def see(root: Path) -> object:
        if not os.path.islink(root / "peer"):
            return "unknown"
        pid = int(os.readlink(root / "peer"))
        before = is_alive(pid)
        return before, is_alive(pid)

    expected = {"unknown", "(True, True)", "(True, False)", "(False, False)"}
    assert {second for _, second in results(named, see)} == expected


@pytest.mark.parametrize("is_alive", WAYS)
def test_killed_process_is_dead(is_alive: Callable[[int], bool]) -> None:
    def work(root: Path, rank: int) -> None:
        if rank == 0:
            named(root)
            (root / "locked").mkdir()
            (root / "locked").rmdir()
        elif os.path.islink(root / "peer"):
            is_dead = not is_alive(int(os.readlink(root / "peer")))
            if is_dead and os.path.isdir(root / "locked"):
                raise RuntimeError("stale")

    explore(work).assert_ok()
    failure = explore(work, crash="kill").failure
    assert failure is not None
    assert failure.text == "RuntimeError in process 1: stale"


def test_waiting_for_the_end_of_another_process_ends() -> None:
    def work(root: Path, rank: int) -> None:
        named(root, f"p{rank}")
        if rank == 0:
            while not os.path.islink(root / "p1"):
                time.sleep(1)
            while by_signal(int(os.readlink(root / "p1"))):
                time.sleep(1)

    result = explore(work)
    result.assert_ok()
    assert result.exhaustive


def take(root: Path, is_alive: Callable[[int], bool]) -> bool:
    """Take a lock that names its owner; break it if the owner is dead."""
    own = root / f"own{os.environ['RANK']}"
    with contextlib.suppress(FileNotFoundError):
        own.unlink()
    own.write_text(str(os.getpid()))
    for _ in range(2):
        try:
            os.link(own, root / "lock")
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):
                if not is_alive(int((root / "lock").read_text())):
                    os.unlink(root / "lock")
        else:
            return True
    return False


def work_alone(root: Path, is_alive: Callable[[int], bool]) -> None:
    if take(root, is_alive):
        (root / "inside").mkdir()
        (root / "inside").rmdir()
        os.unlink(root / "lock")


@linux
@pytest.mark.parametrize("is_alive", [by_signal, by_proc])
def test_lock_of_a_living_owner_is_not_stale(is_alive: Callable[[int], bool]) -> None:
    explore(lambda root, rank: work_alone(root, is_alive), preemptions=1).assert_ok()


def test_recovery_of_a_stale_lock_is_explored() -> None:
    def recover(root: Path, rank: int) -> None:
        if take(root, by_signal):
            (root / "inside").mkdir()
            (root / "inside").rmdir()
            os.unlink(root / "lock")

    options: dict[str, Any] = {"processes": 3, "crash": "kill", "shrink": False}
    failure = explore(recover, expected=(), max_schedules=3000, **options).failure
    assert failure is not None
    assert failure.kind == "exception"
    assert "KILLED" in failure.timeline


def test_killed_waiter_is_seen_dead() -> None:
    def work(root: Path, rank: int) -> None:
        with open(root / "lock") as lock:
            if rank == 1:
                named(root)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if rank == 0 and os.path.islink(root / "peer"):
                pid = int(os.readlink(root / "peer"))
                if by_signal(pid) and not by_signal(pid):
                    raise RuntimeError("died while it waited")
            if rank == 1:
                os.unlink(root / "peer")

    def setup(root: Path) -> None:
        (root / "lock").touch()

    explore(work, setup=setup).assert_ok()
    failure = explore(work, setup=setup, crash="kill", shrink=False).failure
    assert failure is not None
    assert failure.text == "RuntimeError in process 0: died while it waited"


def test_process_can_kill_another_one_at_any_time() -> None:
    def kill(root: Path) -> object:
        try:
            os.kill(FIRST_PID + 1, signal.SIGKILL)
        except ProcessLookupError:
            return "late"
        return by_signal(FIRST_PID + 1)

    def victim(root: Path) -> object:
        (root / "a").mkdir()
        return "done"

    found = results(kill, victim)
    assert found == {("False", "killed"), ("False", ""), ("False", "done"), ("late", "done")}


def test_kill_by_another_process_releases_locks() -> None:
    def work(root: Path, rank: int) -> None:
        with open(root / "lock", "a") as lock:
            if rank == 0:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(FIRST_PID + 1, signal.SIGKILL)
            fcntl.flock(lock, fcntl.LOCK_EX)

    result = explore(work)
    result.assert_ok()
    assert result.exhaustive


@pytest.mark.parametrize(
    "call",
    [
        lambda: os.kill(FIRST_PID + 1, signal.SIGTERM),
        lambda: os.killpg(os.getpgrp(), signal.SIGTERM),
        lambda: os.kill(1, signal.SIGTERM),
        lambda: os.kill(0, signal.SIGKILL),
    ],
)
def test_unsupported_signals_are_refused(call: Callable[[], object]) -> None:
    def work(root: Path, rank: int) -> None:
        (root / str(rank)).mkdir()
        if rank == 0:
            with contextlib.suppress(NotImplementedError, ProcessLookupError):
                call()

    result = explore(work)
    assert not result.exhaustive
    assert any(note.startswith("cannot explore") for note in result.notes)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs os.pidfd_open")
def test_descriptor_of_a_process_is_not_available() -> None:
    def work(root: Path, rank: int) -> None:
        (root / str(rank)).mkdir()
        with pytest.raises(OSError, match="not implemented"):
            os.pidfd_open(FIRST_PID + 1 - rank)

    explore(work).assert_ok()


def test_processes_outside_of_the_job_do_not_exist() -> None:
    outside = os.getpid()

    def work(root: Path, rank: int) -> None:
        (root / str(rank)).mkdir()
        assert os.getpid() == FIRST_PID + rank
        assert os.getppid() == os.getpgid(0) == os.getpgrp() == os.getsid(os.getpid()) == LAUNCHER
        assert by_signal(LAUNCHER)
        if hasattr(os, "sched_getaffinity"):
            assert os.sched_getaffinity(os.getpid()) == os.sched_getaffinity(0)
        assert [way(outside) for way in WAYS] == [False] * len(WAYS)

    explore(work).assert_ok()


@linux
def test_proc_agrees_with_process_ids() -> None:
    def work(root: Path, rank: int) -> None:
        (root / str(rank)).mkdir()
        assert os.readlink("/proc/self") == str(os.getpid())
        for place in ("/proc/self", f"/proc/{os.getpid()}"):
            assert Path(place, "stat").read_text().split()[:5:3] == [str(os.getpid()), str(LAUNCHER)]
            assert f"\nPid:\t{os.getpid()}\nPPid:\t{LAUNCHER}\n" in Path(place, "status").read_text()
            assert Path(place, "comm").read_text()
        pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        assert {os.getpid(), LAUNCHER, 1} <= pids <= {1, LAUNCHER, FIRST_PID, FIRST_PID + 1}
        with os.scandir(b"/proc") as entries:
            assert {int(entry.name) for entry in entries if entry.name.isdigit()} >= {os.getpid(), LAUNCHER}

    result = explore(work)
    result.assert_ok()
    assert result.exhaustive


def birth(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().split()[21])


@linux
@pytest.mark.parametrize("same_pids", [False, True])
def test_restarted_process_starts_later(same_pids: bool) -> None:
    def work(root: Path, rank: int) -> None:
        try:
            (root / "first").write_text(f"{os.getpid()} {birth(os.getpid())}")
            os.mkdir(root / "done")
        except FileExistsError:
            return
        told = (root / "first").read_text().split()
        assert told == [str(os.getpid()), str(birth(os.getpid()))]

    def once(root: Path, rank: int) -> None:
        if not os.path.exists(root / "first"):
            work(root, rank)
            return
        told = (root / "first").read_text().split()
        if told:
            assert (int(told[0]) == os.getpid()) is same_pids
            assert int(told[1]) < birth(os.getpid())

    result = explore(once, processes=1, crash="kill", restarts=1, same_pids=same_pids)
    result.assert_ok()
    assert result.exhaustive
    assert result.schedules > 3


def test_own_process_id_in_a_stale_lock_is_found() -> None:
    def work(root: Path, rank: int) -> None:
        if not take(root, by_signal):
            raise TimeoutError("my own lock")
        os.unlink(root / "lock")

    options: dict[str, Any] = {"processes": 1, "crash": "kill", "restarts": 1}
    explore(work, **options).assert_ok()
    failure = explore(work, same_pids=True, **options).failure
    assert failure is not None
    assert failure.text == "TimeoutError in process 0: my own lock"
    assert "STARTED AGAIN as process 5000000" in failure.timeline
    again = explore(work, replay=failure.token)
    assert again.failure is not None
    assert again.failure.text == failure.text


@pytest.mark.parametrize(("kills", "found"), [(1, False), (2, True)])
def test_death_and_restart_of_all_processes_is_explored(kills: int, found: bool) -> None:
    def work(root: Path, rank: int) -> None:
        (root / f"{rank}.{os.getpid()}").mkdir()

    def check(root: Path) -> None:
        starts = sorted(name.partition(".")[0] for name in os.listdir(root))
        assert starts != ["0", "0", "1", "1"], "all were killed and started again"

    result = explore(work, check=check, crash="kill", kills=kills, restarts=1, shrink=False)
    assert result.ok is not found
    if result.failure is not None:
        replayed = explore(work, check=check, replay=result.failure.token).failure
        assert replayed is not None
        assert replayed.text == result.failure.text


def test_kills_and_restarts_are_bounded() -> None:
    def work(root: Path, rank: int) -> None:
        for number in range(2):
            (root / f"{rank}.{os.getpid()}.{number}").mkdir()

    def starts(root: Path) -> set[str]:
        return {name.rpartition(".")[0] for name in os.listdir(root)}

    def check(root: Path) -> None:
        assert len(starts(root)) <= 2

    options: dict[str, Any] = {"processes": 1, "check": check, "crash": "kill"}
    explore(work, kills=2, restarts=1, **options).assert_ok()
    assert not explore(work, kills=2, restarts=2, **options).ok
    with pytest.raises(ExploreError, match="need crashes"):
        explore(work, restarts=1)
    with pytest.raises(ExploreError, match="collectives with restarts"):
        explore(work, crash="kill", restarts=1, distributed=True)
    with pytest.raises(ExploreError, match="invalid number of kills"):
        explore(work, crash="kill", kills=0)


def test_agreement_includes_restarted_processes() -> None:
    def work(root: Path, rank: int) -> bool:
        (root / "once").mkdir(exist_ok=True)
        return os.getpid() < FIRST_PID + 2

    failure = explore(work, agree=True, crash="kill", restarts=1).failure
    assert failure is not None
    assert failure.kind == "disagreement"


@pytest.mark.parametrize(
    ("text", "crash", "nodes", "options", "schedule"),
    [
        ("fsr1.2nfs-power.ab~1B.e797", "power", 1, (), [(0, 0), (1, 1), (1, KILLED)]),
        ("fsr1.2posix-nodes2.a2.e797", "none", 2, (), [(0, 0), (0, 0)]),
        (
            "fsr1.2posix-kill-same-lives.Aa+B.e797",
            "kill",
            1,
            ("same_pids", "lifetimes"),
            [(0, KILLED), (0, RESTARTED), (1, KILLED)],
        ),
    ],
)
def test_token_contains_kills_restarts_and_nodes(
    text: str, crash: str, nodes: int, options: tuple[str, ...], schedule: list[tuple[int, int]]
) -> None:
    token = schedule_tokens.read(text)
    assert (token.crash, token.nodes, token.options, list(token.schedule)) == (
        crash,
        nodes,
        options,
        schedule,
    )
    scenario = token.applied_to(Scenario(lambda root, rank: None))
    assert scenario.restarts == (RESTARTED in [given for _, given in schedule])
    assert scenario.kills == max(1, [given for _, given in schedule].count(KILLED))


def test_nodes_have_names_and_their_own_processes() -> None:
    def work(root: Path, rank: int) -> None:
        (root / str(rank)).mkdir()
        node, local = divmod(rank, 2)
        assert os.getpid() == FIRST_PID + local
        names = [socket.gethostname(), platform.node(), os.uname().nodename, os.environ["HOSTNAME"]]
        assert {*names, socket.getfqdn(), platform.uname().node} == {f"node{node}"}
        told = ["LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "RANK", "WORLD_SIZE"]
        assert [int(os.environ[name]) for name in told] == [local, 2, node, node, rank, 4]

    explore(work, processes=4, nodes=2, max_schedules=5).assert_ok()
    with pytest.raises(ExploreError, match="cannot divide 3 processes among 2 nodes"):
        explore(work, processes=3, nodes=2)


def test_process_id_without_host_name_is_found_between_nodes() -> None:
    def work(root: Path, rank: int) -> None:
        try:
            descriptor = os.open(root / "lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            owner = (root / "lock").read_text()
            if owner == str(os.getpid()):
                raise RuntimeError("takes the lock of another process for its own") from None
            return
        os.write(descriptor, str(os.getpid()).encode())
        os.close(descriptor)

    explore(work).assert_ok()
    failure = explore(work, nodes=2).failure
    assert failure is not None
    assert failure.text.endswith("takes the lock of another process for its own")
    replayed = explore(work, replay=failure.token).failure
    assert replayed is not None
    assert replayed.text == failure.text


def test_process_on_another_node_is_not_seen() -> None:
    def work(root: Path, rank: int) -> None:
        named(root, str(rank))
        if by_signal(FIRST_PID + 1):
            raise RuntimeError("seen")

    explore(work, nodes=2).assert_ok()
    assert not explore(work, shrink=False).ok


def leave_by(how: str) -> None:
    if how == "exit":
        sys.exit(0)
    if how == "error":
        raise KeyError(how)


class Holder:
    """Something with a finalizer."""


@pytest.mark.parametrize("how", ["return", "exit", "error"])
def test_exit_functions_run_at_the_end(how: str) -> None:
    def work(root: Path, rank: int) -> None:
        atexit.register(os.mkdir, root / f"end{rank}")
        holder = Holder()
        work.holders = [holder]  # type: ignore[attr-defined]
        weakref.finalize(holder, os.mkdir, root / f"final{rank}")
        (root / str(rank)).mkdir()
        leave_by(how)

    def check(root: Path) -> None:
        wanted = {"0", "1", "end0", "end1", "final0", "final1"}
        assert set(os.listdir(root)) == wanted

    result = explore(work, check=check, expected=KeyError)
    result.assert_ok()
    assert result.exhaustive


def test_exit_functions_do_not_run_after_a_kill() -> None:
    def work(root: Path, rank: int) -> None:
        (root / "lock").mkdir()
        atexit.register(os.rmdir, root / "lock")
        (root / "done").mkdir()

    def check(root: Path) -> None:
        assert not os.path.exists(root / "lock"), "left"

    options: dict[str, Any] = {"processes": 1, "check": check, "crash": "kill"}
    failure = explore(work, **options).failure
    assert failure is not None
    assert failure.text.startswith("AssertionError: left")


def test_exit_functions_of_the_parent_do_not_run(tmp_path: Path) -> None:
    holder = Holder()
    at_exit = weakref.finalize(holder, (tmp_path / "finalized").touch)
    atexit.register((tmp_path / "exited").touch)
    try:
        explore(lambda root, rank: (root / str(rank)).mkdir()).assert_ok()
    finally:
        atexit.unregister((tmp_path / "exited").touch)
        at_exit.detach()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("code", "ok"), [(0, True), (None, True), (False, True), ("", False), (2, False)])
def test_exit_status_decides_whether_a_process_failed(code: object, ok: bool) -> None:
    def work(root: Path, rank: int) -> None:
        (root / str(rank)).mkdir()
        sys.exit(code)  # type: ignore[arg-type]

    assert explore(work, shrink=False).ok is ok


def test_signal_to_oneself_runs_its_handler() -> None:
    def work(root: Path, rank: int) -> None:
        signal.signal(signal.SIGUSR1, lambda *_: (root / str(rank)).mkdir())
        os.kill(os.getpid(), signal.SIGUSR1)
        assert (root / str(rank)).is_dir()

    explore(work).assert_ok()
