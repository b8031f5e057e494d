"""Scenarios for findings in small files."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

from fsrace_lint.files.spans import Place, Span
from fsrace_lint.findings.finding import Finding, Related, Severity
from fsrace_lint.reproduce.scenario_file import scenario_of

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.reproduce.scenario_file import ScenarioFile

HERE = "# here"
"""Marks the line of a finding."""


def finding_in(file: Path, related: tuple[Related, ...] = ()) -> Finding:
    """Return a finding at the marked line of a file."""
    lines = file.read_text("utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if HERE in text)
    place = Place(str(file), Span(line, 1, line, 2))
    return Finding(
        "FSR101", "check-then-mkdir", "m", place, "f", Severity.WARNING, "evident", related=related
    )


def scenario(folder: Path, text: str, name: str = "main.py") -> ScenarioFile:
    """Write a file with a marked line, and return the scenario for it."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text), "utf-8")
    return scenario_of(finding_in(file), folder)


def body_of(scenario: ScenarioFile, name: str = "run") -> list[str]:
    """Return the lines of a function of a scenario."""
    found = re.search(rf"^def {name}\(.*\):\n((?:    .*\n)+)", scenario.text, re.MULTILINE)
    return [] if found is None else [line[4:] for line in found[1].splitlines()]
