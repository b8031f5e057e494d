"""Completion in real shells, configured as in docs/editors.md."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BASH = """
eval "$(_FSRACE_LINT_COMPLETE=bash_source fsrace-lint)"
complete -p fsrace-lint
COMP_WORDS=({words}); COMP_CWORD={index}
_fsrace_lint_completion fsrace-lint
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
FISH = """
_FSRACE_LINT_COMPLETE=fish_source fsrace-lint | source
complete -C '{line}'
"""


def shell(name: str, script: str) -> list[str]:
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    directory = Path(sys.executable).parent
    if not (directory / "fsrace-lint").exists():
        pytest.skip("the package is not installed beside this Python")
    path = f"{directory}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [program, "-c", script],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


CASES = [
    (("che",), ["check"]),
    (("check", "--select", "FSR10"), ["FSR101", "FSR102", "FSR103", "FSR104", "FSR105", "FSR106"]),
    (("check", "--ignore", "FSR2,check-then-mk"), ["FSR2,check-then-mkdir"]),
    (("fix", "--extend-select", "fsr101"), ["FSR101"]),
    (("explain", "check-then-mk"), ["check-then-mkdir"]),
    (("check", "--format", "j"), ["json", "junit"]),
    (("check", "--stdin"), ["--stdin-filename"]),
    (("nonsense", "x"), []),
]


@pytest.mark.parametrize(("words", "offered"), CASES)
def test_bash_completion(words: tuple[str, ...], offered: list[str]) -> None:
    script = BASH.format(words=" ".join(["fsrace-lint", *words]), index=len(words))
    first, *found = shell("bash", script)
    assert first == "complete -o nosort -F _fsrace_lint_completion fsrace-lint"
    assert [word for word in found if word] == offered


@pytest.mark.parametrize(("words", "offered"), [case for case in CASES if case[1] and "," not in case[1][0]])
def test_fish_completion(words: tuple[str, ...], offered: list[str]) -> None:
    """The completion that click provides for fish does not support commas."""
    found = shell("fish", FISH.format(line=" ".join(["fsrace-lint", *words])))
    assert [line.partition("\t")[0] for line in found] == offered
