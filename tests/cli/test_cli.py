"""The command line: options, output, messages and exit codes."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Final

import click
import pytest
from click.testing import CliRunner
from support import commands
from support.cli import HAZARD, reported, run, start, write

from fsrace_lint import __version__, catalog, rules
from fsrace_lint.catalog import CatalogError
from fsrace_lint.cli import main
from fsrace_lint.cli.terminal import is_colored
from fsrace_lint.pipeline import check, repair
from fsrace_lint.pipeline.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("here")

FIRST = (
    "warning[FSR101]: directory `'d'` is created by multiple processes after a separate existence check\n"
    " --> a.py:4:5\n"
)
MALFORMED = """
[[tool.fsrace-lint.catalog.guard]]
names = ["mylib.is_boss"]
scope = "global"

[[tool.fsrace-lint.catalog.guard]]
names = ["mylib.is_chief"]
scope = "gobal"
"""
COMMANDS = ("check", "fix", "rules", "explain", "programs")


SCENARIO = """
import os


def prepare(root, rank):
    if not os.path.isdir(root / "out"):
        os.mkdir(root / "out")


def save(root, rank):
    (root / "state").write_text("state")


def whole(root):
    assert not (root / "state").exists() or (root / "state").read_text() == "state"
"""


class TestHelp:
    def test_version_option(self) -> None:
        assert run("--version", code=0).stdout == f"fsrace-lint, version {__version__}\n"

    @pytest.mark.parametrize("arguments", [(), *[(name,) for name in COMMANDS]])
    def test_every_option_has_help(self, arguments: tuple[str, ...]) -> None:
        assert run(*arguments, "-h", code=0).stdout == run(*arguments, "--help", code=0).stdout
        command = commands.every()[arguments[0]] if arguments else main.main
        assert command.help
        for parameter in command.params:
            assert not isinstance(parameter, click.Option) or parameter.help, parameter.name

    @pytest.mark.parametrize("arguments", [[], ["cache"], ["daemon"]])
    def test_group_without_a_command_prints_help_in_lines(self, arguments: list[str]) -> None:
        output = CliRunner().invoke(main.main, arguments).output
        assert output.startswith("Usage: ")
        assert "\n  " in output
        assert "\\n" not in output

    def test_help_examples_run(self) -> None:
        write({"train.py": HAZARD, "data/a.py": HAZARD, "src/a.py": HAZARD})
        tried = 0
        for command in (main.main, *commands.every().values()):
            for line in (command.epilog or "").splitlines():
                if line.startswith("  fsrace-lint "):
                    words = line.partition("# ")[0].split()
                    # an earlier example may have fixed these files
                    write({"scenario.py": SCENARIO, "src/train.py": HAZARD})
                    assert start(*words[1:]).returncode in (0, 1), line
                    tried += 1
        assert tried > 10

    def test_module_runs_with_python_m(self) -> None:
        assert start("--help").stdout.startswith(b"Usage: fsrace-lint [OPTIONS] COMMAND")

    def test_installed_script_runs(self) -> None:
        script = Path(sys.executable).with_name("fsrace-lint")
        if not script.exists():
            pytest.skip("the package is not installed beside this Python")
        assert subprocess.run([script, "--version"], capture_output=True, check=True).stdout


class TestCheck:
    def test_text_report(self) -> None:
        write({"a.py": HAZARD})
        shown = run("check", code=1).stdout
        assert shown.startswith(FIRST)
        assert shown.splitlines()[-1] == "Found 1 warning in 1 file. 1 fixable with `fsrace-lint fix`."

    def test_clean_file_exits_0(self) -> None:
        write({"a.py": "x = 1\n"})
        assert run("check", ".", code=0).output == "No filesystem races found in 1 file.\n"

    def test_json_report(self) -> None:
        write({"a.py": HAZARD})
        result = run("check", "--format", "json", code=1)
        assert result.stderr == ""
        document = json.loads(result.stdout)
        assert [row["code"] for row in document["findings"]] == ["FSR101"]
        assert document["errors"] == []

    def test_github_report(self) -> None:
        write({"a.py": HAZARD})
        assert run("check", "--format=github", code=1).stdout.startswith("::warning file=a.py,line=4,")

    def test_statistics_option_prints_counts(self) -> None:
        write({"a.py": "x = 1\n"})
        assert "1  files-linked" in run("check", "--statistics", code=0).stdout

    def test_rank_check_in_an_unlisted_file_is_found(self) -> None:
        text = "import os\ndef prepare(d):\n    if not os.path.isdir(d):\n        os.mkdir(d)\n"
        caller = (
            "import torch.distributed as dist\nimport work\nif dist.get_rank() == 0:\n    work.prepare('d')\n"
        )
        write({"work.py": text, "train.py": caller})
        assert reported("work.py", code=0) == []
        Path("train.py").unlink()
        assert reported("work.py") == ["work.py:4 FSR101"]

    def test_file_passed_twice_is_reported_once(self) -> None:
        write({"a.py": HAZARD})
        assert reported("a.py", "a.py", ".", "./a.py") == ["a.py:4 FSR101"]

    def test_nested_project_uses_its_own_settings(self) -> None:
        write(
            {"a.py": HAZARD, "in/a.py": HAZARD, "in/pyproject.toml": "[tool.fsrace-lint]\nignore = ['ALL']"}
        )
        assert reported(".") == ["a.py:4 FSR101"]
        assert reported("in", code=0) == []
        assert reported("a.py", "in") == ["a.py:4 FSR101"]
        write({"in/pyproject.toml": ""})
        assert reported(".", "in") == ["a.py:4 FSR101", "in/a.py:4 FSR101"]

    def test_two_settings_files_with_one_root(self) -> None:
        table = "[tool.fsrace-lint]\nroot = '..'\n"
        write({"x/a.py": HAZARD, "x/pyproject.toml": table + "ignore = ['FSR101']", "y/a.py": HAZARD})
        write({"y/pyproject.toml": table})
        assert reported("x", "y") == ["y/a.py:4 FSR101"]

    def test_models_of_any_table_apply_to_the_project(self) -> None:
        text = "import os\nfrom lib import made\nif not os.path.exists('d'):\n    made('d')\n"
        table = "[tool.fsrace-lint]\nroot = '..'\n"
        entry = "catalog.effect = [{ names = ['lib.made'], op = 'mkdir', path = '0' }]\n"
        write({"x/a.py": text, "x/pyproject.toml": table, "y/a.py": text, "y/pyproject.toml": table + entry})
        assert reported("x", "y") == reported("x", ".") == ["x/a.py:4 FSR101", "y/a.py:4 FSR101"]


class TestShowSilenced:
    GUARDED: Final = 'import os\ndef prepare(rank):\n    if rank == 0:\n        os.mkdir("d")\n'
    LINE: Final = "a.py:4:9: not reported: guard: os.mkdir('d'): only one process runs this (line 3)"

    @staticmethod
    def listed(*arguments: str, code: int = 0) -> list[str]:
        rows = json.loads(run("check", "--format=json", "--show-silenced", *arguments, code=code).stdout)
        return [f"{row['path']}:{row['line']} {row['reason']}" for row in rows["silenced"]]

    def test_text(self) -> None:
        write({"a.py": self.GUARDED})
        assert run("check", "--show-silenced", code=0).stdout.splitlines() == [
            self.LINE,
            "Not reported: 1 call (1 guard).",
            "",
            "No filesystem races found in 1 file.",
        ]

    def test_json(self) -> None:
        write({"a.py": self.GUARDED})
        assert self.listed() == ["a.py:4 guard"]
        assert "silenced" not in json.loads(run("check", "--format=json", code=0).stdout)

    def test_other_format_is_an_error(self) -> None:
        write({"a.py": HAZARD})
        result = run("check", "--show-silenced", "--format=github", code=2)
        assert result.stdout == ""
        assert result.stderr.endswith(
            "Error: --show-silenced requires --output-format full, concise, grouped, trace, or json\n"
        )

    @pytest.mark.parametrize("form", ["text", "json"])
    def test_findings_and_exit_code_are_unchanged(self, form: str) -> None:
        write({"a.py": self.GUARDED, "b.py": HAZARD})
        run("check", "a.py", "--show-silenced", f"--format={form}", code=0)
        shown = run("check", "--show-silenced", f"--format={form}", code=1).stdout
        if form == "json":
            assert (
                json.loads(shown)["findings"]
                == json.loads(run("check", "--format=json", code=1).stdout)["findings"]
            )
        else:
            assert shown.startswith(FIRST.replace("a.py", "b.py"))

    def test_only_requested_files_are_listed(self) -> None:
        write({"a.py": self.GUARDED, "b.py": self.GUARDED})
        assert self.listed("b.py") == ["b.py:4 guard"]

    def test_multiple_projects_are_sorted(self) -> None:
        write(
            {"b/a.py": self.GUARDED, "b/pyproject.toml": "", "a/b.py": self.GUARDED, "a/pyproject.toml": ""}
        )
        assert self.listed("b", "a", "b/a.py") == ["a/b.py:4 guard", "b/a.py:4 guard"]
        lines = run("check", "--show-silenced", "b", "a", code=0).stdout.splitlines()
        assert lines[2:] == ["Not reported: 2 calls (2 guard).", "", "No filesystem races found in 2 files."]

    def test_project_with_invalid_settings_is_skipped(self) -> None:
        write({"a.py": self.GUARDED, "in/a.py": self.GUARDED, "in/pyproject.toml": MALFORMED})
        Path("in/.git").mkdir()
        assert self.listed("in", "a.py", code=2) == ["a.py:4 guard"]

    def test_output_file_contains_the_list(self) -> None:
        write({"a.py": self.GUARDED})
        assert run("check", "--show-silenced", "--output-file=report.txt", code=0).output == ""
        assert Path("report.txt").read_text().startswith(self.LINE + "\nNot reported: 1 call")

    def test_suppressed_and_strict_findings_are_listed(self) -> None:
        write({"a.py": HAZARD.rstrip() + "  # noqa: FSR101\n", "b.py": "open('r.json', 'w').write('x')\n"})
        assert self.listed() == ["a.py:4 suppressed", "b.py:1 strict"]
        assert self.listed("--profile=strict", code=1) == ["a.py:4 suppressed"]

    def test_unparsable_file_does_not_hide_other_files(self) -> None:
        write({"a.py": "if\n", "b.py": self.GUARDED})
        assert self.listed(code=0) == ["b.py:4 guard"]


class TestSelection:
    @pytest.mark.parametrize(
        "arguments",
        [
            ("--select=FSR2",),
            ("--select", "FSR103,FSR2", "--select", "unguarded-write"),
            ("--ignore=check-then-mkdir",),
            ("--ignore=fsr1",),
            ("--ignore", "FSR101 FSR103"),
        ],
    )
    def test_deselected_rules_are_not_reported(self, arguments: tuple[str, ...]) -> None:
        write({"a.py": HAZARD})
        assert reported(*arguments, code=0) == []

    def test_options_override_settings(self) -> None:
        write(
            {"a.py": HAZARD, "pyproject.toml": "[tool.fsrace-lint]\nselect = ['FSR2']\nignore = ['FSR1']\n"}
        )
        assert reported(code=0) == []
        assert reported("--extend-select=FSR101") == ["a.py:4 FSR101"]
        assert reported("--select=FSR101") == ["a.py:4 FSR101"]

    def test_profile_option(self) -> None:
        write({"tool.py": "open('results.json', 'w').write('x')\n"})
        assert reported(code=0) == []
        assert reported("--profile=strict") == ["tool.py:1 FSR201"]
        assert (
            "`pedantic` is not one of `default`, `strict`"
            in run("check", "--profile=pedantic", code=2).stderr
        )

    @pytest.mark.parametrize("rule", ["FSR101", "FSR2", "FSR003"])
    def test_unreadable_source_is_reported_whatever_is_selected(
        self, rule: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write({"a.py": "def f(:\n"})
        Path("b.py").write_bytes(b"'\xff'\n")
        assert reported("--select", rule, code=0) == ["a.py:1 FSR001", "b.py:1 FSR001"]
        assert reported("--ignore=FSR001", code=0) == []
        assert reported("--select=FSR001,FSR1", "--ignore=FSR0", "a.py") == ["a.py:1 FSR001"]
        write({"pyproject.toml": "[tool.fsrace-lint.per-file-ignores]\n'a.py' = ['unreadable-source']"})
        assert reported("--select", rule, code=0) == ["b.py:1 FSR001"]

    def test_rule_crash_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def failing(project: object) -> Iterator[Any]:
            raise KeyError("oh no")

        broken = [
            rules.LoadedRule(
                loaded.rule, loaded.page, failing if loaded.rule.code == "FSR201" else loaded.check
            )
            for loaded in rules.load()
        ]
        monkeypatch.setattr(rules, "load", lambda: tuple(broken))
        write({"a.py": HAZARD})
        assert reported(code=2) == ["a.py:1 FSR002", "a.py:4 FSR101"]
        assert reported("--select=FSR2", code=2) == ["a.py:1 FSR002"]
        assert reported("--ignore=FSR002", code=2) == ["a.py:4 FSR101"]
        assert reported("--select=FSR101") == ["a.py:4 FSR101"]
        assert "Error: a.py: FSR201 failed: KeyError: 'oh no'" in run("check", code=2).stderr


class TestFiles:
    FILES: Final = ("a.py", "build/b.py", "tests/c.py", "old/d.py", "ignored/e.py", "script")

    @pytest.fixture(autouse=True)
    def files(self, here: Path) -> None:
        write({**dict.fromkeys(self.FILES, HAZARD), ".gitignore": "ignored/\n"})
        write({"pyproject.toml": "[tool.fsrace-lint]\nextend-exclude = ['old']\n"})

    def named(self, *arguments: str) -> list[str]:
        result = run("check", "--format=json", *arguments, code=1)
        return [row["path"] for row in json.loads(result.stdout)["findings"]]

    def test_exclusions_skip_files(self) -> None:
        assert self.named(".") == ["a.py"]
        assert self.named("--exclude=a.py,tests") == ["build/b.py"]
        assert self.named("--include-tests", "--extend-exclude", "a.*") == ["tests/c.py"]

    def test_explicit_paths_override_exclusions(self) -> None:
        assert self.named(*self.FILES) == sorted(self.FILES)
        assert self.named("tests", "build", "old") == ["build/b.py", "old/d.py", "tests/c.py"]

    def test_force_exclude_skips_explicit_paths(self) -> None:
        assert self.named("--force-exclude", *self.FILES) == ["a.py", "script"]
        assert self.named("--force-exclude", "--include-tests", "tests", "build", "ignored") == ["tests/c.py"]
        assert self.named("--force-exclude", ".") == ["a.py"]
        assert self.named("--force-exclude", "--exclude=a.py", *self.FILES) == ["build/b.py", "script"]

    def test_force_exclude_that_leaves_no_files_names_the_settings(self) -> None:
        result = run("check", "--force-exclude", "tests/c.py", "old", "build/b.py", "ignored", code=0)
        assert result.stdout == ""
        assert result.stderr.endswith(
            "Skipped: 1 test or documentation (see `--include-tests`), 1 excluded by `extend-exclude`,"
            " 1 excluded by the default of `exclude`, 1 excluded by `.gitignore`."
            " `--verbose` lists each skipped path.\n"
        )
        quiet = run("check", "--force-exclude", "--quiet", "old", code=0)
        assert (quiet.stdout, quiet.stderr) == ("", "")

    def test_fix_accepts_the_same_options(self) -> None:
        run("fix", "--force-exclude", *self.FILES, code=0)
        assert [name for name in self.FILES if Path(name).read_text() != HAZARD] == ["a.py", "script"]


class TestFix:
    def test_file_is_rewritten(self) -> None:
        write({"a.py": HAZARD})
        result = run("fix", code=0)
        assert (result.stdout, result.stderr) == ("", "Fixed 1 finding in 1 file. 0 remaining.\n")
        assert "exist_ok=True" in Path("a.py").read_text()
        assert run("fix", code=0).stderr == "Fixed 0 findings in 0 files. 0 remaining.\n"

    def test_diff_does_not_write(self) -> None:
        write({"a.py": HAZARD})
        result = run("fix", "--diff", code=1)
        assert result.stdout.startswith("--- a/a.py\n+++ b/a.py\n@@")
        assert result.stderr == "Would fix 1 finding in 1 file. 0 remaining.\n"
        assert Path("a.py").read_text() == HAZARD
        assert run("fix", "--diff", "--select=FSR2", code=0).stdout == ""

    def test_unsafe_fixes_require_the_option(self) -> None:
        text = "import os\nimport torch.distributed as dist\nprint(dist.get_rank())\nos.makedirs('d/e')\n"
        write({"a.py": text})
        assert run("fix", code=1).stderr == (
            "Fixed 0 findings in 0 files. 1 remaining (up to 1 fixable with `--unsafe-fixes`).\n"
        )
        run("fix", "--unsafe-fixes", code=0)
        assert "exist_ok=True" in Path("a.py").read_text()

    def test_fix_that_cannot_be_written_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write({"a.py": HAZARD})
        monkeypatch.setattr(repair, "write", lambda *_: "is read-only")
        assert run("fix", code=1).stderr.splitlines() == [
            "a.py:4:5: FSR101 not fixed: the file is read-only",
            "Fixed 0 findings in 0 files. 1 remaining.",
        ]

    def test_diff_keeps_the_file_encoding(self) -> None:
        Path("a.py").write_bytes(b"# coding: latin-1\n# \xe9\n" + HAZARD.encode())
        assert b"\n # \xe9\n" in start("fix", "--diff").stdout


class TestRules:
    def test_columns_are_aligned(self) -> None:
        lines = run("rules", code=0).stdout.splitlines()
        assert len(lines) == len(rules.load())
        assert len({line.index(loaded.title) for line, loaded in zip(lines, rules.load(), strict=True)}) == 1

    @pytest.mark.parametrize("rule", ["FSR101", "fsr101", "check-then-mkdir", "Check-Then-Mkdir"])
    def test_explain_accepts_codes_and_names(self, rule: str) -> None:
        page = run("explain", rule, code=0).stdout
        assert page.startswith("FSR101 check-then-mkdir\n\n")
        assert "Bad:" in page

    @pytest.mark.parametrize("loaded", rules.load(), ids=lambda loaded: loaded.rule.code)
    def test_explain_prints_every_rule(self, loaded: rules.LoadedRule) -> None:
        assert loaded.title in run("explain", loaded.rule.name, code=0).stdout

    @pytest.mark.parametrize(
        ("rule", "message"),
        [
            ("FSR101x", "unknown rule `FSR101x`; did you mean `FSR101`"),
            ("check-then-mkdr", "unknown rule `check-then-mkdr`; did you mean `check-then-mkdir`?"),
            ("FSR999", "unknown rule `FSR999`; "),
            ("nonsense", "unknown rule `nonsense`; run `fsrace-lint rules` to list all rules"),
            ("", "Error: pass at least one rule; run `fsrace-lint rules` to list all rules\n"),
        ],
    )
    def test_explain_unknown_rule_is_an_error(self, rule: str, message: str) -> None:
        assert message in run("explain", rule, code=2).stderr


class TestUsageErrors:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("chek",), "No such command `chek`; did you mean `check`?"),
            (("a.py",), "No such command `a.py`; did you mean `check a.py`?"),
            (("frobnicate",), "No such command `frobnicate`."),
            (("cache", "frobnicate"), "No such command `frobnicate`."),
            (("explain", "FSR77"), "Error: unknown rule `FSR77`; run"),
            (("check", "--selct=FSR1"), "No such option `--selct`; did you mean `--select`?"),
            (
                ("check", "--select=FSR77"),
                "--select: unknown rule `FSR77`; run `fsrace-lint rules` to list all rules",
            ),
            (("check", "--ignore=check-then-mkdri"), "did you mean `check-then-mkdir`?"),
            (("check", "--extend-exclude=[z-a]"), "`[z-a]` is a malformed pattern"),
            (("check", "--format=xml"), "`xml` is not one of"),
            (("check", "--output-file=."), "is a directory"),
            (("fix", "--format=json"), "--format"),
            (("explain",), "pass at least one rule, or --all"),
        ],
    )
    def test_usage_error_exits_2_with_a_message(self, arguments: tuple[str, ...], message: str) -> None:
        write({"a.py": HAZARD})
        result = run(*arguments, code=2)
        assert result.stdout == ""
        assert message in result.stderr


class TestFailures:
    def test_internal_error_is_one_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def failing(self: Run) -> None:
            raise ValueError("two\nlines")

        monkeypatch.setattr(Run, "link", failing)
        write({"a.py": HAZARD})
        result = run("check", code=2)
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1
        assert result.stderr.startswith("Error: internal error: ValueError: two lines (test_cli.py:")
        assert result.stderr.endswith("Please report it with the traceback that `FSRACE_DEBUG=1` prints.\n")

    def test_internal_error_is_raised_with_fsrace_debug(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def failing(self: Run) -> None:
            raise ValueError("oh no")

        monkeypatch.setattr(Run, "link", failing)
        monkeypatch.setenv("FSRACE_DEBUG", "1")
        write({"a.py": HAZARD})
        result = CliRunner().invoke(main.main, ["check"])
        assert isinstance(result.exception, ValueError)

    def test_invalid_model_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def failing(*arguments: object) -> None:
            raise CatalogError("x.toml: effect `a.b`: oh no")

        monkeypatch.setattr(catalog, "validate", failing)
        barrier = '[[tool.fsrace-lint.catalog.barrier]]\nnames = ["x.y"]\n'
        write({"a.py": HAZARD, "pyproject.toml": barrier})
        assert run("check", code=2).stderr == "Error: x.toml: effect `a.b`: oh no\n"

    @pytest.mark.parametrize("files", [{"a.py": HAZARD}, {}], ids=["one file", "no file"])
    @pytest.mark.parametrize("command", [("check",), ("check", "--format=json"), ("fix",), ("fix", "--diff")])
    def test_malformed_user_model_is_an_error(self, command: tuple[str, ...], files: dict[str, str]) -> None:
        write({**files, "pyproject.toml": MALFORMED})
        place = f"{Path.cwd() / 'pyproject.toml'}: `tool.fsrace-lint.catalog`: [[guard]] number 2"
        errors = [row for row in run(*command, code=2).stderr.splitlines() if row.startswith("Error: ")]
        assert errors == [f"Error: {place}: `scope`: unknown value `gobal`; did you mean `global`?"]
        assert {name: Path(name).read_text("utf-8") for name in files} == files

    def test_malformed_model_stops_only_its_own_project(self) -> None:
        write({"a.py": HAZARD, "in/a.py": HAZARD, "in/pyproject.toml": MALFORMED})
        Path("in/.git").mkdir()
        assert reported("in", "a.py", code=2) == ["a.py:4 FSR101"]
        assert run("check", "in", "a.py", code=2).stdout.startswith(FIRST)

    def test_keyboard_interrupt_exits_130(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*arguments: object, **options: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(check, "check", interrupted)
        assert run("check", code=130).output == ""

    @pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX does")
    def test_sigint_exits_130(self) -> None:
        program = """
            import os, signal
            from fsrace_lint.cli import main
            from fsrace_lint.pipeline import check

            # background jobs of a shell start with SIGINT ignored
            signal.signal(signal.SIGINT, signal.default_int_handler)
            check.check = lambda *arguments, **options: os.kill(os.getpid(), signal.SIGINT)
            main.main(["check"])
            """
        command = [sys.executable, "-c", dedent(program)]
        done = subprocess.run(command, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr.strip()) == (130, b"", b"")


class TestOutput:
    @pytest.mark.skipif(os.name != "posix", reason="pipes as POSIX has them")
    @pytest.mark.parametrize(
        "command", [("check",), ("check", "--format=json"), ("fix", "--diff"), ("rules",)]
    )
    def test_closed_pipe_is_not_an_error(self, command: tuple[str, ...]) -> None:
        write({f"a{number}.py": HAZARD * 50 for number in range(4)})
        expected = start(*command).returncode
        reading, writing = os.pipe()
        os.close(reading)
        done = start(*command, stdout=writing, stderr=subprocess.PIPE)
        os.close(writing)
        assert done.returncode == expected
        assert b"rror" not in done.stderr.replace(b"Would fix", b"")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_full_disk_is_an_error(self) -> None:
        write({"a.py": HAZARD})
        with Path("/dev/full").open("w") as full:
            done = start("check", stdout=full, stderr=subprocess.PIPE)
        assert done.returncode == 2
        assert done.stderr == b"Error: cannot write to standard output: No space left on device\n"

    @pytest.mark.skipif(os.name != "posix", reason="the shell closes it")
    def test_closed_stdout_keeps_the_exit_code(self) -> None:
        write({"a.py": HAZARD})
        shell = f"exec '{sys.executable}' -m fsrace_lint check >&-"
        done = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (1, b"")

    @pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
    def test_unencodable_characters_are_not_an_error(self, encoding: str) -> None:
        write({"é☃.py": HAZARD.replace('"d"', '"☃é"')})
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        done = start("check", env=environment)
        assert done.returncode == 1
        assert "FSR101" in done.stdout.decode(encoding)
        assert done.stderr == b""
        assert start("explain", "FSR003", env=environment).stderr == b""
        assert start("rules", env=environment).stderr == b""

    def test_output_file_receives_the_report(self) -> None:
        write({"a.py": HAZARD, "report.json": "old"})
        result = run("check", "--format=json", "--output-file=report.json", code=1)
        assert result.output == ""
        assert json.loads(Path("report.json").read_text())["findings"]
        assert sorted(file.name for file in Path().iterdir()) == [
            ".fsrace_cache",
            "a.py",
            "pyproject.toml",
            "report.json",
        ]

    def test_output_file_includes_errors(self) -> None:
        run("check", "missing.py", "--output-file=report.txt", code=2)
        assert "missing.py: error: no such file or directory\n" in Path("report.txt").read_text()

    @pytest.mark.skipif(os.name != "posix", reason="needs symbolic links and devices")
    def test_output_file_keeps_links_and_devices(self) -> None:
        write({"a.py": HAZARD, "real/report.txt": "old"})
        Path("link").symlink_to("real/report.txt")
        run("check", "--output-file=link", code=1)
        assert Path("link").is_symlink()
        assert Path("real/report.txt").read_text().startswith(FIRST)
        assert [file.name for file in Path("real").iterdir()] == ["report.txt"]
        before = Path(os.devnull).stat().st_mode
        run("check", f"--output-file={os.devnull}", code=1)
        assert stat.S_ISCHR(before)
        assert Path(os.devnull).stat().st_mode == before
        assert start("check", "--output-file=/dev/stdout").stdout.startswith(FIRST.encode())

    @pytest.mark.parametrize("name", ["missing/report.txt", "a.py/report.txt"])
    def test_unwritable_output_file_is_an_error(self, name: str) -> None:
        write({"a.py": HAZARD})
        result = run("check", "--output-file", name, code=2)
        assert result.stderr.startswith(f"Error: cannot write {name}: ")
        assert result.stdout == ""


class TestColor:
    @pytest.mark.parametrize(
        ("environment", "terminal", "expected"),
        [
            ({}, True, True),
            ({}, False, False),
            ({"NO_COLOR": "1"}, True, False),
            ({"NO_COLOR": ""}, True, True),
            ({"TERM": "dumb"}, True, False),
            ({"TERM": "xterm"}, False, False),
            ({"FORCE_COLOR": "1"}, False, True),
            ({"FORCE_COLOR": ""}, False, False),
            ({"FORCE_COLOR": "1", "TERM": "dumb"}, False, True),
            ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ],
    )
    def test_environment_controls_color(
        self, environment: dict[str, str], terminal: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
        assert is_colored(None) is expected
        assert is_colored(True) is True
        assert is_colored(False) is False

    def test_color_options_override_the_environment(self) -> None:
        write({"a.py": HAZARD})
        environment = {**os.environ, "FORCE_COLOR": "1"}
        for command in (["check"], ["fix", "--diff"]):
            assert b"\x1b[" in start(*command, env=environment).stdout
            assert b"\x1b[" in start(*command, "--color").stdout
            assert b"\x1b[" not in start(*command, "--no-color", env=environment).stdout
            assert b"\x1b[" not in start(*command).stdout
        start("check", "--color", "--output-file=report.txt")
        assert "\x1b" not in Path("report.txt").read_text()

    @pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
    def test_terminal_output_is_colored(self) -> None:
        import pty

        write({"a.py": HAZARD})
        main, other = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "fsrace_lint", "check"],
            stdout=other,
            stderr=other,
            env={**os.environ, "TERM": "xterm"},
        ) as process:
            os.close(other)
            shown = b""
            # a slow machine prints a progress bar first
            while b"a.py:4:5\x1b" not in shown and (more := os.read(main, 1000)):
                shown += more
            process.send_signal(signal.SIGKILL)
        os.close(main)
        assert b" --> \x1b[0m\x1b[1ma.py:4:5\x1b[0m\r\n" in shown
