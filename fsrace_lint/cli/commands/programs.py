"""The command `programs`, which lists the programs of a project and how they are launched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from fsrace_lint import report
from fsrace_lint.cli import terminal
from fsrace_lint.cli.commands import cache
from fsrace_lint.cli.commands.grouped_options import OptionChoice
from fsrace_lint.cli.commands.options import leave, problems_of_settings, settings_of
from fsrace_lint.cli.commands.progress_bar import Watch
from fsrace_lint.engine.parallel import machine
from fsrace_lint.pipeline import check
from fsrace_lint.pipeline.project_cache import CacheUse
from fsrace_lint.pipeline.run import Checked
from fsrace_lint.report.json import written
from fsrace_lint.report.words import count, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.pipeline.check import ProjectPrograms
    from fsrace_lint.pipeline.program_list import CodeEvidence, ListedProgram
    from fsrace_lint.report.json import Json

_MOST: Final = 5
"""The maximum number of launch commands to print for each program."""
_CODE: Final = {"joins-job": "joins a job: ", "starts-processes": "starts processes: ", "checks-ranks": ""}


@click.command(
    short_help="List the programs and how they are launched.",
    epilog="""\b
Examples:
  fsrace-lint programs
  fsrace-lint programs src
  fsrace-lint programs --output-format json
""",
)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--output-format",
    "--format",
    "form",
    type=OptionChoice(["full", "json"]),
    default="full",
    help="Output format.  [default: full]",
)
@click.option("--include-tests", is_flag=True, help="Also list programs in tests and documentation.")
@cache.directory
@click.option("--no-cache", is_flag=True, help="Do not read or write the cache.")
@machine.gc_disabled()
def programs(paths: tuple[Path, ...], form: str, **choices: Any) -> None:
    """List the programs in files and directories (by default, in the current directory).

    For each program, the launch commands in the files of the project are listed, with the number of
    processes. If there are none, the list shows what the code of the program says. Nothing is run. To
    correct a program, see the setting `programs`.

    Exit status: 0 if the programs were listed, 2 if the usage or the settings are invalid or the run fails.
    """
    watch = Watch(choices, color=None)
    changes = {"include_tests": choices["include_tests"] or None, "cache_dir": cache.chosen(choices)}
    chosen, problems = settings_of(paths, changes)
    use = CacheUse.NOT if choices["no_cache"] else CacheUse.FACTS
    projects: list[ProjectPrograms] = []
    with watch.progress(), problems_of_settings(problems):
        projects = check.list_programs(list(chosen), chosen.__getitem__, use, watch, jobs=machine.cpus())
    for project in projects:
        for warning in project.warnings:
            watch.hint(f"Warning: {warning}")
    if projects and not any(project.files for project in projects):
        named = ", ".join(os.path.abspath(path) for path in chosen)  # noqa: PTH100  # links are not resolved
        watch.hint(f"Warning: no Python files found in {named}")
    found = [program for project in projects for program in project.programs]
    terminal.show(_json(found) if form == "json" else _full(found))
    leave(Checked(report.Outcome(errors=tuple(dict.fromkeys(problems))), {}), watch, findings=0)


def _full(programs: Sequence[ListedProgram]) -> str:
    lines = [visible(line) for program in programs for line in _lines(program)]
    total = f"{count(len(programs), 'program')}." if programs else "No programs found."
    return "\n".join([*lines, *([""] if lines else []), total]) + "\n"


def _lines(program: ListedProgram) -> Iterator[str]:
    entries = ", ".join(f"{entry.kind} {entry.name}".rstrip() for entry in program.entries)
    yield f"{program.path}{f': {program.function}' if program.function else ''} ({entries})"
    for launch in program.launches[:_MOST]:
        several = f"{launch.processes or 'multiple'} {launch.role}s"
        number = several if launch.several else "one process"
        yield f"  {launch.reported}:{launch.line}: {number}: {launch.command}"
    if len(program.launches) > _MOST:
        yield f"  and {count(len(program.launches) - _MOST, 'more command')}"
    if not program.launches:
        yield f"  {_said(program.code)}"


def _said(code: CodeEvidence | None) -> str:
    if code is None:
        return "no launch command found"
    text = code.text if code.kind == "checks-ranks" or "`" in code.text else f"`{code.text}`"
    return f"{_CODE[code.kind]}{text} ({code.path}:{code.line})"


def _json(programs: Sequence[ListedProgram]) -> str:
    document: Json = {
        "programs": [
            {
                "path": program.path,
                "function": program.function or None,
                "entries": [{"kind": entry.kind, "name": entry.name or None} for entry in program.entries],
                "launches": [
                    {
                        "path": launch.reported,
                        "line": launch.line,
                        "source": launch.origin.name.lower(),
                        "command": launch.command,
                        "launcher": launch.launcher or None,
                        "processes": launch.processes if launch.several else 1,
                        "role": launch.role if launch.several else "single",
                    }
                    for launch in program.launches
                ],
                "code": msgspec.to_builtins(program.code),
            }
            for program in programs
        ]
    }
    return f"{written(document)}\n"
