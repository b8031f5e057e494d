"""Compare the verdicts and speed of the race explorer with frontrun, and print a Markdown table.

frontrun is optional: `pip install "frontrun[process]"`. It is designed for memory shared by threads, and for
SQL and Redis. In threads, it recognizes file accesses by `open`, `read`, and `write`; in processes, it does
not recognize them. To give it the best conditions, this script uses its launcher, traces modules of the
standard library, sets no preemption bound, and also tries random schedules.
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
"""The time limit of frontrun for one scenario."""
TRACED: Final = ["os", "posixpath", "genericpath", "pathlib*", "contextlib", "fsrace_lint*", "json*"]
"""Additional modules in which frontrun can switch threads."""
WHOLE: Final = '{"step": 1}'


def check_then_mkdir(root: Path, _: int) -> None:
    """Create a directory after an existence check."""
    if not (root / "out").exists():
        (root / "out").mkdir()


def check_then_delete(root: Path, _: int) -> None:
    """Delete a file after an existence check."""
    if (root / "old").exists():
        (root / "old").unlink()


def makedirs(root: Path, _: int) -> None:
    """Create a directory and its parent with `exist_ok=True`."""
    os.makedirs(root / "a" / "b", exist_ok=True)  # noqa: PTH103  # the call under test


def shared_temp_name(root: Path, _: int) -> None:
    """Write a temporary file whose name all processes use, and rename it."""
    (root / "new.tmp").write_text(WHOLE, encoding="utf-8")
    (root / "new.tmp").replace(root / "state.json")


def in_place(root: Path, rank: int) -> None:
    """Overwrite a file in place while another process reads it."""
    if rank == 0:
        with open(root / "state.json", "w", encoding="utf-8") as stream:  # noqa: FSR204, PTH123  # the hazard
            stream.write(WHOLE)
    else:
        _read(root)


def atomic(root: Path, rank: int) -> None:
    """Replace a file atomically while another process reads it."""
    if rank == 0:
        with safe.atomic_write(root / "state.json") as stream:
            stream.write(WHOLE)
    else:
        _read(root)


def lock_unlinked(root: Path, _: int) -> None:
    """Lock a file, unlock it, and delete it."""
    with (root / "lock").open("a", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        (root / "held").mkdir()
        (root / "held").rmdir()
        fcntl.flock(stream, fcntl.LOCK_UN)
    (root / "lock").unlink()


def ten_calls_apart(root: Path, rank: int) -> None:
    """Make ten filesystem calls, all on private paths."""
    own = root / str(rank)
    own.mkdir()
    for name in ("a", "b", "c"):
        with (own / name).open("w", encoding="utf-8") as stream:
            stream.write(name)


def ten_calls_with_two_shared(root: Path, rank: int) -> None:
    """Make ten filesystem calls, two of them on shared paths."""
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
    """Make ten filesystem calls, all but two of them on shared paths."""
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
    with open(root / "state.json", encoding="utf-8") as stream:  # noqa: PTH123  # frontrun recognizes `open`
        json.load(stream)


def with_state(root: Path) -> None:
    """Create the state file."""
    (root / "state.json").write_text(WHOLE, encoding="utf-8")


def with_old(root: Path) -> None:
    """Create the file to delete."""
    (root / "old").touch()


def nothing(root: Path) -> None:
    """Create no files."""


class Scenario(NamedTuple):
    """A row of the table.

    Attributes:
        name: The name of the scenario.
        function: The function that each of two processes runs.
        fails: Whether a process fails in some interleaving.
        setup: The function that creates the initial files.
        filesystem: The filesystem model.
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
"""The modes in which frontrun runs, with their options."""
COLUMNS: Final = ("ours", "schedules", "seconds", "runs a second", "exhaustive")


def ours(scenario: Scenario) -> list[str]:
    """Explore a scenario with fsrace-lint.

    Returns:
        The cells of `COLUMNS`.

    Raises:
        RuntimeError: The verdict is not the expected one.
    """
    result = explore.explore(scenario.function, setup=scenario.setup, filesystem=scenario.filesystem)
    if result.ok is scenario.fails:
        raise RuntimeError(f"{scenario.name}: {result}")
    verdict = "holds" if result.ok else "found"
    # the rate counts runs, not schedules: a failing schedule is minimized and replayed in further runs
    rate = f"{result.runs / result.seconds:.0f}"
    exhaustive = ("yes" if result.exhaustive else "no") if result.ok else "-"
    return [verdict, str(result.schedules), f"{result.seconds:.2f}", rate, exhaustive]


def theirs(scenario: Scenario, mode: str) -> str:
    """Explore a scenario with frontrun, in a subprocess with a time limit.

    Args:
        scenario: The scenario.
        mode: A name in `MODES`.

    Returns:
        The cell of this mode.
    """
    if importlib.util.find_spec("frontrun") is None:
        return "not installed"
    if scenario.filesystem != "posix":
        return "no such model"
    command = [sys.executable, __file__, "--frontrun", str(SCENARIOS.index(scenario)), mode]
    launcher = Path(sys.executable).with_name("frontrun")
    if launcher.exists() and mode != "processes":
        # frontrun sees `read` and `write` only if its library is preloaded; process mode does not need it
        command.insert(0, str(launcher))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5 * SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"stopped after {5 * SECONDS} s"
    if done.returncode:
        return "failed: " + done.stderr.strip().rpartition("\n")[2].replace("|", "\\|")[:80]
    return cell_of(scenario, json.loads(done.stdout.splitlines()[-1]))


def cell_of(scenario: Scenario, told: dict[str, Any]) -> str:
    """Return the cell for a result of frontrun: the verdict, the explored schedules, and the seconds."""
    holds = told["holds"]
    if holds is None:
        verdict = "no verdict"
    elif holds:
        verdict = "**missed**" if scenario.fails else "none found"
    else:
        verdict = "found" if scenario.fails else "**false positive**"
    return f"{verdict}; {told['explored']} in {told['seconds']:.2f} s"


def frontrun(index: int, mode: str) -> None:
    """Run frontrun on a scenario, and print the result as JSON.

    Args:
        index: The position of the scenario in `SCENARIOS`.
        mode: A name in `MODES`.
    """
    module: Any = importlib.import_module("frontrun")
    runs: list[str] = []
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        try:
            result = module.explore(
                setup=functools.partial(_fresh, folder, index, runs),
                workers=[functools.partial(_work, index, rank) for rank in (0, 1)],
                invariant=os.path.isdir,  # always true; a failing worker raises
                **({} if mode == "processes" else {"reproduce_on_failure": 0}),
                **MODES[mode],
            )
            told["holds"], told["why"] = result.property_holds, result.explanation
        except (FileExistsError, FileNotFoundError, json.JSONDecodeError) as error:
            # frontrun reports an error in a thread by raising it
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
    """Explore all scenarios, and yield a row for each."""
    for scenario in SCENARIOS:
        yield [scenario.name, *ours(scenario), *(theirs(scenario, mode) for mode in MODES)]


def main() -> None:
    """Print the table row by row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--frontrun", nargs=2, metavar=("INDEX", "MODE"), help="only run frontrun on one scenario"
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
