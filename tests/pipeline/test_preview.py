"""Fix previews: what each fix alone would change, as edits and in SARIF."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import libcst as cst
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import EXAMPLES
from support.cli import run, write
from support.sarif import sarif

from fsrace_lint import fixes, report, rules
from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
from fsrace_lint.config import settings
from fsrace_lint.files import source as files_source
from fsrace_lint.files.spans import Span
from fsrace_lint.findings.finding import Applicability, Finding
from fsrace_lint.pipeline import check, merge, repair
from fsrace_lint.pipeline import preview as previewing
from fsrace_lint.report.edits import applied, between

if TYPE_CHECKING:
    from fsrace_lint.files.source import Source
    from fsrace_lint.report import Preview

pytestmark = pytest.mark.usefixtures("here")

LINES = st.lists(st.sampled_from(["a", "b", "é\U0001f40d", "", "    a", "x y"]), max_size=6)
TEXTS = st.builds(
    lambda lines, ends: "".join(line + end for line, end in zip(lines, ends, strict=False)),
    LINES,
    st.lists(st.sampled_from(["\n", "\r\n", "\r", ""]), min_size=6, max_size=6),
)
FIXABLE = """\
# -*- coding: latin-1 -*-
import os, shutil
import torch.distributed as dist


def prepare(out, old):
    note = "é"; print(note) if not os.path.exists(out) else None
    if not os.path.isdir(out):
        os.makedirs(out)  # é
    if os.path.exists(old):
        os.remove(old)
    x = "é", shutil.rmtree(old) if os.path.exists(old) else None


def save(model, path):
    dist.init_process_group("gloo")
    with open("config.json", "w") as file:
        file.write("{}")


prepare("runs", "old")
save(None, "x")
print(dist.get_rank())
"""


class TestEdits:
    @given(TEXTS, TEXTS)
    def test_edits_turn_one_text_into_the_other(self, before: str, after: str) -> None:
        edits = between(before, after)
        assert applied(before, edits) == after
        assert (edits == ()) is (before == after)
        assert replaced(before, [region(edit.span) for edit in edits], [edit.text for edit in edits]) == after
        spans = [edit.span for edit in edits]
        for one, other in pairwise(spans):
            assert (one.end_line, one.end_column) < (other.line, other.column)

    def test_edits_are_minimal(self) -> None:
        before = "import os\n\n\nos.mkdir(a)\n"
        (edit,) = between(before, before.replace("a)", "a, 1)"))
        assert edit.text == ", 1"
        assert edit.span == Span(4, 11, 4, 11)

    def test_line_added_at_end_of_file(self) -> None:
        (edit,) = between("a\n", "a\nb\n")
        assert (edit.span.line, edit.span.column, edit.text) == (2, 1, "b\n")
        (edit,) = between("a", "a\nb")
        assert (edit.span.line, edit.span.column, edit.text) == (1, 2, "\nb")

    def test_line_ending_is_not_split(self) -> None:
        for before, after in (("a\r\n", "a\r"), ("a\r", "a\r\n"), ("a\r\nb", "a\nb"), ("a\nb", "a\r\nb")):
            (edit,) = between(before, after)
            assert (edit.span.line, edit.span.column) == (1, 2)
            assert (edit.span.end_line, edit.span.end_column) == (2, 1)


def region(span: Any) -> dict[str, int]:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def replaced(text: str, regions: list[dict[str, int]], texts: list[str]) -> str:
    """Replace regions of a text as a SARIF consumer does, with positions in the original text."""
    begins = [0, *(match.end() for match in re.finditer("\r\n|\r|\n", text))]
    places = [
        (begins[r["startLine"] - 1] + r["startColumn"] - 1, begins[r["endLine"] - 1] + r["endColumn"] - 1)
        for r in regions
    ]
    for (begin, end), new in sorted(zip(places, texts, strict=True), reverse=True):
        assert 0 <= begin <= end <= len(text)
        text = text[:begin] + new + text[end:]
    return text


def alone(path: str) -> tuple[Source, dict[Finding, fixes.Patch]]:
    """Fix a file once per finding, with the code that the `fix` command uses."""
    ((ran, checked),) = check.check([Path(path)], lambda it: settings.load(it.parent, rules.names()))
    source = checked.sources[path]
    around = repair.surroundings(ran, source)
    found = {}
    for finding in checked.outcome.findings:
        if finding.fix is not None and finding.fix.applicability is not Applicability.SKETCH:
            found[finding] = fixes.repair(source, [finding], lambda _new, _fixed: None, around)
    return source, found


class TestSarif:
    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize("kind", ["latin-1", "utf-8", "utf-8-sig"])
    def test_replacements_match_the_applied_fix(self, newline: str, kind: str) -> None:
        text = FIXABLE if kind == "latin-1" else FIXABLE.partition("\n")[2]
        Path("train.py").write_bytes(text.replace("\n", newline).encode(kind))
        source, patches = alone("train.py")
        rows = sarif(run("check", "--format=sarif", code=1).stdout)["results"]
        assert len(rows) >= len(patches) >= 4
        seen = 0
        for row in rows:
            start = row["locations"][0]["physicalLocation"]["region"]["startLine"]
            (patch,) = [
                p for f, p in patches.items() if (f.code, f.place.span.line) == (row["ruleId"], start)
            ]
            if patch.refused:
                assert "fixes" not in row
                assert row["properties"]["refusal"] == patch.refused[0].reason
                continue
            (fix,) = row["fixes"]
            (change,) = fix["artifactChanges"]
            assert change["artifactLocation"] == row["locations"][0]["physicalLocation"]["artifactLocation"]
            regions = [each["deletedRegion"] for each in change["replacements"]]
            texts = [each["insertedContent"]["text"] for each in change["replacements"]]
            after = replaced(source.text, regions, texts)
            assert after.encode("utf-8-sig" if source.bom else source.encoding) == patch.after
            assert after != source.text
            seen += 1
        # libcst does not keep the bytes of a file whose lines end in a carriage return alone.
        assert seen == 0 if newline == "\r" else seen >= 3

    def test_replacements_are_in_reverse_order(self) -> None:
        write({"a.py": "import sys\n\n\nimport os\nif os.path.exists('d'):\n    os.remove('d')\n"})
        (row,) = sarif(run("check", "--format=sarif", code=1).stdout)["results"]
        (change,) = row["fixes"][0]["artifactChanges"]
        starts = [each["deletedRegion"]["startLine"] for each in change["replacements"]]
        assert len(starts) == 2
        assert starts == sorted(starts, reverse=True)
        assert row["fixes"][0]["description"]["text"].endswith("(unsafe: local)")

    def test_fixes_in_examples(self) -> None:
        examples = str(EXAMPLES)
        rows = sarif(run("check", examples, "--format=sarif", code=1).stdout)["results"]
        refused = [row for row in rows if "fixes" not in row]
        assert (len(rows), len(refused)) == (12, 1)
        assert "not applied, because `helper-module` is not set" in str(refused[0])


MANY = """\
# -*- coding: utf-8 -*-
\"\"\"A module.\"\"\"
import os
# about shutil
import shutil

# about first
def first(p):  # é
  if not os.path.exists(p):
    # inside
    os.makedirs(p)
    # at the end of the branch
  # at the end of the function

# about second
@staticmethod
def second(p, cached):
    import json
    if os.path.exists(cached):
        os.remove(cached)  # behind
    with open(os.path.join(p, "a.json"), "w") as file:
        json.dump({}, file)
class Holder(object):

    # about text
    text = \"\"\"
no comment: # here
\"\"\"; other = 1

    def method(self, p):
        if not os.path.isdir(p):
            os.makedirs(p)
            # of the branch
        # of the method
    # of the class
    @property
    def last(self, model, p):
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")

        def inner():
            if not os.path.exists(p): os.mkdir(p)
        dist.barrier()
        torch.save(model.state_dict(), os.path.join(p, "last.pt"))
        # of last

if not os.path.isdir("runs"):
    os.makedirs("runs")
def clear_cache(p):
    shutil.rmtree(p) if os.path.exists(p) else None
    if os.path.isdir(p):
        shutil.rmtree(p)
        # the very last"""


def counted(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> list[Any]:
    """Return a list that records the argument of every further call of a function."""
    function, given = getattr(module, name), list[Any]()

    def counting(argument: Any) -> Any:
        given.append(argument)
        return function(argument)

    monkeypatch.setattr(module, name, counting)
    return given


def calls(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[Any]:
    """Return a list that gets an item for every further call of a function or method."""
    function, seen = getattr(owner, name), list[Any]()

    def counting(*arguments: Any, **named: Any) -> Any:
        seen.append(arguments)
        return function(*arguments, **named)

    monkeypatch.setattr(owner, name, counting)
    return seen


def strict_races(number: int) -> str:
    """Return a file of functions, each with one race that the strict profile reports and a fix mends."""
    function = "def f{}(p):\n    if not os.path.isdir(p):\n        os.makedirs(p)\n\n\n"
    return "".join(["import os\n\n\n", *(function.format(n) for n in range(number))])


def train_surroundings() -> fixes.Surroundings:
    ((ran, checked),) = check.check([Path("train.py")], lambda it: settings.load(it.parent, rules.names()))
    return repair.surroundings(ran, checked.sources["train.py"])


class TestParts:
    """A fix in one function parses only that function, with the same result as in the whole file."""

    @pytest.mark.parametrize("end", ["", "\n", "\n\n# behind\n    # deeper\n"])
    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    @pytest.mark.parametrize("kind", ["utf-8", "utf-8-sig"])
    def test_partial_fix_matches_fix_of_whole_file(
        self, kind: str, newline: str, end: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Path("train.py").write_bytes((MANY + end).replace("\n", newline).encode(kind))
        source, patches = alone("train.py")
        read = counted(monkeypatch, fixes, "read")
        made = dict(zip(patches, fixes.alone(source, patches, train_surroundings()), strict=True))
        assert len(made) >= 6
        rows = re.findall("[^\n]*\n|[^\n]+", source.text)
        for finding, patch in patches.items():
            text = list(rows)
            for one in reversed(made[finding].replaced):
                text[one.first : one.last] = [one.text]
            if patch.refused:
                assert made[finding].refusal == patch.refused[0].reason
            else:
                assert "".join(text).encode(kind) == patch.after != source.data
        whole = [finding for finding in made if finding.function == "<module>"]
        assert len(read) == bool(whole) == 1
        sizes = {made[finding].size for finding in made if finding not in whole}
        assert max(sizes) < len(source.data) // 2

    def test_parsed_text_grows_linearly_with_fixes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Twice as many functions take twice as much parsed text: no fix parses the whole file."""
        parsed = counted(monkeypatch, cst, "parse_module")
        totals = {}
        for number in (20, 40):
            text = strict_races(number)
            write({"a.py": text})
            parsed.clear()
            rows = sarif(run("check", "--profile=strict", "--format=sarif", code=1).stdout)["results"]
            assert len([row for row in rows if "fixes" in row]) == number
            sizes = [len(part) for part in parsed]
            assert max(sizes) <= len(text) + 100
            assert len([size for size in sizes if size > 200]) == 1
            totals[number] = sum(sizes)
        assert totals[40] < 2.1 * totals[20]


class TestPreview:
    def previews(self) -> dict[str, Preview]:
        results = check.check([Path()], lambda it: settings.load(it, rules.names()))
        checked = previewing.preview(results, merge.merge([one for _, one in results]))
        assert checked.outcome.previews is not None
        return {f.code: preview for f, preview in checked.outcome.previews.items()}

    def test_manual_fix_has_no_preview(self) -> None:
        write({"a.py": "import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n"})
        (row,) = json.loads(run("check", "--format=json", code=1).stdout)["findings"]
        assert row["fix"]["applicability"] == "sketch"
        assert self.previews() == {}
        (result,) = sarif(run("check", "--format=sarif", code=1).stdout)["results"]
        assert "fixes" not in result

    def test_preview_changes_neither_files_nor_text_report(self) -> None:
        write({"a.py": FIXABLE.partition("\n")[2]})
        before = Path("a.py").read_bytes()
        plain = run("check", code=1).stdout
        assert run("check", "--report=html=a.html", "--report=sarif=a.sarif", code=1).stdout == plain
        assert Path("a.py").read_bytes() == before

    def test_previews_per_file_are_limited(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Fixes beyond the limit have a reason instead of a preview."""
        write({"a.py": FIXABLE.partition("\n")[2]})
        every = self.previews()
        monkeypatch.setattr(previewing, "MOST", 1)
        monkeypatch.setattr(previewing, "LEAST", 1)
        few = self.previews()
        assert [few[code] == every[code] for code in every] == [True] + [False] * (len(every) - 1)
        assert {one.refusal for one in few.values() if not one.edits} == {previewing.TOO_MANY}

    def test_previews_of_very_many_fixes_are_limited(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of more fixes than `MANY`, only as many are computed, or fewer if their functions are long."""
        write({"a.py": strict_races(6)})
        attempts = calls(monkeypatch, fixes, "_changed")
        for many, most, shown in ((6, 1, 6), (5, 10_000, 5), (5, 1, 1)):
            monkeypatch.setattr(previewing, "MANY", many)
            monkeypatch.setattr(previewing, "MOST_OF_MANY", most)
            attempts.clear()
            rows = sarif(run("check", "--profile=strict", "--format=sarif", code=1).stdout)["results"]
            assert [bool(row.get("fixes")) for row in rows] == [True] * shown + [False] * (6 - shown)
            assert len(attempts) == shown
            refusals = {row["properties"].get("refusal") for row in rows[shown:]}
            assert refusals == ({previewing.TOO_MANY} if shown < len(rows) else set())

    @pytest.mark.parametrize("form", ["html", "sarif"])
    def test_no_fix_preview_computes_no_fix(self, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """The report then names each fix, and shows no changes."""
        write({"a.py": strict_races(2)})
        made = calls(monkeypatch, fixes, "alone")
        arguments = ("check", "--profile=strict", f"--format={form}")
        full = run(*arguments, code=1).stdout
        assert len(made) == 1
        named, shown = {
            "html": ('class="fixhead"', 'class="diff"'),
            "sarif": ('"applicability": "safe"', '"fixes": ['),
        }[form]
        short = run(*arguments, "--no-fix-preview", code=1).stdout
        assert len(made) == 1
        assert (full.count(shown), short.count(shown)) == (2, 0)
        assert full.count(named) == short.count(named) == 2
        run(*arguments, "--no-fix-preview", f"--report={form}=a.{form}", code=1)
        assert len(made) == 1
        assert Path(f"a.{form}").read_text() == short

    def test_no_fix_preview_changes_no_other_report(self) -> None:
        write({"a.py": strict_races(2)})
        for form in set(report.FORMATS) - report.SHOWING_FIXES:
            arguments = ("check", "--profile=strict", f"--format={form}")
            assert run(*arguments, "--no-fix-preview", code=1).stdout == run(*arguments, code=1).stdout

    @pytest.mark.parametrize("form", ["html", "sarif"])
    def test_a_file_is_split_into_lines_once(self, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """The number of findings does not change how often a report splits or decodes their file."""
        split = calls(monkeypatch, files_source, "split_lines")
        numbers = []
        for number in (2, 8):
            write({"a.py": strict_races(number)})
            split.clear()
            run("check", "--profile=strict", f"--format={form}", "--no-fix-preview", "--no-cache", code=1)
            numbers.append(len(split))
        assert numbers[0] == numbers[1] >= 1

    def test_calls_are_looked_up_without_a_search(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Twice as many fixes ask for the calls of twice as many functions, and not of four times as many."""
        numbers = []
        asked = calls(monkeypatch, FunctionFlows, "call_sites")
        for number in (20, 40):
            write({"a.py": strict_races(number)})
            results = check.check(
                [Path()],
                lambda it: settings.with_everywhere(settings.load(it, rules.names()), profile="strict"),
            )
            asked.clear()
            checked = previewing.preview(results, merge.merge([one for _, one in results]))
            assert len(checked.outcome.previews or ()) == number
            numbers.append(len(asked))
        assert numbers[1] < 2.1 * numbers[0]

    def test_failing_recipe_does_not_break_the_report(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object) -> None:
            raise KeyError("oops")

        write({"a.py": FIXABLE.partition("\n")[2]})
        monkeypatch.setattr(fixes, "alone", broken)
        reasons = {preview.refusal for preview in self.previews().values()}
        assert reasons == {"fixing this file failed: KeyError: 'oops'"}

    def test_preview_of_single_finding_matches_fix(self) -> None:
        write({"a.py": "import os\nif not os.path.isdir('d'):\n    os.makedirs('d')\n"})
        (preview,) = self.previews().values()
        expected = applied(Path("a.py").read_text(), preview.edits)
        run("fix", code=0)
        assert Path("a.py").read_text() == expected
