"""`mktemp` returns a name that another process can take.

It looks for a name that is free and creates nothing. Until the caller creates the
file, another process can have it: then one overwrites the other's file, or, in a
folder that all users share, writes where somebody's link points.

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

Silent when: never. `mkstemp`, `NamedTemporaryFile` and `mkdtemp` create what they
name, and so does the `mktemp` of pytest's `tmp_path_factory`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep
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
    """Find names of temporary files that are made up and not created."""
    for named in project.accesses("name"):
        yield RULE.finding(
            named,
            f"{named.callee} only makes up a name, and another process can create the file first",
            witness=Witness(
                (
                    WitnessStep(0, f"{named.callee}()", "a name that is free"),
                    WitnessStep(1, "creates a file or a link of that name"),
                    WitnessStep(0, "opens that name to write", "it is what process 1 made"),
                ),
                "process 0 writes into what belongs to process 1",
            ),
            fix=(OWN_FILE if project.is_opened_at_once(named) else MKSTEMP).at(named),
        )
