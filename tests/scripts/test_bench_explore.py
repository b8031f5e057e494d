"""The explorer benchmark: every row has the expected verdict, and frontrun is optional."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

import pytest
from support import SCRIPTS

if TYPE_CHECKING:
    from types import ModuleType

SCRIPT = SCRIPTS / "bench_explore.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_explore", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.exhaustive(4)
def test_every_row_has_the_expected_verdict(script: ModuleType) -> None:
    for scenario in script.SCENARIOS:
        cells = script.ours(scenario)
        assert len(cells) == len(script.COLUMNS)
        assert (cells[0], cells[-1]) == (("found", "-") if scenario.fails else ("holds", "yes")), (
            scenario.name
        )


def test_unexpected_verdict_is_an_error(script: ModuleType) -> None:
    scenario = script.SCENARIOS[0]
    with pytest.raises(RuntimeError, match=r"check, then mkdir: FileExistsError in process"):
        script.ours(scenario._replace(fails=False))


def test_frontrun_is_optional(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "frontrun", None)
    monkeypatch.setattr(script, "SCENARIOS", script.SCENARIOS[:1])
    monkeypatch.setattr(sys, "argv", ["bench_explore.py"])
    script.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert {line.count("|") for line in lines} == {len(script.COLUMNS) + len(script.MODES) + 2}
    assert lines[2].startswith("| check, then mkdir | found |")
    assert lines[2].endswith(" | not installed" * len(script.MODES) + " |")


@pytest.mark.parametrize(
    ("fails", "holds", "verdict"),
    [
        (True, True, "**missed**"),
        (True, False, "found"),
        (False, True, "none found"),
        (False, False, "**false positive**"),
        (True, None, "no verdict"),
    ],
)
def test_frontrun_verdict(script: ModuleType, fails: bool, holds: bool | None, verdict: str) -> None:
    scenario = script.SCENARIOS[0]._replace(fails=fails)
    cell = script.cell_of(scenario, {"holds": holds, "explored": 7, "seconds": 0.5})
    assert cell == f"{verdict}; 7 in 0.50 s"
