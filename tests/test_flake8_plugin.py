"""The plugin in the real flake8: its findings and files, compared with the command line."""

from __future__ import annotations

import argparse
import ast
import gc
import json
import multiprocessing
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from textwrap import dedent
from typing import TYPE_CHECKING, ClassVar

import pytest
from support import ROOT, template

from fsrace_lint import rules
from fsrace_lint.cli.daemon.findings import DaemonFinding
from fsrace_lint.config import settings
from fsrace_lint.flake8_plugin import Plugin
from fsrace_lint.pipeline.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fsrace_lint.report import Problem

HAZARD = 'import os\n\nif not os.path.exists("d"):\n    os.mkdir("d")\n'
MESSAGE = "FSR101 directory `'d'` is created by multiple processes after a separate existence check"

GUARDED_ELSEWHERE = {
    "work.py": """
        import os


        def prepare(out):
            if not os.path.exists(out):
                os.makedirs(out)
        """,
    "train.py": """
        import torch.distributed as dist

        from work import prepare


        def main(out):
            if dist.get_rank() == 0:
                prepare(out)
            dist.barrier()


        main("out")
        """,
}
UNGUARDED_ELSEWHERE = {
    **GUARDED_ELSEWHERE,
    "train.py": """
        import torch.distributed as dist

        from work import prepare


        def main(out):
            print(dist.get_rank())
            prepare(out)


        main("out")
        """,
}
SEVERAL = {
    **UNGUARDED_ELSEWHERE,
    "package/__init__.py": "",
    "package/à la carte.py": 'import os\nname = "é"; os.path.exists(name) or os.mkdir(name)\n',
    "package/crlf.py": HAZARD.replace("\n", "\r\n"),
    "package/bom.py": "\ufeff" + HAZARD,
    "package/unused.py": HAZARD + "x = 1  # noqa: FSR101\ny = 1  # noqa: E501, FSR201\n",
    "package/silenced.py": HAZARD.replace('mkdir("d")', 'mkdir("d")  # noqa: FSR101'),
    "tests/test_it.py": HAZARD,
    "test_top.py": f"import pytest\n{HAZARD}",
    "build/lib.py": HAZARD,
    "ignored/it.py": HAZARD,
    ".gitignore": "/ignored/\n",
    "tools/old.py": HAZARD,
}
TABLE = '[tool.fsrace-lint]\nextend-exclude = ["old.py"]\n'


def project(directory: Path, files: dict[str, str], table: str = TABLE) -> Path:
    for name, text in {"pyproject.toml": table, **files}.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(dedent(text).lstrip("\n").encode())
    return directory


def flake8(
    directory: Path, *arguments: str, text: str | None = None, jobs: int = 1
) -> subprocess.CompletedProcess[str]:
    # a daemon must be started by a new interpreter
    program = (
        [sys.executable, "-m", "flake8"] if "--fsrace-daemon" in arguments else template.command("flake8")
    )
    command = [*program, "--isolated", f"--jobs={jobs}", *arguments]
    return subprocess.run(
        command,
        cwd=directory,
        input=text,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )


def reported(directory: Path, *arguments: str, text: str | None = None, jobs: int = 1) -> list[str]:
    done = flake8(directory, "--select=FSR", *(arguments or (".",)), text=text, jobs=jobs)
    assert done.stderr == ""
    assert done.returncode == (1 if done.stdout else 0)
    return sorted(line.removeprefix("./") for line in done.stdout.splitlines())


def checked(directory: Path, *arguments: str) -> list[str]:
    command = [*template.command("fsrace_lint"), "check", "--format", "json", *arguments]
    done = subprocess.run(command, cwd=directory, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return sorted(
        "{path}:{line}:{column}: {code} {message}".format(**row)
        for row in json.loads(done.stdout)["findings"]
    )


def test_plugin_reports_the_message(tmp_path: Path) -> None:
    project(tmp_path, {"a.py": HAZARD})
    assert reported(tmp_path) == [f"a.py:4:5: {MESSAGE}"]


def test_flake8_shows_the_plugin_and_its_option(tmp_path: Path) -> None:
    assert "fsrace-lint: " in flake8(tmp_path, "--version").stdout
    assert "--fsrace-profile {default,strict}" in flake8(tmp_path, "--help").stdout


def test_plugin_imports_neither_the_codemod_nor_the_command_line() -> None:
    code = "import sys, fsrace_lint.flake8_plugin; print({'libcst', 'rich', 'click'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_no_garbage_collection_while_the_plugin_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linking and checking create only objects that stay, so that each collection would be in vain."""
    project(tmp_path, {"a.py": HAZARD})
    monkeypatch.chdir(tmp_path)
    for name in ("profile", "noqa", "stdin", "named", "daemon_findings"):
        monkeypatch.setattr(Plugin, name, getattr(Plugin, name))
    seen: list[bool] = []
    link, check_file = Run.link, Run.check_file

    def linking(run: Run) -> object:
        seen.append(gc.isenabled())
        return link(run)

    def checking(run: Run, relative: str, problems: list[Problem]) -> object:
        seen.append(gc.isenabled())
        return check_file(run, relative, problems)

    monkeypatch.setattr(Run, "link", linking)
    monkeypatch.setattr(Run, "check_file", checking)
    Plugin.parse_options(
        argparse.Namespace(
            fsrace_profile=None,
            fsrace_daemon=False,
            disable_noqa=False,
            stdin_display_name=None,
            filenames=["a.py"],
        )
    )
    rows = list(Plugin(ast.parse(HAZARD), "a.py", HAZARD.splitlines(keepends=True)).run())
    assert len(rows) == 1
    assert len(seen) >= 2
    assert not any(seen)
    assert gc.isenabled()


class TestLinking:
    def test_rank_check_in_another_file_is_used(self, tmp_path: Path) -> None:
        project(tmp_path, GUARDED_ELSEWHERE)
        assert reported(tmp_path) == []
        assert reported(tmp_path, "work.py") == []

    def test_no_rank_check_in_the_other_file(self, tmp_path: Path) -> None:
        project(tmp_path, UNGUARDED_ELSEWHERE)
        assert [row[:18] for row in reported(tmp_path, "work.py")] == ["work.py:6:9: FSR10"]

    def test_project_is_found_from_the_file(self, tmp_path: Path) -> None:
        project(tmp_path / "inner", GUARDED_ELSEWHERE)
        (tmp_path / "outside.py").write_text(HAZARD)
        assert reported(tmp_path, "inner/work.py", "outside.py") == [f"outside.py:4:5: {MESSAGE}"]

    def test_absolute_path(self, tmp_path: Path) -> None:
        project(tmp_path, {"a.py": HAZARD})
        assert reported(tmp_path, str(tmp_path / "a.py")) == [f"{tmp_path}/a.py:4:5: {MESSAGE}"]

    def test_nested_projects(self, tmp_path: Path) -> None:
        """The nearest table applies, whatever the arguments are."""
        project(tmp_path, {"a.py": HAZARD})
        project(tmp_path / "inner", {"b.py": HAZARD}, '[tool.fsrace-lint]\nignore = ["FSR101"]\n')
        for named, count in ((["."], 1), (["a.py", "inner"], 1), (["inner/b.py"], 0)):
            expected = checked(tmp_path, *named)
            assert len(expected) == count
            assert reported(tmp_path, *named) == expected

    def test_unparsable_file_loses_only_its_own_guards(self, tmp_path: Path) -> None:
        project(tmp_path, {**GUARDED_ELSEWHERE, "a.py": HAZARD, "broken.py": "def f(:\n"})
        assert reported(tmp_path) == [f"a.py:4:5: {MESSAGE}"]


class TestSameAsCommandLine:
    @pytest.mark.parametrize("jobs", [1, 2])
    @pytest.mark.parametrize("profile", ["default", "strict"])
    def test_multiple_files(self, profile: str, jobs: int, tmp_path: Path) -> None:
        project(tmp_path, SEVERAL)
        expected = checked(tmp_path, "--profile", profile, ".")
        assert {row.partition(":")[0] for row in expected} == {
            "work.py",
            "package/à la carte.py",
            "package/crlf.py",
            "package/bom.py",
            "package/unused.py",
        }
        assert reported(tmp_path, f"--fsrace-profile={profile}", ".", jobs=jobs) == expected

    @pytest.mark.parametrize(
        "table",
        [
            "[tool.fsrace-lint]\ninclude-tests = true\nrespect-gitignore = false\n",
            '[tool.fsrace-lint]\nselect = ["FSR003"]\n',
            '[tool.fsrace-lint]\nignore = ["FSR003", "check-then-mkdir"]\n',
            '[tool.fsrace-lint]\nper-file-ignores = {"package/" = ["ALL"], "tools/" = ["FSR1"]}\n',
            '[tool.fsrace-lint]\nexclude = ["package/"]\nprofile = "strict"\n',
            '[tool.fsrace-lint]\nroot = "."\n',
            "",
        ],
    )
    def test_project_settings(self, table: str, tmp_path: Path) -> None:
        project(tmp_path, SEVERAL, table)
        assert reported(tmp_path) == checked(tmp_path, ".")

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_project_catalog(self, jobs: int, tmp_path: Path) -> None:
        table = '[[tool.fsrace-lint.catalog.guard]]\nnames = ["mylib.is_boss"]\nscope = "global"\n'
        body = 'if not os.path.exists("d"):\n    os.mkdir("d")\n'.replace("\n", "\n    ")
        guarded = f"import os\nfrom mylib import is_boss\nif is_boss():\n    {body.rstrip()}\n"
        project(tmp_path, {"a.py": guarded, "b.py": HAZARD}, table)
        assert reported(tmp_path, jobs=jobs) == checked(tmp_path, ".") == [f"b.py:4:5: {MESSAGE}"]

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_examples(self, jobs: int, tmp_path: Path) -> None:
        shutil.copytree(ROOT / "examples", tmp_path / "examples")
        expected = checked(tmp_path, "--profile", "strict", "examples")
        assert len(expected) > 5
        assert reported(tmp_path, "--fsrace-profile=strict", "examples", jobs=jobs) == expected

    def test_order_of_files_does_not_matter(self) -> None:
        """flake8 distributes the files to its processes in an arbitrary order."""
        directory = ROOT / "examples"
        chosen = settings.with_overrides(settings.load(directory, rules.names()), profile="strict")
        files = list(Run(chosen, ()).files)

        def run(order: list[str]) -> dict[str, list[object]]:
            fresh = Run(chosen, ())
            return {name: list(fresh.check_file(name, []).kept) for name in order}

        shuffled = random.Random(1).sample(files, len(files))
        assert run(files) == run(files[::-1]) == run(shuffled)


class TestNoqa:
    @pytest.mark.parametrize(
        "comment",
        [
            "# noqa",
            "# NOQA:FSR101",
            "# noqa: E501, FSR101",
            "# noqa: FSR1",
            "# noqa: fsr101",
            "# noqa : FSR101",
        ],
    )
    def test_comment_on_the_line_suppresses(self, comment: str, tmp_path: Path) -> None:
        project(tmp_path, {"a.py": HAZARD.rstrip() + f"  {comment}\n"})
        assert reported(tmp_path) == checked(tmp_path, ".") == []

    @pytest.mark.parametrize("comment", ["# noqa: E501", "# noqa: FSR2"])
    def test_comment_with_other_codes_does_not_suppress(self, comment: str, tmp_path: Path) -> None:
        project(tmp_path, {"a.py": HAZARD.rstrip() + f"  {comment}\n"})
        assert f"a.py:4:5: {MESSAGE}" in reported(tmp_path)

    def test_unused_suppression_is_reported(self, tmp_path: Path) -> None:
        project(tmp_path, {"a.py": "x = 1  # noqa: FSR101\n"})
        assert reported(tmp_path) == [
            "a.py:1:16: FSR003 unused `noqa: FSR101`: it suppresses no finding on this line"
        ]

    def test_either_configuration_can_ignore_fsr003(self, tmp_path: Path) -> None:
        project(tmp_path, {"a.py": "x = 1  # noqa: FSR101\n"})
        assert reported(tmp_path, "--ignore=FSR003", ".") == []
        project(tmp_path, {}, '[tool.fsrace-lint]\nignore = ["FSR003"]\n')
        assert reported(tmp_path) == []

    @pytest.mark.parametrize("codes", ["FSR003, FSR101", "FSR0, FSR101"])
    def test_only_flake8_can_suppress_fsr003(self, codes: str, tmp_path: Path) -> None:
        project(
            tmp_path, {"a.py": f"x = 1  # noqa: {codes}\n", "b.py": "y = '# noqa'; z = 1  # noqa: FSR1\n"}
        )
        assert reported(tmp_path) == []
        assert len(checked(tmp_path, ".")) == 3

    def test_disable_noqa_reports_suppressed_findings(self, tmp_path: Path) -> None:
        text = HAZARD.rstrip() + "  # noqa: FSR101\nx = 1  # noqa: FSR201\n"
        project(tmp_path, {"a.py": text, "b.py": "# flake8: noqa: FSR101\n" + HAZARD})
        expected = [f"a.py:4:5: {MESSAGE}", f"b.py:5:5: {MESSAGE.replace('3', '4')}"]
        assert reported(tmp_path, "--disable-noqa", ".") == expected

    def test_file_level_comment_suppresses(self, tmp_path: Path) -> None:
        project(tmp_path, {"a.py": "# flake8: noqa\n" + HAZARD, "b.py": "# flake8: noqa: FSR101\n" + HAZARD})
        assert reported(tmp_path) == checked(tmp_path, ".") == []

    def test_flake8_drops_suppressed_findings_itself(self, tmp_path: Path) -> None:
        """Plugins that look for unused comments rely on the findings that flake8 has dropped."""
        project(tmp_path, {"a.py": HAZARD.rstrip() + "  # noqa: FSR101\n"})
        log = tmp_path / "log"
        flake8(tmp_path, "--select=FSR", "-vv", f"--output-file={log}", "a.py")
        assert "is ignored specifically inline with ``# noqa: FSR101" in log.read_text()


class TestStdin:
    def test_stdin_text_replaces_the_file(self, tmp_path: Path) -> None:
        project(tmp_path, {"a.py": "x = 1\n"})
        assert reported(tmp_path, "--stdin-display-name=a.py", "-", text="\n" + HAZARD) == [
            f"a.py:5:5: {MESSAGE.replace('3', '4')}"
        ]
        project(tmp_path, {"a.py": HAZARD})
        assert reported(tmp_path, "--stdin-display-name=a.py", "-", text="x = 1\n") == []

    def test_stdin_without_a_display_name(self, tmp_path: Path) -> None:
        project(tmp_path, {})
        assert reported(tmp_path, "-", text=HAZARD) == [f"stdin:4:5: {MESSAGE}"]

    def test_stdin_is_linked_with_the_project(self, tmp_path: Path) -> None:
        project(tmp_path, GUARDED_ELSEWHERE)
        text = (tmp_path / "work.py").read_text() + "# changed\n"
        assert reported(tmp_path, "--stdin-display-name=work.py", "-", text=text) == []
        (tmp_path / "train.py").unlink()
        assert len(reported(tmp_path, "--stdin-display-name=work.py", "-", text=text)) == 1

    def test_stdin_for_a_new_file(self, tmp_path: Path) -> None:
        project(tmp_path, {})
        assert len(reported(tmp_path, "--stdin-display-name=src/new.py", "-", text=HAZARD)) == 1

    @pytest.mark.parametrize("name", ["tests/new.py", "test_new.py", "build/new.py", "tools/old.py"])
    def test_stdin_for_an_excluded_file(self, name: str, tmp_path: Path) -> None:
        project(tmp_path, {})
        assert reported(tmp_path, f"--stdin-display-name={name}", "-", text=HAZARD) == []

    def test_stdin_for_an_undecodable_file(self, tmp_path: Path) -> None:
        project(tmp_path, {})
        (tmp_path / "a.py").write_bytes(b"x = '\xe9'\n")
        assert reported(tmp_path, "--stdin-display-name=a.py", "-", text=HAZARD) == [f"a.py:4:5: {MESSAGE}"]

    def test_malformed_catalog_entry_is_an_error(self, tmp_path: Path) -> None:
        project(tmp_path, {}, "[[tool.fsrace-lint.catalog.gard]]\n")
        done = flake8(tmp_path, "-", text=HAZARD)
        assert done.returncode == 1
        assert "unknown kind [[gard]]; did you mean `guard`?" in done.stdout
        assert "Traceback" not in done.stderr

    def test_stdin_in_another_encoding(self, tmp_path: Path) -> None:
        project(tmp_path, {})
        text = '# coding: latin-1\nimport os\n"é"; os.path.exists("d") or os.mkdir("d")\n'
        command = [sys.executable, "-m", "flake8", "--isolated", "--select=FSR", "-"]
        done = subprocess.run(
            command, cwd=tmp_path, input=text.encode("latin-1"), capture_output=True, check=False
        )
        assert done.stdout.startswith(b"stdin:3:29: FSR101")


class TestExclusions:
    @pytest.mark.parametrize("name", ["tests/test_a.py", "conftest.py", "docs/conf.py", "tools/old.py"])
    def test_excluded_file_on_the_command_line(self, name: str, tmp_path: Path) -> None:
        project(tmp_path, {name: HAZARD})
        assert reported(tmp_path, name) == []

    def test_include_tests_setting(self, tmp_path: Path) -> None:
        project(tmp_path, {"tests/test_a.py": HAZARD}, "[tool.fsrace-lint]\ninclude-tests = true\n")
        assert len(reported(tmp_path)) == 1

    def test_script_without_a_suffix(self, tmp_path: Path) -> None:
        project(tmp_path, {"script": HAZARD})
        assert reported(tmp_path, "script") == checked(tmp_path, "script") == [f"script:4:5: {MESSAGE}"]

    def test_flake8_exclusions(self, tmp_path: Path) -> None:
        project(tmp_path, {"a.py": HAZARD, "b.py": HAZARD, "c.py": HAZARD})
        arguments = ("--exclude=b.py", "--per-file-ignores=c.py:FSR101", ".")
        assert reported(tmp_path, *arguments) == [f"a.py:4:5: {MESSAGE}"]
        assert reported(tmp_path, "--extend-ignore=FSR1", ".") == []


class TestErrors:
    def test_syntax_error_is_reported_only_by_flake8(self, tmp_path: Path) -> None:
        project(tmp_path, {"a.py": "def f(:\n", "b.py": HAZARD})
        done = flake8(tmp_path, "--select=E9,FSR", ".")
        codes = sorted((line[2:6], line.split()[1]) for line in done.stdout.splitlines())
        assert ("a.py", "E999") in codes
        assert ("b.py", "FSR101") in codes
        assert not [code for name, code in codes if name != "b.py" and code.startswith("FSR")]

    def test_undecodable_file_is_reported(self, tmp_path: Path) -> None:
        project(tmp_path, {})
        (tmp_path / "a.py").write_bytes(b"x = 1\nname = '\xe9'\n" + HAZARD.encode())
        expected = ["a.py:2:9: FSR001 file is not encoded as UTF-8: byte 0xe9"]
        assert reported(tmp_path) == checked(tmp_path, ".") == expected
        assert reported(tmp_path, "--ignore=FSR001", ".") == []
        project(tmp_path, {}, '[tool.fsrace-lint]\nignore = ["FSR001"]\n')
        assert reported(tmp_path) == []

    @pytest.mark.parametrize("jobs", [1, 2])
    @pytest.mark.parametrize(
        ("table", "message"),
        [
            (
                '[tool.fsrace-lint]\nprofil = "strict"\n',
                "unknown key `profil` in [tool.fsrace-lint]; did you",
            ),
            ("[tool.fsrace-lint]\nignore = 1\n", "`ignore`: expected array, found integer"),
            ("[tool\n", ": not valid TOML: "),
            (
                '[[tool.fsrace-lint.catalog.guard]]\nnames = ["mylib.is_boss"]\nscope = "gobal"\n',
                ": `tool.fsrace-lint.catalog`: [[guard]] number 1: `scope`: unknown value `gobal`; did",
            ),
        ],
    )
    def test_invalid_settings_are_an_error(self, table: str, message: str, jobs: int, tmp_path: Path) -> None:
        project(tmp_path, {"a.py": HAZARD, "b.py": HAZARD}, table)
        done = flake8(tmp_path, ".", jobs=jobs)
        assert done.returncode == 1
        assert done.stdout.startswith(
            f"There was a critical error during execution of Flake8:\nfsrace-lint: {tmp_path}/pyproject.toml"
        )
        assert message in done.stdout
        assert done.stdout.count("\n") == 2
        assert "Traceback" not in done.stderr

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_internal_error_while_linking(self, jobs: int, tmp_path: Path) -> None:
        done = self.run_with_bug("run.Run.link", tmp_path, jobs)
        first, second = done.stdout.splitlines()
        assert first == "There was a critical error during execution of Flake8:"
        assert second.startswith("fsrace-lint: internal error: KeyError: 'oh no' (")

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_internal_error_while_checking_a_file(self, jobs: int, tmp_path: Path) -> None:
        """An exception in a worker process could make flake8 hang."""
        done = self.run_with_bug("run.Run.check_file", tmp_path, jobs)
        start = ".py:1:1: FSR002 internal error: KeyError: 'oh no' ("
        assert [row[3:].startswith(start) for row in done.stdout.splitlines()] == [True, True]

    def run_with_bug(self, what: str, directory: Path, jobs: int) -> subprocess.CompletedProcess[str]:
        project(directory, {"a.py": HAZARD, "b.py": HAZARD})
        program = f"""
            import multiprocessing, sys
            from fsrace_lint.pipeline import project_settings, run
            from flake8.main.cli import main

            def broken(*arguments):
                raise KeyError("oh no")

            multiprocessing.set_start_method("fork")  # others would import the unpatched function
            {what} = broken
            sys.exit(main(["--isolated", "--select=FSR", "--jobs={jobs}", "."]))
            """
        command = [sys.executable, "-c", dedent(program)]
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "FSRACE_DEBUG=1" in done.stdout
        assert done.stderr == ""
        return done


class TestOptions:
    def test_profile_in_the_flake8_configuration(self, tmp_path: Path) -> None:
        project(tmp_path, {"tool.py": "open('results.json', 'w').write('x')\n"})
        strict = checked(tmp_path, "--profile=strict", ".")
        assert strict
        assert reported(tmp_path) == checked(tmp_path, ".") == []
        (tmp_path / ".flake8").write_text("[flake8]\nselect = FSR\nfsrace-profile = strict\n")
        command = [sys.executable, "-m", "flake8", "."]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.stdout.replace("./", "").splitlines() == strict

    def test_unknown_profile_is_an_error(self, tmp_path: Path) -> None:
        done = flake8(tmp_path, "--fsrace-profile=pedantic")
        assert done.returncode != 0
        assert "invalid choice: 'pedantic'" in done.stderr

    @pytest.mark.parametrize(
        "method", [m for m in ("spawn", "forkserver") if m in multiprocessing.get_all_start_methods()]
    )
    def test_start_methods_other_than_fork(self, method: str, tmp_path: Path) -> None:
        project(tmp_path, UNGUARDED_ELSEWHERE)
        program = f"""
            import multiprocessing, sys
            from flake8.main.cli import main

            if __name__ == "__main__":
                multiprocessing.set_start_method("{method}")
                sys.exit(main(["--isolated", "--jobs=2", "--select=FSR", "--fsrace-profile=strict", "."]))
            """
        script = tmp_path / "tests" / "run.py"
        script.parent.mkdir()
        script.write_text(dedent(program))
        done = subprocess.run(
            [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        rows = sorted(line.removeprefix("./") for line in done.stdout.splitlines())
        assert rows == checked(tmp_path, "--profile=strict", ".")
        assert done.stderr == ""

    def test_project_is_linked_once(self, tmp_path: Path) -> None:
        project(tmp_path, SEVERAL)
        program = """
            import multiprocessing, sys
            from fsrace_lint.analysis.queries.project import Project
            from flake8.main.cli import main

            link = Project.__init__

            def counted(*arguments, **named):
                print("linked", file=sys.stderr, flush=True)
                link(*arguments, **named)

            Project.__init__ = counted
            multiprocessing.set_start_method("fork")
            main(["--isolated", "--select=FSR", "--exit-zero", sys.argv[1], "."])
            """
        for jobs, expected_stderr in (("--jobs=2", "linked\n"), ("--jobs=1", "linked\n"), ("--jobs=1", "")):
            if expected_stderr:
                shutil.rmtree(tmp_path / ".fsrace_cache", ignore_errors=True)
            command = [sys.executable, "-c", dedent(program), jobs]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
            assert done.stderr == expected_stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there is no daemon on Windows")
class TestDaemon:
    """A real daemon with its own socket."""

    @pytest.fixture(autouse=True)
    def runtime(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with tempfile.TemporaryDirectory(prefix="fsr-") as directory:
            monkeypatch.setenv("XDG_RUNTIME_DIR", directory)
            yield
            daemon_output("stop")

    NAMED: ClassVar = tuple(sorted(name for name in SEVERAL if name.endswith(".py") and "/à" not in name))

    def reported_by_both(self, directory: Path, *arguments: str, jobs: int = 1) -> list[str]:
        """Run flake8 with and without the daemon; assert and return the same report."""
        expected = reported(directory, *arguments, jobs=jobs)
        assert reported(directory, "--fsrace-daemon", *arguments, jobs=jobs) == expected
        return expected

    def load_project(self, directory: Path, *arguments: str) -> None:
        """Start a daemon and wait until it has loaded the project."""
        reported(directory, "--fsrace-daemon", *arguments)
        end = time.monotonic() + 60
        while requests_served() == 0:
            assert time.monotonic() < end
            time.sleep(0.1)

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_daemon_reports_the_same(self, tmp_path: Path, jobs: int) -> None:
        project(tmp_path, SEVERAL)
        assert requests_served() == 0
        self.load_project(tmp_path, "work.py")
        groups = [self.NAMED[start : start + 6] for start in range(0, len(self.NAMED), 6)]
        found = [self.reported_by_both(tmp_path, *some, jobs=jobs) for some in groups]
        assert {row.partition(":")[0] for rows in found for row in rows} == {
            "work.py",
            "package/crlf.py",
            "package/bom.py",
            "package/unused.py",
        }
        assert requests_served() == 1 + len(groups)
        self.reported_by_both(tmp_path, "--fsrace-profile=strict", "work.py")

    def test_daemon_sees_changed_files(self, tmp_path: Path) -> None:
        project(tmp_path, UNGUARDED_ELSEWHERE)
        self.load_project(tmp_path, "work.py")
        assert len(self.reported_by_both(tmp_path, "work.py")) == 1
        project(tmp_path, GUARDED_ELSEWHERE)
        assert self.reported_by_both(tmp_path, "work.py") == []
        assert requests_served() == 3

    def test_daemon_with_noqa_comments(self, tmp_path: Path) -> None:
        texts = {
            f"{name}.py": HAZARD.rstrip() + f"  # noqa: {name}\n" for name in ("FSR101", "fsr101", "FSR2")
        }
        project(tmp_path, texts)
        self.load_project(tmp_path, "FSR2.py")
        assert len(self.reported_by_both(tmp_path, *texts)) == 2
        assert requests_served() == 2

    @pytest.mark.parametrize(
        "arguments", [["."], ["--disable-noqa", "a.py"], ["a.py", "latin.py"], ["a.py", "gone.py"]]
    )
    def test_arguments_that_bypass_the_daemon(self, tmp_path: Path, arguments: list[str]) -> None:
        project(tmp_path, {"a.py": HAZARD})
        (tmp_path / "latin.py").write_bytes(b"# coding: latin-1\n# \xe9\n" + HAZARD.encode())
        self.load_project(tmp_path, "a.py")
        assert len([row for row in self.reported_by_both(tmp_path, *arguments) if "FSR101" in row]) in {1, 2}
        assert requests_served() == 1

    def test_daemon_with_a_link_to_another_file(self, tmp_path: Path) -> None:
        project(tmp_path, {"a.py": HAZARD})
        (tmp_path / "link.py").symlink_to("a.py")
        self.load_project(tmp_path, "a.py")
        assert self.reported_by_both(tmp_path, "link.py") == []
        assert len(self.reported_by_both(tmp_path, "a.py", "link.py")) == 1

    def test_daemon_with_invalid_settings(self, tmp_path: Path) -> None:
        project(tmp_path, {"a.py": HAZARD})
        self.load_project(tmp_path, "a.py")
        project(tmp_path, {}, "[tool.fsrace-lint]\nprofil = 1\n")
        done = flake8(tmp_path, "--fsrace-daemon", "a.py")
        assert done.returncode == 1
        assert "profil" in done.stdout
        assert done.stdout == flake8(tmp_path, "a.py").stdout

    def test_file_changed_after_the_daemon_request(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project(tmp_path, {"a.py": HAZARD})
        name = str(tmp_path / "a.py")
        earlier = DaemonFinding("FSR999", "of before", name, 1, 1)
        monkeypatch.setattr(Plugin, "daemon_findings", {name: (HAZARD, [(earlier, False)])})
        monkeypatch.setattr(Plugin, "named", (name,))
        rows = {}
        for text in (HAZARD, "\n" + HAZARD):
            rows[text] = [
                row[:3] for row in Plugin(ast.parse(text), name, text.splitlines(keepends=True)).run()
            ]
        assert list(rows.values()) == [[(1, 0, "FSR999 of before")], [(5, 4, MESSAGE.replace("3", "4"))]]


def daemon_output(verb: str) -> str:
    """The output of a daemon command."""
    command = [sys.executable, "-m", "fsrace_lint", "daemon", verb]
    return subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, timeout=60).stdout


def requests_served() -> int:
    """How many checks a daemon has served, including the one that loaded the project."""
    found = re.search(r"(\d+) requests? served", daemon_output("status"))
    return 0 if found is None else int(found[1])
