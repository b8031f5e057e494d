"""Work in several processes comes to the same as in one, whatever happens to the others.

What forks is run as a program of its own: the tests themselves have threads.

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
    """What a program with this body prints; it must end well and say nothing else."""
    text = HEAD + dedent(body)
    done = subprocess.run(
        [sys.executable, "-c", text], check=False, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.strip()


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=200), st.integers(2, 9))
def test_shares_hold_everything_once(sizes: list[int], count: int) -> None:
    shares = workers.shares_of(sizes, count)
    assert sorted(index for share in shares for index in share) == list(range(len(sizes)))
    assert len(shares) <= min(8 * count, workers.MOST)
    totals = [sum(sizes[index] for index in share) for share in shares]
    assert totals == sorted(totals, reverse=True), "the largest is handed out first"


@given(st.integers(2, 9), st.lists(st.integers(1, 100), min_size=200, max_size=400))
def test_shares_are_about_equal(count: int, sizes: list[int]) -> None:
    largest = sum(sizes[index] for index in workers.shares_of(sizes, count)[0])
    assert largest <= sum(sizes) / (8 * count) + max(sizes)


def test_the_numbers_of_all_shares_fit_into_the_smallest_pipe() -> None:
    assert len(workers.shares_of([1] * 5000, 1000)) == workers.MOST
    assert workers.MOST * workers.NUMBER.size <= 4096


@forking
class TestSpread:
    def test_several_processes_do_it(self) -> None:
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

    def test_the_order_is_that_of_the_items(self) -> None:
        assert program("print(spread(lambda item: item * item) == [item * item for item in ITEMS])") == "True"

    def test_what_the_first_item_finds_out_is_there_for_all(self) -> None:
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
    def test_every_item_is_told_once_and_in_the_parent(self, one_first: bool) -> None:
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

    def test_rooms_share_the_time_that_passed(self) -> None:
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
    def test_what_a_dead_worker_leaves_is_done_here(self, way: str, when: str) -> None:
        body = f"""
            def work(item):
                if os.getpid() != PARENT and ({when}):
                    {way}
                return item + 1

            print(spread(work) == [item + 1 for item in ITEMS], left())
        """
        assert program(body) == "True 0"

    def test_a_message_that_breaks_off(self) -> None:
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
    def test_what_cannot_be_sent_is_done_here(self, value: str) -> None:
        body = f"""
            found = spread(lambda item: {value} if item == 5 else item, kind=int | str)
            print(found == [{value} if item == 5 else item for item in ITEMS])
        """
        assert program(body) == "True"

    def test_what_cannot_be_done_fails_as_in_one_process(self) -> None:
        body = """
            try:
                spread(lambda item: 1 // (item - 5))
            except ZeroDivisionError:
                print("as ever", left())
        """
        assert program(body) == "as ever 0"

    @pytest.mark.parametrize("first", [0, 2])
    def test_no_more_processes(self, first: int) -> None:
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

    def test_nothing_is_printed_twice(self) -> None:
        body = "sys.stdout.write('once')\nspread(lambda item: item)"
        assert program(body) == "once"

    @pytest.mark.parametrize("to_all", [True, False])
    def test_an_interrupt_ends_all_of_them(self, to_all: bool) -> None:
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
            # nobody else has the pipe open, or this would wait for ever
            assert process.stdout.read() == "interrupted 0\n"
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)

    def test_workers_whose_parent_is_killed_end(self) -> None:
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
            said = process.stdout.read().count("begun")
        assert said < 40, "the pipe closes when the last of them has ended, before all is done"


class TestWhereItDoesNotPay:
    def each(self, sizes: list[int], jobs: int) -> set[int]:
        task: Task[int, int] = Task(lambda _: os.getpid(), int, "query")
        return set(task.each(sizes, sizes, jobs, SILENT))

    @pytest.fixture(autouse=True)
    def _nobody_forks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fork() -> int:
            raise AssertionError("this must not fork")

        monkeypatch.setattr(os, "fork", fork, raising=False)

    @pytest.mark.parametrize(
        ("sizes", "jobs"), [([SHARE] * 9, 1), ([SHARE // 10] * 15, 4), ([100 * SHARE], 4), ([], 4), ([0], 4)]
    )
    def test_one_process(self, sizes: list[int], jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(workers, "may_fork", lambda: True)
        assert self.each(sizes, jobs) <= {os.getpid()}

    def test_beside_other_threads(self) -> None:
        """A thread that holds a lock is not in the copy, but the lock is."""
        done = threading.Event()
        other = threading.Thread(target=done.wait)
        other.start()
        try:
            assert self.each([SHARE] * 9, 4) == {os.getpid()}
        finally:
            done.set()
            other.join()

    def test_on_macos(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "platform", "darwin")
        assert self.each([SHARE] * 9, 4) == {os.getpid()}

    def test_where_there_is_no_fork(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(os, "fork")
        assert self.each([SHARE] * 9, 4) == {os.getpid()}


class TestProcessors:
    def test_those_that_this_process_may_use(self) -> None:
        if not hasattr(os, "sched_setaffinity"):
            pytest.skip("processors are not chosen on this system")
        text = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from"
        text += " fsrace_lint.engine.parallel.machine import cpus; print(cpus())"
        assert subprocess.check_output([sys.executable, "-c", text]) == b"1\n"

    @pytest.mark.parametrize(
        ("text", "expected"),
        [("max 100000\n", 64), ("150000 100000\n", 2), ("1000 100000\n", 1), ("x\n", 64), (None, 64)],
    )
    def test_a_container_allows_fewer(
        self, text: str | None, expected: int, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64), raising=False)
        monkeypatch.setattr(machine, "QUOTA", here / "cpu.max")
        if text is not None:
            write({"cpu.max": text})
        assert machine.cpus() == expected


@pytest.mark.parametrize("is_on", [True, False])
def test_what_was_on_is_on_again(is_on: bool) -> None:
    (gc.enable if is_on else gc.disable)()
    try:
        with contextlib.suppress(KeyboardInterrupt), machine.gc_disabled():
            assert not gc.isenabled()
            raise KeyboardInterrupt
        assert gc.isenabled() is is_on
    finally:
        gc.enable()


def test_what_a_run_leaves_is_old_at_once_and_not_held_on_to() -> None:
    gc.collect()
    with machine.gc_disabled():
        made: list[object] = []
    assert not any(each is made for each in gc.get_objects(generation=0))
    assert gc.get_freeze_count() == 0


def test_what_the_program_around_a_run_has_frozen_stays_so() -> None:
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
def test_nothing_is_looked_through_at_the_end(around: str, expected: str) -> None:
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

    def test_a_killed_worker_loses_nothing(self, large_project: Path) -> None:
        one = start("check", "--format=json", "--jobs=1", "--show-silenced")
        assert one.stdout.count(b"FSR101") >= 12
        killed = self.outcome(KILLING, "--format=json", "--jobs=3", "--show-silenced")
        assert killed == (one.returncode, one.stdout, one.stderr)

    def test_what_leads_where_is_sought_once_and_in_the_parent(self, large_project: Path) -> None:
        _, told, _ = self.outcome(LEADING, "--quiet", "--no-cache", "--jobs=3")
        begun, *sought = (line for line in told.decode().splitlines() if " in " in line[:10])
        assert sought == [begun.replace("begun", "sought")]

    def test_rules_that_fail(self, large_project: Path) -> None:
        one, three = (self.outcome(FAILING, "--format=json", f"--jobs={jobs}") for jobs in (1, 3))
        assert one == three
        assert one[0] == 2
        assert [error["path"] for error in json.loads(one[1])["errors"]] == ["pkg0/m3.py", "pkg2/m8.py"]

    def test_verbose_tells_the_same_but_for_the_time(self, large_project: Path) -> None:
        one, three = (
            start("check", "-v", "--no-cache", "--statistics", f"--jobs={jobs}").stderr.decode()
            for jobs in (1, 3)
        )
        assert one.splitlines()[:-1] == three.splitlines()[:-1]
        rooms = [
            sorted(part.split()[0] for part in text.splitlines()[-1][6:].split(", ")) for text in (one, three)
        ]
        assert rooms[0] == rooms[1]
        assert {"extract", "query", "suppress"} < {*rooms[1]}

    def test_progress_on_a_terminal_does_not_keep_it_in_one_process(self, large_project: Path) -> None:
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
            said = process.stdout.read()
        assert said.count(b"forked") == 4, "two stages, with two workers each"
        assert b"Checking" in shown
        assert said.rpartition(b"forked\n")[2] == start("check", "--format=json", "--jobs=1").stdout

    def test_ctrl_c(self, large_project: Path) -> None:
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


class TestOption:
    @pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", "", "1025", "9" * 5000, "٣"])
    def test_what_is_no_number(self, value: str) -> None:
        said = run("check", f"--jobs={value}", code=2).stderr
        assert "neither 'auto' nor a number from 1 to 1024" in said

    @pytest.mark.parametrize("arguments", [["-j1"], ["-j", "2"], ["--jobs", "auto"], ["--jobs=1024"], []])
    def test_what_is_one(self, arguments: list[str]) -> None:
        write({"a.py": ""})
        run("check", *arguments, code=0)

    def test_an_empty_folder(self) -> None:
        assert "no Python files" in run("check", "-j4", code=0).stderr
