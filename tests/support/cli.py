"""The command line, run in this process or in a subprocess."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner, Result

from fsrace_lint.cli import main

if TYPE_CHECKING:
    from click.testing import Result


HAZARD = 'import os\n\nif not os.path.isdir("d"):\n    os.mkdir("d")\n'


def write(files: dict[str, str]) -> None:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")


def run(*arguments: str, code: int) -> Result:
    result = CliRunner().invoke(main.main, arguments, prog_name="fsrace-lint")
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def reported(*arguments: str, code: int = 1) -> list[str]:
    rows = json.loads(run("check", "--format=json", *arguments, code=code).stdout)["findings"]
    return [f"{row['path']}:{row['line']} {row['code']}" for row in rows]


def read_terminal(stream: int) -> bytes:
    """Read the output on a pseudo-terminal whose other end is closed, and close it."""
    shown = b""
    try:
        while chunk := os.read(stream, 65536):
            shown += chunk
    except OSError:
        pass  # Linux reports the end of a pseudo-terminal as an error
    os.close(stream)
    return shown


def start(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "fsrace_lint", *arguments]
    return subprocess.run(
        command, check=False, capture_output="stdout" not in options, timeout=120, **options
    )


CODE = """
import os
import shutil


def prepare(out):
    if not os.path.isdir(out):
        os.makedirs(out)


def clean_cache(out):
    if os.path.exists(out):
        shutil.rmtree(out)
"""
