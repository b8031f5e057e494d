"""Run the tests of a mutant, and tell which one fails."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final

import coverage
import libcst as cst
from mutants import PACKAGE, ROOMS, ROOT, Mutant, swaps

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    import pytest

QUIET: Final = ("-q", "-p", "no:cacheprovider")
NEAR: Final = 60
"""Lines around a change: tests that run more of them are more likely to see it."""
MEMORY: Final = 3 << 30
LEAVE: Final = shutil.ignore_patterns(".*", "mutants", "site", "dist")


class Runner:
    """A plugin for pytest: it takes the place of the loop over all tests, and runs mutants."""

    def __init__(self, chosen: argparse.Namespace, todo: Sequence[Mutant]) -> None:
        """Prepare for a sample; it may hold more than are wanted, for those that make no difference."""
        self.chosen, self.todo, self.pipe = chosen, todo, -1
        self.seconds: dict[str, float] = json.loads((chosen.folder / "seconds.json").read_text("utf-8"))
        self.covered = coverage.CoverageData(os.fspath(chosen.folder / "coverage"))
        self.covered.read()
        self.lines: dict[Path, dict[int, list[str]]] = {}
        self.items: dict[str, pytest.Item] = {}
        self.functions: dict[str, list[FunctionType]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all mutants in the place of the tests."""
        self.items = {item.nodeid: item for item in session.items}
        for room in ROOMS:
            package = importlib.import_module(f"{PACKAGE}.{room}")
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                importlib.import_module(module.name)
        for each in gc.get_objects():
            if isinstance(each, FunctionType):
                self.functions.setdefault(each.__code__.co_filename, []).append(each)
        if self.chosen.unchanged:
            names = sorted(self.items.keys() & self.seconds.keys(), key=self.seconds.__getitem__)
            print("unchanged:", *self.forked(names, [], {}), flush=True)
        done = known(self.chosen.out)
        counts = Counter(row["room"] for row in done)
        before = {row["name"] for row in done}
        with self.chosen.out.open("a", encoding="utf-8") as file:
            for mutant in self.todo:
                room = mutant.path.relative_to(ROOT / PACKAGE).parts[0]
                if mutant.name in before or 0 < self.chosen.count <= counts[room]:
                    continue
                row = self.tried(mutant)
                counts[room] += row is not None
                if row is not None:
                    row |= {"room": room, "name": mutant.name, "diff": mutant.diff()}
                    file.write(json.dumps(row) + "\n")
                    file.flush()
        return True

    def tried(self, mutant: Mutant) -> dict[str, Any] | None:
        """Run the tests of a mutant; None where the change is no Python, or makes no difference."""
        try:
            text = mutant.text()
            table = swaps(mutant, text)
        except (SyntaxError, cst.CSTValidationError):
            return None
        if table == {}:
            return None
        names = self.tests(mutant, everywhere=table is None)
        since = time.perf_counter()
        functions = self.functions.get(os.fspath(mutant.path), []) if table else []
        functions = [each for each in functions if table and each.__code__ in table]
        can_fork = bool(functions) and all(_fits(each, table) for each in functions)
        if not names:
            outcome, by = "no test", ""
        elif table and can_fork:
            outcome, by = self.forked(names, functions, table)
        else:
            outcome, by = copied(mutant, text, names, 60 + 5 * sum(self.seconds[name] for name in names))
        row = {"outcome": outcome, "by": by, "tests": len(names)}
        return row | {"forked": can_fork, "seconds": round(time.perf_counter() - since, 2)}

    def tests(self, mutant: Mutant, *, everywhere: bool) -> list[str]:
        """Give the tests that run the line of a change, or any of its file, fast ones first."""
        if mutant.path not in self.lines:
            self.lines[mutant.path] = self.covered.contexts_by_lineno(os.fspath(mutant.path))
        by_line = self.lines[mutant.path]
        if everywhere:
            contexts = [context for each in by_line.values() for context in each]
        else:
            contexts = by_line.get(max((line for line in by_line if line <= mutant.line), default=0), [])
        names = {context.rpartition("|")[0] for context in contexts} - {""}
        if everywhere and not names:
            names = {*self.items}
        found = sorted(names & self.items.keys() & self.seconds.keys())
        if self.chosen.most:
            near = Counter(
                context.rpartition("|")[0]
                for line in range(mutant.line - NEAR, mutant.line + NEAR)
                for context in by_line.get(line, ())
            )
            Random(mutant.name).shuffle(found)  # noqa: S311  # nothing secret
            first = self.some(sorted(found, key=lambda name: -near[name]), self.chosen.most / 2)
            found = first + self.some([name for name in found if name not in first], self.chosen.most / 2)
        return sorted(found, key=self.seconds.__getitem__)

    def some(self, names: Sequence[str], limit: float) -> list[str]:
        """Give the first tests that take no longer, all together, than is wanted."""
        taken = []
        for name in names:
            if self.seconds[name] <= limit:
                taken.append(name)
                limit -= self.seconds[name]
        return taken

    def forked(
        self, names: list[str], functions: list[FunctionType], table: Mapping[CodeType, CodeType]
    ) -> tuple[str, str]:
        """Run tests in a fork, where functions have another code."""
        reading, self.pipe = os.pipe()
        process = os.fork()
        if not process:
            self.child(names, functions, table)
        os.close(self.pipe)
        limit = 60 + 10 * sum(self.seconds[name] for name in names)
        ended = select.select([reading], [], [], limit)[0]
        said = os.read(reading, 4096).decode() if ended else ""
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        status = os.waitpid(process, 0)[1]
        if said:
            return "killed", said
        if not ended or os.WIFSIGNALED(status):
            return "overdue", ""
        return ("killed", "exit") if status else ("survived", "")

    def child(
        self, names: list[str], functions: list[FunctionType], table: Mapping[CodeType, CodeType]
    ) -> None:
        """Run tests until one fails, and end."""
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            for function in functions:
                function.__code__ = table[function.__code__]
            items = [self.items[name] for name in names]
            for item, following in zip(items, [*items[1:], None], strict=True):
                signal.setitimer(signal.ITIMER_PROF, max(5, 10 * self.seconds[item.nodeid]))
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        except BaseException:  # noqa: BLE001  # whatever it is, it must not go on in a copy of this loop
            os._exit(3)
        os._exit(0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell of the first test that fails, and end."""
        if report.failed:
            os.write(self.pipe, report.nodeid.encode()[:4096])
            os._exit(1)


def _fits(function: FunctionType, table: Mapping[CodeType, CodeType] | None) -> bool:
    """Tell whether a function can be given its new code: it must close over the same variables."""
    code = function.__code__
    return table is not None and table[code].co_freevars == code.co_freevars


def known(file: Path) -> list[dict[str, Any]]:
    """Read outcomes."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def copied(mutant: Mutant, text: str, names: Sequence[str], limit: float) -> tuple[str, str]:
    """Run tests in a copy of the project that holds a change."""
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(shutil.copytree(ROOT, Path(scratch, "tree"), ignore=LEAVE, symlinks=True))
        (tree / mutant.path.relative_to(ROOT)).write_text(text, "utf-8")
        (tree / ".names").write_text("\n".join(names), "utf-8")
        command = [sys.executable, "-m", "pytest", *QUIET, "-x", "-rfE", "@.names"]
        try:
            done = subprocess.run(command, cwd=tree, capture_output=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return "overdue", ""
    failed = [line for line in done.stdout.decode().splitlines() if line.startswith(("FAILED", "ERROR"))]
    return ("killed", (failed or ["exit"])[0][:200]) if done.returncode else ("survived", "")
