"""Changes that preserve the behavior of a program do not change its findings and fixes."""

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
"""One of this many cases is changed in each way, drawn again for each commit; all cases take minutes."""
ALL: Final = os.environ.get("FSRACE_ALL_CHANGES") == "1"

KNOWN: Final = {
    # The name is evidence, and the new name is not.
    "renamed": (
        "tensorflow: Multiple workers / Every worker saves to the same path",
        "tensorflow: Multiple workers / The chief is chosen by task type",
        "stored-rank-checks: In one function / In a variable",
        "branches: In one function / Conditional expressions",
        "framework-hooks: Frameworks / Rank attributes of hooks and frameworks",
        "work-items: Items of a batch",
        "local-guard-on-shared-path: Hazards / Paths in `shared-paths`",
        "divergence: Objects that check the rank themselves / A trainer created by an unknown library",
        "node-local: Written on the node of rank 0 / Shared paths from the settings",
        "type-hints: Names / The only class of that name",
        "order: Paths that one rank creates / Every rank deletes it",
        "collective-under-filesystem-check: Look-alikes / `prepare()` of a data loader",
        "divided-work: Job arrays / The index of a job",
        "named-checks: Names of distributed jobs / A flag by the framework",
        "divided-work: Data loaders / Batches that a sampler divides",
        "agreed-attributes: Hazards / The name of an object whose class is unknown",
        "harmful-fixes: A rank check around a collective / `save_pretrained()`",
        "transformers: `save_pretrained()` of models, tokenizers, and configurations",
        "transformers: A model of unknown type",
        "transformers: The trainer saves on every rank",
        "trl: The trainer saves on every rank",
        "unguarded-write: A literal name in an unknown directory / Each rank may have its own directory",
    ),
    # The class is inferred from the name of a parameter, which is now annotated with `object`.
    "annotated": (
        "type-hints: Names / The only class of that name",
        "order: Paths that one rank creates / Every rank deletes it",
    ),
    # Names of other files, constants, suffixes, and evidence are followed less far after the change.
    "in if True": (
        "earlier-directories: When a module is imported / The module itself, or one that it imports",
        "argument-choices: Choices of a parser / In a program without functions",
        "argument-choices: Choices of a parser / Look-alikes: other values are possible",
        "chain-constants: Constants that are handed on / Through several calls",
        "one-process: World size / A larger world size in one branch",
        "mxnet: `download()` of Gluon renames",
        "guard-before-init: Hazards / At module level of a script",
        "shared-download: Hazards / A download that is renamed, on every rank",
        "mxnet: Datasets are downloaded in place",
        "imports: Scripts / A file in the same directory hides one at the top",
        "shared-extraction: Look-alikes / An archive of another kind",
        "unused-imports: A section that is empty then",
        "unused-imports: A list of names in parentheses",
    ),
    "split, names imported": (
        "concurrency-evidence: Enough evidence / A group initialized on demand, in the script",
    ),
    "split, the module imported": (
        "concurrency-evidence: Enough evidence / A group initialized on demand, in the script",
    ),
    "in try and finally": ("shared-extraction: Look-alikes / An archive of another kind",),
    # Objects of classes that are defined in a function, and their callers, are not followed.
    "in a function": (
        "entered-contexts: Values / Private directories that a generator yields",
        "drivers: Clusters / The driver of Ray",
        "atomic-writes: atomic-write / `open()` where a class has a method `open()`",
        "one-rank: A barrier that some ranks may skip / A constructor far from the ranks",
        "loop-exits: Hazards / A flag of an object that only rank 0 calls",
        "loop-exits: Look-alikes / A flag of an object that all ranks call, or that is broadcast",
        "earlier-directories: In a function that the caller calls / Always, or if the path is given",
        "jsonargparse: The configuration of a run",
        "transformers: A subclass of `Trainer` / In a mixin class",
        "stored-rank-checks: In a class / A class attribute",
        "classes: Classes / `super().__init__()`",
        "callbacks: Locks and run-once helpers / A helper that runs a function under a lock",
        "context-never-entered: Hazards / A lock class of the project",
        "context-never-entered: Look-alikes / A function of the project with the name of a context manager",
        "shared-download: Hazards / An abstract method that downloads",
        "broken-locks: Deleted lock files / By a class that locks",
        "type-hints: Registries, mixins, and overrides / A class of the project in a dictionary",
        "type-hints: Registries, mixins, and overrides / `super()` and a mixin",
        "type-hints: Registries, mixins, and overrides / Overrides of a method without code",
        "work-items: `Pool.map()` / A name from the object or from the item",
        "decorators: Other files and subclasses / A decorated method is overridden",
        "classes: Properties / A property with a setter",
        "process-starts-elsewhere: Branches and classes / Processes are started before the branch",
        "entry-states: Flags / A flag set on an object that is passed on",
        "lock-files: Locks without a timeout / A `FileLock` class of the project",
        "type-hints: Attributes / Annotated in a class body",
        "type-hints: Return values / Returned on one or every branch",
        "order: Paths that one rank creates / Every rank deletes it",
        "rank-dependence: Fields / A field that `__post_init__()` converts",
        "rank-dependence: Functions and properties / From a property",
        "held-locks: Locks / A class that locks in `__enter__()`",
        "type-hints: Annotated elements and attributes / A generic class with its parameters",
        "collections: Objects in collections / The keys of a mapping",
        "collections: Objects in collections / Annotated `**kwargs`",
        "aliases: Attributes of subclasses / An attribute that only the subclass has",
        "passed-objects: Passed on through attributes / Through two constructors, or `None`",
        "passed-objects: Passed on through attributes / Through three constructors",
        "passed-objects: Passed on through attributes / Through a parameter default",
        "framework-hooks: Hooks / Called to restore a state",
        "attrs: A field with a default that is created for each object",
        "pydantic: A field with a default that is created for each object",
        "paths-from-callers: Callers that differ / Some objects of a class are created with a temporary directory",  # noqa: E501
        "none-checks: In one function / An object",
        "none-checks: The result of a function / A part of the result of an abstract method",
        "barriers-in-contexts: Barriers / On one rank only",
        "entered-contexts: Values / The object that a generator yields",
        "chosen-objects: Every rank has an object that writes / The same class in both branches",
        "chosen-objects: Every rank has an object that writes / An unknown object, and one that a caller passes on every rank",  # noqa: E501
        "chosen-objects: Every rank has an object that writes / Rank 0 of each node",
        "chain-constants: Objects that a constant configures / A subclass that passes a constant to its base",
        "chain-constants: Objects that a constant configures / Objects made on the chain, of a subclass, or passed on",  # noqa: E501
        "chain-constants: Constants that are not followed / Functions within functions, callbacks, and text in order",  # noqa: E501
        "rank-0-first: Checks inside the context / A class with `__enter__()` and `__exit__()`",
        "lightning: Hooks / `setup()` repeats a call of `prepare_data()`",
        "stdlib: An open temporary file / A field of a data class with a default that is created for each object",  # noqa: E501
        "paths-from-callers: Objects / A directory that an object is created with",
        "barriers-in-contexts: Barriers / Around the body",
        "decorators: Locks / A decorator that is given a lock",
        "object-creation: One process has the object / Another rank reads what the object wrote",
        "object-creation: More than one process has the object / A subclass that every rank creates",
        "object-creation: More than one process has the object / Class methods, static methods, and started processes",  # noqa: E501
        "process-starts-elsewhere: Branches and classes / The common constructor starts processes",
        "ray: Tasks / Several actors and tasks, and single ones",
        "held-locks: Locks / Locks from methods and properties",
        "held-locks: Locks / Locks on an `ExitStack`",
        "decorators: Locks / A lock as a decorator",
        "object-creation: More than one process has the object / Another creation without a rank check",
        "object-creation: More than one process has the object / A class that other code can call",
        "object-creation: More than one process has the object / Rank 0 of each node",
        "one-process: A constructor that synchronizes only multiple processes",
        "ray: Tasks / A named actor",
        "shared-extraction: Look-alikes / An archive of another kind",
    ),
}
"""Known differences, by change; docs/limits.md explains them."""


class Seen(NamedTuple):
    """A finding without its location."""

    code: str
    function: str
    severity: str
    evidence: str
    call: str
    fix: str


def is_plain(case: Case) -> bool:
    """Return whether the code of a case parses and contains no `noqa` comments."""
    texts = [file.text for file in case.files.values()]
    try:
        for text in texts:
            ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return case.document.stem != "unreadable-source" and not any("noqa" in text for text in texts)


CASES: Final = [case for case in collect(CASE_DOCUMENTS) if is_plain(case)]
"""The cases of all documents; each is changed in every way that applies to it."""


def write(root: Path, files: Files, toml: str | None) -> Path:
    for path, text in {"pyproject.toml": toml or "", **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return root


def seen(root: Path) -> Counter[Seen]:
    """Return the findings of a project, in a form that the changes do not affect."""
    _, checked = run(root)
    return Counter(_seen(each, checked.sources[each.place.path].text) for each in checked.outcome.findings)


def _seen(finding: Finding, text: str) -> Seen:
    function = finding.function.removeprefix(f"{WHOLE}.").replace(WHOLE, "<module>")
    fix = "" if finding.fix is None else f"{finding.fix.recipe}, {finding.fix.applicability.value}"
    call = _call(text, finding.place.span).replace(SUFFIX, "").replace("moved.", "")
    return Seen(finding.code, function, finding.severity.value, finding.evidence, call, fix)


def _call(text: str, span: Span) -> str:
    lines = text.split("\n")[span.line - 1 : span.end_line]
    lines[-1] = lines[-1][: span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    code = "\n".join(lines)
    return ast.unparse(ast.parse(f"({code}\n)", mode="eval"))  # its parentheses are outside of the span


def named(case: Case) -> str:
    return f"{case.document.stem}: {case.title}"


def chosen() -> list[tuple[Case, str]]:
    """Return the cases, each with the name of a change."""
    return [
        (case, name)
        for case in CASES
        for name in CHANGES
        if named(case) not in KNOWN.get(name, ()) and (ALL or drawn(f"{name} {named(case)}") * EVERY < 1)
    ]


def differing(case: Case, change: str, directory: Path) -> list[str]:
    """Return the findings that a case has only before or only after a change."""
    files = case.sources
    changed = CHANGES[change](dict(files))
    if changed is None:
        return []
    before = seen(write(directory / "before", files, case.toml))
    after = seen(write(directory / "after", changed, case.toml))
    gone, new = (before - after).elements(), (after - before).elements()
    return [f"gone: {each}" for each in gone] + [f"new: {each}" for each in new]


@pytest.mark.parametrize(
    ("case", "change"), [pytest.param(*pair, id=f"{named(pair[0])}, {pair[1]}") for pair in chosen()]
)
def test_change_preserves_findings(case: Case, change: str, tmp_path: Path) -> None:
    assert differing(case, change, tmp_path) == []


@pytest.mark.parametrize(
    ("change", "name"), [(change, name) for change, names in KNOWN.items() for name in names]
)
def test_known_difference_still_exists(change: str, name: str, tmp_path: Path) -> None:
    (case,) = (case for case in CASES if named(case) == name)
    assert differing(case, change, tmp_path) != []


@pytest.mark.parametrize("change", CHANGES)
def test_change_preserves_findings_in_examples(change: str, tmp_path: Path) -> None:
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
    """Return the files of a project after `fix`."""
    found, checked = run(root)
    for patch in repair.repair(found, checked, unsafe=unsafe):
        assert repair.write(patch) is None
    return {file.relative_to(root).as_posix(): file.read_text("utf-8") for file in root.rglob("*.py")}


def meaning(files: Files | None) -> dict[str, str]:
    return {path: ast.dump(ast.parse(text.replace(SUFFIX, ""))) for path, text in (files or {}).items()}


@pytest.mark.parametrize("change", COMMUTING)
@pytest.mark.parametrize("case", FIXED if ALL else FIXED[::8], ids=named)
def test_fix_commutes_with_change(case: Case, change: str, tmp_path: Path) -> None:
    """Changing and then fixing gives the same program as fixing and then changing.

    With comments, only safe fixes are compared: an unsafe fix is refused if it would remove a comment.
    """
    unsafe = change != "commented"
    files = case.sources
    changed = CHANGES[change](dict(files))
    if changed is not None:
        last = fixed(write(tmp_path / "changed first", changed, case.toml), unsafe=unsafe)
        first = fixed(write(tmp_path / "fixed first", files, case.toml), unsafe=unsafe)
        assert meaning(last) == meaning(CHANGES["unparsed" if change == "renamed" else change](first))


def test_formatter_preserves_findings(tmp_path: Path) -> None:
    """A formatter changes the layout, quotes, and line breaks of the code."""
    some = [case for case in CASES if ALL or drawn(f"fixes {named(case)}") * EVERY < 2]
    roots = {}
    for number, case in enumerate(some):
        files = case.sources
        roots[number] = write(tmp_path / "after" / str(number), files, case.toml)
    (tmp_path / "ruff.toml").write_text("line-length = 40\n")
    layout = ["--config", str(tmp_path / "ruff.toml"), str(tmp_path / "after")]
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", *layout], check=True)
    problems = []
    for number, case in enumerate(some):
        files = case.sources
        if seen(roots[number]) != seen(write(tmp_path / "before" / str(number), files, case.toml)):
            problems.append(named(case))
    assert problems == []
