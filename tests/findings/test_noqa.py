"""`noqa` comments: parsing, adding, and removing them."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import template
from support.cli import CODE as TWO
from support.cli import reported, run, write
from support.sampling import bound

from fsrace_lint import rules
from fsrace_lint.findings import noqa
from fsrace_lint.pipeline import comments

pytestmark = pytest.mark.usefixtures("here")

NAMES = rules.codes()
HAZARD = 'import os\n\nif not os.path.exists("d"):\n    os.mkdir("d")\n'


def codes(comment: str) -> list[str]:
    """The codes of the first `noqa` in a comment."""
    return [item.code for item in noqa.read(comment, NAMES)[0].items]


COMMENTS = (
    "# noqa: FSR101 -- one process only",
    "# noqa: FSR101 only rank 0 gets here",
    "# noqa: FSR101 - rank0 only",
    "# noqa: FSR101, E501 (one process)",
    "# noqa: FSR101,E501,because",
    "# noqa: FSR101 E501 -- why, FSR201",
    "# noqa:FSR101: one process",
    "# noqa: FSR101 rank0 only",
    "# noqa: FSR101E501",
    "# noqa: FSR101, ,E501",
    "# noqa: FSR101\tE501",
    "# noqa:  FSR101",
    "# noqa : FSR101",
    "# noqa: FSR101 # FSR201",
    "# noqa:\tFSR101",
    "# NOQA: fsr101",
    "# noqa: -- why",
    "# noqa",
    "# noqa: E501 # noqa: FSR101",
    "# type: ignore # noqa: FSR101",
    "#noqa: FSR101",
)


class TestReading:
    @pytest.mark.parametrize("comment", COMMENTS)
    def test_codes_match_flake8(self, comment: str) -> None:
        pytest.importorskip("flake8")
        from flake8 import defaults, utils  # type: ignore[import-untyped,unused-ignore]

        match = defaults.NOQA_INLINE_REGEXP.search(comment)
        found = noqa.read(comment, NAMES)
        assert bool(match) == bool(found)
        if match:
            theirs = utils.parse_comma_separated_list(match["codes"]) if match["codes"] else []
            assert [item.text for item in found[0].items] == theirs

    @pytest.mark.parametrize("comment", COMMENTS)
    def test_suppressed_findings_match_flake8(self, comment: str) -> None:
        """End to end, for code that both flake8 and fsrace-lint report."""
        pytest.importorskip("flake8")
        write({"a.py": HAZARD.rstrip() + f"  {comment}\n"})
        command = [*template.command("flake8"), "--isolated", "--select=FSR101", "a.py"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert bool(done.stdout) == bool(reported("--select=FSR101", code=bool(done.stdout)))

    @pytest.mark.parametrize(
        ("comment", "reason"),
        [
            ("# noqa: FSR101 -- one process only", "one process only"),
            ("# noqa: FSR101 only rank 0 gets here", "only rank 0 gets here"),
            ("# noqa: FSR101  # only rank 0", "only rank 0"),
            ("# noqa: FSR101: see #12", "see #12"),
            ("# noqa: check-then-mkdir — once", "once"),
            ("# noqa: FSR101  # type: ignore", ""),
            ("# noqa: FSR101  # noqa: E501 -- long", ""),
            ("# noqa: FSR101 -- why  # more", "why"),
            ("# noqa: FSR101   ", ""),
            ("# noqa", ""),
        ],
    )
    def test_reason_is_parsed(self, comment: str, reason: str) -> None:
        assert noqa.read(comment, NAMES)[0].reason == reason

    @pytest.mark.parametrize(
        ("comment", "expected"),
        [
            ("# noqa: check-then-mkdir", ["FSR101"]),
            ("# noqa:Check-Then-Mkdir", ["FSR101"]),
            ("# noqa: check-then-mkdir, FSR201", ["FSR101", "FSR201"]),
            ("# noqa: check-then-mkdir E501", ["FSR101", "E501"]),
            ("# noqa: FSR201, check-then-mkdir -- why", ["FSR201", "FSR101"]),
            ("# noqa: FSR201,E501,check-then-mkdir,unguarded-write", ["FSR201", "E501", "FSR101", "FSR201"]),
            ("# noqa: FSR201 check-then-mkdir is harmless", ["FSR201"]),
            ("# noqa: check-then-mkdir, missing", ["FSR101"]),
            ("# noqa: check-then-mkdirs", []),
            ("# noqa: because check-then-mkdir", []),
            ("# noqa check-then-mkdir", []),
        ],
    )
    def test_rule_names_become_codes(self, comment: str, expected: list[str]) -> None:
        assert codes(comment) == expected

    def test_rule_name_suppresses_only_that_rule(self) -> None:
        write({"a.py": HAZARD.rstrip() + "  # noqa: check-then-mkdir\n"})
        assert reported(code=0) == []
        write({"a.py": HAZARD.rstrip() + "  # noqa: unguarded-write\n"})
        assert reported() == ["a.py:4 FSR101", "a.py:4 FSR003"]
        write({"a.py": "# flake8: noqa: check-then-mkdir\n" + TWO})
        assert reported() == ["a.py:14 FSR103"]

    @given(st.text("# noqa:FSR101,- \tcheckthenmkdirE5", max_size=40))
    def test_any_comment_parses_within_bounds(self, text: str) -> None:
        comment = "# " + text
        for found in noqa.read(comment, NAMES):
            assert comment[found.start :].lower().startswith("# noqa")
            assert all(comment[item.start : item.end] == item.text for item in found.items)
            ends = [found.start, *(place for item in found.items for place in (item.start, item.end))]
            assert ends == sorted(ends)
            assert ends[-1] <= found.end


class TestRemoving:
    @pytest.mark.parametrize(
        ("comment", "left"),
        [
            ("# noqa: FSR201", ""),
            ("# noqa: FSR201 -- why", ""),
            ("# noqa: FSR201, E501", "# noqa: E501"),
            ("# noqa: E501, FSR201 -- why", "# noqa: E501 -- why"),
            ("# noqa:E501,FSR201,W605", "# noqa:E501,W605"),
            ("# noqa: E501 FSR201", "# noqa: E501"),
            ("# noqa: FSR201, FSR202", ""),
            ("# type: ignore  # noqa: FSR201", "# type: ignore"),
            ("# noqa: FSR201  # type: ignore", "# type: ignore"),
            ("# noqa: FSR201 -- why  # type: ignore", "# type: ignore"),
            ("# a  # noqa: FSR201  # b", "# a  # b"),
            ("# noqa: E501 # noqa: FSR201", "# noqa: E501"),
            ("# noqa: unguarded-write", ""),
            ("# noqa: E501, unguarded-write", "# noqa: E501"),
            ("# noqa: FSR201 #nosec", "#nosec"),
            ("# noqa: FSR201 #pragma: no cover", "#pragma: no cover"),
            ("# noqa: FSR201# pragma: no cover", "# pragma: no cover"),
            ("# noqa: FSR201 pylint: disable=consider-using-with", "# pylint: disable=consider-using-with"),
            ("# noqa: FSR201 -- why isort:skip", "# isort:skip"),
        ],
    )
    def test_unused_codes_are_removed_from_a_line(self, comment: str, left: str) -> None:
        write({"a.py": f"x = 1  {comment}\ny = 2\n"})
        done = run("fix", code=0)
        assert re.fullmatch(r"Fixed \d findings? in 1 file\. 0 remaining\.\n", done.stderr)
        assert Path("a.py").read_text() == f"x = 1{'  ' if left else ''}{left}\ny = 2\n"

    @pytest.mark.parametrize("end", ["<<<<<<< HEAD\n", "print 'two'\n", "x = = 1\n"])
    def test_unparsable_file_keeps_its_comments(self, end: str) -> None:
        """What its comments suppress is unknown."""
        text = HAZARD.rstrip() + f"  # noqa: FSR101 -- rank 0 only\n{end}"
        write({"a.py": text})
        assert [row.split()[1] for row in reported(code=0)] == ["FSR001"]
        run("fix", code=1)
        assert Path("a.py").read_text() == text

    def test_failed_rule_keeps_its_comments(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(project: object) -> None:
            raise ValueError("a bug")

        broken = [
            msgspec.structs.replace(loaded, check=fail) if loaded.rule.code == "FSR101" else loaded
            for loaded in rules.load()
        ]
        monkeypatch.setattr(rules, "load", lambda: tuple(broken))
        text = HAZARD.rstrip() + "  # noqa: FSR101, FSR201 -- why\n"
        write({"a.py": text})
        assert "FSR101 failed" in run("fix", code=2).stderr
        assert Path("a.py").read_text() == text.replace(", FSR201", "")

    def test_code_prefix_is_kept_while_a_matching_rule_is_off(self) -> None:
        text = 'import os\n\nif not os.path.exists("a"):\n    os.symlink("b", "a")  # noqa: FSR1 -- why\n'
        write({"a.py": text})
        run("fix", "--ignore=FSR102", code=0)
        assert Path("a.py").read_text() == text
        write({"a.py": "x = 1  # noqa: FSR1\n"})
        run("fix", code=0)
        assert Path("a.py").read_text() == "x = 1\n"

    def test_removal_that_changes_code_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        text = "x = 1  # noqa: FSR101\n"
        write({"a.py": text})
        monkeypatch.setattr(comments, "without_comments", lambda source, unused: "x = 2\n")
        assert "not fixed" in run("fix", code=1).stderr
        assert Path("a.py").read_text() == text

    def test_other_filesystem_removes_no_comments(self) -> None:
        """A comment that is unused for one filesystem may be needed for another."""
        write({"a.py": "x = 1  # noqa: FSR405\n"})
        run("fix", "--filesystem=local", code=1)
        assert Path("a.py").read_text() == "x = 1  # noqa: FSR405\n"
        run("fix", code=0)
        assert Path("a.py").read_text() == "x = 1\n"

    def test_used_codes_are_kept(self) -> None:
        write({"a.py": HAZARD.rstrip() + "  # noqa: FSR201, FSR101, FSR302 -- why\n"})
        run("fix", code=0)
        assert Path("a.py").read_text() == HAZARD.rstrip() + "  # noqa: FSR101 -- why\n"

    def test_comment_on_its_own_line_is_removed(self) -> None:
        text = (
            "# flake8: noqa: FSR301\nx = 1\n\n\ndef f():\n    # noqa: FSR101\n    return x\n    # noqa: FSR1"
        )
        write({"a.py": text})
        run("fix", code=0)
        assert Path("a.py").read_text() == "x = 1\n\n\ndef f():\n    return x\n"

    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
    def test_other_bytes_and_mode_are_preserved(self, newline: str, bom: bytes) -> None:
        before = "é = (1,  # noqa: FSR101\n\t2)\t \nz = 3\n"
        Path("a.py").write_bytes(bom + before.replace("\n", newline).encode())
        Path("a.py").chmod(0o751)
        run("fix", code=0)
        after = before.replace("  # noqa: FSR101", "")
        assert Path("a.py").read_bytes() == bom + after.replace("\n", newline).encode()
        assert stat.S_IMODE(Path("a.py").stat().st_mode) == 0o751

    def test_removal_together_with_other_fixes(self) -> None:
        """Also removes comments that another fix makes unused, so that a second run changes nothing."""
        text = (
            HAZARD + 'if not os.path.exists("d"):\n    os.mkdir("d")  # noqa: FSR101\nx = 1  # noqa: FSR201\n'
        )
        write({"a.py": text, "b.py": "y = 1  # noqa: FSR301\n"})
        assert run("fix", code=0).stderr == "Fixed 3 findings in 2 files. 0 remaining.\n"
        assert "noqa: FSR201" not in Path("a.py").read_text()
        assert reported(code=0) == []
        assert run("fix", code=0).stderr == "Fixed 0 findings in 0 files. 0 remaining.\n"

    def test_diff_shows_the_removal(self) -> None:
        write({"a.py": "x = 1  # noqa: FSR101, E501\n"})
        done = run("fix", "--diff", code=1)
        assert "-x = 1  # noqa: FSR101, E501\n+x = 1  # noqa: E501\n" in done.stdout
        assert Path("a.py").read_text() == "x = 1  # noqa: FSR101, E501\n"

    def test_unselected_fsr003_removes_nothing(self) -> None:
        text = "x = 1  # noqa: FSR101\n"
        write(
            {"a.py": text, "pyproject.toml": '[tool.fsrace-lint]\nper-file-ignores = {"a.py" = ["FSR003"]}\n'}
        )
        run("fix", code=0)
        write({"pyproject.toml": ""})
        run("fix", "--select=FSR101", code=0)
        run("fix", "--ignore=FSR101", code=0)
        assert Path("a.py").read_text() == text

    def test_comment_with_the_encoding_cookie_is_kept(self) -> None:
        """Removing it would change how the file is decoded."""
        text = "# noqa: FSR101 coding: latin-1\nx = 'é'\n"
        Path("a.py").write_bytes(text.encode("latin-1"))
        done = run("fix", code=1)
        assert "not fixed" in done.stderr
        assert Path("a.py").read_bytes() == text.encode("latin-1")

    def test_file_changed_during_the_run_is_not_fixed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from fsrace_lint.pipeline import repair

        write({"a.py": "x = 1  # noqa: FSR101\n"})
        whole = repair.write

        def late(*patch: Any) -> str | None:
            write({"a.py": "x = 2\n"})
            return whole(*patch)

        monkeypatch.setattr(repair, "write", late)
        assert "changed by another process" in run("fix", code=1).stderr
        assert Path("a.py").read_text() == "x = 2\n"


SHAPES = {
    "plain": HAZARD,
    "trailing spaces": HAZARD.rstrip() + " \t\n",
    "no newline": HAZARD.rstrip(),
    "form feed": HAZARD.replace("\n\n", "\n\x0c\n"),
    "comment": HAZARD.rstrip() + "  # type: ignore\n",
    "comment with trailing spaces": HAZARD.rstrip() + "  # text  \n",
    "other code": HAZARD.rstrip() + "  # noqa: E501\n",
    "other codes": HAZARD.rstrip() + " # noqa:E501,W605 -- long # and more\n",
    "codes with spaces": HAZARD.rstrip() + "  # noqa: E501 W605\n",
    "multiline call": HAZARD.replace('os.mkdir("d")', 'os.mkdir(  # here\n        "d"\n    )'),
    "joined lines": HAZARD.replace(
        '    os.mkdir("d")', '    x = 1 + \\\n        2; \\\n    os.mkdir("d"); \\\n    y = 2'
    ),
    "before a multiline string": HAZARD.replace(
        'os.mkdir("d")', 'os.mkdir("d"); x = """\n\n# noqa: FSR101\n"""'
    ),
    "in a multiline string": 'import os\nprint("""\n%s\n""" % (\n  os.path.exists("d") or os.mkdir("d")))\n',
    "after a multiline string": 'import os\nx = """\n\n""" + str(os.path.exists("d") or os.mkdir("d"))\n',
    "two findings": TWO,
    "two findings on one line": (
        "import os, shutil\n"
        'os.path.exists("a") or os.mkdir("a"); os.path.exists("b") and shutil.rmtree("b")\n'
    ),
}


def harmless(data: bytes) -> bytes:
    return re.sub(rb"(mkdir|makedirs|rmtree)\(", rb"harmless.\1_(", data)


def harmful(data: bytes) -> bytes:
    return re.sub(rb"harmless\.(\w+)_\(", rb"\1(", data)


def noqa_added(*arguments: str, code: int = 0) -> str:
    return run("check", "--add-noqa", *arguments, code=code).stderr


class TestAdding:
    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["", "bom"])
    @pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES.keys())
    def test_added_comments_suppress_and_can_be_removed(self, text: str, bom: bytes, newline: str) -> None:
        before = bom + text.replace("\n", newline).encode()
        file = Path("a.py")
        file.write_bytes(before)
        file.chmod(0o640)
        found = len(reported())
        assert noqa_added() == f"Suppressed {found} finding{'s' * (found > 1)} in 1 file.\n"
        assert reported(code=0) == []
        after = file.read_bytes()
        assert noqa_added() == "Suppressed 0 findings in 0 files.\n"
        assert file.read_bytes() == after
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        # the comments become unused because the calls no longer match
        file.write_bytes(harmless(after))
        run("fix", code=0)
        assert harmful(file.read_bytes()) == before

    @pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES.keys())
    def test_flake8_honors_added_comments(self, text: str) -> None:
        pytest.importorskip("flake8")
        write({"a.py": text})
        noqa_added()
        command = [*template.command("flake8"), "--isolated", "--select=FSR", "a.py"]
        assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == ""

    @pytest.mark.parametrize(
        ("comment", "expected"),
        [
            ("", "  # noqa: FSR101"),
            ("  # text", "  # text  # noqa: FSR101"),
            (" # noqa: E501", " # noqa: E501, FSR101"),
            ("  # noqa:E501,W605", "  # noqa:E501,W605,FSR101"),
            ("  # noqa: E501 -- long", "  # noqa: E501, FSR101 -- long"),
            ("  # noqa: unguarded-read, E501", "  # noqa: unguarded-read, E501"),
            ("  # noqa: missing-barrier", "  # noqa: missing-barrier, FSR101"),
        ],
    )
    def test_format_of_added_comments(self, comment: str, expected: str) -> None:
        write({"a.py": HAZARD.rstrip() + comment + "\n"})
        noqa_added("--ignore=FSR003")
        assert Path("a.py").read_text() == HAZARD.rstrip() + expected + "\n"

    @pytest.mark.parametrize(
        ("comment", "expected"),
        [
            ("", "  # noqa: FSR101 -- one process"),
            ("  # noqa: E501", "  # noqa: E501, FSR101 -- one process"),
            ("  # noqa: E501 -- long", "  # noqa: E501, FSR101 -- long; one process"),
            ("  # noqa: E501 #nosec B108", "  # noqa: E501, FSR101 -- one process #nosec B108"),
        ],
    )
    def test_reason_is_appended(self, comment: str, expected: str) -> None:
        write({"a.py": HAZARD.rstrip() + comment + "\n"})
        noqa_added("--reason", "one process")
        assert Path("a.py").read_text() == HAZARD.rstrip() + expected + "\n"
        document = json.loads(run("check", "--format=json", "--show-suppressed", code=0).stdout)
        assert document["suppressed"][0]["reason"].endswith("one process")

    @pytest.mark.parametrize("reason", ["", "  ", "a\nb", "\x1b[2J", "why # noqa: E501", "\u202e"])
    def test_invalid_reason_is_an_error(self, reason: str) -> None:
        write({"a.py": HAZARD})
        assert (
            "--reason must be a single line of printable text without `# noqa`"
            in run("check", "--add-noqa", "--reason", reason, code=2).stderr
        )
        assert Path("a.py").read_text() == HAZARD

    def test_comment_that_causes_new_findings_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write({"a.py": HAZARD})
        monkeypatch.setattr(noqa, "with_codes", lambda *_: "# noqa: FSR101, FSR301")
        assert "FSR101 not suppressed: the comments would cause new findings\n" in noqa_added(code=1)
        assert Path("a.py").read_text() == HAZARD

    def test_reason_requires_add_noqa(self) -> None:
        assert "--reason requires --add-noqa\n" in run("check", "--reason", "why", code=2).stderr

    def test_reason_not_encodable_in_the_file(self) -> None:
        text = "# coding: latin-1\n" + HAZARD
        write({"a.py": text, "b.py": HAZARD})
        output = noqa_added("--reason", "日本", code=1)
        reason = "the encoding of the file, iso-8859-1, cannot represent the comment"
        assert f"a.py:5:5: FSR101 not suppressed: {reason}\n" in output
        assert Path("a.py").read_text() == text
        assert "日本" in Path("b.py").read_text(encoding="utf-8")

    def test_fsr00x_findings_are_not_suppressed(self) -> None:
        write({"a.py": "def f(:\n", "b.py": HAZARD + "x = 1  # noqa: FSR201\n"})
        output = noqa_added(code=1).splitlines()
        assert [line.partition(" not")[0] for line in output[:-1]] == [
            "a.py:1:7: FSR001",
            "b.py:5:16: FSR003",
        ]
        assert output[-1] == "Suppressed 1 finding in 1 file. 2 remaining."

    @pytest.mark.skipif(sys.version_info < (3, 12), reason="before 3.12 such a string is one token")
    def test_multiline_f_string_cannot_take_a_comment(self) -> None:
        text = 'import os\nx = f"""{\nos.path.exists("d") or os.mkdir("d")\n}"""\n'
        write({"a.py": text})
        assert "the line ends inside a string, so a comment cannot be added" in noqa_added(code=1)
        assert Path("a.py").read_text() == text

    def test_baseline_findings_get_no_comment(self) -> None:
        write({"a.py": TWO})
        run("check", "--select=FSR101", "--write-baseline=known.json", code=0)
        noqa_added("--baseline=known.json")
        assert Path("a.py").read_text().count("noqa") == 1

    @pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everything")
    def test_read_only_file_is_not_suppressed(self) -> None:
        write({"a.py": HAZARD})
        Path("a.py").chmod(0o444)
        assert "not suppressed: is read-only" in noqa_added(code=1)

    def test_hard_linked_file_is_not_suppressed(self) -> None:
        write({"a.py": HAZARD})
        os.link("a.py", "other.txt")
        assert "has more than one hard link" in noqa_added(code=1)
        assert Path("a.py").read_text() == HAZARD

    @given(
        st.lists(
            st.sampled_from(
                [
                    'if not os.path.exists("a"):\n    os.mkdir("a")',
                    'os.path.exists("b") or os.makedirs("b")  # text',
                    'if os.path.exists("c"):\n    shutil.rmtree("c"); x = """\n"""  ',
                    'if os.path.exists("d"): \\\n    shutil.rmtree(\n    "d")  # noqa: E501',
                    'y = "# noqa"',
                    "",
                    "# noqa",
                    'é = "日本"  # noqa : E501',
                ]
            ),
            max_size=6,
        ),
        st.sampled_from(["\n", "\r\n"]),
    )
    @settings(
        suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=bound(8, 30)
    )
    def test_add_check_remove_round_trip(self, statements: list[str], newline: str) -> None:
        text = "\n".join(["import os, shutil", *statements, ""])
        before = text.replace("\n", newline).encode()
        file = Path("a.py")
        file.write_bytes(before)
        noqa_added()
        assert reported(code=0) == []
        file.write_bytes(harmless(file.read_bytes()))
        run("fix", code=0)
        assert harmful(file.read_bytes()) == before


class TestSameCode:
    @pytest.mark.parametrize(
        ("after", "same"),
        [
            ("x = 1  # a\n", True),
            ("x = 1\n\n# a\n", True),
            ("x = 2\n", False),
            ("x = '1  # a'\n", False),
            ("if x:\n    x = 1\n", False),
            ("x = (\n", False),
        ],
    )
    def test_same_code_ignores_comments_and_blank_lines(self, after: str, same: bool) -> None:
        assert noqa.same_code("x = 1\n", after) is same
