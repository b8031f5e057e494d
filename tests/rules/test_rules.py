"""All rules: codes and names, documented examples, generated pages, and failures."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from support import ROOT
from support.mdtest import collect, run
from support.rule_pages import CASES, HAZARDS, LOADED, code, example, project, shown

from fsrace_lint import rules
from fsrace_lint.cli import main, terminal
from fsrace_lint.files.spans import Span
from fsrace_lint.findings.finding import Applicability, Finding, Idiom
from fsrace_lint.fixes.recipes import RECIPES
from fsrace_lint.pipeline import repair
from fsrace_lint.rules.remedies import SKETCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.rules import LoadedRule

DOCS = ROOT / "docs" / "rules"
ABOUT_THE_TOOL = "FSR0"
WITHOUT_CASES = {"FSR002": "a rule that fails cannot be written down: TestRuleFailure"}


def codes(root: Path) -> list[str]:
    _, checked = run(root)
    return [finding.code for finding in checked.outcome.findings]


class TestIdentity:
    def test_every_rule_module_is_loaded(self) -> None:
        modules = {path.stem for path in Path(rules.__file__).parent.glob("*.py")} - {
            "__init__",
            "base",
            "references",
            "remedies",
        }
        assert {loaded.rule.name.replace("-", "_") for loaded in LOADED} == modules

    def test_codes_and_names_are_unique(self) -> None:
        assert len({loaded.rule.code for loaded in LOADED}) == len(LOADED)
        assert len({loaded.rule.name for loaded in LOADED}) == len(LOADED)

    @pytest.mark.parametrize("loaded", LOADED, ids=code)
    def test_format_of_codes_and_names(self, loaded: LoadedRule) -> None:
        assert re.fullmatch(r"FSR\d{3}", loaded.rule.code)
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", loaded.rule.name)
        assert (loaded.rule.cwe > 0) == (loaded.check is not None)

    def test_fsr00x_rules_have_no_check(self) -> None:
        assert [code(loaded) for loaded in LOADED if loaded.check is None] == [
            code(loaded) for loaded in LOADED if code(loaded).startswith(ABOUT_THE_TOOL)
        ]

    @pytest.mark.parametrize("loaded", LOADED, ids=code)
    def test_rule_is_found_by_code_and_name(self, loaded: LoadedRule) -> None:
        assert rules.find(loaded.rule.code.lower()) is loaded
        assert rules.find(loaded.rule.name) is loaded

    def test_unknown_code_is_not_found(self) -> None:
        assert rules.find("FSR") is None
        assert rules.find("") is None


class TestPages:
    @pytest.mark.parametrize("loaded", LOADED, ids=code)
    def test_title_is_short_and_has_no_period(self, loaded: LoadedRule) -> None:
        assert not loaded.title.endswith(".")
        assert len(loaded.title) <= 80
        assert loaded.page.split("\n")[1] == ""

    @pytest.mark.parametrize("loaded", HAZARDS, ids=code)
    def test_sections_of_a_page(self, loaded: LoadedRule) -> None:
        labels = re.findall(r"^([A-Z][a-z ]+):", loaded.page, re.MULTILINE)
        fix = ["Fix"] if "Fix" in labels else []
        assert labels == ["Bad", "Good", *fix, "Not reported when"]

    @pytest.mark.parametrize("label", ["Bad", "Good"])
    @pytest.mark.parametrize("loaded", HAZARDS, ids=code)
    def test_examples_parse(self, loaded: LoadedRule, label: str) -> None:
        assert ast.parse(example(loaded, label)).body

    @pytest.mark.parametrize("loaded", HAZARDS, ids=code)
    def test_bad_example_reports_exactly_this_rule(self, loaded: LoadedRule, tmp_path: Path) -> None:
        assert codes(shown(loaded, "Bad", tmp_path)) == [loaded.rule.code]

    @pytest.mark.parametrize("loaded", HAZARDS, ids=code)
    def test_good_example_is_not_reported(self, loaded: LoadedRule, tmp_path: Path) -> None:
        assert codes(shown(loaded, "Good", tmp_path)) == []

    @pytest.mark.parametrize("loaded", HAZARDS, ids=code)
    def test_fix_turns_bad_example_into_good(self, loaded: LoadedRule, tmp_path: Path) -> None:
        """A safe fix yields the good example itself; an unsafe fix may use a helper instead."""
        root = shown(loaded, "Bad", tmp_path)
        if loaded.rule.code in {"FSR106", "FSR301"}:
            with (root / "pyproject.toml").open("a", encoding="utf-8") as settings:
                settings.write('helper-module = "fsrace_lint.safe"\n')
        found, checked = run(root)
        (finding,) = checked.outcome.findings
        fix = finding.fix
        assert fix is not None
        page = " ".join(loaded.page.split())
        assert fix.description in page or f"`{fix.recipe}`" in page
        if fix.applicability is Applicability.SKETCH:
            assert fix.recipe == SKETCH
            return
        assert fix.recipe in RECIPES
        unsafe = fix.applicability is Applicability.UNSAFE
        (patch,) = repair.repair(found, checked, unsafe=unsafe)
        assert [refusal.reason for refusal in patch.refused] == []
        if unsafe:
            assert patch.applied == (finding,)
            assert repair.write(patch) is None
            assert codes(root) == []
        else:
            assert patch.after.decode() == example(loaded, "Good")

    @pytest.mark.parametrize("loaded", HAZARDS, ids=code)
    def test_rule_module_is_short(self, loaded: LoadedRule) -> None:
        file = Path(rules.__file__).parent / f"{loaded.rule.name.replace('-', '_')}.py"
        assert len(file.read_text("utf-8").splitlines()) <= 140


class TestCaseFiles:
    def test_case_files_match_rules(self) -> None:
        wanted = {loaded.rule.name for loaded in LOADED if code(loaded) not in WITHOUT_CASES}
        assert {path.stem for path in CASES.glob("*")} == wanted

    @pytest.mark.parametrize(
        "loaded", [loaded for loaded in LOADED if code(loaded) not in WITHOUT_CASES], ids=code
    )
    def test_case_file_has_positive_and_negative_cases(self, loaded: LoadedRule) -> None:
        own = [case for case in collect(CASES) if case.document.stem == loaded.rule.name]
        positive = [
            case
            for case in own
            if any(
                mark.code == code(loaded) and mark.kind == "error"
                for f in case.files.values()
                for mark in f.marks
            )
        ]
        few = 2 if code(loaded).startswith(ABOUT_THE_TOOL) else 6
        assert len(positive) >= few
        assert len(own) - len(positive) >= few

    @pytest.mark.parametrize("loaded", HAZARDS, ids=code)
    def test_heading_has_code_and_name(self, loaded: LoadedRule) -> None:
        text = (CASES / f"{loaded.rule.name}.md").read_text("utf-8")
        assert text.startswith(f"# {loaded.rule.code} {loaded.rule.name}\n")


class TestDocs:
    def test_generated_pages_are_up_to_date(self) -> None:
        done = subprocess.run(
            [sys.executable, ROOT / "scripts" / "docs.py", "--check"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def test_docs_list_exactly_the_rule_codes(self) -> None:
        index = (ROOT / "docs" / "rules.md").read_text("utf-8")
        wanted = [loaded.rule.code for loaded in LOADED]
        assert re.findall(r"^\| (FSR\d{3}) \|", index, re.MULTILINE) == wanted
        assert sorted(path.stem for path in DOCS.iterdir()) == sorted(loaded.rule.name for loaded in LOADED)
        for loaded in LOADED:
            page = (DOCS / f"{loaded.rule.name}.md").read_text("utf-8")
            assert re.findall(r"FSR\d{3}", page)[0] == loaded.rule.code

    def test_docs_mention_no_unknown_rule(self) -> None:
        known = rules.names()
        texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        named = {found for text in texts for found in re.findall(r"\bFSR\d{3}\b", text.read_text("utf-8"))}
        assert sorted(named - set(known)) == []


class TestRuleFailure:
    def test_other_rules_still_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        broken, *others = HAZARDS

        def check(project: Project) -> Iterator[Finding]:
            raise LookupError("no such site")

        failing = msgspec.structs.replace(broken, check=check)
        rest = [loaded for loaded in LOADED if loaded is not broken]
        monkeypatch.setattr(rules, "load", lambda: (failing, *rest))
        other = next(loaded for loaded in others if loaded.rule.name == "check-then-delete")
        root = project(tmp_path, example(other, "Bad"))
        _, checked = run(root)
        failure, found = checked.outcome.findings
        assert (failure.code, failure.name, failure.place.span.line) == ("FSR002", "rule-failure", 1)
        assert (
            failure.message == f"{code(broken)} ({broken.rule.name}) failed here: LookupError: no such site"
        )
        assert found.code == other.rule.code
        (problem,) = checked.outcome.errors
        assert problem.message == f"{code(broken)} failed: LookupError: no such site"

    def test_failed_rule_sets_the_exit_code(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def check(project: Project) -> Iterator[Finding]:
            raise ZeroDivisionError

        monkeypatch.setattr(
            rules, "load", lambda: tuple(msgspec.structs.replace(x, check=check) for x in LOADED)
        )
        root = project(tmp_path, "value = 1\n")
        with pytest.raises(SystemExit) as left:
            main.main(["check", str(root)], standalone_mode=False)
        assert left.value.code == terminal.FAILED


class TestUnreadable:
    """Byte content that a Markdown case cannot represent."""

    @pytest.mark.parametrize(
        ("data", "line", "message"),
        [
            (b"a = 1\nb = '\xff'\n", 2, "file is not encoded as UTF-8: byte 0xff"),
            (b"a = 1\n\n\0", 3, "file contains a NUL character"),
            (b"\xef\xbb\xbf# coding: latin-1\n", 1, "cannot decode the file: encoding problem: utf-8"),
        ],
    )
    def test_undecodable_file_is_reported(self, tmp_path: Path, data: bytes, line: int, message: str) -> None:
        root = project(tmp_path, "value = 1\n")
        (root / "odd.py").write_bytes(data)
        _, checked = run(root)
        (finding,) = checked.outcome.findings
        assert (finding.code, finding.place.span.line, finding.message) == ("FSR001", line, message)
        assert Path(finding.place.path) == root / "odd.py"

    def test_dangling_link_is_skipped(self, tmp_path: Path) -> None:
        root = project(tmp_path, "value = 1\n")
        (root / "gone.py").symlink_to(root / "nowhere.py")
        assert codes(root) == []


class TestMessages:
    """Messages and related locations, which the Markdown cases do not compare."""

    def test_related_paths_after_the_same_check(self, tmp_path: Path) -> None:
        """Files in one directory are related; two files in the current directory may not be."""
        text = """\
            import os
            import torch.distributed as dist

            def prepare():
                dist.barrier()
                if not os.path.exists("cache/one"):
                    open("cache/one", "w").write("1")
                    open("cache/two", "w").write("1")

            def prepare_here():
                dist.barrier()
                if not os.path.exists("one"):
                    open("one", "w").write("1")
                    open("two", "w").write("1")
            """
        _, checked = run(project(tmp_path, textwrap.dedent(text)))
        related = [
            (
                finding.place.span.line,
                [each.place.span.line for each in finding.related if "same check" in each.message],
            )
            for finding in checked.outcome.findings
            if finding.code == "FSR102"
        ]
        assert related == [(7, [8]), (13, [])]

    def test_polling_until_a_path_is_deleted(self, tmp_path: Path) -> None:
        text = """\
            import os
            import time
            import torch.distributed as dist

            def prepare():
                if dist.get_rank() == 0:
                    os.remove("run/busy")
                else:
                    while os.path.exists("run/busy"):
                        time.sleep(1)
                dist.barrier()
            """
        _, checked = run(project(tmp_path, textwrap.dedent(text), "strict"))
        (finding,) = (finding for finding in checked.outcome.findings if finding.code == "FSR407")
        assert finding.message == "polling for `'run/busy'`: a process can miss that it was gone"
        assert finding.witness is not None
        assert finding.witness.outcome == "a process never notices that `'run/busy'` was gone"

    def test_trace_shows_calls_as_written(self, tmp_path: Path) -> None:
        text = """\
            import os

            from filelock import FileLock


            def export(model, path):
                with FileLock(path + ".lock", timeout=600):
                    model.export(path)
                os.remove(path + ".lock")
            """
        _, checked = run(project(tmp_path, textwrap.dedent(text), "strict"))
        (finding,) = (finding for finding in checked.outcome.findings if finding.code == "FSR502")
        assert finding.witness is not None
        assert [(step.process, step.action) for step in finding.witness.steps] == [
            (0, "releases the lock"),
            (1, "FileLock(path + '.lock', timeout=600)"),
            (0, "os.remove(path + '.lock')"),
            (0, "FileLock(path + '.lock', timeout=600)"),
        ]

    @pytest.mark.parametrize(
        ("directory", "description"),
        [("", "the current directory"), ("'.'", "the current directory"), ("'data'", "`'data'`")],
    )
    def test_current_directory_is_spelled_out(self, tmp_path: Path, directory: str, description: str) -> None:
        text = f"""\
            import tarfile

            import torch.distributed as dist


            def fetch(archive):
                dist.barrier()
                tarfile.open(archive).extractall({directory})
            """
        _, checked = run(project(tmp_path, textwrap.dedent(text)))
        (message,) = (each.message for each in checked.outcome.findings if each.code == "FSR301")
        assert message == f"multiple ranks extract an archive into {description} at the same time"

    def test_only_calls_have_idioms(self, tmp_path: Path) -> None:
        text = "import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n"
        ran, _ = run(project(tmp_path, text))
        assert ran.idiom("main.py", Span(3, 5, 3, 19)).barriers == ("dist.barrier()",)
        assert ran.idiom("main.py", Span(1, 1, 1, 7)) == Idiom()
        assert ran.own_helpers("main.py", "barrier", Span(1, 1, 1, 7)) == ()


class TestHelp:
    """The description of a fix names what the fix does to this very call."""

    @pytest.mark.parametrize(
        ("check", "call", "description"),
        [
            ("os.path.isdir(path)", "os.makedirs(path)", "pass `exist_ok=True`"),
            ("os.path.isdir(path)", "os.mkdir(path)", "use `os.makedirs(exist_ok=True)`"),
            ("Path(path).is_dir()", "Path(path).mkdir()", "pass `exist_ok=True`"),
            ("os.path.isdir(path)", "shutil.copytree('a', path)", "pass `dirs_exist_ok=True`"),
            ("not os.path.exists(path)", "os.remove(path)", "replace the check with `contextlib.suppress("),
            ("not os.path.exists(path)", "os.rmdir(path)", "replace the check with `contextlib.suppress("),
            (
                "not os.path.exists(path)",
                "Path(path).rmdir()",
                "replace the check with `contextlib.suppress(",
            ),
            ("not os.path.exists(path)", "Path(path).unlink()", "pass `missing_ok=True`"),
            (
                "not os.path.exists(path)",
                "shutil.rmtree(path)",
                "replace the check with `contextlib.suppress(",
            ),
            ("not os.path.exists(path)", "os.removedirs(path)", "accept a path that is already deleted"),
        ],
    )
    def test_fix_of_a_checked_call(self, tmp_path: Path, check: str, call: str, description: str) -> None:
        imports = "import os, shutil\nfrom pathlib import Path\n"
        text = f"{imports}\ndef f(path: str):\n    if not {check}:\n        {call}\n"
        self._is_described(tmp_path, text.replace("not not ", ""), description)

    @pytest.mark.parametrize(
        ("lock", "description"),
        [
            ("with filelock.FileLock(path + '.lock'):", "pass `timeout=600`"),
            ("with fasteners.InterProcessLock(path + '.lock'):", "use a lock with a timeout"),
            ("with open(path) as s, fcntl.flock(s, fcntl.LOCK_EX):", "pass `LOCK_NB`"),
        ],
    )
    def test_fix_of_a_lock_without_timeout(self, tmp_path: Path, lock: str, description: str) -> None:
        text = f"import fasteners, fcntl, filelock\n\ndef f(path: str):\n    {lock}\n        pass\n"
        self._is_described(tmp_path, text, description)

    def _is_described(self, root: Path, text: str, description: str) -> None:
        (root / "pyproject.toml").write_text('[tool.fsrace-lint]\nprofile = "strict"\n')
        (root / "main.py").write_text(text)
        _, checked = run(root)
        (finding,) = checked.outcome.findings
        assert finding.fix is not None
        assert finding.fix.description.startswith(description)
