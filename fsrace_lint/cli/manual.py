"""The pages of the rules: a docstring and what the program knows besides, as text and as data."""

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
from fsrace_lint.report import text
from fsrace_lint.report.json import witness as as_json
from fsrace_lint.rules.references import CWES
from fsrace_lint.rules.remedies import HELPED

if TYPE_CHECKING:
    from fsrace_lint.findings.finding import Finding, Fix, Witness
    from fsrace_lint.report.json import Json
    from fsrace_lint.rules import LoadedRule
    from fsrace_lint.rules.base import FixTemplate

VERSION: Final = 1
WIDTH: Final = 100
_LABELED: Final = re.compile(r"(Bad|Good|Fix|Silent when): ?\n?")
# Nothing lies below a file, so this project holds its example alone.
_NOWHERE: Final = Path(__file__).absolute() / "example"


class Sections(msgspec.Struct, frozen=True):
    """What a docstring says, part by part; empty where it does not say that."""

    title: str
    why: str
    bad: str
    good: str
    notes: str
    fix: str
    silent_when: str


@functools.cache
def sections(loaded: LoadedRule) -> Sections:
    """Take the page of a rule apart.

    Args:
        loaded: The rule.

    Returns:
        Its parts: examples as code, all else as it was written.
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
    return Sections(title, part("why"), bad, good, part("notes"), part("Fix"), part("Silent when"))


@functools.cache
def finding(loaded: LoadedRule) -> Finding | None:
    """Give what a rule finds in its bad example.

    Args:
        loaded: The rule.

    Returns:
        The finding; None for the rules about the tool itself.
    """
    if loaded.check is None:
        return None
    chosen = Settings(root=_NOWHERE, profile="strict", select=(loaded.rule.code,))
    example = source.of_text(sections(loaded).bad + "\n", _NOWHERE / "example.py", _NOWHERE)
    checked = Run(chosen, ()).with_sources(example).check()
    return next((one for one in checked.outcome.findings), None)


def witness(loaded: LoadedRule) -> Witness | None:
    """Give the interleaving that goes wrong in the bad example: what the rule says of it."""
    found = finding(loaded)
    return None if found is None else found.witness


def fixes(loaded: LoadedRule) -> tuple[FixTemplate | Fix, ...]:
    """Give what can be done about the findings of a rule: what it lists, or else offers for its example."""
    found = finding(loaded)
    return loaded.rule.remedies or ((found.fix,) if found is not None and found.fix is not None else ())


def profile(loaded: LoadedRule) -> str:
    """Say in which profile a rule reports."""
    if loaded.check is None:
        return "default"
    match loaded.rule.default_from:
        case None:
            return "strict"
        case Evidence.EVIDENT:
            return "default where several processes evidently run the line, else strict"
        case _:
            return "default; strict in a script that one process runs"


def settings(loaded: LoadedRule) -> tuple[str, ...]:
    """Give the keys of the settings that matter to a rule besides those that select rules and files."""
    if loaded.check is None:
        return ()
    recipes = {name for fix in fixes(loaded) for name in (fix.recipe, fix.otherwise)}
    helped = ("helper-module",) if recipes & HELPED else ()
    return ("profile", *loaded.rule.settings, *helped, "catalog")


def references(loaded: LoadedRule) -> tuple[str, ...]:
    """Give what a rule rests on: its weakness, what systems promise, and incidents."""
    cwe = loaded.rule.cwe
    weakness = (f"CWE-{cwe}: {CWES[cwe]}",) if cwe else ()
    incidents = (f"{name}, in docs/incidents.md" for name in loaded.rule.incidents)
    promises = (promise.value for promise in loaded.rule.promises)
    return (*weakness, *promises, *incidents)


def page(loaded: LoadedRule) -> str:
    """Give the whole page of a rule.

    Args:
        loaded: The rule.

    Returns:
        Its docstring, with the interleaving behind the bad example, and behind all of it the profile,
        the settings that matter to it and what it rests on.
    """
    parts = loaded.page
    shown = witness(loaded)
    if shown is not None:
        drawn = text.timeline(shown, WIDTH)
        parts = parts.replace("\n\nGood:\n", f"\n\nInterleaving:\n{drawn}\n\nGood:\n", 1)
    said = [f"Reported: as {_article(loaded.rule.severity.value)}; profile: {profile(loaded)}."]
    if settings(loaded):
        said.append(f"Settings: {', '.join(f'`{key}`' for key in settings(loaded))}.")
    if references(loaded):
        said.append(f"References: {'; '.join(references(loaded))}.")
    return "\n\n".join([parts, *(textwrap.fill(row, WIDTH, break_on_hyphens=False) for row in said)])


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def document(chosen: tuple[LoadedRule, ...]) -> dict[str, Json]:
    """Give rules as data, which docs/rules.schema.json describes.

    Args:
        chosen: The rules.

    Returns:
        What JSON can hold.
    """
    return {"version": VERSION, "rules": [_rule(loaded) for loaded in chosen]}


def _rule(loaded: LoadedRule) -> Json:
    rule, said, shown = loaded.rule, sections(loaded), witness(loaded)
    offered: list[Json] = [
        {
            "recipe": fix.recipe,
            "otherwise": fix.otherwise or None,
            "applicability": fix.applicability.value,
            "description": fix.description,
        }
        for fix in fixes(loaded)
    ]
    return {
        "code": rule.code,
        "name": rule.name,
        "title": said.title,
        "severity": rule.severity.value,
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
