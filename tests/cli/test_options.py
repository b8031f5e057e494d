"""Rule names in place of codes, suggestions for typos, and the layout of `--help`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner
from support import commands
from support.cli import HAZARD, run, write

from fsrace_lint import rules
from fsrace_lint.cli import main
from fsrace_lint.report import FOR_PEOPLE, FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("here")

DELETE = 'import os\n\nif os.path.exists("d"):\n    os.remove("d")\n'
ONE_RULE = ["FSR101", "fsr101", "check-then-mkdir", "Check-Then-Mkdir", " FSR101 "]
FAMILY = ["FSR1", "fsr10", "FSR", "ALL", "all", "fsr101,Check-Then-Delete", "FSR103, check-then-mkdir,"]


def found(*arguments: str) -> list[str]:
    """Return the codes reported in a file with two hazards."""
    result = CliRunner().invoke(main.main, ["check", "--format=json", *arguments], prog_name="fsrace-lint")
    assert result.exit_code in (0, 1), result.output
    return [row["code"] for row in json.loads(result.stdout)["findings"]]


def setting(key: str) -> Callable[[str], list[str]]:
    def chosen(selector: str) -> list[str]:
        value = json.dumps([selector])
        text = f'"a.py" = {value}' if key == "per-file-ignores" else f"{key} = {value}"
        table = f"[tool.fsrace-lint.{key}]" if key == "per-file-ignores" else "[tool.fsrace-lint]"
        write({"pyproject.toml": f"{table}\n{text}\n"})
        return found()

    return chosen


def explained(selector: str) -> list[str]:
    text = run("explain", selector, code=0).stdout
    heads: list[str] = re.findall(r"^(FSR10[13]) [a-z-]+$", text, re.MULTILINE)
    return heads


SELECTING: dict[str, Callable[[str], list[str]]] = {
    "--select": lambda selector: found(f"--select={selector}"),
    "--extend-select": lambda selector: found("--select=FSR5", f"--extend-select={selector}"),
    "select": setting("select"),
    "explain": explained,
}
IGNORING: dict[str, Callable[[str], list[str]]] = {
    "--ignore": lambda selector: found(f"--ignore={selector}"),
    "ignore": setting("ignore"),
    "per-file-ignores": setting("per-file-ignores"),
}


class TestSelectors:
    @pytest.fixture(autouse=True)
    def hazards(self, here: Path) -> None:
        write({"a.py": HAZARD + DELETE})

    @pytest.mark.parametrize("selector", ONE_RULE)
    @pytest.mark.parametrize("place", [*SELECTING])
    def test_one_rule_is_selected(self, place: str, selector: str) -> None:
        assert SELECTING[place](selector) == ["FSR101"]

    @pytest.mark.parametrize("selector", FAMILY)
    @pytest.mark.parametrize("place", [*SELECTING])
    def test_multiple_rules_are_selected(self, place: str, selector: str) -> None:
        assert SELECTING[place](selector) == ["FSR101", "FSR103"]

    @pytest.mark.parametrize("selector", ONE_RULE)
    @pytest.mark.parametrize("place", [*IGNORING])
    def test_one_rule_is_ignored(self, place: str, selector: str) -> None:
        assert IGNORING[place](selector) == ["FSR103"]

    @pytest.mark.parametrize("selector", FAMILY)
    @pytest.mark.parametrize("place", [*IGNORING])
    def test_multiple_rules_are_ignored(self, place: str, selector: str) -> None:
        assert IGNORING[place](selector) == []

    def test_every_report_format_has_the_code(self) -> None:
        document = json.loads(run("check", "--format=json", code=1).stdout)
        names = rules.names()
        assert all(row["name"] == names[row["code"]] for row in document["findings"])
        for form in set(FORMATS) - {"html"}:
            report = run("check", f"--format={form}", code=1).stdout
            assert "FSR101" in report, form
            assert ("check-then-mkdir" in report) is (form not in FOR_PEOPLE), form

    @pytest.mark.parametrize("word", ["FSR1", "check-then-mkdir"])
    def test_flake8_accepts_only_codes(self, word: str) -> None:
        command = [sys.executable, "-m", "flake8", "--isolated", "--select", word, "a.py"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ("FSR101" in done.stdout) == (word == "FSR1")


class TestSuggestions:
    @pytest.mark.parametrize(
        ("arguments", "hint"),
        [
            ("check --format=sarf", "`sarif`?"),
            ("check --report jsn=a.json", "`json`?"),
            ("check --profile=strct", "`strict`?"),
            ("check --profile=Default", "`default`?"),
            ("check --filesystem=shard", "`shared`?"),
            ("fix --filesystem=locl", "`local`?"),
            ("rules --format=jsn", "`json`?"),
            ("explain --format=txt FSR101", "`text`?"),
            ("prove --filesystem=posx a.py::f", "`posix`?"),
            ("check --select=check_then_mkdir", "`check-then-mkdir`?"),
            ("check --ignore=FSR1O1", "`FSR101`?"),
            ("explain mising-barrier", "`missing-barrier`?"),
            ("check --statistcs", "`--statistics`"),
            ("explian FSR101", "`explain`?"),
            ("cache claer", "`clear`?"),
            ("daemon stp", "`stop`?"),
        ],
    )
    def test_typo_on_the_command_line_gets_a_suggestion(self, arguments: str, hint: str) -> None:
        message = run(*arguments.split(), code=2).stderr
        assert "did you mean" in message
        assert hint in message

    def test_unrelated_word_gets_no_suggestion(self) -> None:
        message = run("check", "--format=pdf", code=2).stderr
        assert "`pdf` is not one of" in message
        assert "mean" not in message

    @pytest.mark.parametrize("name", ["fsrace_lint", "fsracelint", "FSRace-Lint"])
    def test_misspelled_table_gets_a_suggestion(self, name: str) -> None:
        write({"pyproject.toml": f'[tool.{name}]\nselect = ["FSR1"]\n'})
        message = run("check", code=2).stderr
        assert f"unknown table [tool.{name}]; did you mean [tool.fsrace-lint]?" in message

    def test_tables_of_other_tools_are_ignored(self) -> None:
        write({"pyproject.toml": "[tool.fsrace]\n[tool.race-lint]\n[tool.ruff-lint]\n", "a.py": ""})
        run("check", code=0)


class TestHelp:
    @pytest.mark.parametrize("width", [80, 100])
    @pytest.mark.parametrize("name", ["", *commands.every()])
    def test_help_fits_the_width(self, name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", str(width))
        text = run(*name.split(), "--help", code=0).stdout
        assert max(map(len, text.splitlines())) <= width

    @pytest.mark.parametrize("name", ["check", "fix"])
    def test_every_option_is_in_one_group(self, name: str) -> None:
        text = run(name, "--help", code=0).stdout
        options = [one.opts[-1] for one in commands.every()[name].params if isinstance(one, click.Option)]
        for option in (*options, "--help"):
            rows = re.findall(rf"^  (?:--?[\w-]+, )*{option}(?![\w-])", text, re.MULTILINE)
            assert len(rows) == 1, option
        groups = re.findall(r"^([A-Z][a-z]+):$", text, re.MULTILINE)
        assert groups[:2] == ["Rules", "Files"]
        ungrouped = re.findall(r"^  (?:-\w, )?(--[\w-]+)", text.partition("\nOptions:\n")[2], re.MULTILINE)
        assert set(ungrouped) <= {"--show-settings", "--help"}
        assert "PATHS" not in text.partition("\n")[2]
