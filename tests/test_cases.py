"""All cases in tests/cases: expected findings, and independence of newlines and comments."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import CASE_DOCUMENTS
from support.mdtest import ERROR, FALSE_ALARM, collect, failures, name, relative, run

if TYPE_CHECKING:
    from support.mdtest import Case

    from fsrace_lint.pipeline.run import Checked

CASES = collect(CASE_DOCUMENTS)
UPDATE = os.environ.get("FSRACE_UPDATE_CASES") == "1"
TOOL = "FSR0"


def suppressible(case: Case) -> list[tuple[str, int, list[str]]]:
    """The reported lines with their codes; empty if a finding is about a file itself."""
    lines: dict[tuple[str, int], list[str]] = {}
    for file in case.files.values():
        for mark in file.marks:
            if mark.kind in {ERROR, FALSE_ALARM}:
                lines.setdefault((file.path, mark.line), []).append(mark.code)
    if any(code.startswith(TOOL) for codes in lines.values() for code in codes):
        return []
    return [(path, line, codes) for (path, line), codes in lines.items()]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_case(case: Case, tmp_path: Path) -> None:
    if UPDATE and "PYTEST_XDIST_WORKER" in os.environ:
        pytest.exit("FSRACE_UPDATE_CASES needs one process: several would rewrite one document")
    problems, checked = failures(case, tmp_path, update=UPDATE)
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)
    assert_presentable(checked)


def assert_presentable(checked: Checked) -> None:
    """Each finding has a one-sentence message, a position in the file, and a trace of two processes."""
    for finding in checked.outcome.findings:
        assert finding.message
        assert not finding.message.endswith(".")
        assert "\n" not in finding.message
        if finding.code.startswith(TOOL):
            continue
        lines = checked.sources[finding.place.path].text.split("\n")
        span = finding.place.span
        is_attribute = finding.message.startswith(("only some ranks set ", "only some ranks read "))
        is_call = lines[span.end_line - 1][span.end_column - 2] == ")"
        assert is_call or is_attribute, "a finding points at a call, or at the test around an attribute"
        assert finding.witness is not None
        assert {step.process for step in finding.witness.steps} == {0, 1}
        for related in finding.related:
            assert Path(related.place.path).is_file()


@pytest.mark.parametrize("case", CASES, ids=name)
@pytest.mark.exhaustive(4)
def test_newlines_and_noqa_comments(case: Case, tmp_path: Path) -> None:
    """CRLF does not change the findings, and a comment on each reported line suppresses all."""
    assert seen(case, tmp_path / "crlf", "\r\n") == seen(case, tmp_path / "lf", "\n")
    if wanted := suppressible(case):
        assert_suppressed(tmp_path / "lf", wanted)


def seen(case: Case, root: Path, newline: str) -> list[tuple[object, ...]]:
    _, checked = run(case.write(root, newline))
    return [(relative(f.place.path, root), f.place.span, f.code, f.message) for f in checked.outcome.findings]


def assert_suppressed(root: Path, wanted: list[tuple[str, int, list[str]]]) -> None:
    for path, number, codes in wanted:
        lines = (root / path).read_text("utf-8").splitlines()
        lines[number - 1] += f"  # noqa: {','.join(codes)}"
        (root / path).write_text("\n".join(lines) + "\n", "utf-8")
    _, checked = run(root)
    assert [(f.place.path, f.place.span, f.code) for f in checked.outcome.findings] == []
    assert checked.outcome.statistics["suppressed"] == sum(len(codes) for _, _, codes in wanted)
