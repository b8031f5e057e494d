"""Exhaustive tests, and the sample of them in a daily run.

Some tests cover all interleavings, all shapes of control flow, or all cases in another way. A run takes a
sample of each of them, with the current commit as the seed, so that all of them are covered over time;
`--exhaustive` runs them completely.

* `@pytest.mark.exhaustive(N)`: one of N items of a test is run, and at least one if the test has several.
* `bound(daily, whole)` in a test: the number of interleavings, examples, or programs that it tries.
* Hypothesis uses the same seed.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import defaultdict
from typing import Any, ClassVar, Final, TypeVar

import pytest

from support import ROOT

Value = TypeVar("Value")

SEED: Final = "FSRACE_TEST_SEED"
"""The variable that replaces the commit as the seed, to reproduce a sample that failed elsewhere."""


class _State:
    """The sample of this process, and the number of tests that it leaves out."""

    exhaustive = False
    seed = ""
    tests = 0
    groups = 0
    searches: ClassVar[set[str]] = set()


def bound(daily: Value, whole: Value) -> Value:
    """Return the limit of an exhaustive search.

    Args:
        daily: The limit in a daily run.
        whole: The limit with `--exhaustive`.

    Returns:
        The limit for this run.
    """
    if _State.exhaustive:
        return whole
    caller = sys._getframe(1)
    _State.searches.add(f"{caller.f_code.co_filename}:{caller.f_lineno}")
    return daily


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--exhaustive`."""
    parser.addoption(
        "--exhaustive",
        action="store_true",
        help="run whole what a daily run takes a share of: all schedules, all shapes of code, every case",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Read the options before Hypothesis reads its own, and before the tests are imported."""
    if config.pluginmanager.hasplugin("xdist") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Collected())
    _State.exhaustive = config.option.exhaustive
    _State.seed = _seed(config)
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = _State.seed


def _seed(config: pytest.Config) -> str:
    given: dict[str, Any] = getattr(config, "workerinput", {})
    return str(given.get("fsrace_seed") or os.environ.get(SEED) or _commit())


def _commit() -> str:
    """Return the current commit, or a fixed text in an archive of the sources."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return "no commit"
    return done.stdout.strip() or "no commit"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the items that are not in the sample of this run; tests named with `::` are run."""
    if _State.exhaustive or any("::" in name for name in config.args):
        return
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        groups[item.nodeid.partition("[")[0]].append(item)
    marked = {name: [each for each in group if _share(each)] for name, group in groups.items()}
    left = {item for name, found in marked.items() if found for item in _left(found, groups[name])}
    _State.tests, _State.groups = len(left), sum(map(bool, marked.values()))
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


def _share(item: pytest.Item) -> int:
    """Return the number of items of which one is run, or 0 if all are run."""
    marker = item.get_closest_marker("exhaustive")
    return 0 if marker is None else int(marker.args[0])


def _left(marked: list[pytest.Item], group: list[pytest.Item]) -> list[pytest.Item]:
    """Return the marked items of a test that are not run."""
    shuffled = sorted(marked, key=lambda item: drawn(item.nodeid))
    number = len(marked) / _share(marked[0]) + drawn(marked[0].nodeid.partition("[")[0])
    return shuffled[max(int(number), 1 < len(marked) == len(group)) :]


def drawn(name: str) -> float:
    """Draw a number for a name.

    Args:
        name: A name that is in the sample of a run if its number is small enough.

    Returns:
        A number from 0 to 1, which is the same in all processes of a run and depends on the seed.
    """
    digest = hashlib.blake2b(f"{_State.seed} {name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the numbers of omitted tests to the process that prints the summary."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = [_State.tests, _State.groups, sorted(_State.searches)]


class Collected:
    """Collects results from the processes of pytest-xdist."""

    def pytest_configure_node(self, node: Any) -> None:
        """Pass the same seed to all processes."""
        node.workerinput["fsrace_seed"] = _State.seed

    def pytest_testnodedown(self, node: Any) -> None:
        """Read the numbers of one process, because all processes collect the same tests."""
        left_out = getattr(node, "workeroutput", {}).get("left_out")
        if left_out is not None:
            _State.tests, _State.groups = left_out[:2]
            _State.searches |= set(left_out[2])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many tests were left out, and how to run them."""
    tests, groups, searches = _State.tests, _State.groups, len(_State.searches)
    if tests or searches:
        terminalreporter.write_line(
            f"Left out: {tests:,} tests of {groups} exhaustive groups, and what {searches} searches would try"
            f" beyond their daily share (drawn by {_State.seed})."
            " All of it: python -m pytest -n auto --exhaustive"
        )
