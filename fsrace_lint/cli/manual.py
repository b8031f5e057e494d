"""The documentation pages of the rules, as text and as data."""

from __future__ import annotations

import functools
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.config.settings import Settings
from fsrace_lint.files import source
from fsrace_lint.pipeline.run import Run
from fsrace_lint.report import trace
from fsrace_lint.report.json import witness as as_json
from fsrace_lint.rules.references import CWES
from fsrace_lint.rules.remedies import HELPED, NAMED

if TYPE_CHECKING:
    from fsrace_lint.findings.finding import Finding, Fix, Witness
    from fsrace_lint.report.json import Json
    from fsrace_lint.rules import LoadedRule
    from fsrace_lint.rules.base import FixTemplate

VERSION: Final = 1
WIDTH: Final = 100
_LABELED: Final = re.compile(r"(Bad|Good|Fix|Not reported when): ?\n?")
# Nothing can be below a file, so this project contains only its example.
_NOWHERE: Final = Path(__file__).absolute() / "example"


class Sections(msgspec.Struct, frozen=True):
    """The sections of a rule's docstring; a section that the docstring lacks is empty."""

    title: str
    why: str
    bad: str
    good: str
    notes: str
    fix: str
    silent_when: str


@functools.cache
def sections(loaded: LoadedRule) -> Sections:
    """Split the page of a rule into sections.

    Args:
        loaded: The rule.

    Returns:
        The sections: examples as code, everything else unchanged.
    """
    title, _, body = loaded.page.partition("\n")
    found: dict[str, list[str]] = {}
    label = "why"
    for block in re.split(r"\n\n(?! {4}|\n)", body.strip("\n")):
        labeled = _LABELED.match(block)
        if labeled is not None:
            label = labeled[1]
        elif label == "Good":
            label = "notes"
        found.setdefault(label, []).append(block[labeled.end() :] if labeled else block)

    def part(name: str) -> str:
        return "\n\n".join(found.get(name, ()))

    bad, good = (textwrap.dedent(part(name)).strip("\n") for name in ("Bad", "Good"))
    return Sections(title, part("why"), bad, good, part("notes"), part("Fix"), part("Not reported when"))


@functools.cache
def finding(loaded: LoadedRule) -> Finding | None:
    """Return the first finding of a rule in its bad example.

    Args:
        loaded: The rule.

    Returns:
        The finding, or None for a rule about fsrace-lint itself.
    """
    if loaded.check is None:
        return None
    chosen = Settings(root=_NOWHERE, profile="strict", select=(loaded.rule.code,))
    example = source.of_text(sections(loaded).bad + "\n", _NOWHERE / "example.py", _NOWHERE)
    checked = Run(chosen, ()).with_sources(example).check()
    return next((one for one in checked.outcome.findings), None)


def witness(loaded: LoadedRule) -> Witness | None:
    """Return the failing interleaving of the bad example."""
    found = finding(loaded)
    return None if found is None else found.witness


def fixes(loaded: LoadedRule) -> tuple[FixTemplate | Fix, ...]:
    """Return the fixes that a rule lists, or else the fix of its bad example."""
    found = finding(loaded)
    return loaded.rule.remedies or ((found.fix,) if found is not None and found.fix is not None else ())


def profile(loaded: LoadedRule) -> str:
    """Return the profile in which a rule reports."""
    if loaded.check is None:
        return "default"
    match loaded.rule.default_from:
        case None:
            return "strict"
        case Evidence.LIKELY | Evidence.EVIDENT:
            return "default if the line probably runs in multiple processes; otherwise strict"
        case Evidence.NONE:
            return "default"
        case Evidence.PLAUSIBLE:
            return "default; only `strict` if one process runs the script"


def settings(loaded: LoadedRule) -> tuple[str, ...]:
    """Return the settings that affect a rule, except those that select rules and files."""
    if loaded.check is None:
        return ()
    recipes = {name for fix in fixes(loaded) for name in (fix.recipe, fix.otherwise)}
    helped = [key for key, some in (("helper-module", HELPED), ("helpers", NAMED)) if recipes & some]
    return ("profile", *loaded.rule.settings, *helped, "catalog")


def references(loaded: LoadedRule) -> tuple[str, ...]:
    """Return the references of a rule: its CWE, guarantees of systems, and incidents."""
    cwe = loaded.rule.cwe
    weakness = (f"CWE-{cwe}: {CWES[cwe]}",) if cwe else ()
    incidents = (f"{name}, in docs/incidents.md" for name in loaded.rule.incidents)
    promises = (promise.value for promise in loaded.rule.promises)
    return (*weakness, *promises, *incidents)


def page(loaded: LoadedRule) -> str:
    """Return the whole page of a rule.

    Args:
        loaded: The rule.

    Returns:
        The docstring with the interleaving after the bad example, followed by the severity, the profile,
        the settings, and the references.
    """
    parts = loaded.page
    shown = witness(loaded)
    if shown is not None:
        drawn = trace.timeline(shown, WIDTH)
        parts = parts.replace("\n\nGood:\n", f"\n\nInterleaving:\n{drawn}\n\nGood:\n", 1)
    facts = [f"Severity: {loaded.rule.highest_severity.value}. Profile: {profile(loaded)}."]
    if settings(loaded):
        facts.append(f"Settings: {', '.join(f'`{key}`' for key in settings(loaded))}.")
    if references(loaded):
        facts.append(f"References: {'; '.join(references(loaded))}.")
    return "\n\n".join([parts, *(textwrap.fill(row, WIDTH, break_on_hyphens=False) for row in facts)])


def document(chosen: tuple[LoadedRule, ...]) -> dict[str, Json]:
    """Return rules as JSON data, which docs/rules.schema.json describes."""
    return {"version": VERSION, "rules": [_rule(loaded) for loaded in chosen]}


def _rule(loaded: LoadedRule) -> Json:
    rule, said, shown = loaded.rule, sections(loaded), witness(loaded)
    offered: list[Json] = [
        {
            "recipe": fix.recipe,
            "otherwise": fix.otherwise or None,
            "applicability": fix.applicability.value,
            "tier": None if fix.tier is None else fix.tier.value,
            "description": fix.description,
        }
        for fix in fixes(loaded)
    ]
    return {
        "code": rule.code,
        "name": rule.name,
        "title": said.title,
        "severity": rule.highest_severity.value,
        "cwe": {"id": rule.cwe, "title": CWES[rule.cwe]} if rule.cwe else None,
        "evidence": None if rule.default_from is None else rule.default_from.name.lower(),
        "profile": profile(loaded),
        "fixes": offered,
        "why": said.why,
        "bad": said.bad,
        "interleaving": None if shown is None else as_json(shown),
        "good": said.good,
        "notes": said.notes,
        "fix": said.fix,
        "silent_when": said.silent_when,
        "settings": [*settings(loaded)],
        "references": {"promises": [each.value for each in rule.promises], "incidents": [*rule.incidents]},
    }
