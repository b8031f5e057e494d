"""Signals stop an exploration at a safe place: a result is always reported, and nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fsrace_lint.explore import ExploreError, explore
from fsrace_lint.explore.running import stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore.exploration_result import Result
    from fsrace_lint.explore.progress import Progress

TRIES = 20
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which scratch directories are created."""
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(stage, "MEMORY", folder)
    return folder


def shared_log(root: Path, rank: int) -> None:
    for _ in range(4):
        with open(root / "log", "a") as stream:
            stream.write(str(rank))
        (root / "log").stat()


def two_directories(root: Path, rank: int) -> None:
    for name in ("a", "b"):
        (root / name).mkdir(exist_ok=True)
        (root / name / str(rank)).touch()
        os.listdir(root / name)


def create_twice(root: Path, rank: int) -> None:
    for name in ("a", "b", "c"):
        (root / f"{name}{rank}").touch()
    if not (root / "d").exists():
        (root / "d").mkdir()


def at_run(number: int, sent: int, stage_name: str = "search") -> Callable[[Progress], None]:
    """Return a function that sends a signal to this process before a run."""
    seen = 0

    def progress(state: Progress) -> None:
        nonlocal seen
        if state.stage == stage_name:
            seen += 1
            if seen == number:
                signal.raise_signal(sent)

    return progress


@pytest.mark.parametrize(("number", "followed"), [(1, 0), (2, 4), (7, 4)])
def test_ctrl_c_raises_the_report_after_the_clean_up(number: int, followed: int, place: Path) -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        explore(shared_log, progress=at_run(number, signal.SIGINT))
    count = f"{number - 1} interleaving{'s' if number != 2 else ''}"
    assert str(caught.value).splitlines() == [
        f"No failure in {count}, but the search is incomplete: it was interrupted by SIGINT.",
        f"coverage: {followed} calls followed, 0 not (each name and line counts once)",
    ]
    assert list(place.iterdir()) == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("sent", SIGNALS)
def test_every_signal_is_in_the_result(sent: int, place: Path) -> None:
    result = explore(shared_log, progress=at_run(4, sent), raise_signals=False)
    assert (result.interrupted, result.schedules, result.ok, result.exhaustive) == (sent, 3, True, False)
    assert list(place.iterdir()) == []


def test_own_handler_runs_after_the_clean_up(place: Path) -> None:
    left: list[list[Path]] = []
    before = signal.signal(signal.SIGTERM, lambda *_: left.append(list(place.iterdir())))
    try:
        result = explore(shared_log, progress=at_run(3, signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (left, result.schedules) == ([[]], 2)


@pytest.mark.parametrize("number", [1, 2, 5])
def test_signal_while_minimizing_reports_the_failure(number: int, place: Path) -> None:
    result = explore(create_twice, progress=at_run(number, signal.SIGINT, "shrink"), raise_signals=False)
    assert result.interrupted == signal.SIGINT
    assert result.failure is not None
    assert result.failure.kind == "exception"
    again = explore(create_twice, replay=result.failure.token)
    assert again.failure is not None
    assert again.failure.moves == result.failure.moves
    assert list(place.iterdir()) == []


def test_second_signal_reports_the_failure_as_it_was_found(place: Path) -> None:
    def progress(state: Progress) -> None:
        if state.stage == "shrink":
            signal.raise_signal(signal.SIGINT)

    result = explore(create_twice, progress=progress, raise_signals=False)
    assert result.failure is not None
    assert not result.failure.is_confirmed
    assert "it was not run again" in str(result)
    assert explore(create_twice, replay=result.failure.token).failure is not None
    assert list(place.iterdir()) == []


def test_signal_while_setup_runs(place: Path) -> None:
    def setup(root: Path) -> None:
        os.kill(parent, signal.SIGINT)
        while True:
            pass

    parent = os.getpid()
    with pytest.raises(KeyboardInterrupt, match="interrupted before the first run"):
        explore(shared_log, setup=setup)
    assert list(place.iterdir()) == []


SCRIPT = """
    import os, sys
    from pathlib import Path
    from fsrace_lint.explore import explore
    from fsrace_lint.explore.running import stage

    place, pipe = Path(sys.argv[1]), int(sys.argv[2])
    stage.MEMORY = place

    def told(root, rank):
        for number in range(6):
            os.write(pipe, b".")
            with open(root / "log", "a") as stream:
                stream.write(str(rank))

    def tries():
        for _ in range(int(sys.argv[3])):
            try:
                explore(told)
            except KeyboardInterrupt as error:
                os.write(pipe, b"#")
                print(error, list(place.iterdir()), flush=True)

    if __name__ == "__main__":
        tries()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "scenario.py"
    file.write_text(textwrap.dedent(SCRIPT))
    return file


def started(command: list[str], place: Path, pipe: int, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *command, str(place), str(pipe), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=[pipe],
        start_new_session=True,
    )


def running(word: Path) -> list[str]:
    """Return the processes whose command line contains a path."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(word) in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_no_ctrl_c_is_lost(script: Path, place: Path) -> None:
    reader, writer = os.pipe()
    process = started([str(script)], place, writer, str(TRIES))
    os.close(writer)
    for number in range(TRIES):
        for _ in range(3 * number + 1):
            assert os.read(reader, 1) == b"."
        process.send_signal(signal.SIGINT)
        while os.read(reader, 1) != b"#":
            pass
    out, err = process.communicate(timeout=60)
    os.close(reader)
    assert err == ""
    assert out.count("it was interrupted by SIGINT.\n") == TRIES
    assert out.count("counts once) []\n") == TRIES
    assert running(place) == []


COMMAND = """
    import sys
    from pathlib import Path
    from fsrace_lint.explore.running import stage
    from fsrace_lint.cli.main import main

    stage.MEMORY = Path(sys.argv[1])
    main(["prove", f"{sys.argv[3]}::told", *sys.argv[4:]])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("sent", SIGNALS)
def test_command_reports_and_exits_with_the_signal(sent: int, script: Path, place: Path) -> None:
    reader, writer = os.pipe()
    state = place.parent / "state"
    command = ["-c", textwrap.dedent(COMMAND)]
    process = started(command, place, writer, str(script), "--resume", str(state))
    os.close(writer)
    for _ in range(40):
        assert os.read(reader, 1) == b"."
    process.send_signal(sent)
    out, err = process.communicate(timeout=60)
    os.close(reader)
    name = signal.Signals(sent).name
    assert process.returncode == 128 + sent
    assert out.splitlines()[0].endswith(f"the search is incomplete: it was interrupted by {name}.")
    assert err.splitlines()[-1].startswith(f"Interrupted by {name} after ")
    assert err.endswith(f"; the same command continues from {state}\n")
    assert state.is_file()
    assert list(place.iterdir()) == []
    assert running(place) == []


def take_terminal() -> None:
    """Make standard input the terminal that controls this session."""
    os.close(os.open(os.ttyname(0), os.O_RDWR))


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_terminal_shows_progress_and_ctrl_c_stops(script: Path, place: Path) -> None:
    master, terminal = pty.openpty()
    sink = os.open(os.devnull, os.O_WRONLY)
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(COMMAND), str(place), str(sink), str(script)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        pass_fds=[sink],
        start_new_session=True,
        env={**os.environ, "TERM": "xterm"},
        preexec_fn=take_terminal,  # noqa: PLW1509  # this test has one thread
    )
    os.close(terminal)
    os.close(sink)
    shown = b""
    while b"runs/s" not in shown:
        shown += os.read(master, 4096)
    os.write(master, b"\x03")
    try:
        while True:
            shown += os.read(master, 4096)
    except OSError:  # the other side is closed
        pass
    os.close(master)
    assert process.wait(60) == 130
    assert b"Searching: " in shown
    assert b", but the search is incomplete: it was interrupted by SIGINT.\r\n" in shown
    assert list(place.iterdir()) == []
    assert running(place) == []


@pytest.mark.exhaustive(4)
@pytest.mark.parametrize("preemptions", [None, 1], ids=["reduced", "bounded"])
@pytest.mark.parametrize("number", [2, 4])
def test_resumed_searches_add_up(number: int, preemptions: int | None, tmp_path: Path) -> None:
    whole = explore(two_directories, preemptions=preemptions)
    state = tmp_path / "state"
    stops, result = 0, None
    while result is None or result.interrupted:
        assert stops < whole.schedules
        stops += 1
        progress = at_run(number, signal.SIGINT)
        result = explore(
            two_directories,
            preemptions=preemptions,
            resume=state,
            progress=progress,
            raise_signals=False,
        )
        assert state.exists() == bool(result.interrupted)
    assert stops > 2
    assert (result.schedules, result.exhaustive, result.bound) == (
        whole.schedules,
        whole.exhaustive,
        whole.bound,
    )


def write_in_turn(root: Path, rank: int) -> None:
    """Wait for the other process in a retry loop."""
    if rank == 0:
        (root / "go").touch()
    for _ in range(3):
        if (root / "go").exists():
            return
        time.sleep(1)


def see_others(root: Path, rank: int) -> None:
    with contextlib.suppress(FileExistsError):
        (root / str(rank)).symlink_to(str(os.getpid()))
    if os.path.islink(root / str(1 - rank)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(os.readlink(root / str(1 - rank))), 0)


def write_log(root: Path, rank: int) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(root / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, b"x")
        os.close(descriptor)


def nothing(_: Path) -> None:
    pass


@pytest.mark.exhaustive(4)
@pytest.mark.parametrize(
    ("program", "options", "limit"),
    [
        (write_in_turn, {}, 1),
        (write_in_turn, {"preemptions": 1}, 3),
        (write_in_turn, {"filesystem": "nfs-attributes"}, 3),
        (see_others, {}, 1),
        (see_others, {"crash": "kill", "check": nothing}, 5),
        (see_others, {"crash": "kill", "check": nothing, "restarts": 1, "preemptions": 1}, 9),
        (write_log, {"faults": "ENOSPC"}, 4),
        (write_log, {"crash": "power", "check": nothing}, 4),
    ],
)
def test_search_in_parts_is_the_whole_search(
    program: Callable[[Path, int], None], options: dict[str, Any], limit: int, tmp_path: Path
) -> None:
    whole = explore(program, **options)
    parts: list[Result] = []
    while not parts or (tmp_path / "state").exists():
        assert len(parts) <= whole.schedules
        parts.append(explore(program, resume=tmp_path / "state", max_schedules=limit, **options))
    assert len(parts) > 1
    last = parts[-1]
    assert (last.ok, last.schedules, last.exhaustive) == (True, whole.schedules, whole.exhaustive)
    assert (last.bound, last.coverage) == (whole.bound, whole.coverage)


def test_search_continues_after_its_limit(tmp_path: Path) -> None:
    whole = explore(two_directories)
    parts: list[Result] = []
    while not parts or (tmp_path / "state").exists():
        parts.append(explore(two_directories, resume=tmp_path / "state", max_schedules=10))
    assert [part.schedules for part in parts] == [*range(10, whole.schedules, 10), whole.schedules]
    assert [part.exhaustive for part in parts] == [part is parts[-1] for part in parts]


def seeing(root: Path, rank: int) -> None:
    (root / f"{rank}").touch()
    (root / "log").touch()
    if rank == 0 and (root / "1").exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(os.getpid() + 1, 0)


@pytest.mark.parametrize("first", [1, 3])
def test_search_continues_with_processes_that_see_each_other(first: int, tmp_path: Path) -> None:
    """Only some runs find out that the processes see each other, and then the search begins again."""
    whole = explore(seeing)
    state = tmp_path / "state"
    parts = [explore(seeing, resume=state, max_schedules=first)]
    while state.exists():
        parts.append(explore(seeing, resume=state, max_schedules=3))
    assert len(parts) > 2
    assert (parts[-1].schedules, parts[-1].exhaustive) == (whole.schedules, True)


def test_resumed_search_finds_the_same_failure(tmp_path: Path) -> None:
    whole = explore(create_twice, shrink=False)
    state = tmp_path / "state"
    assert explore(create_twice, resume=state, max_schedules=1).ok
    result = explore(create_twice, resume=state, shrink=False)
    assert result.failure == whole.failure
    assert result.schedules == whole.schedules
    assert not state.exists()


OTHERS: list[tuple[Callable[[Path, int], None], dict[str, Any]]] = [
    (shared_log, {}),
    (two_directories, {"filesystem": "nfs"}),
    (two_directories, {"filesystem": "nfs-names"}),
    (two_directories, {"faults": "ENOSPC"}),
    (two_directories, {"crash": "kill"}),
    (two_directories, {"nodes": 2}),
    (two_directories, {"check": nothing}),
    (two_directories, {"expected": OSError}),
]


def test_state_of_another_search_is_rejected(tmp_path: Path) -> None:
    state = tmp_path / "state"
    explore(two_directories, resume=state, max_schedules=1)
    saved = state.read_bytes()
    for function, options in OTHERS:
        with pytest.raises(ExploreError, match="is a search of other code, or with other options"):
            explore(function, resume=state, **options)
    state.write_bytes(b"text")
    with pytest.raises(ExploreError, match="is not a saved search"):
        explore(two_directories, resume=state)
    # a foreign pickle runs no code
    head = saved.partition(b"\n")[0]
    state.write_bytes(head + b"\ncos\nmkdir\n(S'" + os.fsencode(tmp_path / "made") + b"'\ntR.")
    with pytest.raises(ExploreError, match=r"is damaged: unexpected os\.mkdir"):
        explore(two_directories, resume=state)
    assert not (tmp_path / "made").exists()
