"""Checks that a test run leaves no processes or files behind.

A run has a separate temporary directory, which all of its processes inherit. At the end, no process may have
that directory in its environment, and the directory must be empty.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import pytest

PATIENCE: Final = 10.0
"""The number of seconds that a process may take to exit."""
MEMORY: Final = Path("/dev/shm")
ENOUGH: Final = 4 << 30
"""The number of bytes that must be free in memory for the files of a run, which builds packages."""


class Remains:
    """Watches one run, in the process that starts the others."""

    def __init__(self) -> None:
        fits = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ENOUGH
        place = MEMORY if fits else None
        self.directory = Path(tempfile.mkdtemp(prefix="fsrt-", dir=place)).resolve()
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
        os.environ["TMPDIR"] = str(self.directory)
        tempfile.tempdir = None

    def processes(self) -> list[str]:
        """Return the commands of other processes that have the directory in their environment."""
        mark, found = os.fsencode(f"TMPDIR={self.directory}"), []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                known = mark in (process / "environ").read_bytes().split(b"\0")
                command = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if known and command and process.name != str(os.getpid()):
                found.append(command.replace(b"\0", b" ").decode(errors="replace"))
        return found

    def all(self) -> list[str]:
        """Return the leftover processes and files, after processes had time to exit."""
        deadline = time.monotonic() + PATIENCE
        while (processes := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        # tests of documentation pages run pytest, which keeps the directories of its last runs
        files = sorted(
            str(path) for path in self.directory.iterdir() if not path.name.startswith("pytest-of-")
        )
        return [f"a process: {command}" for command in processes] + [f"a file: {file}" for file in files]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run if anything is left, and delete it."""
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if left := self.all():
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
            if reporter is not None:
                reporter.write_line("\nThe tests have left behind:", red=True)
                for each in left:
                    reporter.write_line(f"  {each}")
        shutil.rmtree(self.directory, ignore_errors=True)


def pytest_configure(config: pytest.Config) -> None:
    """Watch the run in the main process, if the system has /proc."""
    if not hasattr(config, "workerinput") and sys.platform == "linux":
        config.pluginmanager.register(Remains())
