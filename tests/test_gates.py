"""Nothing gets in: what is checked is never run, never steers who reads of it, and is never believed."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import unicodedata
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import msgspec
import pytest
from click.testing import CliRunner
from test_cli import HAZARD, here, read_terminal, write  # noqa: F401  # a fixture for all tests
from test_report import finding, fix, source

from fsrace_lint import cli, fixes, report
from fsrace_lint.cache import seal as sealing
from fsrace_lint.findings import Applicability, Related, Silenced, Step, Suppression, Witness
from fsrace_lint.report import Options, Outcome, Problem, render
from fsrace_lint.report.diff import for_the_eyes
from fsrace_lint.report.words import visible
from fsrace_lint.spans import Place, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from click.testing import Result

BIN: Final = Path(sys.executable).parent
LINTER: Final = str(BIN / "fsrace-lint")
NEEDS_POSIX: Final = pytest.mark.skipif(os.name != "posix", reason="links, modes and names as POSIX has them")


def run(*arguments: str, code: int) -> Result:
    result = CliRunner().invoke(cli.main, arguments, prog_name="fsrace-lint")
    assert result.exit_code == code, result.output
    return result


# The code under check is never run.

THIRD_PARTY: Final = (
    "click", "msgspec", "libcst", "rich", "pathspec", "tomli", "pygls", "lsprotocol", "flake8",
    "pyflakes", "pycodestyle", "mccabe", "attr", "attrs", "cattrs", "yaml", "typing_extensions",
)  # fmt: skip
SPECIAL: Final = (
    "sitecustomize",
    "usercustomize",
    "conftest",
    "setup",
    "trap",
    "fsrace_lint_plugin",
    "noxfile",
)
CONFIGURATION: Final = {
    "setup.cfg": "[options.entry_points]\nflake8.extension =\n    TRAP = trap:Plugin\n",
    "tox.ini": "[pytest]\naddopts = -p trap\n",
    "pyproject.toml": """
        [build-system]
        requires = []
        build-backend = "trap"
        backend-path = ["."]
        [project.entry-points."flake8.extension"]
        TRAP = "trap:Plugin"
        [tool.mypy]
        plugins = ["trap"]
        [tool.pytest.ini_options]
        addopts = "-p trap"
        """,
    "trap.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: trap\nVersion: 1\n",
    "trap.egg-info/entry_points.txt": "[flake8.extension]\nTRAP = trap:Plugin\n",
    "trap.pth": "import trap\n",
    ".env": "PYTHONSTARTUP=trap.py\n",
    ".git/HEAD": "ref: refs/heads/main\n",
    ".gitignore": "/ignored/\n",
}


def loaded_by_python() -> set[str]:
    """The modules that `python -m` has loaded before the first line of a program."""
    program = "import json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in MODULES})))"
    Path("probe.py").write_text("import sys\nMODULES = list(sys.modules)\n" + program)
    done = subprocess.run([sys.executable, "-m", "probe"], capture_output=True, check=True)
    Path("probe.py").unlink()
    return {*json.loads(done.stdout)} - {"__main__"}


@pytest.fixture
def trapped(tmp_path: Path) -> Path:
    """A project that leaves a mark where anything of it is imported or run; gives the place of the mark."""
    mark = tmp_path.with_name(f"{tmp_path.name}-mark")
    spring = f"with open({str(mark)!r}, 'a') as stream: stream.write(__name__ + ' ' + __file__ + '\\n')\n"
    names = {*sys.stdlib_module_names, *THIRD_PARTY, *SPECIAL} - loaded_by_python()
    names = {name for name in names if not name.startswith("_") or name == "__future__"}
    write({f"{name}.py": spring for name in sorted(names)})
    write({f"{name}/__init__.py": spring for name in ("libcst", "rich", "msgspec")})
    write({f"train{number}.py": spring + HAZARD for number in range(2)})
    write({name: dedent(text) for name, text in CONFIGURATION.items()})
    bait = f'#!/bin/sh\necho "$0" >> {mark}\n'
    hook = f"[core]\n\tfsmonitor = echo fsmonitor >> {mark}\n\thooksPath = hooks\n\tpager = echo >> {mark}\n"
    write({".git/config": hook, "hooks/pre-commit": bait, "git": bait})
    for name in ("hooks/pre-commit", "git"):
        Path(name).chmod(0o755)
    return mark


FORMS: Final = [f"--report={form}=../report.{form}" for form in sorted(report.FORMATS)]


def start(*command: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=120)


def check_all(command: Sequence[str], *steps: tuple[int, tuple[str, ...]]) -> None:
    for code, arguments in steps:
        done = start(*command, *arguments)
        assert (done.returncode, b"Traceback" in done.stderr) == (code, False), (arguments, done.stderr)


def test_what_is_checked_is_not_run(trapped: Path) -> None:
    # what Python itself would take from the folder, where it is started as `python -m`
    spring = Path("trap.py").read_text()
    write({f"{name}.py": spring for name in ("fsrace_lint", "runpy", "functools", "contextlib", "types")})
    check_all(
        [LINTER],
        (1, ("check", "--statistics", "--verbose", "--show-silenced", *FORMS)),
        (0, ("check", "--write-baseline=known.json")),
        (0, ("check", "--baseline=known.json", "--prune-baseline")),
        (0, ("fix", "--unsafe-fixes")),
        (0, ("check", "--add-noqa", "--profile=strict")),
        (0, ("vendor", "helpers.py")),
        (0, ("explain", "FSR101")),
    )
    assert "exist_ok=True" in Path("train0.py").read_text()
    assert not trapped.exists(), trapped.read_text()


def test_what_is_checked_is_not_run_by_python_m(trapped: Path) -> None:
    command = [sys.executable, "-m", "fsrace_lint"]
    check_all(command, (1, ("check", *FORMS)), (1, ("fix", "--unsafe-fixes", "--diff")), (0, ("rules",)))
    assert not trapped.exists(), trapped.read_text()


def test_python_m_takes_out_only_what_python_put_there() -> None:
    """What PYTHONPATH names is the user's own choice."""
    write({"msgspec.py": "raise SystemExit('ours')"})
    for options, path, is_taken in ((), ".", True), (("-I",), ".", False), ((), "", False):
        command = [sys.executable, *options, "-m", "fsrace_lint", "check"]
        environment = {**os.environ, "PYTHONPATH": str(Path(path).absolute()) if path else ""}
        done = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)
        assert ("ours" in done.stderr) is is_taken, (options, path, done.stderr)


def test_what_is_checked_is_not_run_by_flake8(trapped: Path) -> None:
    done = start(str(BIN / "flake8"), "--select=FSR", "--jobs=2", "train0.py", "train1.py")
    assert (done.returncode, done.stdout.count(b"FSR101")) == (1, 2), done.stderr
    assert not trapped.exists(), trapped.read_text()


def messages(*told: dict[str, Any]) -> bytes:
    """What an editor sends."""
    bodies = [json.dumps({"jsonrpc": "2.0", **one}).encode() for one in told]
    return b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies)


def test_what_is_opened_in_an_editor_is_not_run(trapped: Path) -> None:
    folder, file = Path.cwd().as_uri(), Path("train0.py").absolute().as_uri()
    document = {"uri": file, "languageId": "python", "version": 1, "text": Path("train0.py").read_text()}
    pull = {"textDocument": {"diagnostic": {}}}
    asked = messages(
        {"id": 1, "method": "initialize", "params": {"rootUri": folder, "capabilities": pull}},
        {"method": "initialized", "params": {}},
        {"method": "textDocument/didOpen", "params": {"textDocument": document}},
    )
    with subprocess.Popen([LINTER, "server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(asked)
        server.stdin.write(
            messages(
                {"id": 2, "method": "textDocument/diagnostic", "params": {"textDocument": {"uri": file}}}
            )
        )
        server.stdin.flush()
        shown = b""
        while b"FSR101" not in shown:
            chunk = server.stdout.read1()
            assert chunk, shown
            shown += chunk
        server.stdin.write(messages({"id": 3, "method": "shutdown"}, {"method": "exit"}))
    assert server.returncode == 0
    assert not trapped.exists(), trapped.read_text()


def test_the_trap_works(trapped: Path) -> None:
    """The mark is left where Python is told to import from the folder."""
    start(sys.executable, "-c", "import click")
    assert "click.py" in trapped.read_text()
