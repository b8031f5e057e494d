"""`prove --finding`: writes a scenario for a finding, and runs it in up to three steps."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from fsrace_lint.cli.commands.options import run
from fsrace_lint.cli.commands.progress_bar import Watch
from fsrace_lint.report.words import visible
from fsrace_lint.reproduce.as_told import is_as_told, lines_of
from fsrace_lint.reproduce.scenario_file import scenario_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from fsrace_lint.explore import Result
    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.reproduce.scenario_file import ScenarioFile

_NO_CHOICES: Final[dict[str, Any]] = {
    "profile": "strict",
    "min_severity": None,
    "min_confidence": None,
    "select": (),
    "extend_select": (),
    "ignore": (),
    "exclude": (),
    "extend_exclude": (),
    "force_exclude": False,
    "filesystem": None,
    "include_tests": True,
    "baseline": None,
    "no_baseline": True,
    "cache_dir": None,
    "no_cache": False,
}


class FoundPlace(NamedTuple):
    """A finding, and the root of its project."""

    finding: Finding
    project: Path


class Proof(NamedTuple):
    """What running the scenario of a finding has shown.

    Attributes:
        status: "proven", "differs" (it fails in another way), "passes", or "failed" (it cannot run).
        text: One sentence.
        result: The exploration that decided, if one did.
        details: A traceback, if it cannot run.
    """

    status: str
    text: str
    result: Result | None = None
    details: str = ""


def find(place: str) -> FoundPlace:
    """Return the finding at a place.

    Args:
        place: `FILE:LINE`.

    Returns:
        The most severe finding at this line.

    Raises:
        click.UsageError: The place is invalid, or it has no finding.
    """
    file, _, line = place.rpartition(":")
    if not file or not line.isdigit():
        raise click.UsageError(f"`{visible(place)}` is not a place; use FILE:LINE")
    watch = Watch({}, color=None)
    ran, _ = run([Path(file)], dict(_NO_CHOICES), watch)
    wanted = Path(file).resolve()
    here = [
        FoundPlace(finding, each.settings.root)
        for each, checked in ran
        for finding in checked.outcome.findings
        if (each.settings.root / finding.place.path).resolve() == wanted
    ]
    exact = [
        each for each in here if each.finding.place.span.line <= int(line) <= each.finding.place.span.end_line
    ]
    if not exact:
        lines = sorted({each.finding.place.span.line for each in here})
        others = f"; this file has findings at lines {', '.join(map(str, lines))}" if lines else ""
        raise click.UsageError(f"no finding at {visible(place)}{others}")
    return min(exact, key=lambda each: each.finding.certainty_key())


def write(found: FoundPlace, wanted: Path | None) -> tuple[Path, ScenarioFile]:
    """Write the scenario of a finding, unless the file exists.

    Args:
        found: The finding.
        wanted: The file to write, or None for a name made from the place.

    Returns:
        The file, and the scenario.

    Raises:
        click.UsageError: The file exists with other contents.
        CannotReproduce: The function cannot be called.
    """
    scenario = scenario_of(found.finding, found.project)
    stem = re.sub(r"\W", "_", scenario.target.file.stem)
    file = wanted or Path(f"prove_{stem}_{found.finding.place.span.line}.py")
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(scenario.text)
    except FileExistsError:
        if file.read_text(encoding="utf-8") != scenario.text:
            raise click.UsageError(
                f"{visible(str(file))} already exists and differs; run `fsrace-lint prove {file}::run`, or name"
                " another file with --scenario"
            ) from None
    return file, scenario


def prove(
    found: FoundPlace, scenario: ScenarioFile, module: ModuleType, explore: Callable[..., Result], **how: Any
) -> Proof:
    """Run a scenario: alone, in multiple processes, and with each process killed at any call.

    Args:
        found: The finding.
        scenario: Its scenario.
        module: The imported scenario.
        explore: Runs a function.
        how: The options of `explore`.

    Returns:
        What it has shown.
    """
    from fsrace_lint.explore import ScenarioError  # noqa: PLC0415  # other commands do not need it

    how["setup"] = getattr(module, "setup", None)
    how["distributed"] = how["distributed"] or scenario.is_distributed
    check = how["check"] = getattr(module, "check", None)
    name = scenario.target.name
    how["raise_signals"] = False
    try:
        alone = explore(module.run, **{**how, "processes": 1, "check": None})
    except ScenarioError as error:
        return Proof(
            "failed", f"`{name}` cannot be called like this: {_first_line(error)}", details=str(error)
        )
    if alone.failure is not None:
        text = f"`{name}` fails with these arguments in one process: {alone.failure.text}"
        return Proof("failed", text, alone, alone.failure.details)
    if check is not None and not explore(module.run, **{**how, "processes": 1}).ok:
        how["check"] = None
    result = explore(module.run, **how)
    if result.ok and how["check"] is not None and how["crash"] == "none":
        killed = explore(module.run, **{**how, "crash": "kill"})
        result = killed if not killed.ok else result
    return _judged(found, name, result)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _judged(found: FoundPlace, name: str, result: Result) -> Proof:
    failure = result.failure
    if failure is None:
        said = (
            ("every interleaving passes" + (", under an assumption" if result.assumed else ""))
            if result.exhaustive
            else f"no failure in {result.schedules} interleavings"
        )
        return Proof("passes", f"{said} of `{name}` with these arguments", result)
    lines = lines_of(found.finding, found.project)
    last = {move.choice.rank: move for move in failure.moves}
    frames = [(file, line) for move in last.values() for file, line, _ in move.stack]
    frames += re.findall(r'File "([^"]+)", line (\d+)', failure.details)
    acting = [f"{os.path.realpath(file)}:{line}" for file, line in frames]
    where = f"{found.finding.place.path}:{found.finding.place.span.line}"
    if is_as_told(lines, acting):
        return Proof("proven", f"{found.finding.code} at {where} is proven", result)
    return Proof("differs", f"`{name}` fails, but not at {where}", result)
