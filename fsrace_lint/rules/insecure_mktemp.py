"""Insecure `tempfile.mktemp()`.

`tempfile.mktemp()` returns an unused name, but does not create the file. Another process can create
a file with that name first, and then the two processes overwrite each other's file. In a directory
that all users can write, such as `/tmp`, another user can create a symlink with that name. The
write then goes to the target of the symlink.

Bad:
    import tempfile


    def store(text: str) -> str:
        name = tempfile.mktemp(suffix=".txt")
        with open(name, "w") as stream:
            stream.write(text)
        return name

Good:
    import tempfile


    def store(text: str) -> str:
        with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as stream:
            stream.write(text)
        return stream.name

The rule reports every call of `tempfile.mktemp()`, also in a script that runs in a single process.

Not reported when:
* the call creates what it names: `mkstemp()`, `NamedTemporaryFile()`, `mkdtemp()`, or `mktemp()` of
  pytest's `tmp_path_factory`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, callee_of
from fsrace_lint.rules.remedies import MKSTEMP, NAMING, OWN_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR207",
    name="insecure-mktemp",
    cwe=377,
    default_from=Evidence.NONE,
    remedies=NAMING,
    promises=(
        Promise.MKTEMP,
        Promise.EXCL,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find calls that return the name of a temporary file without creating the file."""
    for named in project.accesses("name"):
        yield RULE.finding(
            named,
            f"{callee_of(named)} returns a name without creating the file",
            witness=Witness(
                (
                    WitnessStep(0, f"{named.callee}()", "an unused name"),
                    WitnessStep(1, "creates a file or link with that name"),
                    WitnessStep(0, "opens that name for writing", "the file of process 1"),
                ),
                "another process can create the file first and own it",
            ),
            fix=(OWN_FILE if project.is_opened_at_once(named) else MKSTEMP).at(named),
        )
