"""The exact texts of findings, as recorded in tests/cases/messages.txt.

A section starts with `== ` and a rule code, for the bad example of its page, or with the
name of a case, as tests/test_cases.py shows it. The texts of its findings follow: the
call with its message, the related locations, the steps by process number, the outcome
after `=`, and the fix after `+`. `FSRACE_UPDATE_CASES=1` updates the file; to add a
section, write only its heading. Review the updated texts.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

import pytest
from support import CASE_DOCUMENTS
from support.mdtest import collect, name, relative, run
from support.rule_pages import HAZARDS, code, shown

from fsrace_lint.findings.finding import Applicability
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.mdtest import Case

    from fsrace_lint.files.spans import Place
    from fsrace_lint.findings.finding import Finding, Fix
    from fsrace_lint.pipeline.run import Checked
    from fsrace_lint.rules import LoadedRule

RECORD: Final = CASE_DOCUMENTS / "messages.txt"
PAGES: Final[dict[str, LoadedRule]] = {code(loaded): loaded for loaded in HAZARDS}
CASES: Final[dict[str, Case]] = {name(case): case for case in collect(CASE_DOCUMENTS)}
UPDATE: Final = os.environ.get("FSRACE_UPDATE_CASES") == "1"


def sections() -> dict[str, str]:
    """The recorded texts by heading."""
    _, *found = re.split(r"^== (.+)\n", RECORD.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(found[::2], found[1::2], strict=True))


def texts_of(checked: Checked, root: Path) -> str:
    """All findings, separated by blank lines."""
    found = (lines(finding, checked, root) for finding in checked.outcome.findings)
    return "\n\n".join("\n".join(map(visible, each)) for each in found)


def lines(finding: Finding, checked: Checked, root: Path) -> Iterator[str]:
    def at(place: Place) -> str:
        span = place.span
        line = checked.sources[place.path].text.split("\n")[span.line - 1]
        end = span.end_column - 1 if span.end_line == span.line else len(line)
        return f"{relative(place.path, root)}:{span.line} {line[span.column - 1 : end]}"

    strict = ", strict" if finding.strict else ""
    yield at(finding.place)
    yield f"{finding.code} {finding.name} ({finding.severity.value}{strict}): {finding.message}"
    for related in finding.related:
        yield f"  {at(related.place)}: {related.message}"
    if finding.witness is not None:
        for step in finding.witness.steps:
            yield f"  {step.process}: {step.action}" + (f" -> {step.result}" if step.result else "")
        yield f"  = {finding.witness.outcome}"
    if finding.fix is not None:
        yield f"  + {recipe(finding.fix)}: {finding.fix.description}"


def recipe(fix: Fix) -> str:
    names = " or ".join(each for each in (fix.recipe, fix.otherwise) if each)
    return names if fix.applicability is Applicability.SKETCH else f"{names} ({fix.applicability.value})"


def program(heading: str, directory: Path) -> Path:
    """Write the program of a section."""
    page = PAGES.get(heading)
    return CASES[heading].write(directory) if page is None else shown(page, "Bad", directory)


def test_every_rule_has_a_section() -> None:
    recorded = sections()
    assert set(PAGES) <= set(recorded)
    assert not set(recorded) - set(PAGES) - set(CASES), "neither a rule nor a case"


@pytest.mark.parametrize(
    "heading", [*sections(), *(page for page in PAGES if UPDATE and page not in sections())]
)
def test_texts_match_the_record(heading: str, tmp_path: Path) -> None:
    root = program(heading, tmp_path)
    _, checked = run(root)
    recorded, text = sections(), texts_of(checked, root)
    if UPDATE:
        recorded[heading] = text
        body = "\n".join(f"== {each}\n\n{recorded[each].strip()}\n" for each in recorded)
        RECORD.write_text(body, "utf-8", newline="\n")
    assert recorded[heading].strip() == text
