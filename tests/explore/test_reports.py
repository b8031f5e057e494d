"""A report points at the line that matters, and says why, with whole paths and tracebacks."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fsrace_lint.explore import ScenarioError, code_places, explore, timeline
from fsrace_lint.explore.moves import EVERYTHING, NOTHING, Choice, Move, NamedFootprint
from fsrace_lint.explore.running import private_directory, tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from fsrace_lint.explore import FailingSchedule, Result

LIBRARY = """
import os
import shutil


def ensure(path):
    if not path.is_dir():
        make(path)


def make(path):
    os.mkdir(path)


def clear(path):
    shutil.rmtree(path)


def load(path):
    try:
        return path.read_text()
    except FileNotFoundError as error:
        raise KeyError(path.name) from error
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A library that is installed in `site-packages`."""
    folder = tmp_path / "lib" / "site-packages" / "some_library"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "folders.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(str(folder.parent))
    yield importlib.import_module("some_library.folders")
    for name in ("some_library.folders", "some_library"):
        sys.modules.pop(name, None)


def failing(result: Result) -> FailingSchedule:
    assert result.failure is not None, str(result)
    return result.failure


def line_of(function: Callable[..., object], text: str) -> int:
    source = Path(function.__code__.co_filename).read_text().splitlines()
    first = function.__code__.co_firstlineno
    return next(number for number in range(first, first + 30) if text in source[number - 1])


def test_where_is_the_line_of_the_library_and_its_callers_follow(library: ModuleType) -> None:
    def prepare(root: Path, rank: int) -> None:
        library.ensure(root / "out")

    result = explore(prepare)
    failure = failing(result)
    # `pathlib` makes the call in the name of the library
    assert [code_places.shown(move.where) for move in failure.moves[::3]] == [
        "some_library/folders.py:7",
        "some_library/folders.py:12",
    ]
    call = f"{code_places.shown_path(__file__)}:{line_of(prepare, 'library.ensure')} in prepare"
    lines = str(result).splitlines()
    assert f"step 1: some_library/folders.py:7 in ensure, called from {call}" in lines
    made = f"some_library/folders.py:12 in make, called from some_library/folders.py:8 in ensure, {call}"
    assert f"steps 3, 4: {made}" in lines


def test_traceback_shows_the_frames_of_the_library_and_of_the_cause(library: ModuleType) -> None:
    def read(root: Path, rank: int) -> None:
        if rank == 0:
            (root / "state").touch()
            (root / "state").unlink()
        elif (root / "state").exists():
            library.load(root / "state")

    result = explore(read)
    failure = failing(result)
    assert failure.details.count(f'File "{library.__file__}", line ') == 2
    assert "FileNotFoundError: " in failure.details
    assert "The above exception was the direct cause" in failure.details
    assert "fsrace_lint/explore" not in failure.details
    assert "fsrace_lint/instrument" not in failure.details
    assert failure.details.rstrip() in str(result)


def test_standard_library_that_acts_on_its_own_is_shown() -> None:
    def deliver(root: Path, rank: int) -> None:
        import mailbox

        mailbox.Maildir(root / "box", create=rank == 0)

    moves = failing(explore(deliver, expected=(FileExistsError,), check=lambda root: _no(root / "box"))).moves
    assert any(code_places.shown(move.where).startswith("mailbox.py:") for move in moves)


def _no(path: Path) -> None:
    assert not path.exists()


@pytest.mark.parametrize(
    ("path", "is_thin"),
    [
        (os.__file__, True),
        (json.__file__, True),
        (shutil.__file__, True),
        (private_directory.__file__, True),
        ("<frozen posixpath>", True),
        (os.path.join(os.path.dirname(os.__file__), "mailbox.py"), False),
        (pytest.__file__, False),
        (__file__, False),
    ],
)
def test_thin_wrappers_are_those_that_act_for_their_caller(path: str, is_thin: bool) -> None:
    frames = [(path, 1, "inner"), ("/elsewhere/outer.py", 2, "outer")]
    assert code_places.place_of(frames) == frames[is_thin]


def test_stack_of_thin_wrappers_only_shows_the_innermost() -> None:
    frames = [("<frozen os>", 3, "makedirs"), (os.__file__, 4, "walk")]
    assert code_places.place_of(frames) == frames[0]
    assert code_places.callers_of(frames) == []
    assert code_places.place_of([]) is None


def test_normal_runs_send_no_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the run that is reported is traced."""
    traced: list[None] = []
    begin = tracing.Tracing.__init__
    monkeypatch.setattr(tracing.Tracing, "__init__", lambda *given: traced.append(begin(*given)))
    result = explore(lambda root, rank: (root / "out").mkdir(exist_ok=True))
    assert result.ok
    assert traced == []
    assert not explore(lambda root, rank: (root / "out").mkdir()).ok
    assert len(traced) == 1


def replace_index(root: Path, rank: int) -> None:
    index = root / "index.json"
    seen = json.loads(index.read_text()) if index.exists() else []
    (root / f".{rank}").write_text(json.dumps([*seen, rank]))
    os.replace(root / f".{rank}", index)


def both_are_listed(root: Path) -> None:
    assert len(json.loads((root / "index.json").read_text())) == 2


def test_why_names_the_reader_of_what_was_replaced_in_between() -> None:
    """The two temporary files are new names of one directory, but these commute."""
    failure = failing(explore(replace_index, check=both_are_listed))
    (reason,) = failure.reasons
    (steps,) = failure.steps
    looked, changed, last = (failure.moves[step - 1] for step in steps)
    mine, other = looked.choice.rank, changed.choice.rank
    assert last.choice.rank == mine != other
    assert (looked.target, changed.target) == ("index.json", f".{other} -> index.json")
    assert reason == (
        f"process {other} replaced index.json (step {steps[1]}: replace)"
        f" after process {mine} checked it (step {steps[0]}: stat -> FileNotFoundError)"
        f" and before process {mine} replaced it (step {steps[2]}: replace)"
    )
    assert "    assert len(json.loads(" in str(explore(replace_index, check=both_are_listed))


def test_why_names_the_change_that_is_not_complete() -> None:
    def read_half(root: Path, rank: int) -> None:
        if rank == 0:
            (root / "state").write_text("{}")
        else:
            with contextlib.suppress(FileNotFoundError):
                json.loads((root / "state").read_text())

    (reason,) = failing(explore(read_half)).reasons
    assert reason.startswith("process 1 opened state (step ")
    assert " after process 0 created it (step 1: open[w] -> created) " in reason
    assert reason.endswith(" and before its next call (write)")


def test_why_names_the_call_that_raised_and_not_a_later_one() -> None:
    """The lock is the cause; what the process does after the exception is not."""

    def exclusive(root: Path, rank: int) -> None:
        with open(root / "lock", "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RuntimeError("in use") from error
            finally:
                (root / "last").touch()

    failure = failing(explore(exclusive))
    (reason,) = failure.reasons
    assert " tried to take the lock on lock (step " in reason
    assert ": flock[EX|NB] -> BlockingIOError) after process " in reason
    assert [failure.moves[step - 1].name for step in failure.steps[0]] == ["flock[EX|NB]"] * 2
    assert failure.shown == failure.steps[0]


def test_entries_below_a_new_directory_have_whole_paths() -> None:
    def prepare(root: Path, rank: int) -> None:
        os.makedirs(root / "a" / "b", exist_ok=True)
        if not os.path.exists(root / "a" / "b" / "c"):
            os.mkdir(root / "a" / "b" / "c")

    (reason,) = failing(explore(prepare)).reasons
    assert " created a/b/c (step " in reason


def names(*given: str) -> frozenset[tuple[str, str, str]]:
    return frozenset(("file", name, "") for name in given)


def test_what_commutes_is_not_spoiled() -> None:
    adds = NamedFootprint(names(), names(), names("folder"))
    lists = NamedFootprint(names("folder"), names(), names())
    writes = NamedFootprint(names("read"), names("folder"), names())
    assert adds.spoils(adds) == frozenset()
    assert adds.spoils(lists) == adds.spoils(writes) == names("folder")
    assert lists.spoils(adds) == frozenset()
    assert writes.spoils(adds) == names("folder")
    anything = NamedFootprint(frozenset(), frozenset({EVERYTHING}), frozenset())
    assert anything.spoils(lists) == names("folder")
    assert adds.spoils(anything) == names("folder")


LONG = "a_directory_with_a_long_name/" * 4 + "file.json"


def test_paths_are_never_cut() -> None:
    def prepare(root: Path, rank: int) -> None:
        os.makedirs((root / LONG).parent, exist_ok=True)
        if not os.path.exists(root / LONG):
            os.mkdir(root / LONG)

    assert f"mkdir {LONG}" in failing(explore(prepare)).timeline


@pytest.mark.parametrize("width", [0, 60, 80, 200])
@pytest.mark.parametrize("processes", [2, 3])
def test_narrow_tables_continue_long_paths_in_the_next_line(width: int, processes: int) -> None:
    moves = [
        Move(Choice(rank), "open[r]", LONG, "/x/code.py:12", "opened", NOTHING) for rank in range(processes)
    ]
    lines = timeline.draw(moves, processes, width).splitlines()
    if not width:
        assert len(lines) == processes + 1
    elif processes == 2 and width >= 80:
        assert max(map(len, lines)) <= width
    told = "".join(line.split("/x/code.py")[0].strip("0123456789 ") for line in lines[1:])
    assert told.replace(" ", "") == f"open[r]{LONG}->opened" * processes
    assert sum("/x/code.py:12" in line for line in lines) == processes


@pytest.mark.parametrize(
    "mistake",
    [
        lambda root, rank: undefined,  # type: ignore[name-defined]  # noqa: F821
        lambda root, rank: json.loads(),  # type: ignore[call-arg]
        lambda root, rank: importlib.import_module("no_such_module"),
        lambda root, rank: [][rank],
    ],
)
def test_function_that_fails_before_its_first_call_is_a_usage_error(mistake: Callable[..., object]) -> None:
    with pytest.raises(ScenarioError, match=r"(?s)in process 0.*Traceback.*test_reports\.py"):
        explore(mistake)


@pytest.mark.parametrize("rank", [0, 1])
def test_typo_after_some_calls_is_a_usage_error(rank: int) -> None:
    def typo(root: Path, own: int) -> None:
        (root / "shared").mkdir(exist_ok=True)
        if own == rank:
            (root / "shared").exist()  # type: ignore[attr-defined]

    with pytest.raises(ScenarioError, match=r"(?s)AttributeError in process.*\.exist\(\)"):
        explore(typo)


def test_mistake_that_depends_on_the_others_is_a_failure() -> None:
    def prepare(root: Path, rank: int) -> None:
        found = None if (root / "out").exists() else [rank]
        (root / "out").mkdir(exist_ok=True)
        found[0]  # type: ignore[index]

    failure = failing(explore(prepare))
    assert failure.text.startswith("TypeError in process ")
    assert not failure.fails_alone


def test_library_that_always_fails_is_not_a_mistake_of_the_scenario(library: ModuleType) -> None:
    def load(root: Path, rank: int) -> None:
        library.load(root / "missing")

    failure = failing(explore(load))
    assert failure.fails_alone
    assert failure.reasons[0].endswith("; not a race")


def test_check_with_an_undefined_name_is_a_usage_error() -> None:
    def check(root: Path) -> None:
        undefined(root)  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ScenarioError, match=r"(?s)the check is wrong: NameError.*undefined\(root\)"):
        explore(replace_index, check=check)


def spin_between_calls(root: Path, rank: int) -> None:
    (root / str(rank)).touch()
    if rank == 1:
        wait_for_nothing()
    (root / "end").touch()


def wait_for_nothing() -> None:
    while True:
        pass


def test_hang_without_calls_shows_the_stacks_of_all_processes() -> None:
    result = explore(spin_between_calls, step_timeout=0.5)
    failure = failing(result)
    assert failure.kind == "hang"
    assert "in wait_for_nothing" in failure.details
    assert "wait_for_nothing()" in failure.details
    assert failure.details.index("in spin_between_calls") < failure.details.index("in wait_for_nothing")
    assert "process 0" in failure.details
    assert "pytest" not in failure.details
    assert failure.details in str(result)
    # a hanging run is not minimized, because each of its runs takes the whole timeout
    assert result.runs == result.schedules + 1


def test_hang_in_a_lock_of_threads_shows_the_stack() -> None:
    def block(root: Path, rank: int) -> None:
        lock = threading.Lock()
        lock.acquire()
        (root / str(rank)).touch()
        lock.acquire()

    details = failing(explore(block, step_timeout=0.5)).details
    assert details.count("lock.acquire()") == 1


def test_slow_run_that_hangs_elsewhere_when_hurried_waits_the_whole_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fsrace_lint.explore.failure_report.HANG_PATIENCE", 0.0)
    failure = failing(explore(spin_between_calls, step_timeout=0.5))
    assert "in wait_for_nothing" in failure.details


def test_deadlock_shows_the_stacks() -> None:
    def wait(root: Path, rank: int) -> None:
        while not (root / "never").exists():
            time.sleep(1)

    result = explore(wait)
    assert failing(result).details.count("time.sleep(1)") == 2
    assert failing(result).details in str(result)


def test_deadlock_says_who_holds_which_lock() -> None:
    def lock_both(root: Path, rank: int) -> None:
        names = ("a", "b") if rank == 0 else ("b", "a")
        with open(root / names[0], "a") as one, open(root / names[1], "a") as two:
            fcntl.flock(one, fcntl.LOCK_EX)
            fcntl.flock(two, fcntl.LOCK_EX)

    failure = failing(explore(lock_both))
    assert [reason.partition(" (step ")[0] for reason in failure.reasons] == [
        "process 0 waits for the lock on b, which process 1 took",
        "process 1 waits for the lock on a, which process 0 took",
    ]
    assert {failure.moves[step - 1].name for (step,) in failure.steps} == {"flock[EX]"}


def test_output_of_the_processes_is_shown() -> None:
    def prepare(root: Path, rank: int) -> None:
        print(f"rank {rank} starts")
        os.write(2, b"raw \xff\n")
        os.system("echo from a program")
        (root / "out").mkdir()

    result = explore(prepare)
    failure = failing(result)
    for rank, text in enumerate(failure.output):
        assert text.splitlines() == [f"rank {rank} starts", "raw \\xff", "from a program"]
        assert f"output of process {rank}:\n  rank {rank} starts\n" in str(result)


def test_only_the_last_lines_of_the_output_are_shown() -> None:
    def talk(root: Path, rank: int) -> None:
        print(*range(1000), sep="\n")
        (root / "out").mkdir()

    first, _ = failing(explore(talk)).output
    assert first.splitlines() == [str(number) for number in range(980, 1000)]


def test_root_is_the_same_in_every_exploration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fsrace_lint.explore.running.stage.MEMORY", tmp_path)

    def say(root: Path, rank: int) -> str:
        (root / "x").touch()
        raise ValueError(str(root))

    roots = {failing(explore(say, processes=1)).text for _ in range(3)}
    assert len(roots) == 1
    with private_directory.held(tmp_path, "other"):
        assert {failing(explore(say, processes=1)).text} == roots
    assert list(tmp_path.iterdir()) == []


def test_name_decides_the_path_unless_it_is_in_use(tmp_path: Path) -> None:
    with private_directory.held(tmp_path, "one") as first:
        assert first.parent == tmp_path / "fsrace"
        assert first.stat().st_mode & 0o777 == 0o700
        with (
            private_directory.held(tmp_path, "one") as second,
            private_directory.held(tmp_path, "two") as third,
        ):
            assert second.name == f"{first.name}-2"
            assert third.name not in {first.name, second.name}
            assert first.is_dir()
        assert list(first.parent.iterdir()) == [first]
    with private_directory.held(tmp_path, "one") as again:
        assert again == first
    assert list(tmp_path.iterdir()) == []


def test_directory_of_a_killed_process_is_deleted_and_used_again(tmp_path: Path) -> None:
    with private_directory.held(tmp_path, "one") as folder:
        pass
    folder.parent.mkdir(0o700)
    for left in (folder, folder.parent / "left"):
        left.mkdir()
        (left / "rest").touch()
    with private_directory.held(tmp_path, "one") as again:
        assert again == folder
        assert list(again.iterdir()) == []
        assert list(folder.parent.iterdir()) == [folder]


def plant_link(place: Path) -> None:
    (place / "victim").mkdir(mode=0o700)
    (place / "fsrace").symlink_to("victim")


def plant_file(place: Path) -> None:
    (place / "fsrace").touch()


def plant_open_directory(place: Path) -> None:
    (place / "fsrace").mkdir()
    (place / "fsrace").chmod(0o777)


@pytest.mark.parametrize("plant", [plant_link, plant_file, plant_open_directory])
def test_planted_directory_is_not_used(plant: Callable[[Path], None], tmp_path: Path) -> None:
    plant(tmp_path)
    with private_directory.held(tmp_path, "one") as folder:
        assert folder.parent == tmp_path / f"fsrace-{os.geteuid()}"
    (tmp_path / f"fsrace-{os.geteuid()}").symlink_to("/")
    with private_directory.held(tmp_path, "one") as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()


def test_directory_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fsrace").mkdir(mode=0o700)
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with private_directory.held(tmp_path, "one") as folder:
        assert folder.parent == tmp_path


def test_minimizing_keeps_to_its_budget() -> None:
    def prepare(root: Path, rank: int) -> None:
        for number in range(8):
            (root / f"{rank}.{number}").touch()
        if not (root / "out").exists():
            os.mkdir(root / "out")

    for budget in (0, 5, 40):
        result = explore(prepare, shrink_runs=budget)
        # one more run is the report, and one finds out whether a process fails alone
        assert result.runs <= result.schedules + budget + 2
    unshrunk = explore(prepare, shrink=False)
    assert unshrunk.runs <= unshrunk.schedules + 2
    assert not failing(unshrunk).is_least
