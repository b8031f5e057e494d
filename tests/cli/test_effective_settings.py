"""`check --show-settings`: the effective settings and their origins, as equivalent TOML."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support.cli import HAZARD, run, write
from support.sampling import bound
from support.schema import refusal, tables

from fsrace_lint import rules
from fsrace_lint.config.settings import load
from fsrace_lint.config.tables import KEYS
from fsrace_lint.findings import baseline

if TYPE_CHECKING:
    from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.usefixtures("here")


def shown(*arguments: str, code: int = 0) -> str:
    return run("check", "--show-settings", *arguments, code=code).stdout


def table(text: str) -> dict[str, Any]:
    parsed: dict[str, Any] = tomllib.loads(text)["tool"]["fsrace-lint"]
    return parsed


def origins(text: str) -> dict[str, str]:
    """Map each key to its origin, which is the comment at the end of its line."""
    rows = (line.removeprefix("# ").rpartition("  # ") for line in text.splitlines() if "  # " in line)
    return {entry.split()[0]: origin for entry, _, origin in rows if not entry.startswith("[")}


class TestShownSettings:
    def test_no_files_are_checked(self) -> None:
        write({"a.py": HAZARD, "b.py": "def broken(:\n"})
        assert "FSR101 check-then-mkdir" in shown()
        assert "existence check" not in shown()

    def test_defaults_have_the_origin_default(self, here: Path) -> None:
        write({"a.py": HAZARD, "lib/b.py": "", "tests/test_c.py": ""})
        text = shown()
        assert text.startswith(f"# {here}/pyproject.toml\n# root: {here}\n# 2 files would be checked\n")
        below = {"extend", "per-file-ignores", "helpers", "catalog", "programs"}
        assert set(origins(text)) == set(KEYS) - below
        assert set(origins(text).values()) == {"default"}

    def test_each_setting_has_its_origin(self) -> None:
        write({"pyproject.toml": '[tool.fsrace-lint]\nignore = ["FSR3"]\nextend-select = ["FSR208"]\n'})
        text = shown("--profile=strict", "--extend-select=missing-barrier", "--extend-exclude=gen/")
        assert table(text)["extend-select"] == ["FSR208", "FSR401"]
        known = origins(text)
        assert known["ignore"] == "pyproject.toml"
        assert known["profile"] == "command line"
        assert known["extend-select"] == "command line and pyproject.toml"
        assert known["extend-exclude"] == "command line"
        assert known["select"] == "default"

    def test_helpers_are_a_table(self) -> None:
        write({"pyproject.toml": "[tool.fsrace-lint.helpers]\nbarrier = 'a.wait'\nlock = 'a.Lock'\n"})
        text = shown()
        assert '[tool.fsrace-lint.helpers]  # pyproject.toml\nbarrier = "a.wait"\nlock = "a.Lock"\n' in text
        assert table(text)["helpers"] == {"barrier": "a.wait", "lock": "a.Lock"}

    def test_command_line_overrides_settings(self) -> None:
        write({"pyproject.toml": '[tool.fsrace-lint]\nselect = ["FSR3"]\n'})
        assert table(shown())["select"] == ["FSR3"]
        text = shown("--select=check-then-mkdir")
        assert table(text)["select"] == ["FSR101"]
        assert origins(text)["select"] == "command line"

    def test_selected_rules_are_listed(self) -> None:
        text = shown("--select=FSR104,FSR105", "--ignore=FSR00")
        assert "# 2 of 36 rules selected, profile default" in text
        assert "#   FSR104 check-then-read (strict only)\n#   FSR105 mkdir-without-exist-ok\n" in text
        assert "(strict only)" not in shown("--profile=strict")

    def test_file_count_respects_options(self) -> None:
        write({"a.py": "", "b/c.py": "", "tests/d.py": ""})
        assert "# 1 file would be checked" in shown("--exclude=b")
        assert "# 3 files would be checked" in shown("--include-tests")
        assert "# 1 file would be checked" in shown("b")

    def test_missing_pyproject_is_noted(self, here: Path) -> None:
        (here / "pyproject.toml").unlink()
        (here / "setup.py").write_text("")
        assert shown().startswith(f"# {here}/pyproject.toml does not exist\n")

    def test_configured_root_is_shown(self, here: Path) -> None:
        write({"src/a.py": "", "src/pyproject.toml": '[tool.fsrace-lint]\nroot = "."\n'})
        text = shown("src")
        assert f"# root: {here}/src\n" in text
        assert table(text)["root"] == "."

    def test_settings_below_the_root(self, here: Path) -> None:
        write({"src/a.py": "", "src/pyproject.toml": '[tool.fsrace-lint]\nprofile = "strict"\n', "b.py": ""})
        whole, part = shown(), shown("src/a.py", "--ignore=FSR1")
        assert f"# other settings below: {here}/src/pyproject.toml\n" in whole
        assert table(whole)["profile"] == "default"
        assert part.startswith(f"# {here}/src/pyproject.toml\n# root: {here}\n# 1 file would be checked\n")
        assert (table(part)["profile"], table(part)["root"]) == ("strict", "..")
        assert origins(part)["ignore"] == "command line"

    def test_inherited_settings_name_their_file(self) -> None:
        rest = "[tool.fsrace-lint.per-file-ignores]\n'a.py' = ['FSR1']\n"
        write({"base.toml": f"[tool.fsrace-lint]\nprofile = 'strict'\n{rest}", "src/a.py": ""})
        write({"src/pyproject.toml": "[tool.fsrace-lint]\nextend = '../base.toml'\nselect = ['FSR1']\n"})
        text = shown("src")
        assert (origins(text)["profile"], origins(text)["select"]) == ("../base.toml", "pyproject.toml")
        assert "per-file-ignores]  # ../base.toml\n" in text

    def test_invalid_settings_below_the_paths_are_an_error(self) -> None:
        write({"src/pyproject.toml": "[tool.fsrace-lint]\nselekt = []\n", "src/a.py": ""})
        assert "did you mean `select`?" in run("check", "--show-settings", code=2).stderr

    def test_multiple_projects(self) -> None:
        write({"one/pyproject.toml": "", "two/pyproject.toml": '[tool.fsrace-lint]\nprofile = "strict"\n'})
        first, second = shown("one", "two").split("\n\n")
        assert (table(first)["profile"], table(second)["profile"]) == ("default", "strict")

    def test_invalid_settings_and_missing_paths_are_errors(self) -> None:
        write({"bad/pyproject.toml": "[tool.fsrace-lint]\nselekt = []\n", "bad/.git/HEAD": ""})
        result = run("check", "--show-settings", "bad", "nowhere", ".", code=2)
        assert "did you mean `select`?" in result.stderr
        assert "nowhere: no such file or directory" in result.stderr
        assert table(result.stdout)["profile"] == "default"


class TestCombinations:
    @pytest.mark.parametrize(
        "other",
        [
            "--write-baseline=a.json",
            "--prune-baseline",
            "--add-noqa",
            "--silent",
            "--output-file=a",
            "--report=json=a",
        ],
    )
    def test_options_with_other_actions_are_rejected(self, other: str) -> None:
        write({"a.py": HAZARD})
        option = other.partition("=")[0]
        done = run("check", "--show-settings", other, code=2)
        assert done.stderr.endswith(f"Error: --show-settings cannot be used with {option}\n")

    def test_stdin_filename_selects_the_project(self) -> None:
        write({"pyproject.toml": "", "sub/pyproject.toml": '[tool.fsrace-lint]\nprofile = "strict"\n'})
        assert table(shown("--stdin-filename=sub/new.py", "-"))["profile"] == "strict"


class TestRoundTrip:
    @given(table=tables().filter(lambda made: "root" not in made))
    @hypothesis_settings(
        max_examples=bound(15, 60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    def test_output_loads_to_the_same_settings(self, tmp_path: Path, table: dict[str, Any]) -> None:
        directory = tmp_path / "project"
        if refusal(directory, table):
            return
        baseline.write(directory / "known.json", baseline.NONE)
        before = load(directory, rules.names())
        text = shown(str(directory))
        (directory / "pyproject.toml").write_text(text, "utf-8")
        after = load(directory, rules.names())
        assert after == before

    @pytest.mark.parametrize("odd", ["a, b", "\x7f", "\x1b[31m", "\u202e", "\U000e0001", '"', "é\\"])
    @given(rest=st.text(st.characters(exclude_categories=["Cs"]), max_size=3))
    @hypothesis_settings(
        max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    def test_special_characters_are_escaped(self, tmp_path: Path, odd: str, rest: str) -> None:
        text = f"x{odd}{rest.replace(chr(0), '')}"
        directory = tmp_path / "project"
        assert refusal(directory, {"shared-paths": [text]}) == ""
        output = shown(str(directory))
        assert table(output)["shared-paths"] == [text]
        assert not {"\x1b", "\u202e", "\x7f"} & set(output)
