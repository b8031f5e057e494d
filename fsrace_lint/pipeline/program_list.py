"""The programs of a project, with their launch commands, or with what their code says about processes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.analysis.callgraph.concurrency_markers import ConcurrencyMarkers
from fsrace_lint.launches.model import Launch
from fsrace_lint.syntax import recursion_limit
from fsrace_lint.syntax.extract import SyntaxProblem
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from fsrace_lint.analysis.callgraph.concurrency import ConcurrencyMarker
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.catalog.entries import Launch as LaunchEntry
    from fsrace_lint.program.modules import LinkedFunction
    from fsrace_lint.program.programs import Program
    from fsrace_lint.syntax.model import FileFacts

_DEEPEST: Final = 4
"""The maximum number of calls from a program to the call that joins a job."""


class CodeEvidence(msgspec.Struct, frozen=True):
    """What the code of a program says about its processes.

    Attributes:
        kind: `joins-job` and `starts-processes` if the code always does so. `checks-ranks` if the file of the
            program asks for the rank or synchronizes, which also works in one process.
        text: The code, or what it does.
        path: The file, as reported.
        line: The line.
    """

    kind: Literal["joins-job", "starts-processes", "checks-ranks"]
    text: str
    path: str
    line: int


class ProgramEntry(msgspec.Struct, frozen=True):
    """How a program is entered: as a script, with `python -m`, or as an installed command with a name."""

    kind: Literal["script", "module", "command"]
    name: str = ""


class ListedProgram(msgspec.Struct, frozen=True):
    """A program of a project.

    Attributes:
        path: The file, as reported.
        function: The function, for a program that is only an installed command. Otherwise empty.
        entries: How the program is entered.
        launches: The commands that start it, those that start multiple processes first.
        code: If there are none, what its code says, or None.
    """

    path: str
    function: str
    entries: tuple[ProgramEntry, ...]
    launches: tuple[Launch, ...]
    code: CodeEvidence | None


def listed(project: Project, files: Collection[str]) -> Iterator[ListedProgram]:
    """Yield the programs of a project in some files, in the order of the files.

    Args:
        project: The linked project.
        files: The paths of the files, relative to the project root.
    """
    markers = ConcurrencyMarkers(project.entry_states, project.programs)
    for program in project.programs.all():
        function = program.function
        if function.module.relative in files:
            evidence = None if program.launches else _evidence(project, markers, function)
            entries = tuple(_entries(project, program))
            name = function.facts.qualname if function.index else ""
            yield ListedProgram(function.module.path, name, entries, program.launches, evidence)


def _entries(project: Project, program: Program) -> Iterator[ProgramEntry]:
    function = program.function
    if function.index:
        yield from (ProgramEntry("command", name) for name in project.programs.commands_of(function))
        return
    kinds = {launch.target.kind for launch in program.launches}
    if function.module.facts.is_script or "file" in kinds:
        yield ProgramEntry("script")
    if "module" in kinds:
        yield ProgramEntry("module")


def _evidence(project: Project, markers: ConcurrencyMarkers, function: LinkedFunction) -> CodeEvidence | None:
    """Return what the code of a program says. Code that is nested too deeply says nothing."""
    with contextlib.suppress(RecursionError), recursion_limit.frames(recursion_limit.MEANING):
        evident = next(_evident(markers, function), None)
        if evident is not None:
            return _joined(project, markers, function, evident)
        for each in (function, *function.module.functions):
            for marker, _ in (*markers.ordered(each), *markers.asked(each)):
                return CodeEvidence("checks-ranks", marker.text, marker.place.path, marker.place.span.line)
    return None


def _evident(markers: ConcurrencyMarkers, function: LinkedFunction) -> Iterator[ConcurrencyMarker]:
    return (marker for marker, _ in markers.of(function) if marker.evidence is Evidence.EVIDENT)


def _joined(
    project: Project, markers: ConcurrencyMarkers, function: LinkedFunction, marker: ConcurrencyMarker
) -> CodeEvidence:
    """Follow a marker to the call that joins the job, or starts the processes."""
    flows = project.flows
    found: CallSite | None = None
    for _ in range(_DEEPEST):
        sites = flows.call_sites(function)
        site = next((site for site in sites if site.call.span == marker.place.span), None)
        if site is None:
            break
        found = site
        callee = flows.resolver.callee(site.call, site.state.scope)
        inner = None if callee is None else next(_evident(markers, callee), None)
        if callee is None or inner is None:
            break
        function, marker = callee, inner
    path, line = marker.place.path, marker.place.span.line
    if found is None:
        return CodeEvidence("starts-processes", marker.text, path, line)
    name = flows.resolver.type_name(flows.resolver.symbol(found.call.function, found.state.scope))
    launch: LaunchEntry | None = project.entry_states.catalog.find("launch", name)
    kind: Literal["joins-job", "starts-processes"] = (
        "joins-job" if launch is not None and launch.creates_group else "starts-processes"
    )
    return CodeEvidence(kind, f"{spell(found.call.function)}()", path, line)


def unparsed(path: str, problem: FileFacts | SyntaxProblem) -> str:
    """Return the warning about a file that cannot be parsed."""
    if isinstance(problem, SyntaxProblem):
        return f"{path}:{problem.line}: {problem.reason}"
    return f"{path}: {recursion_limit.TOO_DEEP}"
