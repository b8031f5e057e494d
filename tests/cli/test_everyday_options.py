"""Options that users of other linters expect: exit codes, comments, files, and environment variables."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import HAZARD, reported, run, write

from fsrace_lint import __version__
from fsrace_lint.cli.commands.grouped_options import VARIABLES

CLEAN = "import os\n\nos.makedirs('d', exist_ok=True)\n"
EACH = ["a.py:4 FSR101", "lib/b.py:4 FSR101"]


@pytest.fixture(autouse=True)
def hazards(here: Path) -> None:
    write({"a.py": HAZARD, "lib/b.py": HAZARD})


class TestExitCode:
    @pytest.mark.parametrize("option", ["-e", "--exit-zero"])
    def test_zero_with_findings(self, option: str) -> None:
        assert reported(option, code=0) == EACH

    def test_failure_of_the_run_remains_a_failure(self) -> None:
        assert "missing.py: no such file" in run("check", "--exit-zero", "missing.py", code=2).stderr

    def test_zero_with_a_diff(self) -> None:
        assert "+++" in run("check", "--diff", "--exit-zero", code=0).stdout
        assert "+++" in run("check", "--diff", code=1).stdout

    def test_changed_file_fails_on_request(self) -> None:
        run("check", "--fix", "--exit-non-zero-on-fix", "a.py", code=1)
        assert Path("a.py").read_text() != HAZARD
        run("check", "--fix", "--exit-non-zero-on-fix", "a.py", code=0)
        run("check", "--fix", "lib", code=0)

    def test_changed_file_fails_with_exit_zero_too(self) -> None:
        run("check", "--fix", "--exit-non-zero-on-fix", "--exit-zero", "a.py", code=1)

    def test_fixes_are_required(self) -> None:
        done = run("check", "--exit-non-zero-on-fix", code=2)
        assert "--exit-non-zero-on-fix requires --fix" in done.stderr


class TestIgnoreNoqa:
    @pytest.fixture(autouse=True)
    def suppressed(self, hazards: None) -> None:
        lines = HAZARD.splitlines()
        lines[3] += "  # noqa: FSR101"
        write({"a.py": "\n".join([*lines, ""]), "lib/b.py": f"# flake8: noqa\n{HAZARD}"})

    def test_comments_have_no_effect(self) -> None:
        assert reported(code=0) == []
        assert reported("--ignore-noqa") == ["a.py:4 FSR101", "lib/b.py:5 FSR101"]
        assert reported(code=0) == []

    def test_unused_comments_are_not_reported(self) -> None:
        write({"lib/b.py": "x = 1  # noqa: FSR101\n"})
        assert reported() == ["lib/b.py:1 FSR003"]
        assert reported("--ignore-noqa") == ["a.py:4 FSR101"]

    def test_comments_cannot_be_added(self) -> None:
        done = run("check", "--ignore-noqa", "--add-noqa", code=2)
        assert "--ignore-noqa cannot be used with --add-noqa" in done.stderr


class TestPerFileIgnores:
    def test_rules_are_disabled_in_matching_files(self) -> None:
        assert reported("--per-file-ignores=lib/*:FSR101") == EACH[:1]
        assert reported("--per-file-ignores", "a.py:check-then-mkdir, lib/*:FSR2") == EACH[1:]
        assert reported("--per-file-ignores=*.py:FSR", code=0) == []

    def test_setting_is_replaced(self) -> None:
        write({"pyproject.toml": '[tool.fsrace-lint.per-file-ignores]\n"a.py" = ["FSR"]\n'})
        assert reported() == EACH[1:]
        assert reported("--per-file-ignores=lib/*:FSR") == EACH[:1]

    def test_pattern_is_relative_to_the_root_below_other_settings(self) -> None:
        write({"lib/pyproject.toml": '[tool.fsrace-lint.per-file-ignores]\n"b.py" = ["FSR"]\n'})
        assert reported() == EACH[:1]
        assert reported("--per-file-ignores=a.py:FSR") == EACH[1:]
        assert reported("--per-file-ignores=lib/b.py:FSR") == EACH[:1]
        assert reported("--per-file-ignores=b.py:FSR1") == EACH[:1]
        assert reported("--per-file-ignores=lib/c.py:FSR1") == EACH

    @pytest.mark.parametrize("text", ["a.py", ":FSR101", "a.py:", "a.py: "])
    def test_malformed_pair(self, text: str) -> None:
        assert "is not of the form GLOB:RULE" in run("check", "--per-file-ignores", text, code=2).stderr

    def test_unknown_rule_and_invalid_pattern(self) -> None:
        done = run("check", "--per-file-ignores=a.py:FSR777", code=2)
        assert "--per-file-ignores: unknown rule `FSR777`" in done.stderr
        done = run("check", "--per-file-ignores=[z-a]:FSR1", code=2)
        assert "--per-file-ignores: `[z-a]` is a malformed pattern" in done.stderr


class TestShowFiles:
    def test_files_to_check_are_listed(self, here: Path) -> None:
        write({"setup.cfg": "", "tests/test_a.py": HAZARD, "lib/c.pyi": ""})
        paths = [f"{here.resolve() / name}" for name in ("a.py", "lib/b.py")]
        listed = run("check", "--show-files", code=0).stdout.splitlines()
        assert [path for path in listed if not path.endswith(".pyi")] == paths
        assert run("check", "--show-files", "lib/b.py", code=0).stdout.splitlines() == paths[1:]
        assert run("check", "--show-files", "--exclude=lib", code=0).stdout.splitlines() == paths[:1]

    def test_nothing_is_analyzed(self) -> None:
        write({"a.py": "def"})
        run("check", "--show-files", code=0)
        assert not Path(".fsrace_cache").exists()

    def test_missing_path(self) -> None:
        done = run("check", "--show-files", "missing.py", code=2)
        assert (done.stdout, done.stderr) == ("", "Error: missing.py: no such file or directory\n")

    @pytest.mark.parametrize(
        "other",
        ["--fix", "--diff", "--add-noqa", "--prove=1", "--statistics", "--show-settings", "--output-file=f"],
    )
    def test_options_with_other_actions_are_rejected(self, other: str) -> None:
        done = run("check", "--show-files", other, code=2)
        assert f"--show-files cannot be used with {other.partition('=')[0]}" in done.stderr


class TestShortNames:
    def test_version(self) -> None:
        assert run("-V", code=0).stdout == f"fsrace-lint, version {__version__}\n"

    def test_no_cache_and_output_file(self) -> None:
        run("check", "-n", "-o", "report.txt", code=1)
        assert not Path(".fsrace_cache").exists()
        assert "FSR101" in Path("report.txt").read_text()


class TestEnvironmentVariables:
    @pytest.mark.parametrize(
        ("name", "value", "holds"),
        [
            ("OUTPUT_FORMAT", "json", lambda text: text.startswith("{")),
            ("OUTPUT_FILE", "the report:1.txt", lambda _: Path("the report:1.txt").is_file()),
            ("CACHE_DIR", "kept", lambda _: Path("kept").is_dir()),
            ("NO_CACHE", "1", lambda _: not Path(".fsrace_cache").exists()),
            ("PROFILE", "strict", lambda text: "FSR105" in text),
            ("JOBS", "1", lambda text: "FSR101" in text),
            ("DAEMON", "0", lambda text: "FSR101" in text),
        ],
    )
    def test_variable_has_the_effect_of_the_option(
        self, monkeypatch: pytest.MonkeyPatch, name: str, value: str, holds: object
    ) -> None:
        write({"a.py": f"{HAZARD}os.mkdir('e')\n"})
        text = run("check", code=1).stdout
        assert f"FSRACE_LINT_{name}" in VARIABLES.values()
        Path(".fsrace_cache").rename("before")
        assert name in {"JOBS", "DAEMON", "NO_CACHE"} or not holds(text)  # type: ignore[operator]
        monkeypatch.setenv(f"FSRACE_LINT_{name}", value)
        assert holds(run("check", code=1).stdout)  # type: ignore[operator]

    def test_option_takes_precedence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FSRACE_LINT_OUTPUT_FORMAT", "json")
        assert run("check", "--output-format=concise", code=1).stdout.startswith("a.py:4:")

    def test_invalid_value(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FSRACE_LINT_JOBS", "many")
        assert "`many` is not `auto` or a number" in run("check", code=2).stderr

    def test_other_commands_are_not_affected(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FSRACE_LINT_OUTPUT_FORMAT", "sarif")
        run("prove", "a.py::missing", code=2)
        assert run("fix", "--diff", code=1).stdout.startswith("---")
