"""Checks of projects with unreadable files."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from fsrace_lint.cli import main

GOOD = "good.py:4:5 FSR101 directory `'d'` is created by multiple processes after a separate existence check"


posix = pytest.mark.skipif(os.name != "posix", reason="needs what POSIX filesystems have")


class CheckResult(NamedTuple):
    code: int
    findings: list[str]
    errors: list[str]
    stderr: str


def check(*arguments: str) -> CheckResult:
    """Run `check` in the JSON and text formats, which must agree and must not print a traceback."""
    result = CliRunner().invoke(main.main, ["check", "--format=json", *arguments])
    text = CliRunner().invoke(main.main, ["check", *arguments])
    for one in (result, text):
        assert one.exception is None or isinstance(one.exception, SystemExit), one.exc_info
        assert "Traceback" not in one.output
    assert (text.exit_code, text.stderr) == (result.exit_code, result.stderr)
    document = json.loads(result.stdout)
    findings = ["{path}:{line}:{column} {code} {message}".format(**row) for row in document["findings"]]
    for row in document["findings"]:
        assert row["code"] in text.stdout
    errors = [
        f"{row['path']}: {row['message']}" if row["path"] else row["message"] for row in document["errors"]
    ]
    assert result.stderr.splitlines()[-len(errors) :] == [f"Error: {error}" for error in errors] or not errors
    return CheckResult(result.exit_code, findings, errors, result.stderr)
