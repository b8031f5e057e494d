"""The HTML page is valid and self-contained, and escapes all text."""

from __future__ import annotations

import importlib.resources
import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import EXAMPLES
from support.cli import run, write
from support.html import elements, only, parsed, text_of
from support.outcomes import OUTCOMES, finding, fix, place, source

from fsrace_lint import rules
from fsrace_lint.files.spans import Place, Span
from fsrace_lint.findings.finding import Applicability, Related, Severity, Witness, WitnessStep
from fsrace_lint.report import Edit, Options, Outcome, Preview, Problem, RuleInfo, Tool, render

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

    from fsrace_lint.findings.finding import Finding

pytestmark = pytest.mark.usefixtures("here")

HOSTILE: Final = (
    "</script><img src=x onerror=alert(1)>\"'`&amp;<!--\u202e\u2066\x1b[2J\x00\ud800\udcff\ufffe\U0001ffff]]>"
)
SPELLED: Final = (
    "</script><img src=x onerror=alert(1)>\"'`&amp;<!--\\u202e\\u2066\\x1b[2J\\x00\\ud800\\udcff"
    "\\U0000fffe\\U0001ffff]]>"
)
PAIR: Final = Witness(
    (
        WitnessStep(0, "exists(out)", "False"),
        WitnessStep(1, "exists(out)", "False"),
        WitnessStep(0, "makedirs(out)", "done"),
        WitnessStep(1, "makedirs(out)", "FileExistsError"),
    ),
    "process 1 dies with FileExistsError",
)
HERE: Final = Place("a.py", Span(1, 1, 1, 2))
MKDIR: Final = """\
import os


def prepare(out):
    if not os.path.exists(out):
\tos.makedirs(out)
    return out
"""


def page(
    *findings: Finding, sources: dict[str, str] | None = None, previews: Any = None, **options: Any
) -> Element:
    known = {path: source(path, text) for path, text in (sources or {}).items()}
    return parsed(render("html", Outcome(findings, previews=previews), known, Options(**options)))


def rows(block: Element) -> list[str]:
    """Return the lines of a code block, with their line numbers."""
    return [text_of(line).rstrip("\n") for line in elements(block, "span", "l")]


class TestFromRealFindings:
    @pytest.fixture(scope="class")
    @staticmethod
    def shown() -> Element:
        return parsed(run("check", str(EXAMPLES), "--format=html", code=1).stdout)

    def test_examples_are_grouped_by_file(self, shown: Element) -> None:
        assert text_of(only(shown, "h1")) == "12 findings in 6 files"
        files = elements(shown, "details", "file")
        assert [text_of(only(file, "h3")).rpartition("/")[2] for file in files] == [
            "cache.py",
            "checkpoint.py",
            "config.py",
            "data.py",
            "metrics.py",
            "train.py",
        ]
        assert [len(elements(file, "details", "finding")) for file in files] == [2, 2, 1, 3, 3, 1]
        codes = {each.get("data-rule") for each in elements(shown, "details", "finding")}
        assert codes == {"FSR101", "FSR103", "FSR105", "FSR201", "FSR301"}

    def test_every_reported_rule_has_its_page(self, shown: Element) -> None:
        found = {text_of(only(rule, "h3")): rule for rule in elements(shown, "details", "rule")}
        assert list(found) == [
            "FSR101 check-then-mkdir",
            "FSR103 check-then-delete",
            "FSR105 mkdir-without-exist-ok",
            "FSR201 unguarded-write",
            "FSR301 shared-extraction",
        ]
        rule = found["FSR101 check-then-mkdir"]
        shown_text = " ".join(text_of(rule).split())
        loaded = rules.find("FSR101")
        assert loaded is not None
        for sentence in loaded.page.split("\n\n")[1].replace("\n", " ").split(". "):
            assert sentence.rstrip(".").replace("`", "") in shown_text
        assert [each.text for each in elements(rule, "h4")] == ["Bad", "Good", "Found in 2 places"]
        assert text_of(elements(rule, "pre")[1]).endswith("    os.makedirs(out, exist_ok=True)")
        assert len(elements(rule, "a")) == 2

    def test_each_fix_is_shown_as_a_diff(self, shown: Element) -> None:
        """One fix is manual, because it needs the helpers."""
        findings = elements(shown, "details", "finding")
        diffs = [elements(each, "pre", "diff") for each in findings]
        reason = "not applied, because helper-module is not set"
        by_hand = [index for index, each in enumerate(findings) if reason in text_of(each)]
        assert len(by_hand) == 1
        assert [len(each) for each in diffs] == [int(index not in by_hand) for index in range(12)]
        assert rows(diffs[0][0]) == [
            "1414  def open_cache(cache_dir: Path, *, rebuild_vocabulary: bool) -> None:",
            '1515      """Make the cache ready for use."""',
            "16-     if not cache_dir.is_dir():",
            "17-         cache_dir.mkdir(parents=True)",
            "16+     cache_dir.mkdir(parents=True, exist_ok=True)",
            "1817      if rebuild_vocabulary:",
            '1918          drop_vocabulary(cache_dir / "vocabulary.json")',
        ]

    def test_only_the_first_finding_is_open(self, shown: Element) -> None:
        is_open = [each.get("open") is not None for each in elements(shown, "details", "finding")]
        assert is_open == [True] + [False] * 11

    def test_report_option_writes_the_page(self) -> None:
        write({"train.py": MKDIR.replace("\t", "        ")})
        assert run("check", "--report=html=races.html", code=1).stdout == run("check", code=1).stdout
        assert len(elements(parsed(Path("races.html").read_text("ascii")), "details", "finding")) == 1

    def test_no_findings(self) -> None:
        write({"a.py": "x = 1\n"})
        shown = parsed(run("check", "--format=html", code=0).stdout)
        assert text_of(only(shown, "h1")) == "No filesystem races found"
        assert elements(shown, "aside") == elements(shown, "details") == []
        assert len(elements(shown, "section", "clean")) == 1

    def test_failed_run_is_not_shown_as_clean(self) -> None:
        write({"a.py": "x = 1\n"})
        shown = parsed(run("check", "a.py", "missing.py", "--format=html", code=2).stdout)
        assert elements(shown, "section", "clean") == []
        assert text_of(only(only(shown, "div", "failures"), "li")) == "missing.py: no such file or directory"


class TestCode:
    def test_finding_and_related_places_are_marked(self) -> None:
        where = place("a.py", MKDIR, "os.makedirs(out)")
        related = (
            Related(place("a.py", MKDIR, "os.path.exists(out)"), "found missing here"),
            Related(Place("b.py", Span(1, 1, 3, 2)), "called here"),
            Related(Place("gone.py", Span(7, 3, 7, 9)), "not known"),
        )
        other = "prepare(\n    'x'\n)\n"
        root = page(finding(where, related=related), sources={"a.py": MKDIR, "b.py": other})
        own, far = elements(root, "figure", "frame")
        assert text_of(only(own, "mark")) == "os.makedirs(out)"
        assert text_of(only(own, "span", "also")) == "os.path.exists(out)"
        assert rows(own) == [
            "4def prepare(out):",
            "5    if not os.path.exists(out):",
            "           \u2191 found missing here",
            "6    os.makedirs(out)",
            "7    return out",
        ]
        assert elements(own, "figcaption") == []
        assert text_of(only(far, "figcaption")) == "b.py:1"
        assert [text_of(each) for each in elements(far, "span", "also")] == ["prepare(", "'x'", ")"]
        assert text_of(only(root, "ul", "elsewhere")) == "gone.py:7:3: not known"

    def test_nested_places_are_marked(self) -> None:
        text = "f(g(x), y)\n"
        related = (Related(Place("a.py", Span(1, 3, 1, 7)), "inner"),)
        root = page(finding(Place("a.py", Span(1, 1, 1, 11)), related=related), sources={"a.py": text})
        assert [text_of(each) for each in elements(root, "mark")] == ["f(", "g(x)", ", y)"]
        assert text_of(only(root, "span", "also")) == "g(x)"

    def test_long_places_and_lines_are_cut(self) -> None:
        text = "f(\n" + "    x,\n" * 40 + ")\n" + "y = " + "z" * 9000 + "here()" + "z" * 9000 + "\n"
        long = page(finding(Place("a.py", Span(1, 1, 42, 2))), sources={"a.py": text})
        assert "\u2026 30 more lines" in text_of(only(long, "figure", "frame"))
        wide = page(finding(Place("a.py", Span(43, 9005, 43, 9011))), sources={"a.py": text})
        assert text_of(only(wide, "mark")) == "here()"
        assert max(map(len, rows(only(wide, "figure", "frame")))) < 420

    @given(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
        st.lists(st.tuples(*[st.integers(1, 5), st.integers(1, 12)] * 2), min_size=1, max_size=4),
    )
    @settings(deadline=None)
    def test_no_character_of_a_line_is_lost(self, text: str, spans: list[tuple[int, int, int, int]]) -> None:
        first, *more = (Place("a.py", Span(*span)) for span in spans)
        related = tuple(Related(where, "x") for where in more)
        root = page(finding(first, related=related), sources={"a.py": text})
        lines = re.split("\r\n|\r|\n", text)
        for line in elements(root, "span", "l"):
            number, *rest = line.itertext()
            if "note" not in line.get("class", ""):
                given_text = lines[int(number) - 1]
                expected = re.sub("\t", "    ", given_text)
                shown = "".join(rest).removesuffix("\n")
                assert len(shown) >= len(expected)
                if expected.isascii() and expected.isprintable():
                    assert shown == expected


class TestTimeline:
    def test_two_lanes(self) -> None:
        figure = only(page(finding(HERE, witness=PAIR)), "figure", "lanes")
        assert [text_of(each) for each in only(figure, "div", "heads")] == ["process 0", "process 1"]
        steps = elements(figure, "li")
        assert [text_of(step) for step in steps] == [
            "process 0: exists(out) \u2192 False",
            "process 1: exists(out) \u2192 False",
            "process 0: makedirs(out) \u2192 done",
            "process 1: makedirs(out) \u2192 FileExistsError",
        ]
        assert [only(step, "circle").get("cx") for step in steps] == ["0%", "50%", "0%", "50%"]
        assert [len(elements(step, "line", "lane")) for step in steps] == [2] * 4
        assert [len(elements(step, "span", "raised")) for step in steps] == [0, 0, 0, 1]
        assert text_of(only(figure, "figcaption")) == "Outcome process 1 dies with FileExistsError"

    def test_line_through_the_steps_is_continuous(self) -> None:
        steps = elements(only(page(finding(HERE, witness=PAIR)), "figure", "lanes"), "li")
        ways = [[each.attrib for each in elements(step, "line", "way")] for step in steps]
        for above, below in pairwise(ways):
            assert (above[-1]["x2"], above[-1]["y2"]) == (below[0]["x1"], "100%")
        for way in ways:
            for one, other in pairwise(way):
                assert (one["x2"], one["y2"]) == (other["x1"], other["y1"])

    @pytest.mark.parametrize("processes", [1, 3, 4, 9])
    def test_each_process_has_a_lane(self, processes: int) -> None:
        witness = Witness(tuple(WitnessStep(number, "save()") for number in range(processes)), "a mixture")
        figure = only(page(finding(HERE, witness=witness)), "figure", "lanes")
        assert len(only(figure, "div", "heads")) == processes
        assert [text_of(each) for each in elements(figure, "span", "sr")] == [
            f"process {number}: " for number in range(processes)
        ]
        assert len(elements(figure, "circle")) == processes

    def test_outcome_without_steps(self) -> None:
        figure = only(page(finding(HERE, witness=Witness((), "it hangs"))), "figure", "lanes")
        assert text_of(figure) == "Outcome it hangs"


class TestFixes:
    @pytest.mark.parametrize("kind", list(Applicability))
    def test_fix_is_described(self, kind: Applicability) -> None:
        shown = only(page(finding(HERE, fix=fix(kind))), "section", "fix")
        words = {"safe": "safe fix", "unsafe": "unsafe: local", "sketch": "manual fix"}
        assert text_of(only(shown, "span", "pill")) == words[kind.value]
        assert "pass exist_ok=True" in text_of(shown)
        assert elements(shown, "pre") == []

    def test_refused_fix_shows_its_reason(self) -> None:
        one = finding(HERE, fix=fix(Applicability.UNSAFE))
        root = page(one, previews={one: Preview(refusal="the call is <used>")})
        shown = only(root, "section", "fix")
        assert [text_of(each) for each in elements(root, "span", "pill")] == ["fix refused"] * 2
        assert text_of(only(shown, "p", "aside")) == "This fix is not applied: the call is <used>."

    def test_diff_of_distant_edits_and_edits_within_a_line(self) -> None:
        text = "".join(f"line_{number}()\r\n" for number in range(1, 31))
        one = finding(Place("a.py", Span(20, 1, 20, 2)), fix=fix(Applicability.SAFE))
        edits = (Edit(Span(2, 1, 2, 1), "import x\r\n"), Edit(Span(20, 9, 20, 9), "ok"))
        root = page(one, sources={"a.py": text}, previews={one: Preview(edits)})
        shown = only(root, "pre", "diff")
        assert rows(shown) == [
            "11  line_1()",
            "2+ import x",
            "23  line_2()",
            "34  line_3()",
            "45  line_4()",
            "\u22ef",
            "1819  line_18()",
            "1920  line_19()",
            "20- line_20()",
            "21+ line_20(ok)",
            "2122  line_21()",
            "2223  line_22()",
        ]
        assert [text_of(each) for each in elements(shown, "ins")] == ["ok"]
        assert elements(shown, "del") == []


class TestProse:
    def test_text_in_backticks_is_code_everywhere(self) -> None:
        witness = Witness((WitnessStep(0, "reads `step`", "`result`"),), "it fails with `outcome`")
        related = (
            Related(HERE, "found by `frame`"),
            Related(Place("gone.py", Span(9, 1, 9, 2)), "found by `elsewhere`"),
        )
        shown = page(
            finding(HERE, message="`a` and `` b`c `` and <`i>`", related=related, witness=witness),
            sources={"a.py": "ab\n"},
        )
        codes = {text_of(each) for each in elements(shown, "code")}
        assert {"a", "b`c", "i>", "step", "result", "outcome", "frame", "elsewhere"} <= codes
        assert text_of(only(shown, "span", "message")) == "FSR101 a and b`c and <i>"

    def test_unpaired_backtick_is_text(self) -> None:
        shown = page(finding(HERE, message="a ` b"))
        assert text_of(only(shown, "span", "message")) == "FSR101 a ` b"


class TestUntrustedText:
    def test_hostile_text_is_escaped(self) -> None:
        where = Place(HOSTILE + ".py", Span(1, 1, 1, 8))
        spoken = Witness((WitnessStep(0, HOSTILE, HOSTILE), WitnessStep(1, HOSTILE)), HOSTILE)
        one = finding(
            where,
            message=HOSTILE,
            function=HOSTILE,
            related=(Related(where, HOSTILE), Related(Place(HOSTILE, Span(1, 1, 1, 1)), HOSTILE)),
            witness=spoken,
            fix=fix(Applicability.UNSAFE, HOSTILE),
        )
        code = HOSTILE.replace("\ud800", "").replace("\udcff", "") + "\n"
        info = RuleInfo(
            "FSR101",
            HOSTILE,
            f"{HOSTILE}\n\n{HOSTILE}\n\nBad:\n    {HOSTILE}\n\nFix: {HOSTILE}",
            Severity.ERROR,
        )
        text = render(
            "html",
            Outcome(
                (one,), (Problem(HOSTILE, HOSTILE),), {HOSTILE: 1}, previews={one: Preview(refusal=HOSTILE)}
            ),
            {where.path: source(where.path, code)},
            Options(tool=Tool(HOSTILE, (info,)), statistics=True),
        )
        root = parsed(text)
        shown = text_of(root)
        assert shown.count(SPELLED) >= 15
        assert not set(shown) & set("\u202e\u2066\x1b\x00\ufffe")
        assert "<img" not in text

    @pytest.mark.skipif("os.sep != '/'", reason="no such names elsewhere")
    def test_hostile_file_names_and_code_are_escaped(self) -> None:
        name = "<img src=x onerror=alert(1)>\"'&\u202e\n.py"
        write(
            {
                name: 'import os\nout = "</script><script>alert(1)</script>"\n'
                "if not os.path.exists(out):\n    os.mkdir(out)\n"
            }
        )
        root = parsed(run("check", "--format=html", code=1).stdout)
        assert text_of(only(only(root, "details", "file"), "h3")) == name.replace(
            "\u202e", "\\u202e"
        ).replace("\n", "\\n")
        assert 'out = "</script><script>alert(1)</script>"' in text_of(only(root, "main"))

    @given(OUTCOMES, st.text(st.characters(exclude_categories=["Cs"]), max_size=200), st.booleans())
    @settings(deadline=None)
    def test_every_outcome_is_a_valid_page(self, outcome: Outcome, code: str, statistics: bool) -> None:
        text = render("html", outcome, {"a.py": source("a.py", code)}, Options(statistics=statistics))
        assert len(elements(parsed(text), "details", "finding")) == len(outcome.findings)


class TestSize:
    @pytest.mark.parametrize(
        ("number", "files", "shown"), [(3, True, 3), (4, True, 1), (40, True, 1), (41, False, 0)]
    )
    def test_few_findings_are_open(self, number: int, files: bool, shown: int) -> None:
        found = [finding(Place(f"{row:03}.py", Span(1, 1, 1, 2))) for row in range(number)]
        root = page(*found)
        assert {each.get("open") is not None for each in elements(root, "details", "file")} == {files}
        assert sum(each.get("open") is not None for each in elements(root, "details", "finding")) == shown

    def test_finding_takes_less_than_6000_characters(self) -> None:
        sizes = []
        for number in (100, 200):
            found = tuple(
                finding(Place("a.py", Span(6, 2, 6, 18)), witness=PAIR, message=str(row))
                for row in range(number)
            )
            sizes.append(len(render("html", Outcome(found), {"a.py": source("a.py", MKDIR)}, Options())))
        assert (sizes[1] - sizes[0]) / 100 < 6000


@pytest.mark.parametrize("name", ["style.css", "script.js"])
def test_resources_can_be_inlined(name: str) -> None:
    text = importlib.resources.files("fsrace_lint.report.page").joinpath(name).read_bytes()
    assert text.isascii()
    assert b"</" not in text
    assert b"<!--" not in text
    assert not re.search(rb"https?:|url\(|@import|@font-face|eval\(|innerHTML", text)


def contrasts() -> Iterator[tuple[str, str, str, float]]:
    """Yield the contrast of each text color on each of its backgrounds, light and dark."""
    style = importlib.resources.files("fsrace_lint.report.page").joinpath("style.css").read_text()
    colors = {m[1]: (m[2], m[3]) for m in re.finditer(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", style)}
    pairs = [(ink, ground) for ink in ("ink", "muted", "link") for ground in ("page", "card", "sunken")]
    pairs += [(kind, f"{kind}-soft") for kind in ("error", "warning", "note", "good", "link")]
    pairs += [("ink", f"{kind}-soft") for kind in ("error", "warning", "note", "good")]
    pairs += [("muted", f"{kind}-soft") for kind in ("error", "good")]
    pairs += [(f"lane{number}", ground) for number in range(4) for ground in ("card", "sunken")]
    for ink, ground in pairs:
        for theme in (0, 1):
            one, other = sorted((luminance(colors[ink][theme]), luminance(colors[ground][theme])))
            yield ink, ground, ("light", "dark")[theme], (other + 0.05) / (one + 0.05)


def luminance(color: str) -> float:
    """Return the relative luminance as defined by WCAG."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_text_has_enough_contrast() -> None:
    """WCAG 2.2 requires 4.5 at level AA."""
    measured = list(contrasts())
    assert len(measured) > 40
    assert [row for row in measured if row[3] < 4.5] == []
