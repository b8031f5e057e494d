"""The exact output of the report formats."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from shutil import which
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from support import ROOT
from support.outcomes import OUTCOMES, REASONS, finding, fix, place, silenced, source

from fsrace_lint.files.spans import Place, Span
from fsrace_lint.findings.finding import (
    Applicability,
    Finding,
    Proof,
    Related,
    Role,
    Severity,
    Silenced,
    Witness,
    WitnessStep,
)
from fsrace_lint.report import FORMATS, Options, Outcome, Problem, render
from fsrace_lint.report.diff import for_the_eyes, unified

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = json.loads((ROOT / "docs" / "findings.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def text_of(
    outcome: Outcome, sources: dict[str, str] | None = None, form: str = "trace", **options: Any
) -> str:
    known = {path: source(path, text) for path, text in (sources or {}).items()}
    plain = render(form, outcome, known, Options(**options))
    colored = render(form, outcome, known, Options(**{**options, "color": True}))
    assert ESCAPES.sub("", colored) == plain
    assert "\x1b" not in plain
    assert not [line for line in plain.split("\n") if line != line.rstrip()]
    return plain


def one(text: str, needle: str, width: int = 100, **changes: Any) -> str:
    """Return the report of one finding in `a.py`, without the summary."""
    outcome = Outcome((finding(place("a.py", text, needle), **changes),))
    body, _ = text_of(outcome, {"a.py": text}, width=width).split("\n\n", 1)
    return f"{body}\n"


MKDIR = """\
import os


def prepare(out):
    if not os.path.exists(out):
        os.makedirs(out)
    return out
"""


class TestTrace:
    def test_complete_finding(self) -> None:
        report = text_of(
            Outcome(
                (
                    finding(
                        place("train.py", MKDIR, "os.makedirs(out)"),
                        message="another process can create out after the check on line 5",
                        related=(
                            Related(place("train.py", MKDIR, "os.path.exists(out)"), "found missing here"),
                        ),
                        witness=Witness(
                            (
                                WitnessStep(0, "exists(out)", "False"),
                                WitnessStep(1, "exists(out)", "False"),
                                WitnessStep(0, "mkdir(out)"),
                                WitnessStep(1, "mkdir(out)", "FileExistsError"),
                            ),
                            "process 1 dies with FileExistsError",
                        ),
                        fix=fix(Applicability.SAFE, "pass exist_ok=True and drop the check"),
                    ),
                )
            ),
            {"train.py": MKDIR},
        )
        assert report == dedent(
            """\
            error[FSR101]: another process can create out after the check on line 5
             --> train.py:6:9
              |
            4 | def prepare(out):
            5 |     if not os.path.exists(out):
              |            ------------------- found missing here
            6 |         os.makedirs(out)
              |         ^^^^^^^^^^^^^^^^
            7 |     return out
              |
                process 0            | process 1
                ---------------------+------------------------------
                exists(out) -> False |
                                     | exists(out) -> False
                mkdir(out)           |
                                     | mkdir(out) -> FileExistsError
              = outcome: process 1 dies with FileExistsError
              = help: pass exist_ok=True and drop the check (safe fix)

            Found 1 error in 1 file. 1 fixable with `fsrace-lint fix`.
            """
        )

    def test_check_and_act_on_one_line(self) -> None:
        text = "if not exists(d): mkdir(d)\n"
        related = (Related(place("a.py", text, "exists(d)"), "found missing here"),)
        assert one(text, "mkdir(d)", related=related) == dedent(
            """\
            error[FSR101]: another process can create out
             --> a.py:1:19
              |
            1 | if not exists(d): mkdir(d)
              |                   ^^^^^^^^
              |        --------- found missing here
              |
            """
        )

    def test_blank_context_lines_are_trimmed_at_the_edges(self) -> None:
        text = "a = 1\n\nmkdir(d)\n\ncheck(d)\n\nb = 2\n"
        related = (Related(place("a.py", text, "check(d)"), "too late"),)
        assert one(text, "mkdir(d)", related=related) == dedent(
            """\
            error[FSR101]: another process can create out
             --> a.py:3:1
              |
            3 | mkdir(d)
              | ^^^^^^^^
            4 |
            5 | check(d)
              | -------- too late
              |
            """
        )

    def test_related_places_outside_the_context(self) -> None:
        near = "def far():\n    pass\n\n\n\n\n\n\nmkdir(d)\n"
        other = "\n" * 11 + "    rmtree(d)  # all ranks\n"
        related = (
            Related(place("a.py", near, "far()"), "in this function"),
            Related(place("b.py", other, "rmtree(d)"), "deleted here"),
            Related(Place("gone.py", Span(7, 3, 7, 9)), "called from here"),
            Related(Place("a.py", Span(99, 1, 99, 2)), "the file has become shorter"),
        )
        outcome = Outcome(
            (finding(place("a.py", near, "mkdir(d)"), related=related, fix=fix(Applicability.UNSAFE)),)
        )
        body, _ = text_of(outcome, {"a.py": near, "b.py": other}).split("\n\n", 1)
        assert f"{body}\n" == dedent(
            """\
            error[FSR101]: another process can create out
              --> a.py:9:1
               |
             9 | mkdir(d)
               | ^^^^^^^^
               |
              ::: a.py:1:5: in this function
               |
             1 | def far():
               |     -----
               |
              ::: b.py:12:5: deleted here
               |
            12 |     rmtree(d)  # all ranks
               |     ---------
               |
              ::: gone.py:7:3: called from here
              ::: a.py:99:1: the file has become shorter
               |
               = help: pass exist_ok=True (unsafe: local)
            """
        )

    def test_unknown_source_shows_only_the_location(self) -> None:
        outcome = Outcome(
            (
                finding(Place("a.py", Span(3, 1, 3, 4))),
                finding(Place("b.py", Span(3, 1, 3, 4)), fix=fix(Applicability.SKETCH)),
            )
        )
        assert text_of(outcome) == dedent(
            """\
            error[FSR101]: another process can create out
             --> a.py:3:1

            error[FSR101]: another process can create out
             --> b.py:3:1
              |
              = help: pass exist_ok=True (manual fix)

            Found 2 errors in 2 files.
            """
        )

    def test_multiline_span_marks_its_first_line(self) -> None:
        text = "def run():\n    extract(  \n        archive,\n    )\n    return 1\n"
        assert one(text, text[text.index("extract") : text.index("\n    return")]) == dedent(
            """\
            error[FSR101]: another process can create out
             --> a.py:2:5
              |
            1 | def run():
            2 |     extract(
              |     ^^^^^^^^...
            3 |         archive,
              |
            """
        )

    def test_empty_span_is_shown(self) -> None:
        outcome = Outcome((finding(Place("a.py", Span(1, 1, 1, 1))),))
        assert "1 |\n  | ^\n" in text_of(outcome, {"a.py": ""})

    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
    def test_newline_style_does_not_change_the_report(self, newline: str) -> None:
        outcome = Outcome((finding(place("a.py", MKDIR, "os.makedirs(out)")),))
        assert text_of(outcome, {"a.py": MKDIR.replace("\n", newline)}) == text_of(outcome, {"a.py": MKDIR})

    def test_form_feed_does_not_end_a_line(self) -> None:
        assert f"1 | a\\x0cb\\x0b\\u2028mkdir(d)\n  | {' ' * 16}^^^^^^^^\n" in one(
            "a\x0cb\x0b\u2028mkdir(d)\n", "mkdir(d)"
        )

    @pytest.mark.parametrize(
        ("before", "shown"),
        [
            ("\t", "    "),
            ("a\tb = ", "a    b = "),
            ('"最新" + ', '"最新" + '),
            ('"e\u0301" + ', '"e\u0301" + '),
            ('"\U0001f40d" + ', '"\U0001f40d" + '),
            ('"\x1b[31m" + ', '"\\x1b[31m" + '),
            ('"\u202e" + ', '"\\u202e" + '),
            ('"\u200b\x00\x7f\x9b" + ', '"\\u200b\\x00\\x7f\\x9b" + '),
            ('"[red]x[/red]" + ', '"[red]x[/red]" + '),
            ('"[/nothing]\\\\" + :snake: ', '"[/nothing]\\\\" + :snake: '),
        ],
    )
    def test_carets_align_with_their_text(self, before: str, shown: str) -> None:
        _, _, _, code, carets, _, _ = one(f'{before}mkdir("新")  # after\n', 'mkdir("新")').split("\n")
        assert code == f'1 | {shown}mkdir("新")  # after'
        assert carets == "  | " + " " * cell_len(shown) + "^" * 11

    def test_long_line_is_cut_at_its_end(self) -> None:
        text = "mkdir(d)" + "  # padding" * 20 + "\n"
        lines = one(text, "mkdir(d)", width=40).split("\n")
        assert lines[3:5] == ["1 | mkdir(d)  # padding  # padding  #...", "  | ^^^^^^^^"]

    def test_long_line_is_cut_on_both_sides(self) -> None:
        text = "x" * 100 + " mkdir(d) " + "y" * 100 + "\n"
        lines = one(text, "mkdir(d)", width=50).split("\n")
        # 46 cells hold the source: 6 for the ellipses, and about a quarter for the text before the span.
        assert lines[3] == "1 | ..." + "x" * 9 + " mkdir(d) " + "y" * 21 + "..."
        assert lines[4] == "  | " + " " * 13 + "^" * 8

    def test_long_line_is_cut_at_its_start(self) -> None:
        text = "x" * 100 + " mkdir(d)\n"
        lines = one(text, "mkdir(d)", width=50).split("\n")
        assert lines[3] == "1 | ..." + "x" * 34 + " mkdir(d)"
        assert lines[4] == "  | " + " " * 38 + "^" * 8

    def test_long_span_is_cut_with_its_line(self) -> None:
        text = "a = mkdir(" + "新" * 100 + ") + b\n"
        lines = one(text, text[4:-5], width=50).split("\n")
        assert lines[3] == "1 | a = mkdir(" + "新" * 16 + "..."
        assert lines[4] == "  |     " + "^" * 38 + "..."

    def test_long_label_is_wrapped(self) -> None:
        label = "the path is the same on all ranks and is not made unique"
        text = "save(path)\n"
        related = (Related(place("a.py", text, "path"), label),)
        assert one(text, "save(path)", width=44, related=related).split("\n")[5:9] == [
            "  |      ---- the path is the same on all",
            "  |           ranks and is not made unique",
            "  |",
            "",
        ]

    def test_long_label_moves_below_if_the_line_has_no_room(self) -> None:
        text = "x" * 28 + " = save\n"
        related = (Related(place("a.py", text, "save"), "the same on all ranks"),)
        assert one(text, "x", width=40, related=related).split("\n")[3:8] == [
            "1 | " + "x" * 28 + " = save",
            "  | ^",
            "  | " + " " * 31 + "----",
            "  | " + " " * 12 + "the same on all ranks",
            "  |",
        ]

    def test_trace_of_three_processes(self) -> None:
        witness = Witness(
            (
                WitnessStep(0, "open(a.bin, 'w')"),
                WitnessStep(2, "open(a.bin)", "b''"),
                WitnessStep(1, "unlink(a.bin)"),
                WitnessStep(0, "close()"),
            ),
            "process 2 reads an empty file",
        )
        lines = one("extract(a)\n", "extract(a)", witness=witness).split("\n")
        assert lines[6:] == [
            "    process 0        | process 1     | process 2",
            "    -----------------+---------------+-------------------",
            "    open(a.bin, 'w') |               |",
            "                     |               | open(a.bin) -> b''",
            "                     | unlink(a.bin) |",
            "    close()          |               |",
            "  = outcome: process 2 reads an empty file",
            "",
        ]

    def test_trace_columns_shrink_to_the_width(self) -> None:
        witness = Witness(
            (
                WitnessStep(0, "rename(checkpoint.tmp, checkpoint)"),
                WitnessStep(1, "最新最新最新最新最新", "[red]\x1b"),
            ),
            "process 1 reads nothing, because the file it wants has a new name",
        )
        lines = one("extract(a)\n", "extract(a)", width=43, witness=witness).split("\n")
        # 39 cells, 3 of them for the bar, leave 18 for each column.
        assert lines[6:] == [
            "    process 0          | process 1",
            "    -------------------+-------------------",
            "    rename(checkpoint. |",
            "      tmp, checkpoint) |",
            "                       | 最新最新最新最新最",
            "                       |   新 -> [red]\\x1b",
            "  = outcome: process 1 reads nothing,",
            "             because the file it wants has",
            "             a new name",
            "",
        ]

    def test_trace_of_many_processes_becomes_a_list(self) -> None:
        witness = Witness(tuple(WitnessStep(n, "open(a_long_name.bin, 'w')") for n in range(3)), "a mixture")
        lines = one("extract(a)\n", "extract(a)", width=40, witness=witness).split("\n")
        assert lines[6:] == [
            "    process 0: open(a_long_name.bin,",
            "      'w')",
            "    process 1: open(a_long_name.bin,",
            "      'w')",
            "    process 2: open(a_long_name.bin,",
            "      'w')",
            "  = outcome: a mixture",
            "",
        ]

    def test_trace_without_steps_shows_the_outcome(self) -> None:
        lines = one("f(a)\n", "f(a)", witness=Witness((), "it hangs")).split("\n")
        assert lines[5:] == ["  |", "  = outcome: it hangs", ""]

    def test_control_characters_in_paths_and_messages_are_escaped(self) -> None:
        path = "a\x1b]0;x\x07\n[b]\udcff\t.py"
        outcome = Outcome(
            (finding(Place(path, Span(1, 1, 1, 2)), message="x\r\n[/]\x1b[2J"),), (Problem(path, "no\x1b"),)
        )
        shown = "a\\x1b]0;x\\x07\\n[b]\\udcff\\t.py"
        report = text_of(outcome, statistics=True)
        assert report.encode("utf-8")
        assert report.split("\n")[:4] == [
            "error[FSR101]: x\\r\\n[/]\\x1b[2J",
            f" --> {shown}:1:1",
            "",
            f"{shown}: error: no\\x1b",
        ]

    def test_color_marks_the_severity(self) -> None:
        outcome = Outcome((finding(place("a.py", "f()", "f()"), severity=Severity.WARNING),))
        report = render("trace", outcome, {"a.py": source("a.py", "f()")}, Options(color=True))
        assert "\x1b[1;33mwarning[FSR101]\x1b[0m" in report
        assert "\x1b[1;33m^^^\x1b[0m" in report


class TestSilenced:
    def test_each_call_is_one_line_followed_by_a_count(self) -> None:
        here, there = Place("a.py", Span(6, 9, 6, 25)), Place("b.py", Span(3, 1, 3, 9))
        listed = (
            silenced(here, cause=Place("a.py", Span(5, 8, 5, 30))),
            silenced(here, cause=there, reason="lock", message="FileLock('l') is held"),
            silenced(there, reason="unexposed", call="os.remove(old)", message="no rule reports a delete"),
            silenced(there),
        )
        assert text_of(Outcome(statistics={"files": 2}, silenced=listed)) == dedent(
            """\
            a.py:6:9: not reported: guard: os.makedirs(out): one process comes here (line 5)
            a.py:6:9: not reported: lock: os.makedirs(out): FileLock('l') is held (b.py:3)
            b.py:3:1: not reported: unexposed: os.remove(old): no rule reports a delete
            b.py:3:1: not reported: guard: os.makedirs(out): one process comes here
            Not reported: 4 calls (2 guard, 1 lock, 1 unexposed).

            No filesystem races found in 2 files.
            """
        )

    def test_empty_list_is_counted(self) -> None:
        assert text_of(Outcome(silenced=())) == "Not reported: 0 calls.\n\nNo filesystem races found.\n"
        assert "reported" not in text_of(Outcome())

    def test_list_is_between_findings_and_errors(self) -> None:
        where = Place("a.py", Span(1, 1, 1, 2))
        outcome = Outcome((finding(where),), (Problem("b", "no"),), silenced=(silenced(where),))
        assert text_of(outcome) == dedent(
            """\
            error[FSR101]: another process can create out
             --> a.py:1:1

            a.py:1:1: not reported: guard: os.makedirs(out): one process comes here
            Not reported: 1 call (1 guard).

            b: error: no

            Found 1 error in 1 file; 1 problem prevented a complete check.
            """
        )

    def test_control_characters_are_escaped(self) -> None:
        path = "a\x1b[2J\udcff.py"
        hostile = silenced(
            Place(path, Span(1, 1, 1, 2)),
            call="mkdir('\u202e')",
            message="[red]\r\nx",
            reason="\x07",
            cause=Place("b\n.py", Span(2, 1, 2, 2)),
        )
        assert text_of(Outcome(silenced=(hostile,))).split("\n")[:2] == [
            "a\\x1b[2J\\udcff.py:1:1: not reported: \\x07: mkdir('\\u202e'): [red]\\r\\nx (b\\n.py:2)",
            "Not reported: 1 call (1 \\x07).",
        ]

    def test_long_line_is_not_wrapped(self) -> None:
        long = silenced(Place("a.py", Span(1, 1, 1, 2)), message="because " * 40)
        report = text_of(Outcome(silenced=(long,)), width=40)
        assert report.count("because") == 40
        assert len(report.split("\n")) == 5

    def test_color_dims_the_reason(self) -> None:
        outcome = Outcome(silenced=(silenced(Place("a.py", Span(1, 1, 1, 2))),))
        report = render("trace", outcome, {}, Options(color=True))
        assert "\x1b[1ma.py:1:1\x1b[0m: \x1b[2mnot reported: guard\x1b[0m: os.makedirs(out)" in report


class TestSummary:
    @staticmethod
    def last(outcome: Outcome) -> str:
        return text_of(outcome).split("\n")[-2]

    def test_no_findings(self) -> None:
        assert text_of(Outcome(statistics={"files": 12})) == "No filesystem races found in 12 files.\n"
        assert text_of(Outcome(statistics={"files": 1})) == "No filesystem races found in 1 file.\n"
        assert text_of(Outcome()) == "No filesystem races found.\n"

    def test_no_findings_in_an_incomplete_check(self) -> None:
        outcome = Outcome((), (Problem("", "no"), Problem("b", "no")), {"files": 3})
        assert text_of(outcome) == dedent(
            """\
            error: no
            b: error: no

            No filesystem races found in 3 files; 2 problems prevented a complete check.
            """
        )

    @pytest.mark.parametrize(
        ("applicabilities", "end"),
        [
            ("", ""),
            ("sketch", ""),
            ("safe", " 1 fixable with `fsrace-lint fix`."),
            ("unsafe unsafe", " Up to 2 fixable with `fsrace-lint fix --unsafe-fixes`."),
            ("safe unsafe sketch", " 1 fixable with `fsrace-lint fix`; up to 1 more with `--unsafe-fixes`."),
        ],
    )
    def test_fixable_findings_are_counted(self, applicabilities: str, end: str) -> None:
        where = Place("a.py", Span(1, 1, 1, 2))
        fixes = [fix(Applicability(name)) for name in applicabilities.split()]
        outcome = Outcome((finding(where), *(finding(where, fix=each) for each in fixes)))
        count = "1 error" if not fixes else f"{len(fixes) + 1} errors"
        assert self.last(outcome) == f"Found {count} in 1 file.{end}"

    def test_severities_and_files_are_counted(self) -> None:
        severities = [Severity.NOTE, Severity.WARNING, Severity.ERROR, Severity.WARNING, Severity.NOTE]
        outcome = Outcome(
            tuple(
                finding(Place(f"{number % 2}.py", Span(1, 1, 1, 2)), severity=severity)
                for number, severity in enumerate(severities)
            )
        )
        assert self.last(outcome) == "Found 5 findings (1 error, 2 warnings, 2 notes) in 2 files."

    def test_statistics(self) -> None:
        outcome = Outcome(
            (finding(Place("a.py", Span(1, 1, 1, 2))),), (), {"files": 12, "unresolved-calls": 3}
        )
        seconds = {"read": 0.25, "report": 10.0004}
        assert text_of(outcome, statistics=True, seconds=lambda: seconds).split("\n")[3:-2] == [
            "    12  files",
            "     3  unresolved-calls",
            "     1  FSR101 check-then-mkdir",
            "     1  evidence evident",
            " 0.250  seconds to read",
            "10.000  seconds to report",
            "",
        ]


@given(OUTCOMES, st.text(st.characters(exclude_categories=["Cs"]), max_size=300), st.integers(1, 120))
@settings(deadline=None)
def test_every_outcome_can_be_rendered_as_text(outcome: Outcome, code: str, width: int) -> None:
    report = text_of(outcome, {"a.py": code}, width=width, statistics=True)
    assert report.encode("utf-8")
    heads = [line for line in report.split("\n") if re.match(r"(error|warning|note)\[FSR[0-9]{3}\]:", line)]
    assert len(heads) >= len(outcome.findings)


@given(OUTCOMES, st.text(st.characters(exclude_categories=["Cs"]), max_size=300), st.integers(1, 120))
@settings(deadline=None)
def test_finding_takes_at_most_ten_lines(outcome: Outcome, code: str, width: int) -> None:
    report = text_of(Outcome(outcome.findings), {"a.py": code}, "full", width=width)
    for shown in re.split(r"(?m)^(?=(?:error|warning|note)\[FSR)", report)[1:]:
        assert len(shown.split("\n\n")[0].split("\n")) <= 10


class TestFull:
    CHECKED = Related(place("a.py", MKDIR, "os.path.exists(out)"), "multiple processes can find it missing")
    CALLED = Related(Place("b.py", Span(7, 1, 7, 9)), "called from `f()`", Role.CALL)
    REASON = Related(
        Place("b.py", Span(3, 1, 3, 9)),
        "all run it: `i()`",
        Role.REASON,
    )

    def shown(self, *findings: Finding, sources: dict[str, str] | None = None) -> str:
        return text_of(Outcome(findings), {"a.py": MKDIR} | (sources or {}), "full")

    def test_complete_finding(self) -> None:
        found = finding(
            place("a.py", MKDIR, "os.makedirs(out)"),
            related=(self.CHECKED, self.CALLED, self.REASON),
            witness=Witness((), "the slower process fails with `FileExistsError`"),
            fix=fix(Applicability.SAFE, "pass `exist_ok=True`"),
        )
        assert self.shown(found) == dedent(
            """\
            error[FSR101]: another process can create out
             --> a.py:6:9
              |
            5 |     if not os.path.exists(out):
              |            ------------------- multiple processes can find it missing
            6 |         os.makedirs(out)
              |         ^^^^^^^^^^^^^^^^ the slower process fails with `FileExistsError`
              |
              = note: all run it: `i()` (b.py:3); `prepare()` is called from `f()` (b.py:7) [high confidence]
              = help: pass `exist_ok=True` (safe fix)

            Found 1 error in 1 file. 1 fixable with `fsrace-lint fix`.
            """
        )

    def test_findings_with_one_cause_are_collapsed(self) -> None:
        witness = Witness((), "it fails")
        places = [Place("a.py", Span(line, 1, line, 3)) for line in range(1, 7)]
        found = [finding(where, related=(self.REASON,), witness=witness) for where in places]
        other = finding(places[0], message="something else", witness=witness)
        report = self.shown(*found, other)
        assert report.count("error[FSR101]") == 2
        assert "= note: 5 similar findings: a.py:2, a.py:3, a.py:4, and 2 others" in report
        assert "Found 7 errors in 1 file." in report

    def test_related_place_in_another_file(self) -> None:
        related = (Related(place("b.py", "write(out)\n", "write(out)"), "written here, by `write()`"),)
        found = finding(
            place("a.py", MKDIR, "os.makedirs(out)"), related=related, witness=Witness((), "it is torn")
        )
        assert self.shown(found, sources={"b.py": "write(out)\n"}).split("\n")[3:9] == [
            "6 |         os.makedirs(out)",
            "  |         ^^^^^^^^^^^^^^^^ it is torn",
            " ::: b.py:1:1",
            "1 | write(out)",
            "  | ---------- written here, by `write()`",
            "  |",
        ]

    def test_lines_between_places_are_elided(self) -> None:
        text = "check(d)\na\nb\nmkdir(d)\n"
        related = (Related(place("a.py", text, "check(d)"), "checked here"),)
        found = finding(place("a.py", text, "mkdir(d)"), related=related)
        assert text_of(Outcome((found,)), {"a.py": text}, "full").split("\n")[3:8] == [
            "1 | check(d)",
            "  | -------- checked here",
            "...",
            "4 | mkdir(d)",
            "  | ^^^^^^^^",
        ]
        text = "check(d)\na\nmkdir(d)\n"
        found = finding(place("a.py", text, "mkdir(d)"), related=related)
        assert "\n2 | a\n" in text_of(Outcome((found,)), {"a.py": text}, "full")

    def test_long_outcome_is_cut_and_distant_place_takes_one_line(self) -> None:
        text = "check(d)\na\nb\n" + "x" * 60 + "; mkdir(d)\n"
        witness = Witness((), "the outcome " * 12)
        related = (Related(place("a.py", text, "check(d)"), "checked here " * 12), self.REASON)
        where, offered = place("a.py", text, "mkdir(d)"), fix(Applicability.SAFE, "fix it")
        found = finding(where, related=related, witness=witness)
        lines = text_of(Outcome((found, found)), {"a.py": text}, "full").split("\n\n")[0].split("\n")
        assert [line[:5] for line in lines] == [
            *("error", " --> ", "1 | c", "  | -", "  | c", "4 | x", "  |  ", "  | t", "  = n", "  = n"),
        ]
        found = finding(where, related=related, witness=witness, fix=offered)
        lines = text_of(Outcome((found, found)), {"a.py": text}, "full").split("\n\n")[0].split("\n")
        assert len(lines) <= 10
        assert lines[5].startswith("  | the outcome the outcome")
        assert lines[5].endswith("...")
        assert lines[6].startswith(" ::: a.py:1:1: checked here")

    def test_finding_without_a_trace_has_no_note(self) -> None:
        assert "note:" not in self.shown(finding(place("a.py", MKDIR, "os"), message="unreadable"))

    @pytest.mark.parametrize(
        ("evidence", "scenario", "note"),
        [
            ("evident", "", "ranks of one job run this: the code checks ranks or calls collectives"),
            ("plausible", "calls", "any process can call this: nothing in the project limits it to one"),
            ("plausible", "commands", "two runs of this command can overlap"),
            ("plausible", "imports", "every process that imports this module runs this"),
            ("none", "", "nothing in the project shows that multiple processes run this"),
        ],
    )
    def test_note_without_a_location(self, evidence: str, scenario: str, note: str) -> None:
        found = finding(
            place("a.py", MKDIR, "os"),
            evidence=evidence,
            scenario=scenario,
            confidence="medium",
            witness=Witness((), "it fails"),
        )
        assert f"= note: {note} [medium confidence]\n" in self.shown(found)

    def test_most_certain_findings_come_first(self) -> None:
        how = [("note", "low"), ("warning", "medium"), ("error", "high"), ("warning", "high")]
        found = [
            finding(Place("a.py", Span(line, 1, line, 2)), severity=Severity(severity), confidence=confidence)
            for line, (severity, confidence) in enumerate(how, 1)
        ]
        assert re.findall(r"--> a.py:(\d)", self.shown(*found)) == ["3", "4", "2", "1"]

    def test_long_call_chain_is_abbreviated(self) -> None:
        calls = [
            Related(Place("b.py", Span(n, 1, n, 2)), f"called from `f{n}()`", Role.CALL) for n in range(1, 5)
        ]
        found = finding(
            place("a.py", MKDIR, "os"), related=(*calls, self.REASON), witness=Witness((), "it fails")
        )
        chain = "(b.py:3); `prepare()` is called from `f1()` (b.py:1), `f2()` (b.py:2), and 2 more"
        assert chain in self.shown(found)

    def test_hint_suggests_explain(self) -> None:
        outcome = Outcome((finding(place("a.py", MKDIR, "os")),))
        assert "Next: `fsrace-lint explain FSR101`" in text_of(outcome, {"a.py": MKDIR}, "full", hints=True)


class TestOneLine:
    FOUND = (
        finding(
            Place("a.py", Span(6, 9, 6, 25)),
            witness=Witness((), "it fails"),
            fix=fix(Applicability.SAFE),
        ),
        finding(Place("a.py", Span(16, 10, 16, 25)), fix=fix(Applicability.UNSAFE)),
        finding(Place("b.py", Span(1, 1, 1, 2))),
    )

    def test_concise_format(self) -> None:
        assert text_of(Outcome(self.FOUND), form="concise", summary=False) == dedent(
            """\
            a.py:6:9: FSR101 [*] another process can create out (it fails) [error, high confidence]
            a.py:16:10: FSR101 another process can create out [error, high confidence]
            b.py:1:1: FSR101 another process can create out [error, high confidence]
            """
        )

    def test_grouped_format(self) -> None:
        assert text_of(Outcome(self.FOUND), form="grouped", summary=False) == dedent(
            """\
            a.py:
              6:9    FSR101 [*] another process can create out (it fails) [error, high confidence]
              16:10  FSR101 another process can create out [error, high confidence]

            b.py:
              1:1  FSR101 another process can create out [error, high confidence]

            """
        )


class TestJson:
    @staticmethod
    def parsed(outcome: Outcome) -> Any:
        report = render("json", outcome, {}, Options())
        assert report.endswith("}\n")
        document = json.loads(report)
        VALIDATOR.validate(document)
        return document

    def test_schema_is_valid_and_describes_every_property(self) -> None:
        VALIDATOR.check_schema(SCHEMA)
        objects = [SCHEMA, *(each for each in SCHEMA["$defs"].values() if each["type"] == "object")]
        for each in objects:
            assert "additionalProperties" in each
            assert sorted(each["required"]) == sorted(
                each["properties"].keys() - {"proof", "silenced", "suppressed"}
            )
            for name, value in each["properties"].items():
                target = SCHEMA["$defs"][value["$ref"].rpartition("/")[2]] if "$ref" in value else value
                assert target["description"].endswith("."), name

    def test_no_findings(self) -> None:
        assert render("json", Outcome(), {}, Options()) == dedent(
            """\
            {
              "version": 1,
              "findings": [],
              "errors": [],
              "statistics": {}
            }
            """
        )

    def test_proof_is_present_only_if_the_code_was_run(self) -> None:
        there = Place("a.py", Span(1, 1, 1, 1))
        run = finding(there, proof=Proof("proven", "it fails"))
        rows = self.parsed(Outcome((run, finding(there))))["findings"]
        assert [row.get("proof") for row in rows] == [{"status": "proven", "text": "it fails"}, None]
        assert "proof" not in rows[1]

    def test_fields_of_a_finding(self) -> None:
        outcome = Outcome(
            (
                finding(
                    Place("a.py", Span(6, 9, 6, 25)),
                    related=(Related(Place("b.py", Span(1, 2, 3, 4)), "here"),),
                    witness=Witness((WitnessStep(1, "mkdir(out)", "FileExistsError"),), "it dies"),
                    fix=fix(Applicability.SAFE),
                ),
                finding(Place("b.py", Span(1, 1, 1, 1)), strict=True, severity=Severity.NOTE),
            ),
            (Problem("c", "no"),),
            {"files": 2},
        )
        document = self.parsed(outcome)
        assert document["findings"][0] == {
            "code": "FSR101",
            "name": "check-then-mkdir",
            "message": "another process can create out",
            "path": "a.py",
            "line": 6,
            "column": 9,
            "end_line": 6,
            "end_column": 25,
            "function": "prepare",
            "severity": "error",
            "confidence": "high",
            "evidence": "evident",
            "scenario": "",
            "strict": False,
            "related": [
                {"path": "b.py", "line": 1, "column": 2, "end_line": 3, "end_column": 4, "message": "here"}
            ],
            "witness": {
                "steps": [{"process": 1, "action": "mkdir(out)", "result": "FileExistsError"}],
                "outcome": "it dies",
            },
            "fix": {
                "recipe": "exist-ok",
                "applicability": "safe",
                "tier": "local",
                "description": "pass exist_ok=True",
            },
        }
        assert document["findings"][1]["witness"] is None
        assert document["findings"][1]["fix"] is None
        assert document["errors"] == [{"path": "c", "message": "no"}]
        assert document["statistics"] == {"files": 2}

    def test_fields_of_a_silenced_call(self) -> None:
        where = Place("a.py", Span(6, 9, 6, 25))
        listed = (silenced(where, cause=Place("b.py", Span(1, 2, 3, 4))), silenced(where, reason="unproven"))
        document = self.parsed(Outcome(silenced=listed))
        assert document["silenced"][0] == {
            "path": "a.py",
            "line": 6,
            "column": 9,
            "end_line": 6,
            "end_column": 25,
            "function": "prepare",
            "operation": "mkdir",
            "call": "os.makedirs(out)",
            "reason": "guard",
            "message": "one process comes here",
            "cause": {"path": "b.py", "line": 1, "column": 2, "end_line": 3, "end_column": 4},
        }
        assert document["silenced"][1]["cause"] is None
        assert self.parsed(Outcome(silenced=()))["silenced"] == []
        assert "silenced" not in self.parsed(Outcome())

    def test_schema_and_docs_list_every_reason(self) -> None:
        assert SCHEMA["$defs"]["silenced"]["properties"]["reason"]["enum"] == REASONS
        page = (ROOT / "docs" / "output.md").read_text(encoding="utf-8")
        assert [row for row in REASONS if f"| `{row}` |" not in page] == []
        documented = Silenced.__doc__ or ""
        assert [row for row in REASONS if f"`{row}`" not in documented] == []

    def test_undecodable_paths_are_escaped(self) -> None:
        document = self.parsed(Outcome((finding(Place("é\udcff.py", Span(1, 1, 1, 1))),)))
        assert document["findings"][0]["path"] == "é\\udcff.py"

    @given(OUTCOMES)
    def test_every_outcome_matches_the_schema(self, outcome: Outcome) -> None:
        document = self.parsed(outcome)
        assert len(document["findings"]) == len(outcome.findings)
        assert len(document.get("silenced", ())) == len(outcome.silenced or ())
        assert len(document.get("suppressed", ())) == len(outcome.suppressed or ())

    def test_json_and_github_do_not_import_rich(self) -> None:
        code = (
            "import sys; from fsrace_lint.report import Options, Outcome, render;"
            "render('json', Outcome(), {}, Options()); render('github', Outcome(), {}, Options());"
            "import fsrace_lint.report.diff;"
            "sys.exit(any(name.partition('.')[0] == 'rich' for name in sys.modules))"
        )
        assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


class TestGithub:
    @staticmethod
    def commands(*findings: Finding) -> list[str]:
        return render("github", Outcome(findings), {}, Options()).splitlines()

    def test_finding_on_one_line_has_columns(self) -> None:
        witness = Witness((WitnessStep(0, "mkdir(out)"),), "process 1 dies")
        (command,) = self.commands(finding(Place("a.py", Span(6, 9, 6, 25)), witness=witness))
        assert command == (
            "::error file=a.py,line=6,col=9,endLine=6,endColumn=25,title=FSR101 check-then-mkdir"
            " (high confidence)::another process can create out%0AOutcome: process 1 dies"
        )

    def test_finding_on_multiple_lines_has_no_columns(self) -> None:
        (command,) = self.commands(finding(Place("a.py", Span(6, 9, 8, 2))))
        assert command.startswith("::error file=a.py,line=6,endLine=8,title=FSR101 check-then-mkdir (high ")

    @pytest.mark.parametrize(
        ("severity", "level"),
        [(Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.NOTE, "notice")],
    )
    def test_severity_sets_the_level(self, severity: Severity, level: str) -> None:
        (command,) = self.commands(finding(Place("a.py", Span(1, 1, 1, 2)), severity=severity))
        assert command.startswith(f"::{level} file=")

    def test_special_characters_are_escaped(self) -> None:
        (command,) = self.commands(
            finding(
                Place("c:/50%,\r\n::error::x\udcff.py", Span(1, 1, 1, 2)),
                message="100%, a:b\r\n::error::x\udcff",
            )
        )
        assert command == (
            "::error file=c%3A/50%25%2C%0D%0A%3A%3Aerror%3A%3Ax\\udcff.py,line=1,col=1,endLine=1,endColumn=2,"
            "title=FSR101 check-then-mkdir (high confidence)::100%25, a:b%0D%0A::error::x\\udcff"
        )

    def test_run_errors_are_annotations(self) -> None:
        outcome = Outcome((), (Problem("a,b", "no: 5%"), Problem("", "no")))
        assert render("github", outcome, {}, Options()) == (
            "::error file=a%2Cb,title=fsrace-lint error::no: 5%25\n::error title=fsrace-lint error::no\n"
        )

    def test_no_findings(self) -> None:
        assert render("github", Outcome(), {}, Options()) == ""


TOOLS = [
    pytest.param(
        command, id=command[0], marks=pytest.mark.skipif(not which(command[0]), reason="not installed")
    )
    for command in (["git", "apply", "-"], ["patch", "-p1", "--quiet"])
]
BEFORE = b"import os\n\n\nif not os.path.exists(d):\n    os.makedirs(d)\n"
AFTER = b"import os\n\n\nos.makedirs(d, exist_ok=True)\n"


class TestDiff:
    def test_unified_format(self) -> None:
        assert unified("lib/a.py", BEFORE, AFTER, "utf-8").split("\n") == [
            "--- a/lib/a.py",
            "+++ b/lib/a.py",
            "@@ -1,5 +1,4 @@",
            " import os",
            " ",
            " ",
            "-if not os.path.exists(d):",
            "-    os.makedirs(d)",
            "+os.makedirs(d, exist_ok=True)",
            "",
        ]

    def test_no_change_gives_an_empty_diff(self) -> None:
        assert unified("a.py", BEFORE, BEFORE, "utf-8") == ""

    @pytest.mark.parametrize("tool", TOOLS)
    @pytest.mark.parametrize(
        ("before", "after", "encoding"),
        [
            pytest.param(BEFORE, AFTER, "utf-8", id="lf"),
            pytest.param(BEFORE.replace(b"\n", b"\r\n"), AFTER.replace(b"\n", b"\r\n"), "utf-8", id="crlf"),
            pytest.param(BEFORE[:-1], AFTER[:-1], "utf-8", id="no final newline"),
            pytest.param(BEFORE[:-1], AFTER, "utf-8", id="final newline gained"),
            pytest.param(BEFORE, AFTER[:-1], "utf-8", id="final newline lost"),
            pytest.param(BEFORE.replace(b"\n", b"\r"), AFTER.replace(b"\n", b"\r"), "utf-8", id="cr"),
            pytest.param(b"a\x0cb\r\nc\n\x0b\nd", b"a\x0cb\nc\n\x0b\ne", "utf-8", id="mixed"),
            pytest.param(b"\xef\xbb\xbf" + BEFORE, b"\xef\xbb\xbf" + AFTER, "utf-8", id="bom"),
            pytest.param(b"\xef\xbb\xbf" + BEFORE, b"\xef\xbb\xbf" + AFTER, "utf-8-sig", id="bom codec"),
            pytest.param(b"# caf\xe9\nx\n", b"# caf\xe9\ny\n", "latin-1", id="latin-1"),
            pytest.param(b"", b"x\n", "utf-8", id="from empty"),
        ],
    )
    @pytest.mark.parametrize("name", ["lib/a.py", "lib/an odd, n\u00e4me.py"], ids=["plain", "odd"])
    def test_diff_applies(
        self, tool: list[str], before: bytes, after: bytes, encoding: str, name: str, tmp_path: Path
    ) -> None:
        check_applies(tool, name, before, after, encoding, tmp_path)

    @pytest.mark.skipif(os.name == "nt", reason="no such names there")
    @pytest.mark.parametrize("tool", TOOLS)
    @pytest.mark.parametrize("name", ['a"b.py', "a\\b.py", "a\tb.py", "a\nb.py", "\u00e4\x1b \u4e2d.py"])
    def test_diff_applies_to_quoted_names(self, tool: list[str], name: str, tmp_path: Path) -> None:
        check_applies(tool, name, BEFORE, AFTER, "utf-8", tmp_path)

    def test_undecodable_name_is_quoted(self) -> None:
        diff = unified("\udcff.py", BEFORE, AFTER, "utf-8")
        assert diff.startswith('--- "a/\\377.py"\n+++ "b/\\377.py"\n')

    def test_colored_diff_escapes_control_characters(self) -> None:
        diff = unified("a.py", b"x = '[red]'\r\n", b"x = '\x1b[2J'\t\r\n", "utf-8")
        assert for_the_eyes(diff, color=True) == (
            "\x1b[1m--- a/a.py\x1b[0m\n"
            "\x1b[1m+++ b/a.py\x1b[0m\n"
            "\x1b[36m@@ -1 +1 @@\x1b[0m\n"
            "\x1b[31m-x = '[red]'\x1b[0m\n"
            "\x1b[32m+x = '\\x1b[2J'\t\x1b[0m\n"
        )


def check_applies(
    tool: list[str], name: str, before: bytes, after: bytes, encoding: str, directory: Path
) -> None:
    file = directory / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(before)
    codec = "utf-8" if encoding == "utf-8-sig" else encoding
    patch = unified(name, before, after, encoding).encode(codec)
    # A hook that runs the tests sets GIT_DIR, and the user may have configured strict whitespace checks.
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    run = subprocess.run(tool, input=patch, cwd=directory, env=env, capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
    assert file.read_bytes() == after


def test_every_format_renders_an_empty_outcome() -> None:
    for name in FORMATS:
        assert render(name, Outcome(), {}, Options())[-1:] in {"", "\n"}
