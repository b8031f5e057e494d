"""Parallel work gives the same result as serial work, also if workers die.

Code that forks runs in a separate program, because the test process has threads.

Shows: `engine/parallel/extraction.py`, `engine/parallel/machine.py`, `engine/parallel/progress.py`,
`engine/parallel/workers.py`
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli import read_terminal, run, start, write

from fsrace_lint.engine.parallel import machine, workers
from fsrace_lint.engine.parallel.progress import SILENT
from fsrace_lint.engine.parallel.workers import SHARE, Task

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("here")

forking = pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="nothing is forked there")

HEAD = """
import json, os, signal, sys, time
from fsrace_lint.engine.parallel import workers
from fsrace_lint.engine.parallel.progress import SILENT, Observer
from fsrace_lint.engine.parallel.workers import SHARE, Task

PARENT = os.getpid()
ITEMS = list(range(40))

def spread(work, kind=int, count=4, observer=SILENT, **ways):
    return Task(work, kind, "query", **ways).each(ITEMS, [SHARE] * len(ITEMS), count, observer)

def left():
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return 0
    return 1
"""


def program(body: str) -> str:
    """Run a program with this body and return its output; it must succeed with empty stderr."""
    text = HEAD + dedent(body)
    done = subprocess.run(
        [sys.executable, "-c", text], check=False, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.strip()


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=200), st.integers(2, 9))
def test_shares_partition_the_items(sizes: list[int], count: int) -> None:
    shares = workers.shares_of(sizes, count)
    assert sorted(index for share in shares for index in share) == list(range(len(sizes)))
    assert len(shares) <= min(8 * count, workers.MOST)
    totals = [sum(sizes[index] for index in share) for share in shares]
    assert totals == sorted(totals, reverse=True), "the largest is handed out first"


@given(st.integers(2, 9), st.lists(st.integers(1, 100), min_size=200, max_size=400))
def test_shares_are_balanced(count: int, sizes: list[int]) -> None:
    largest = sum(sizes[index] for index in workers.shares_of(sizes, count)[0])
    assert largest <= sum(sizes) / (8 * count) + max(sizes)


def test_share_numbers_fit_into_the_smallest_pipe() -> None:
    assert len(workers.shares_of([1] * 5000, 1000)) == workers.MOST
    assert workers.MOST * workers.NUMBER.size <= 4096


@forking
class TestParallelTask:
    def test_work_runs_in_multiple_processes(self) -> None:
        found = json.loads(
            program("""
                def work(item):
                    time.sleep(0.01)
                    return os.getpid()

                pids = set(spread(work))
                print(json.dumps([len(pids), PARENT in pids, left()]))
            """)
        )
        assert found == [4, False, 0]

    def test_results_are_in_the_order_of_the_items(self) -> None:
        assert program("print(spread(lambda item: item * item) == [item * item for item in ITEMS])") == "True"

    def test_one_first_shares_its_state_with_all_workers(self) -> None:
        body = """
            known = []

            def work(item):
                known.append((os.getpid(), item))
                return known[0][0] * 100 + known[0][1]

            found = spread(work, one_first=True)
            print(set(found) == {PARENT * 100}, known == [(PARENT, 0)], len(found))
        """
        assert program(body) == "True True 40"

    @pytest.mark.parametrize("one_first", [False, True])
    def test_observer_gets_each_item_once_in_the_parent(self, one_first: bool) -> None:
        body = """
            class Counts(Observer):
                steps, copied = [], False

                def step(self):
                    self.steps.append(os.getpid())

                def is_copied(self):
                    self.copied = True

            counts = Counts()
            spread(lambda item: item, observer=counts, one_first=ONE_FIRST)
            print(len(counts.steps), set(counts.steps) == {PARENT}, counts.copied)
        """
        assert program(body.replace("ONE_FIRST", str(one_first))) == "40 True False"

    def test_elapsed_time_is_divided_between_stages(self) -> None:
        body = """
            class Measures(Observer):
                taken, booked = 0.0, {}

                def seconds(self):
                    return {"query": 3 * self.taken, "suppress": self.taken}

                def books(self, seconds):
                    self.booked = dict(seconds)

            measures = Measures()

            def work(item):
                measures.taken += 1
                return item

            before = time.perf_counter()
            spread(work, observer=measures)
            passed = time.perf_counter() - before
            query, suppress = measures.booked["query"], measures.booked["suppress"]
            print(round(query / suppress, 6), 0 < query + suppress <= passed, measures.taken)
        """
        assert program(body) == "3.0 True 0.0"

    @pytest.mark.parametrize("way", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)", "sys.exit()"])
    @pytest.mark.parametrize("when", ["item == 7", "item % 5 == 3", "True"])
    def test_parent_finishes_the_items_of_a_dead_worker(self, way: str, when: str) -> None:
        body = f"""
            def work(item):
                if os.getpid() != PARENT and ({when}):
                    {way}
                return item + 1

            print(spread(work) == [item + 1 for item in ITEMS], left())
        """
        assert program(body) == "True 0"

    def test_truncated_message_of_a_dead_worker(self) -> None:
        body = """
            real = os.write

            def write(fd, data):
                if os.getpid() != PARENT:
                    real(fd, bytes(data)[:-3])
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(fd, data)

            os.write = write
            print(spread(lambda item: item + 1) == [item + 1 for item in ITEMS], left())
        """
        assert program(body) == "True 0"

    @pytest.mark.parametrize("value", ["'half a character: \\udcff'", "2 ** 90"])
    def test_parent_repeats_items_whose_result_cannot_be_sent(self, value: str) -> None:
        body = f"""
            found = spread(lambda item: {value} if item == 5 else item, kind=int | str)
            print(found == [{value} if item == 5 else item for item in ITEMS])
        """
        assert program(body) == "True"

    def test_exception_is_raised_in_the_parent(self) -> None:
        body = """
            try:
                spread(lambda item: 1 // (item - 5))
            except ZeroDivisionError:
                print("as ever", left())
        """
        assert program(body) == "as ever 0"

    @pytest.mark.parametrize("first", [0, 2])
    def test_failing_fork_uses_fewer_processes(self, first: int) -> None:
        body = f"""
            real, made = os.fork, []

            def fork():
                if len(made) == {first}:
                    raise BlockingIOError("no more processes")
                made.append(1)
                return real()

            os.fork = fork
            print(spread(lambda item: item + 1) == [item + 1 for item in ITEMS], len(made), left())
        """
        assert program(body) == f"True {first} 0"

    def test_large_results(self) -> None:
        assert program("print(set(map(len, spread(lambda item: 'x' * 3_000_000, kind=str))))") == "{3000000}"

    def test_buffered_output_is_printed_once(self) -> None:
        body = "sys.stdout.write('once')\nspread(lambda item: item)"
        assert program(body) == "once"

    @pytest.mark.parametrize("to_all", [True, False])
    def test_interrupt_ends_all_workers(self, to_all: bool) -> None:
        body = """
            def work(item):
                os.write(1, b"begun\\n")
                time.sleep(100)

            try:
                spread(work)
            except KeyboardInterrupt:
                print("interrupted", left(), flush=True)
        """
        command = [sys.executable, "-u", "-c", HEAD + dedent(body)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
            assert process.stdout is not None
            assert [process.stdout.readline() for _ in range(4)] == ["begun\n"] * 4
            (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
            # no other process holds the pipe open, or this read would never return
            assert process.stdout.read() == "interrupted 0\n"
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)

    def test_workers_exit_if_the_parent_is_killed(self) -> None:
        body = """
            def work(item):
                os.write(1, b"begun\\n")
                time.sleep(0.2)

            spread(work)
        """
        command = [sys.executable, "-u", "-c", HEAD + dedent(body)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            process.kill()
            output = process.stdout.read().count("begun")
        assert output < 40, "the pipe closes when the last of them has ended, before all is done"


class TestSerialFallback:
    def pids_of(self, sizes: list[int], jobs: int) -> set[int]:
        task: Task[int, int] = Task(lambda _: os.getpid(), int, "query")
        return set(task.each(sizes, sizes, jobs, SILENT))

    @pytest.fixture(autouse=True)
    def _forbid_fork(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fork() -> int:
            raise AssertionError("this must not fork")

        monkeypatch.setattr(os, "fork", fork, raising=False)

    @pytest.mark.parametrize(
        ("sizes", "jobs"), [([SHARE] * 9, 1), ([SHARE // 10] * 15, 4), ([100 * SHARE], 4), ([], 4), ([0], 4)]
    )
    def test_small_work_or_one_job_runs_serially(
        self, sizes: list[int], jobs: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(workers, "may_fork", lambda: True)
        assert self.pids_of(sizes, jobs) <= {os.getpid()}

    def test_no_fork_with_other_threads(self) -> None:
        """A forked child would inherit a held lock but not the thread that releases it."""
        done = threading.Event()
        other = threading.Thread(target=done.wait)
        other.start()
        try:
            assert self.pids_of([SHARE] * 9, 4) == {os.getpid()}
        finally:
            done.set()
            other.join()

    def test_no_fork_on_macos(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "platform", "darwin")
        assert self.pids_of([SHARE] * 9, 4) == {os.getpid()}

    def test_platform_without_fork(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(os, "fork")
        assert self.pids_of([SHARE] * 9, 4) == {os.getpid()}


class TestCpuCount:
    def test_cpu_affinity_is_respected(self) -> None:
        if not hasattr(os, "sched_setaffinity"):
            pytest.skip("processors are not chosen on this system")
        text = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from"
        text += " fsrace_lint.engine.parallel.machine import cpus; print(cpus())"
        assert subprocess.check_output([sys.executable, "-c", text]) == b"1\n"

    @pytest.mark.parametrize(
        ("text", "expected"),
        [("max 100000\n", 64), ("150000 100000\n", 2), ("1000 100000\n", 1), ("x\n", 64), (None, 64)],
    )
    def test_cgroup_quota_is_respected(
        self, text: str | None, expected: int, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64), raising=False)
        monkeypatch.setattr(machine, "QUOTA", here / "cpu.max")
        if text is not None:
            write({"cpu.max": text})
        assert machine.cpus() == expected


@pytest.mark.parametrize("is_on", [True, False])
def test_gc_state_is_restored(is_on: bool) -> None:
    (gc.enable if is_on else gc.disable)()
    try:
        with contextlib.suppress(KeyboardInterrupt), machine.gc_disabled():
            assert not gc.isenabled()
            raise KeyboardInterrupt
        assert gc.isenabled() is is_on
    finally:
        gc.enable()


def test_objects_of_a_run_are_promoted_and_unfrozen() -> None:
    gc.collect()
    with machine.gc_disabled():
        made: list[object] = []
    assert not any(each is made for each in gc.get_objects(generation=0))
    assert gc.get_freeze_count() == 0


def test_objects_frozen_before_the_run_stay_frozen() -> None:
    made: list[list[int]] = [[] for _ in range(machine.FROZEN_AT_STARTUP)]
    gc.freeze()
    try:
        with machine.gc_disabled():
            pass
        assert gc.get_freeze_count() > len(made)
    finally:
        gc.unfreeze()


@pytest.mark.parametrize(
    ("around", "expected"), [("contextlib.nullcontext", "looked for\n"), ("machine.gc_disabled", "")]
)
def test_no_collection_at_interpreter_exit(around: str, expected: str) -> None:
    program = f"""
        import contextlib
        from fsrace_lint.engine.parallel import machine

        class Round:
            def __init__(self):
                self.itself = self
            def __del__(self):
                print("looked for", flush=True)

        with {around}():
            held = Round()
    """
    done = subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=True)
    assert done.stdout == expected


KILLING = """
import os, signal
from fsrace_lint import rules
from fsrace_lint.cli.main import main
from fsrace_lint.engine.parallel import workers
from fsrace_lint.pipeline.run import Run

PARENT, real, forked = os.getpid(), Run.check_file, []

def check_file(run, relative, problems):
    if os.getpid() != PARENT and relative.endswith("m5.py"):
        os.kill(os.getpid(), signal.SIGKILL)
    return real(run, relative, problems)

Run.check_file = check_file
main()
"""
LEADING = """
import os
from fsrace_lint.cli.main import main
from fsrace_lint.analysis.accesses import accesses

real = accesses.reaching_functions

def leading(*arguments):
    print("sought in", os.getpid(), flush=True)
    return real(*arguments)

accesses.reaching_functions = leading
print("begun in", os.getpid(), flush=True)
main()
"""
SLEEPING = """
import os, time
from fsrace_lint.cli.main import main
from fsrace_lint.pipeline.run import Run

PARENT, real = os.getpid(), Run.check_file

def check_file(*arguments):
    if os.getpid() != PARENT:
        os.write(1, b"begun\\n")
        time.sleep(100)
    return real(*arguments)

Run.check_file = check_file
main()
"""
FAILING = """
import msgspec, sys
from fsrace_lint import rules
from fsrace_lint.cli.main import main

def failing(project):
    if project.targets[0].relative.endswith(("m3.py", "m8.py")):
        raise ValueError("a bug")
    return ()

LOADED = tuple(
    msgspec.structs.replace(x, check=failing) if x.rule.code == "FSR201" else x for x in rules.load()
)
rules.load = lambda: LOADED
main()
"""


@forking
class TestCheck:
    def outcome(self, program: str, *arguments: str) -> tuple[int, bytes, bytes]:
        command = [sys.executable, "-c", program, "check", *arguments]
        done = subprocess.run(command, check=False, capture_output=True, timeout=120)
        return done.returncode, done.stdout, done.stderr

    def test_killed_worker_does_not_change_the_report(self, large_project: Path) -> None:
        one = start("check", "--format=json", "--jobs=1", "--show-silenced")
        assert one.stdout.count(b"FSR101") >= 12
        killed = self.outcome(KILLING, "--format=json", "--jobs=3", "--show-silenced")
        assert killed == (one.returncode, one.stdout, one.stderr)

    def test_call_graph_is_searched_once_in_the_parent(self, large_project: Path) -> None:
        _, printed, _ = self.outcome(LEADING, "--quiet", "--no-cache", "--jobs=3")
        begun, *sought = (line for line in printed.decode().splitlines() if " in " in line[:10])
        assert sought == [begun.replace("begun", "sought")]

    def test_failing_rules_report_the_same_errors(self, large_project: Path) -> None:
        one, three = (self.outcome(FAILING, "--format=json", f"--jobs={jobs}") for jobs in (1, 3))
        assert one == three
        assert one[0] == 2
        assert [error["path"] for error in json.loads(one[1])["errors"]] == ["pkg0/m3.py", "pkg2/m8.py"]

    def test_verbose_output_differs_only_in_time(self, large_project: Path) -> None:
        one, three = (
            start("check", "-v", "--no-cache", "--statistics", f"--jobs={jobs}").stderr.decode()
            for jobs in (1, 3)
        )
        assert one.splitlines()[:-1] == three.splitlines()[:-1]
        stages = [
            sorted(part.split()[0] for part in text.splitlines()[-1][6:].split(", ")) for text in (one, three)
        ]
        assert stages[0] == stages[1]
        assert {"extract", "query", "suppress"} < {*stages[1]}

    def test_progress_bar_does_not_prevent_forking(self, large_project: Path) -> None:
        text = "from fsrace_lint.cli import main\nfrom fsrace_lint.cli.commands import progress_bar\n"
        text += "progress_bar.PATIENCE = 0\n"
        text += (
            "import os; real = os.fork; os.fork = lambda: os.write(1, b'forked\\n') and real(); main.main()"
        )
        ours, theirs = os.openpty()
        command = [sys.executable, "-c", text, "check", "--format=json", "--jobs=2"]
        environment = {**os.environ, "TERM": "xterm"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
            os.close(theirs)
            shown = read_terminal(ours)
            assert process.stdout is not None
            output = process.stdout.read()
        assert output.count(b"forked") == 4, "two stages, with two workers each"
        assert b"Checking" in shown
        assert output.rpartition(b"forked\n")[2] == start("check", "--format=json", "--jobs=1").stdout

    def test_ctrl_c_exits_with_130(self, large_project: Path) -> None:
        command = [sys.executable, "-c", SLEEPING, "check", "--jobs=2"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert [process.stdout.readline() for _ in range(2)] == [b"begun\n"] * 2
            os.killpg(process.pid, signal.SIGINT)
            assert (process.stdout.read(), process.stderr.read().strip()) == (b"", b"")
        assert process.returncode == 130
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)


class TestJobsOption:
    @pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", "", "1025", "9" * 5000, "٣"])
    def test_invalid_jobs_value_is_an_error(self, value: str) -> None:
        output = run("check", f"--jobs={value}", code=2).stderr
        assert "is not `auto` or a number from 1 to 1024" in output

    @pytest.mark.parametrize("arguments", [["-j1"], ["-j", "2"], ["--jobs", "auto"], ["--jobs=1024"], []])
    def test_valid_jobs_values(self, arguments: list[str]) -> None:
        write({"a.py": ""})
        run("check", *arguments, code=0)

    def test_directory_without_python_files(self) -> None:
        assert "no Python files" in run("check", "-j4", code=0).stderr
