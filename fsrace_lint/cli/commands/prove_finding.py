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
from fsrace_lint.reproduce.as_told import ReachedError, is_as_told, lines_at, lines_of, raising_if_reached
from fsrace_lint.reproduce.scenario_file import scenario_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from fsrace_lint.explore import Result
    from fsrace_lint.explore.exploration_result import FailingSchedule
    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.reproduce.scenario_file import ScenarioFile

_CHOICES: Final[dict[str, Any]] = {
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
}


class FoundPlace(NamedTuple):
    """A finding, and the root of its project."""

    finding: Finding
    project: Path


class Shown(NamedTuple):
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


def find(place: str, *, no_cache: bool) -> FoundPlace:
    """Return the finding at a place.

    Args:
        place: `FILE:LINE`.
        no_cache: Whether the cache is neither read nor written.

    Returns:
        The most severe finding at this line.

    Raises:
        click.UsageError: The place is invalid, or it has no finding.
    """
    file, _, line = place.rpartition(":")
    if not file or not line.isdigit():
        raise click.UsageError(f"`{visible(place)}` is not a place; use FILE:LINE")
    if not Path(file).is_file():
        raise click.UsageError(f"{visible(file)}: no such file")
    watch = Watch({}, color=None)
    ran, _ = run([Path(file)], {**_CHOICES, "no_cache": no_cache}, watch)
    wanted = Path(file).resolve()
    here = [
        FoundPlace(finding, each.settings.root)
        for each, checked in ran
        for finding in checked.outcome.findings
        if Path(finding.place.path).resolve() == wanted
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
                f"{visible(str(file))} already exists and differs; run `fsrace-lint prove {file}::run`,"
                " or name another file with --scenario"
            ) from None
    return file, scenario


def prove(
    found: FoundPlace, scenario: ScenarioFile, module: ModuleType, explore: Callable[..., Result], **how: Any
) -> Shown:
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
    from fsrace_lint.explore import ExploreError  # noqa: PLC0415  # other commands do not need it

    how |= {"setup": getattr(module, "setup", None), "check": module.check, "raise_signals": False}
    how["distributed"] = how["distributed"] or scenario.is_distributed
    name = scenario.target.name
    try:
        alone = explore(module.run, **{**how, "processes": 1, "check": None, "crash": "none"})
        if alone.failure is not None:
            return _before_error(found, name, module.run, explore, how, alone, alone.failure)
        return _explored(found, name, module.run, explore, how)
    except ExploreError as error:
        first, _, details = str(error).partition("\n")
        return Shown("failed", f"`{name}` cannot be run with these arguments: {first}", details=details)


def _before_error(
    found: FoundPlace,
    name: str,
    run: Callable[..., Any],
    explore: Callable[..., Result],
    how: dict[str, Any],
    alone: Result,
    failure: FailingSchedule,
) -> Shown:
    """Explore a function that raises an exception in one process: the race can come before it."""
    fails = f"`{name}` fails with these arguments in one process: {failure.text}"
    failed = Shown("failed", fails, alone, failure.details)
    if failure.kind != "exception":
        return failed
    # the explorer compares names
    kind = type(failure.text.partition(" ")[0], (Exception,), {})
    shown = _explored(found, name, run, explore, {**how, "expected": (*how["expected"], kind)})
    if shown.status != "proven":
        return failed
    return shown._replace(text=f"{shown.text}, before {kind.__name__}, which one process also raises")


def _explored(
    found: FoundPlace, name: str, run: Callable[..., Any], explore: Callable[..., Result], how: dict[str, Any]
) -> Shown:
    """Explore a function that can run in one process, without and with kills."""
    if not explore(run, **{**how, "processes": 1, "crash": "none"}).ok:
        # the function itself leaves an empty file
        how["check"] = None
    result = explore(run, **how)
    if result.ok and how["check"] is not None and how["crash"] == "none":
        killed = explore(run, **{**how, "crash": "kill"})
        result = killed if not killed.ok else result
    if result.failure is not None:
        return _failing(found, name, result, result.failure)
    reaching = raising_if_reached(run, lines_at([found.finding.place]))
    reached = explore(reaching, **{**how, "check": None, "shrink": False}).failure
    if reached is None or ReachedError.__name__ not in reached.details:
        return Shown("failed", f"`{name}` does not reach {_where(found)} with these arguments", result)
    models = how["filesystem"]
    condition = ", under an assumption" if result.assumed else ""
    said = f"every interleaving of `{name}` with these arguments passes on {models}{condition}"
    if not result.exhaustive:
        said = f"no failure in {result.schedules} interleavings of `{name}` with these arguments on {models}"
    return Shown("passes", said, result)


def _failing(found: FoundPlace, name: str, result: Result, failure: FailingSchedule) -> Shown:
    """Compare the decisive calls of a failing schedule with the lines of the finding."""
    last = {move.choice.rank: move for move in failure.moves}
    frames = [(file, line) for move in last.values() for file, line, _ in move.stack]
    frames += re.findall(r'File "([^"]+)", line (\d+)', failure.details)
    acting = [f"{os.path.realpath(file)}:{line}" for file, line in frames]
    if is_as_told(lines_of(found.finding), acting):
        return Shown("proven", f"{found.finding.code} at {_where(found)} is proven", result)
    return Shown("differs", f"`{name}` fails, but not at {_where(found)}", result)


def _where(found: FoundPlace) -> str:
    return f"{found.finding.place.path}:{found.finding.place.span.line}"
