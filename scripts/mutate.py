"""Change the rooms that find, one small change at a time, and see whether a test fails.

    pip install mutmut                                         # makes the changes; Python 3.11 or newer
    python scripts/mutate.py tests                             # the tests that are meant
    python scripts/mutate.py map                               # which tests run which lines
    python scripts/mutate.py run facts --count 200 --seed 7    # a random sample; again: those that it lacks
    python scripts/mutate.py run                               # every change of every room, for days
    python scripts/mutate.py run --again mutants/7.jsonl       # those that survived, after tests were added
    python scripts/mutate.py run --unchanged                   # the tests must pass where nothing is changed
    python scripts/mutate.py show mutants/7.jsonl              # numbers, and what survived

A change is one that mutmut makes (another comparison, `or` for `and`, an argument left out, `None` assigned),
or a test turned round, a call left out, `None` returned. It is put into a fork of a process that has loaded
everything; there the tests run that run its line, fast ones first, until one fails. What stands outside of
functions is changed in a copy of the project instead. A test that takes ten times as long as it did, and at
least five seconds, is overdue: that counts as found.

`map` runs the tests of `TESTS`, or those that are given, and adds to what it knows. A sample is one of lines,
with one change for each of them; a second one comes when all lines have had their turn.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

import pytest
from mutant_runs import QUIET, Runner
from mutants import PACKAGE, ROOMS, ROOT, Mutant, drawn, mutants

if TYPE_CHECKING:
    from collections.abc import Sequence

TESTS: Final = (
    "tests/test_cases.py",
    *(f"tests/{package}" for package in ("analysis", "program", "rules", "syntax")),
    "tests/catalog/test_catalog.py",
    "tests/cli/test_options.py",
    *(f"tests/engine/test_{name}.py" for name in ("cycles", "dependencies", "depth_budget", "query")),
    *(f"tests/pipeline/test_{name}.py" for name in ("memory", "reuse", "symbolic_links", "warm")),
)
"""Those that run every branch of the rooms that find."""


class Timer:
    """A plugin for pytest: it keeps how long each test takes that passes."""

    def __init__(self, file: Path) -> None:
        """Prepare; the file may hold the times of other tests."""
        self.file, self.failed = file, set[str]()
        self.seconds: dict[str, float] = json.loads(file.read_text("utf-8")) if file.exists() else {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one part of a test."""
        before = 0 if report.when == "setup" else self.seconds.get(report.nodeid, 0)
        self.seconds[report.nodeid] = before + report.duration
        if report.failed or report.skipped:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write them."""
        passed = {name: spent for name, spent in self.seconds.items() if name not in self.failed}
        self.file.write_text(json.dumps(passed), "utf-8")


def mapped(folder: Path, tests: Sequence[str]) -> int:
    """Find out which tests run which lines, and how long they take."""
    folder.mkdir(exist_ok=True)
    os.environ["COVERAGE_FILE"] = os.fspath(folder / "coverage")
    sources = ", ".join(f"{PACKAGE}.{room}" for room in ROOMS)
    (folder / "coveragerc").write_text(f"[run]\nsource_pkgs = {sources}\n", "utf-8")
    cov = (
        "--cov",
        "--cov-append",
        "--cov-context=test",
        "--cov-report=",
        f"--cov-config={folder}/coveragerc",
    )
    return int(pytest.main([*QUIET, *cov, *tests], plugins=[Timer(folder / "seconds.json")]))


def sample(chosen: argparse.Namespace) -> list[Mutant]:
    """Give the changes that are wanted, in the order in which they are tried."""
    made = [(room, mutants(room)) for room in chosen.rooms or ROOMS]
    if chosen.again:
        rows = map(json.loads, chosen.again.read_text("utf-8").splitlines())
        names = {row["name"] for row in rows if row["outcome"] in {"survived", "no test"}}
        return [mutant for _, found in made for mutant in found if mutant.name in names]
    return [
        mutant
        for room, found in made
        for mutant in drawn(found, Random(f"{chosen.seed} {room}"))  # noqa: S311  # nothing secret
    ]


def show(file: Path) -> None:
    """Print how many of each room were found, and those that were not."""
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for room in ROOMS:
        counts = Counter(row["outcome"] for row in rows if row["room"] == room)
        print(f"{room}: {counts.total()} changes; {', '.join(f'{n} {what}' for what, n in counts.items())}")
    for row in rows:
        if row["outcome"] in {"survived", "no test"}:
            print(f"\n{row['name']}: {row['outcome']} ({row['tests']} tests)\n{row['diff']}")


def options() -> argparse.Namespace:
    """Read the command line."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--folder", type=Path, default=ROOT / "mutants", help="for what is known and found")
    commands = parser.add_subparsers(dest="command", required=True)
    tests = commands.add_parser("map", help="find out which tests run which lines")
    tests.add_argument("tests", nargs="*", default=TESTS)
    run = commands.add_parser("run", help="try changes")
    run.add_argument("rooms", nargs="*", metavar="ROOM", help=f"of {', '.join(ROOMS)} (all)")
    run.add_argument("--count", type=int, default=0, help="changes of each room (all)")
    run.add_argument("--seed", type=int, default=0, help="another one takes other changes (0)")
    run.add_argument("--most", type=float, default=0, help="seconds of tests for one change, drawn (all)")
    run.add_argument("--again", type=Path, help="try what survived in this file")
    run.add_argument("--unchanged", action="store_true", help="see whether the tests pass in a fork")
    run.add_argument("--tests", nargs="+", default=TESTS, help="modules of tests")
    run.add_argument("--out", type=Path, help="where outcomes are added (SEED.jsonl in the folder)")
    commands.add_parser("show", help="print what a file holds").add_argument("file", type=Path)
    commands.add_parser("tests", help="print the modules of tests that are run where none are named")
    chosen = parser.parse_args()
    if unknown := set(getattr(chosen, "rooms", ())) - set(ROOMS):
        parser.error(f"no such room: {', '.join(sorted(unknown))}")
    return chosen


def main() -> int:
    """Do what the command line asks for."""
    chosen = options()
    if chosen.command == "show":
        show(chosen.file)
        return 0
    if chosen.command == "tests":
        print(*TESTS)
        return 0
    os.chdir(ROOT)
    sys.path.insert(0, os.fspath(ROOT))  # this checkout, whatever is installed
    if chosen.command == "map":
        return mapped(chosen.folder, chosen.tests)
    chosen.out = chosen.out or chosen.folder / f"{chosen.seed}.jsonl"
    runner = Runner(chosen, [] if chosen.unchanged else sample(chosen))
    return int(pytest.main([*QUIET, "-s", *chosen.tests], plugins=[runner]))


if __name__ == "__main__":
    sys.exit(main())
