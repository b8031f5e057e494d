"""What the race explorer finds and how fast, beside frontrun, as a table.

frontrun is optional: `pip install "frontrun[process]"`. It is made for memory that threads share, and
for SQL and Redis: in threads it knows files by `open`, `read` and `write`, in processes not at all. It
is given what helps: modules of the standard library to switch within, its launcher, no bound on
preemptions, and random schedules too.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import functools
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fsrace_lint import explore, safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS: Final = 20
"""How long frontrun may search in one scenario."""
TRACED: Final = ["os", "posixpath", "genericpath", "pathlib*", "contextlib", "fsrace_lint*", "json*"]
"""Modules within which frontrun may switch threads too."""
WHOLE: Final = '{"step": 1}'


def check_then_mkdir(root: Path, _: int) -> None:
    """Make a directory that was not there."""
    if not (root / "out").exists():
        (root / "out").mkdir()


def check_then_delete(root: Path, _: int) -> None:
    """Remove a file that was there."""
    if (root / "old").exists():
        (root / "old").unlink()


def makedirs(root: Path, _: int) -> None:
    """Make a directory, whoever made it."""
    os.makedirs(root / "a" / "b", exist_ok=True)  # noqa: PTH103  # the call that is asked about


def shared_temp_name(root: Path, _: int) -> None:
    """Write a new file under a name that everybody uses, and rename it."""
    (root / "new.tmp").write_text(WHOLE, encoding="utf-8")
    (root / "new.tmp").replace(root / "state.json")


def in_place(root: Path, rank: int) -> None:
    """Write a file over, while another process reads it."""
    if rank == 0:
        with open(root / "state.json", "w", encoding="utf-8") as stream:  # noqa: FSR204, PTH123  # the hazard
            stream.write(WHOLE)
    else:
        _read(root)


def atomic(root: Path, rank: int) -> None:
    """Replace a file, while another process reads it."""
    if rank == 0:
        with safe.atomic_write(root / "state.json") as stream:
            stream.write(WHOLE)
    else:
        _read(root)


def lock_unlinked(root: Path, _: int) -> None:
    """Lock a file, and remove it after it was unlocked."""
    with (root / "lock").open("a", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        (root / "held").mkdir()
        (root / "held").rmdir()
        fcntl.flock(stream, fcntl.LOCK_UN)
    (root / "lock").unlink()


def ten_calls_apart(root: Path, rank: int) -> None:
    """Make ten calls, on files of one's own."""
    own = root / str(rank)
    own.mkdir()
    for name in ("a", "b", "c"):
        with (own / name).open("w", encoding="utf-8") as stream:
            stream.write(name)


def ten_calls_with_two_shared(root: Path, rank: int) -> None:
    """Make ten calls, two of them on names that everybody uses."""
    own = root / str(rank)
    own.mkdir()
    for name in ("a", "b"):
        with (own / name).open("w", encoding="utf-8") as stream:
            stream.write(name)
    (own / "a").unlink()
    with contextlib.suppress(FileExistsError):
        (root / "all").mkdir()
    (own / "b").replace(root / "all" / "last")


def ten_calls_in_one_folder(root: Path, rank: int) -> None:
    """Make ten calls, all but two of them on what everybody looks at or changes."""
    folder = root / "out"
    folder.mkdir(exist_ok=True)
    with (folder / f"{rank}.tmp").open("w", encoding="utf-8") as stream:
        stream.write("x")
    (folder / f"{rank}.tmp").replace(folder / f"{rank}.json")
    list(folder.iterdir())
    with (folder / "log").open("a", encoding="utf-8") as stream:
        stream.write("x")
    (folder / "log").stat()


def _read(root: Path) -> None:
    with open(root / "state.json", encoding="utf-8") as stream:  # noqa: PTH123  # what frontrun sees
        json.load(stream)


def with_state(root: Path) -> None:
    """Make the file that is written over."""
    (root / "state.json").write_text(WHOLE, encoding="utf-8")


def with_old(root: Path) -> None:
    """Make the file that is removed."""
    (root / "old").touch()


def nothing(root: Path) -> None:
    """Make nothing."""


class Scenario(NamedTuple):
    """A row of the table.

    Attributes:
        name: What it is called.
        function: What each of two processes runs.
        fails: Whether there is an order in which one of them fails.
        setup: Makes what is there before.
        filesystem: The model.
    """

    name: str
    function: Callable[[Path, int], None]
    fails: bool
    setup: Callable[[Path], None] = nothing
    filesystem: str = "posix"


SCENARIOS: Final = (
    Scenario("check, then mkdir", check_then_mkdir, fails=True),
    Scenario("check, then delete", check_then_delete, fails=True, setup=with_old),
    Scenario("makedirs(exist_ok=True)", makedirs, fails=False),
    Scenario("makedirs(exist_ok=True), nfs", makedirs, fails=True, filesystem="nfs"),
    Scenario("one temporary name for all", shared_temp_name, fails=True),
    Scenario("written in place, half read", in_place, fails=True, setup=with_state),
    Scenario("written atomically", atomic, fails=False, setup=with_state),
    Scenario("lock file removed", lock_unlinked, fails=True),
    Scenario("ten calls each, apart", ten_calls_apart, fails=False),
    Scenario("ten calls each, two shared", ten_calls_with_two_shared, fails=False),
    Scenario("ten calls each, one folder", ten_calls_in_one_folder, fails=False),
)
MODES: Final[dict[str, dict[str, Any]]] = {
    "threads, as it comes": {"total_timeout": SECONDS},
    "threads": {"preemption_bound": None, "trace_packages": TRACED, "total_timeout": SECONDS},
    "threads, random": {"strategy": "random", "max_attempts": 500, "seed": 0, "trace_packages": TRACED},
    "processes": {"execution": "process", "preemption_bound": None, "total_timeout": SECONDS},
}
"""Ways to run frontrun, and its options for them."""
COLUMNS: Final = ("ours", "schedules", "seconds", "runs a second", "exhaustive")


def ours(scenario: Scenario) -> list[str]:
    """Explore a scenario here.

    Args:
        scenario: Which.

    Returns:
        The cells: what was found, schedules, seconds, runs a second, whether that was all.

    Raises:
        RuntimeError: It is not what the row says.
    """
    result = explore.explore(scenario.function, setup=scenario.setup, filesystem=scenario.filesystem)
    if result.ok is scenario.fails:
        raise RuntimeError(f"{scenario.name}: {result}")
    verdict = "holds" if result.ok else "found"
    # what fails is made simpler and replayed: those runs are no schedules that were looked for
    rate = f"{result.runs / result.seconds:.0f}"
    exhaustive = ("yes" if result.exhaustive else "no") if result.ok else "-"
    return [verdict, str(result.schedules), f"{result.seconds:.2f}", rate, exhaustive]


def theirs(scenario: Scenario, mode: str) -> str:
    """Let frontrun explore a scenario, in a process that can be stopped.

    Args:
        scenario: Which.
        mode: How.

    Returns:
        The cell.
    """
    if importlib.util.find_spec("frontrun") is None:
        return "not installed"
    if scenario.filesystem != "posix":
        return "no such model"
    command = [sys.executable, __file__, "--frontrun", str(SCENARIOS.index(scenario)), mode]
    launcher = Path(sys.executable).with_name("frontrun")
    if launcher.exists() and mode != "processes":
        # it sees `read` and `write` only where its library is loaded before; its processes do without
        command.insert(0, str(launcher))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5 * SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"stopped after {5 * SECONDS} s"
    if done.returncode:
        return "failed: " + done.stderr.strip().rpartition("\n")[2].replace("|", "\\|")[:80]
    return cell_of(scenario, json.loads(done.stdout.splitlines()[-1]))


def cell_of(scenario: Scenario, told: dict[str, Any]) -> str:
    """Give what a row says of one explorer: its verdict, and what that took."""
    holds = told["holds"]
    if holds is None:
        verdict = "no verdict"
    elif holds:
        verdict = "**missed**" if scenario.fails else "none found"
    else:
        verdict = "found" if scenario.fails else "**false positive**"
    return f"{verdict}; {told['explored']} in {told['seconds']:.2f} s"


def frontrun(index: int, mode: str) -> None:
    """Run frontrun on a scenario, and print what it says as JSON."""
    module: Any = importlib.import_module("frontrun")
    runs: list[str] = []
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        try:
            result = module.explore(
                setup=functools.partial(_fresh, folder, index, runs),
                workers=[functools.partial(_work, index, rank) for rank in (0, 1)],
                invariant=os.path.isdir,  # a worker that fails raises
                **({} if mode == "processes" else {"reproduce_on_failure": 0}),
                **MODES[mode],
            )
            told["holds"], told["why"] = result.property_holds, result.explanation
        except (FileExistsError, FileNotFoundError, json.JSONDecodeError) as error:
            # so it tells of an error in a thread
            told["holds"], told["why"] = False, str(error)
        told |= {"explored": len(runs), "seconds": time.monotonic() - start}
    print(json.dumps(told))


def _fresh(folder: str, index: int, runs: list[str]) -> str:
    runs.append(tempfile.mkdtemp(dir=folder))
    SCENARIOS[index].setup(Path(runs[-1]))
    return runs[-1]


def _work(index: int, rank: int, root: str) -> None:
    SCENARIOS[index].function(Path(root), rank)


def rows() -> Iterator[list[str]]:
    """Run everything; give a row for each scenario."""
    for scenario in SCENARIOS:
        yield [scenario.name, *ours(scenario), *(theirs(scenario, mode) for mode in MODES)]


def main() -> None:
    """Print the table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--frontrun", nargs=2, metavar=("INDEX", "MODE"), help="run frontrun on one scenario only"
    )
    arguments = parser.parse_args()
    if arguments.frontrun:
        frontrun(int(arguments.frontrun[0]), arguments.frontrun[1])
        return
    head = ["scenario", *COLUMNS, *(f"frontrun, {mode}" for mode in MODES)]
    for row in [head, ["---"] * len(head)]:
        print(f"| {' | '.join(row)} |")
    for row in rows():
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
