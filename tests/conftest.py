"""Fixtures and settings for all tests."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import template
from support.cli import HAZARD

from fsrace_lint.explore.running import stage

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = ["support.sampling", "support.leftovers", "support.large"]

EXPLORING = frozenset(
    {"explore", "safe", "gallery", "instrument", "test_prove", "test_prove_finding", "test_differential"}
)
"""Directories and modules of tests that explore."""

# background jobs start with signals ignored, and the processes of tests would inherit that
for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

# xdist sets it in its workers, and reports follow it
os.environ.pop("COLUMNS", None)

# do not sign caches with the key of the user who runs the tests
os.environ.pop("FSRACE_CACHE_KEY", None)


def pytest_configure() -> None:
    """Keep the state of the program and the files of explorations in the temporary directory of the run."""
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="state-")
    stage.MEMORY = Path(tempfile.gettempdir())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let a process without tests take some from another one, because a few tests take most of the time."""
    from xdist.scheduler import WorkStealingScheduling  # type: ignore[import-untyped]

    return WorkStealingScheduling(config, log)


def pytest_sessionfinish() -> None:
    """Stop the template process, and delete the state of the program."""
    template.end()
    shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests that explore first: each search looks at all objects, and other tests leave many."""
    items.sort(key=lambda item: not EXPLORING.intersection((item.path.parent.name, item.path.stem)))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, which is the current directory, and an environment without user preferences."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "FSRACE_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


@pytest.fixture
def one_good_file(here: Path) -> None:
    """A project with one readable file, which is the current directory."""
    (here / "good.py").write_text(HAZARD)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for sockets, whose paths must be short."""
    directory = Path(tempfile.mkdtemp(prefix="fsr-"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(directory))
    monkeypatch.delenv("COLUMNS", raising=False)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo `gc.freeze()` of a daemon that ran in this process, and skip its garbage collections.

    A collection would scan the objects of all tests each time that a project is loaded.
    """
    monkeypatch.setattr(gc, "collect", lambda *_: 0)
    yield
    gc.unfreeze()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Exclude the processes of the explorer from coverage, because tracing takes longer than running them."""
    if EXPLORING.intersection((item.path.parent.name, item.path.stem)):
        item.add_marker("no_cover")
