"""The harness for Markdown cases: wrong expectations fail, and malformed documents are errors."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest
from support.mdtest import Case, CaseError, collect, failures, parse

from fsrace_lint.pipeline import check, repair
from fsrace_lint.report import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fsrace_lint.fixes import Patch
    from fsrace_lint.pipeline.run import Checked, Run

HAZARD = """\
import os


def prepare(path):
    if not os.path.isdir(path):
        os.makedirs(path)"""
DIFF = """\
```diff
--- a/main.py
+++ b/main.py
@@ -2,5 +2,4 @@


 def prepare(path):
-    if not os.path.isdir(path):
-        os.makedirs(path)
+    os.makedirs(path, exist_ok=True)
```
"""


def document(directory: Path, *blocks: str) -> Path:
    """Write a document with one case; each block is text that includes its fences."""
    directory.mkdir(exist_ok=True)
    file = directory / "doc.md"
    file.write_text("# Title\n\n" + "\n".join(blocks), "utf-8")
    return file


def py(code: str) -> str:
    return f"```py\n{textwrap.dedent(code)}\n```\n"


def case(directory: Path, *blocks: str) -> Case:
    (only,) = parse(document(directory, *blocks))
    return only


def problems(directory: Path, *blocks: str) -> list[str]:
    """Return the failures of one case, without the directory of the document."""
    found, _ = failures(case(directory, *blocks), directory / "run")
    return [problem.partition("doc.md")[2] for problem in found]


class TestDocuments:
    def test_heading_with_code_is_a_case(self, tmp_path: Path) -> None:
        file = tmp_path / "doc.md"
        file.write_text(
            "# Rule\n\n## Group\n\nProse.\n\n### One\n\n```py\na = 1\n```\n\n### Two\n\n```py\nb = 2\n```\n\n"
            "## Last\n\n```py\nc = 3\n```\n\n`d.py`\n\n```py\nd = 4\n```\n",
            "utf-8",
        )
        cases = parse(file)
        assert [(one.title, one.line, one.end) for one in cases] == [
            ("Group / One", 7, 11),
            ("Group / Two", 13, 17),
            ("Last", 19, 29),
        ]
        assert [{path: f.text for path, f in one.files.items()} for one in cases] == [
            {"main.py": "a = 1\n"},
            {"main.py": "b = 2\n"},
            {"main.py": "c = 3\n", "d.py": "d = 4\n"},
        ]
        assert cases[2].files["d.py"].line == 28

    def test_documents_are_found_in_order(self, tmp_path: Path) -> None:
        (tmp_path / "b").mkdir()
        for name in ("z.md", "b/y.md", "a.md"):
            (tmp_path / name).write_text("# T\n\n```py\n```\n", "utf-8")
        assert [one.document.name for one in collect(tmp_path)] == ["a.md", "y.md", "z.md"]

    def test_marks_are_removed_from_the_code(self, tmp_path: Path) -> None:
        one = case(tmp_path, py("a()  # noqa: FSR101  # error: FSR101 FSR105  # known miss: FSR201\nb()"))
        assert one.files["main.py"].text == "a()  # noqa: FSR101\nb()\n"
        assert sorted(one.files["main.py"].marks) == [
            ("error", "FSR101", 1),
            ("error", "FSR105", 1),
            ("known miss", "FSR201", 1),
        ]

    def test_project_is_written_unchanged(self, tmp_path: Path) -> None:
        one = case(tmp_path, "```toml\n[tool.x]\n```\n", "`pkg/a.py`\n", py("a = 1\nb = 2"))
        root = one.write(tmp_path / "run", "\r\n")
        assert (root / "pkg/a.py").read_bytes() == b"a = 1\r\nb = 2\r\n"
        assert (root / "pyproject.toml").read_bytes() == b"[tool.x]\r\n"

    @pytest.mark.parametrize(
        ("blocks", "message"),
        [
            (["```py\na = 1\n"], "doc.md:3: the block is not closed"),
            (
                ["```python\na = 1\n```\n"],
                "doc.md:3: unknown kind of block `python`; there are py, toml, diff, text,",
            ),
            (["```\na = 1\n```\n"], "doc.md:3: unknown kind of block ``"),
            (["```toml\n```\n"], "doc.md:1: there is no `py` block in this case"),
            ([py("a"), py("b")], "doc.md:7: a second `main.py` in this case"),
            ([py("a"), "```toml\n```\n```toml\n```\n"], "doc.md:9: a second `toml` block in this case"),
            ([py("a"), DIFF, "`b.py`\n", DIFF], "doc.md:21: only a `py` or `sh` block can have a path"),
            ([py("a"), DIFF, DIFF], "doc.md:19: a second `diff` block in this case"),
            (["`a.py`\n", "Prose.\n", py("a")], "doc.md:3: `a.py` is not followed by a block"),
            ([py("a"), "`a.py`\n"], "doc.md:7: `a.py` is not followed by a block"),
            (["`../a.py`\n", py("a")], "doc.md:5: `../a.py` leads out of the project"),
            (["`/a.py`\n", py("a")], "doc.md:5: `/a.py` leads out of the project"),
            ([py("a\nb  # error: FSR999")], "doc.md:5: there is no rule FSR999"),
            ([py("a  # known miss: FSR1")], "doc.md:4: there is no rule FSR1"),
            ([py("a  # error:")], "doc.md:4: this looks like a mark but is none: a  # error:"),
            ([py("a  # error FSR101")], "doc.md:4: this looks like a mark but is none"),
            ([py("a  # known mis: FSR101")], "doc.md:4: this looks like a mark but is none"),
            ([py("a  # error: FSR101,FSR105")], "doc.md:4: this looks like a mark but is none"),
            ([py("a"), "# Title\n"], "doc.md:7: a second case with this title"),
        ],
    )
    def test_malformed_document_is_an_error(
        self, tmp_path: Path, blocks: Sequence[str], message: str
    ) -> None:
        with pytest.raises(CaseError) as error:
            parse(document(tmp_path, *blocks))
        assert message in str(error.value)

    def test_block_before_any_heading_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "doc.md").write_text("```py\n```\n", "utf-8")
        with pytest.raises(CaseError, match=r"doc\.md:1: the block stands before any heading"):
            parse(tmp_path / "doc.md")


class TestMarks:
    def test_correct_case_has_no_failures(self, tmp_path: Path) -> None:
        assert problems(tmp_path, py(f"{HAZARD}  # error: FSR101"), DIFF) == []

    def test_unexpected_finding_fails(self, tmp_path: Path) -> None:
        (problem,) = problems(tmp_path, py(HAZARD), DIFF)
        assert problem.startswith(":9: expected nothing, found FSR101 (directory `path` is created by")

    def test_missing_finding_fails(self, tmp_path: Path) -> None:
        assert problems(tmp_path, py("a = 1\nb = 2  # error: FSR101")) == [
            ":5: expected FSR101, found nothing"
        ]

    def test_wrong_line_fails(self, tmp_path: Path) -> None:
        code = HAZARD.replace("isdir(path):", "isdir(path):  # error: FSR101")
        found = problems(tmp_path, py(code), DIFF)
        assert [problem.partition(" (")[0] for problem in found] == [
            ":8: expected FSR101, found nothing",
            ":9: expected nothing, found FSR101",
        ]

    def test_wrong_code_fails(self, tmp_path: Path) -> None:
        found = problems(tmp_path, py(f"{HAZARD}  # error: FSR103"), DIFF)
        assert [problem.partition(" (")[0] for problem in found] == [
            ":9: expected nothing, found FSR101",
            ":9: expected FSR103, found nothing",
        ]

    def test_one_finding_does_not_match_two_marks(self, tmp_path: Path) -> None:
        found = problems(tmp_path, py(f"{HAZARD}  # error: FSR101 FSR101"), DIFF)
        assert found == [":9: expected FSR101, found nothing"]

    def test_mark_in_another_file_fails(self, tmp_path: Path) -> None:
        blocks = [py("a = 1  # error: FSR101"), "`pkg/b.py`\n", py(f"{HAZARD}  # error: FSR101")]
        blocks.append(DIFF.replace("main.py", "pkg/b.py"))
        assert problems(tmp_path, *blocks) == [":4: expected FSR101, found nothing"]

    def test_known_miss_passes(self, tmp_path: Path) -> None:
        assert problems(tmp_path, py("a = 1  # known miss: FSR101")) == []

    def test_reported_known_miss_fails(self, tmp_path: Path) -> None:
        (problem,) = problems(tmp_path, py(f"{HAZARD}  # known miss: FSR101"), DIFF)
        assert problem.startswith(":9: expected nothing, found FSR101")
        assert problem.endswith("; it was a known miss, write `# error: FSR101`")

    def test_known_false_alarm_passes(self, tmp_path: Path) -> None:
        assert problems(tmp_path, py(f"{HAZARD}  # known false alarm: FSR101"), DIFF) == []

    def test_unreported_known_false_alarm_fails(self, tmp_path: Path) -> None:
        assert problems(tmp_path, py("a = 1  # known false alarm: FSR101")) == [
            ":4: expected FSR101, found nothing; it was a known false alarm, remove the mark"
        ]

    def test_settings_of_the_case_apply(self, tmp_path: Path) -> None:
        toml = '```toml\n[tool.fsrace-lint]\nignore = ["FSR101"]\n```\n'
        assert problems(tmp_path, toml, py(HAZARD)) == []
        (problem,) = problems(tmp_path / "again", toml, py(f"{HAZARD}  # error: FSR101"))
        assert problem == ":14: expected FSR101, found nothing"


class TestFixes:
    def test_safe_fix_requires_a_diff(self, tmp_path: Path) -> None:
        (problem,) = problems(tmp_path, py(f"{HAZARD}  # error: FSR101"))
        assert problem.startswith(":1: there is no `diff` block for this (FSRACE_UPDATE_CASES=1 writes it)")
        assert "++    os.makedirs(path, exist_ok=True)" in problem

    def test_wrong_diff_fails(self, tmp_path: Path) -> None:
        wrong = DIFF.replace("exist_ok=True", "exist_ok=False")
        (problem,) = problems(tmp_path, py(f"{HAZARD}  # error: FSR101"), wrong)
        assert problem.startswith(":12: the `diff` block differs")
        assert "-+    os.makedirs(path, exist_ok=False)\n++    os.makedirs(path, exist_ok=True)\n" in problem

    def test_diff_without_a_change_fails(self, tmp_path: Path) -> None:
        (problem,) = problems(tmp_path, py("a = 1"), DIFF)
        assert problem.startswith(":7: the `diff` block differs")

    def test_unsafe_fix_is_compared_only_with_a_block(self, tmp_path: Path) -> None:
        code = HAZARD.replace("        os.", "        print(path)\n        os.")
        assert problems(tmp_path, py(f"{code}  # error: FSR101")) == []
        (problem,) = problems(tmp_path / "again", py(f"{code}  # error: FSR101"), "```diff unsafe\n```\n")
        assert problem.startswith(":13: the `diff unsafe` block differs")
        assert "++        os.makedirs(path, exist_ok=True)" in problem

    def test_refusal_requires_a_text_block(self, tmp_path: Path) -> None:
        code = "import os\n\n\ndef drop(path):\n    os.path.exists(path) and os.remove(path)  # error: FSR103"
        (problem,) = problems(tmp_path, py(code))
        assert problem.startswith(":1: there is no `text` block for this")
        line = "main.py:5: FSR103: the call is not a statement on its own line\n"
        assert f"+{line}" in problem
        assert problems(tmp_path / "again", py(code), f"```text\n{line}```\n") == []

    def test_trailing_space_of_empty_context_lines_is_optional(self, tmp_path: Path) -> None:
        with_blanks = DIFF.replace("@@\n\n\n", "@@\n \n \n")
        assert with_blanks != DIFF
        assert problems(tmp_path, py(f"{HAZARD}  # error: FSR101"), with_blanks) == []

    def test_fix_that_leaves_the_finding_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        bend(monkeypatch, lambda before: f"# fixed\n{before}")
        found = problems(tmp_path, py(f"{HAZARD}  # error: FSR101"), DIFF)
        assert ":1: the fix leaves or brings FSR101 in main.py" in found

    def test_fix_that_adds_a_finding_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        code = HAZARD.replace("not ", "").replace("makedirs", "remove")
        bend(monkeypatch, lambda _: f"{code}\n")
        found = problems(tmp_path, py(f"{HAZARD}  # error: FSR101"), DIFF)
        assert ":1: the fix leaves or brings FSR103 in main.py" in found

    def test_fix_that_hides_another_finding_fails(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bend(monkeypatch, lambda _: "a = 1\n")
        tree = "import shutil\ndef drop(path):\n    if path.exists():\n        shutil.rmtree(path)"
        found = problems(tmp_path, py(f"{HAZARD}  # error: FSR101\n{tree}  # error: FSR103"))
        assert ":1: the fix also hides FSR103 in main.py" in found

    def test_fix_that_is_not_idempotent_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        bend(monkeypatch, lambda before: f"{before}# again\n")
        found = problems(tmp_path, py(f"{HAZARD}  # error: FSR101"), DIFF)
        assert ":1: fixing it again changes it again" in found

    def test_fix_that_cannot_be_written_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(repair, "write", lambda *_: "is read-only")
        found = problems(tmp_path, py(f"{HAZARD}  # error: FSR101"), DIFF)
        assert ":1: main.py was not written: is read-only" in found

    def test_run_error_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real = check.check

        def broken(*args: object) -> list[tuple[Run, Checked]]:
            import msgspec

            ((run, checked),) = real(*args)  # type: ignore[arg-type]  # handed on
            outcome = msgspec.structs.replace(checked.outcome, errors=(Problem("main.py", "a rule failed"),))
            return [(run, msgspec.structs.replace(checked, outcome=outcome))]

        monkeypatch.setattr(check, "check", broken)
        assert problems(tmp_path, py("a = 1")) == [":1: main.py: a rule failed"]


def bend(monkeypatch: pytest.MonkeyPatch, change: object) -> None:
    """Make every repair return a changed text."""
    import msgspec

    real = repair.repair

    def another(run: Run, checked: Checked, *, unsafe: bool, certain: bool) -> list[Patch]:
        patches = real(run, checked, unsafe=unsafe, certain=certain)
        return [
            msgspec.structs.replace(patch, after=change(patch.before.decode()).encode())  # type: ignore[operator]
            for patch in patches
        ]

    monkeypatch.setattr(repair, "repair", another)


class TestUpdate:
    def test_outputs_are_written_replaced_and_removed(self, tmp_path: Path) -> None:
        fixed, refused = (
            f"{HAZARD}  # error: FSR101",
            "import os\nos.path.exists('a') and os.remove('a')  # error: FSR103",
        )
        file = tmp_path / "doc.md"
        parts = ["# T", "## New", py(fixed), "## Stale", py(fixed), DIFF.replace("path", "nothing")]
        parts += [
            "## Gone",
            py("a = 1"),
            DIFF,
            "## Refused",
            py(refused),
            "## Asked",
            py(fixed),
            "```diff unsafe\n```",
            "",
        ]
        file.write_text("\n\n".join(part.strip("\n") for part in parts) + "\n", "utf-8")
        for index, one in enumerate(parse(file)):
            assert failures(one, tmp_path / str(index), update=True)[0] == []
        text = file.read_text("utf-8")
        assert text.count(DIFF) == 3
        assert text.count(DIFF.replace("```diff", "```diff unsafe")) == 1
        assert "## Gone\n\n```py\na = 1\n```\n\n## Refused" in text
        refusal = "main.py:2: FSR103: the call is not a statement on its own line"
        assert f"```text\n{refusal}\n```\n\n## Asked" in text
        assert [failures(one, tmp_path / one.title)[0] for one in parse(file)] == [[]] * 5
        assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["doc.md"]

    def test_marks_are_never_written(self, tmp_path: Path) -> None:
        one = case(tmp_path, py(HAZARD), DIFF)
        before = one.document.read_bytes()
        assert len(failures(one, tmp_path / "run", update=True)[0]) == 1
        assert one.document.read_bytes() == before
