"""What changes nothing about a program changes neither what is found in it nor what fixes make of it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest
from support import CASE_DOCUMENTS, EXAMPLES
from support.mdtest import Case, collect, run
from support.metamorphic import CHANGES, SUFFIX, WHOLE, Files
from support.sampling import bound, drawn

from fsrace_lint.pipeline import repair

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.files.spans import Span
    from fsrace_lint.findings.finding import Finding

EVERY: Final = bound(120, 30)
"""Of so many cases one is changed in each way, drawn anew for each commit; all of them take minutes."""
ALL: Final = os.environ.get("FSRACE_ALL_CHANGES") == "1"

KNOWN: Final = {
    # The name is evidence, and another one is none.
    "renamed": (
        "tensorflow: Several workers / Every worker saves to one path",
        "tensorflow: Several workers / The chief by its type",
        "named-answers: In one function / Names for the answer",
        "branches: In one function / Ternaries",
        "framework-hooks: Frameworks / Hooks and helpers",
        "work-items: What is dealt out to the processes",
        "local-guard-on-shared-path: Hazards / What the settings name",
        "divergence: What an object decides by itself / A trainer that something unknown has made",
        "node-local: On the node of the main process / Data that the settings name as shared",
        "type-hints: Names / The only class of that name",
        "order: What one process alone makes / All delete it",
        "collective-under-file-check: Look-alikes / A loader of data, which is not divided by a collective",
    ),
    # A class is known by the name of what is annotated as anything.
    "annotated": (
        "type-hints: Names / The only class of that name",
        "order: What one process alone makes / All delete it",
    ),
    # What an object of a class of a function is, and who calls it, is not followed.
    "in a function": (
        "jsonargparse: The configuration of a run",
        "transformers: A trainer of one's own / What trainers have in common",
        "named-answers: In a class / A class attribute",
        "classes: Classes / super in a constructor",
        "callbacks: Locks and run-once helpers / A helper that holds a lock while it runs what it is given",
        "context-never-entered: Hazards / A lock of the project's own",
        "context-never-entered: Look-alikes / A function of the project that has the name of a context",
        "shared-download: Hazards / A method that is there to be overridden",
        "work-items: Made up / By the object whose method is handed the item",
        "decorators: Helpers / A decorated method that is overridden",
        "classes: Callers / A property that can be set",
        "process-starts-elsewhere: Callers / Whichever is made, the processes were started before",
        "entry-states: Look-alikes / A flag that was set on what is handed on",
        "lock-files: Waiting / A lock of the project's own",
        "type-hints: Attributes / Annotated in the body of a class",
        "type-hints: Results / What a function returns, on one way or on each",
        "order: What one process alone makes / All delete it",
        "rank-dependence: Fields / A field that a method may convert",
        "rank-dependence: Made up / By a property",
        "held-locks: Locks / A class that locks where it is entered",
        "type-hints: Objects in collections / Of a class with its parameters in brackets",
        "collections: Objects in collections / The keys of a mapping",
        "collections: Objects in collections / What is left of the keywords",
        "other-names: Objects in collections / An attribute that only the class below has",
        "handed-on-objects: Objects that are handed on / From one to the next, where it may be missing",
        "handed-on-objects: Objects that are handed on / From one to the next, three times",
        "handed-on-objects: Objects that are handed on / From one to the next, and at first by a default",
    ),
}
"""What is known to differ, and why: docs/limits.md tells it."""


class Seen(NamedTuple):
    """A finding, but for its place."""

    code: str
    function: str
    severity: str
    evidence: str
    call: str
    fix: str


def is_plain(case: Case) -> bool:
    """Tell whether a case is code that can be read, without comments that are for us."""
    texts = [file.text for file in case.files.values()]
    try:
        for text in texts:
            ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return case.document.stem != "unreadable-source" and not any("noqa" in text for text in texts)


CASES: Final = [case for case in collect(CASE_DOCUMENTS) if is_plain(case)]
"""Those of the documents; each is changed in the ways that it can be."""


def write(root: Path, files: Files, toml: str | None) -> Path:
    for path, text in {"pyproject.toml": toml or "", **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return root


def seen(root: Path) -> Counter[Seen]:
    """Tell what is found in a project, in words that no change of it touches."""
    _, checked = run(root)
    return Counter(_seen(each, checked.sources[each.place.path].text) for each in checked.outcome.findings)


def _seen(finding: Finding, text: str) -> Seen:
    function = finding.function.removeprefix(f"{WHOLE}.").replace(WHOLE, "<module>")
    fix = "" if finding.fix is None else f"{finding.fix.recipe}, {finding.fix.applicability.value}"
    said = _said(text, finding.place.span).replace(SUFFIX, "").replace("moved.", "")
    return Seen(finding.code, function, finding.severity.value, finding.evidence, said, fix)


def _said(text: str, span: Span) -> str:
    lines = text.split("\n")[span.line - 1 : span.end_line]
    lines[-1] = lines[-1][: span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    return ast.unparse(ast.parse("\n".join(lines), mode="eval"))


def named(case: Case) -> str:
    return f"{case.document.stem}: {case.title}"


def chosen() -> list[tuple[Case, str]]:
    """Give the cases and how each is changed."""
    return [
        (case, name)
        for case in CASES
        for name in CHANGES
        if named(case) not in KNOWN.get(name, ()) and (ALL or drawn(f"{name} {named(case)}") * EVERY < 1)
    ]


def differing(case: Case, change: str, folder: Path) -> list[str]:
    """Tell what is found of a case, or of what it is changed to, and not of both."""
    files = {path: file.text for path, file in case.files.items()}
    changed = CHANGES[change](dict(files))
    if changed is None:
        return []
    before = seen(write(folder / "before", files, case.toml))
    after = seen(write(folder / "after", changed, case.toml))
    gone, new = (before - after).elements(), (after - before).elements()
    return [f"gone: {each}" for each in gone] + [f"new: {each}" for each in new]


@pytest.mark.parametrize(
    ("case", "change"), [pytest.param(*pair, id=f"{named(pair[0])}, {pair[1]}") for pair in chosen()]
)
def test_findings(case: Case, change: str, tmp_path: Path) -> None:
    assert differing(case, change, tmp_path) == []


@pytest.mark.parametrize(
    ("change", "name"), [(change, name) for change, names in KNOWN.items() for name in names]
)
def test_what_is_known_to_differ_still_does(change: str, name: str, tmp_path: Path) -> None:
    (case,) = (case for case in CASES if named(case) == name)
    assert differing(case, change, tmp_path) != []


@pytest.mark.parametrize("change", CHANGES)
def test_examples(change: str, tmp_path: Path) -> None:
    files = {
        file.relative_to(EXAMPLES).as_posix(): file.read_text("utf-8")
        for file in sorted(EXAMPLES.rglob("*.py"))
    }
    changed = CHANGES[change](dict(files))
    if changed is not None:
        before = seen(write(tmp_path / "before", files, None))
        assert before
        assert seen(write(tmp_path / "after", changed, None)) == before


FIXED: Final = [case for case in CASES if "diff" in case.outputs]
"""Cases with a safe fix."""
COMMUTING: Final = ("unparsed", "commented", "with an unrelated function", "renamed")


def fixed(root: Path, *, unsafe: bool) -> dict[str, str]:
    """Give the files of a project as they are once it is fixed."""
    found, checked = run(root)
    for patch in repair.repair(found, checked, unsafe=unsafe):
        assert repair.write(patch) is None
    return {file.relative_to(root).as_posix(): file.read_text("utf-8") for file in root.rglob("*.py")}


def meaning(files: Files | None) -> dict[str, str]:
    return {path: ast.dump(ast.parse(text.replace(SUFFIX, ""))) for path, text in (files or {}).items()}


@pytest.mark.parametrize("change", COMMUTING)
@pytest.mark.parametrize("case", FIXED if ALL else FIXED[::8], ids=named)
def test_fixes(case: Case, change: str, tmp_path: Path) -> None:
    """What is changed and then fixed is what is fixed and then changed.

    A fix that takes a statement out is none where a comment would go with it; none that is safe does so.
    """
    unsafe = change != "commented"
    files = {path: file.text for path, file in case.files.items()}
    changed = CHANGES[change](dict(files))
    if changed is not None:
        last = fixed(write(tmp_path / "changed first", changed, case.toml), unsafe=unsafe)
        first = fixed(write(tmp_path / "fixed first", files, case.toml), unsafe=unsafe)
        assert meaning(last) == meaning(CHANGES["unparsed" if change == "renamed" else change](first))


def test_formatting(tmp_path: Path) -> None:
    """All documents are laid out anew by a formatter, which also changes quotes and breaks lines."""
    some = [case for case in CASES if ALL or drawn(f"fixes {named(case)}") * EVERY < 2]
    roots = {}
    for number, case in enumerate(some):
        files = {path: file.text for path, file in case.files.items()}
        roots[number] = write(tmp_path / "after" / str(number), files, case.toml)
    (tmp_path / "ruff.toml").write_text("line-length = 40\n")
    layout = ["--config", str(tmp_path / "ruff.toml"), str(tmp_path / "after")]
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", *layout], check=True)
    problems = []
    for number, case in enumerate(some):
        files = {path: file.text for path, file in case.files.items()}
        if seen(roots[number]) != seen(write(tmp_path / "before" / str(number), files, case.toml)):
            problems.append(named(case))
    assert problems == []
