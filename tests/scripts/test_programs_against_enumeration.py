"""The comparison of the reduced search with plain enumeration: what it prints, and its exit code."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest
from support import SCRIPTS

if TYPE_CHECKING:
    from types import ModuleType

ARGUMENTS = ["--count", "3", "--seed", "2", "--orders", "60"]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    name = "programs_against_enumeration"
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_equal_outcomes_pass(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(ARGUMENTS) == 0
    head, *features = capsys.readouterr().out.splitlines()
    compared, _, skipped = head.partition(" programs compared, 0 differ, ")
    assert int(compared) + int(skipped.split()[0]) == 3
    numbers = {line.split(maxsplit=1)[1]: int(line.split()[0]) for line in features}
    assert int(compared) == numbers.get("2 processes", 0) + numbers.get("3 processes", 0) > 0


def test_difference_is_printed_with_its_seed(
    script: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "reduced", lambda _: {("invented",)})
    assert script.main(ARGUMENTS) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("seed ") for line in lines)
    assert "  invented: [\"('invented',)\"]" in lines


def test_every_feature_is_drawn(script: ModuleType) -> None:
    drawn = set().union(*(script.drawn(seed).features for seed in range(300)))
    assert drawn >= {
        *script.POOLS,
        *script.FILESYSTEMS,
        "kills",
        "restarts",
        "faults",
        "nodes",
        "3 processes",
    }


def test_program_of_a_seed_is_always_the_same(script: ModuleType) -> None:
    assert [script.drawn(seed) for seed in range(20)] == [script.drawn(seed) for seed in range(20)]
