"""Mutation testing: how mutants are generated, sampled, and applied."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from random import Random
from typing import TYPE_CHECKING, Any

import libcst as cst
import mutants
import pytest
from libcst.metadata import MetadataWrapper
from support import SCRIPTS

if TYPE_CHECKING:
    from pathlib import Path

OF_LIBRARY = "mutation_operators = []\n"
PACKAGES = ("analysis", "engine", "program", "rules", "syntax")
CODE = '''\
"""A room."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    print("never")

LIMITS = [number for number in range(9) if number > 6]


def is_small(number: int) -> bool:
    """Tell whether a number is small."""
    if number < 3:
        return True
    return bool(0)


def noted(number: int, notes: list[int]) -> None:
    notes.append(number)


def limits() -> list[int]:
    return LIMITS


def unseen() -> int:
    return 7
'''
TEST = """\
from fsrace_lint.syntax.numbers import is_small, limits, noted


def test_limits():
    assert limits() == [7, 8]


def test_small():
    assert is_small(1)


def test_large():
    assert not is_small(4)


def test_noted():
    noted(1, [])
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one file to mutate and a stub of the mutation library."""
    root = tmp_path_factory.mktemp("mutated")
    for name in ("mutate", "mutants", "mutant_runs"):
        (root / "scripts").mkdir(exist_ok=True)
        shutil.copyfile(SCRIPTS / f"{name}.py", root / "scripts" / f"{name}.py")
    library = root / "scripts" / "mutmut" / "mutation"
    library.mkdir(parents=True)
    for directory in (library, library.parent):
        (directory / "__init__.py").write_text("", "utf-8")
    (library / "mutators.py").write_text(OF_LIBRARY, "utf-8")
    for package in PACKAGES:
        (root / "fsrace_lint" / package).mkdir(parents=True)
        (root / "fsrace_lint" / package / "__init__.py").write_text("", "utf-8")
    (root / "fsrace_lint" / "__init__.py").write_text("", "utf-8")
    (root / "fsrace_lint" / "syntax" / "numbers.py").write_text(CODE, "utf-8")
    (root / "tests").mkdir()
    (root / "tests" / "test_numbers.py").write_text(TEST, "utf-8")
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n", "utf-8")
    return root


def run(project: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.fspath(project), "PYTHONDONTWRITEBYTECODE": "1"}
    for name in [name for name in environment if name.startswith("COV_CORE") or "COVERAGE" in name]:
        del environment[name]
    command = [sys.executable, "scripts/mutate.py", *arguments]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str) -> list[mutants.Mutant]:
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    kinds: list[tuple[type, Any]] = [(cst.If, mutants.turned), (cst.CompIf, mutants.turned)]
    kinds += [(cst.Return, mutants.nothing_returned), (cst.Expr, mutants.left_out)]
    wrapper = MetadataWrapper(cst.parse_module(code))
    visitor = mutants.Changes(tmp_path / "numbers.py", wrapper.module, kinds)
    wrapper.visit(visitor)
    return visitor.found


def test_each_mutant_changes_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert [one.diff().split("\n")[1:] for one in changes(monkeypatch, tmp_path, CODE)] == [
        [
            "-LIMITS = [number for number in range(9) if number > 6]",
            "+LIMITS = [number for number in range(9) if not (number > 6)]",
        ],
        ["-    if number < 3:", "+    if not (number < 3):"],
        ["-        return True", "+        return None"],
        ["-    return bool(0)", "+    return None"],
        ["-    notes.append(number)", "+    pass"],
        ["-    return LIMITS", "+    return None"],
        ["-    return 7", "+    return None"],
    ]


def test_sample_draws_one_mutant_per_line_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = "def f(x):\n    return [y for y in x if y if y > 1]\n\n\ndef g(x):\n    return x\n"
    found = changes(monkeypatch, tmp_path, code)
    drawn = mutants.drawn([*found], Random(3))
    assert [one.line for one in found] == [2, 2, 2, 6]
    assert {one.line for one in drawn[:2]} == {2, 6}
    assert {one.operator for one in drawn if one.line == 2} == {"turned", "nothing_returned"}
    assert [one.name for one in mutants.drawn([*found], Random(3))] == [one.name for one in drawn]


def test_only_mutants_inside_functions_can_be_swapped_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outside, inside, *_ = changes(monkeypatch, tmp_path, CODE)
    assert mutants.swaps(outside, outside.text()) is None
    table = mutants.swaps(inside, inside.text())
    assert table is not None
    assert {old.co_name for old, new in table.items() if old != new} == {"<module>", "is_small"}
    assert mutants.swaps(inside, CODE) == {}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="operand line numbers need Python 3.11")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="mutants are applied in forked processes")
def test_mutants_are_killed_or_survive(project: Path) -> None:
    tests = "tests/test_numbers.py"
    assert "4 passed" in run(project, "map", tests)
    assert "unchanged: survived" in run(project, "run", "--unchanged", "--tests", tests)
    run(project, "run", "--tests", tests)
    rows = [json.loads(row) for row in (project / "mutants" / "0.jsonl").read_text("utf-8").splitlines()]
    found = [(row["diff"].partition("\n+")[2].strip(), row["outcome"], row["forked"]) for row in rows]
    assert sorted(found) == [
        ("LIMITS = [number for number in range(9) if not (number > 6)]", "killed", False),
        ("if not (number < 3):", "killed", True),
        ("pass", "survived", True),
        ("return None", "killed", True),
        ("return None", "killed", True),
        ("return None", "no test", True),
        ("return None", "survived", True),
    ]
    shown = run(project, "show", "mutants/0.jsonl")
    assert "\nsyntax: 7 changes;" in shown
