"""The command `prove`, which loads a scenario, explores it, and prints the result."""

from __future__ import annotations

import builtins
import importlib.util
import json
import linecache
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import click

from fsrace_lint import __version__
from fsrace_lint.cli.commands import search_progress
from fsrace_lint.cli.commands.grouped_options import Grouped, OptionChoice, mistaken
from fsrace_lint.cli.terminal import CLEAN, FAILED, FOUND, show, write
from fsrace_lint.config.suggestions import did_you_mean
from fsrace_lint.report import proof as proof_page
from fsrace_lint.report.words import count, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from fsrace_lint.cli.commands.prove_finding import Shown
    from fsrace_lint.explore import Result


def _filesystems(ctx: click.Context, param: click.Parameter, value: str) -> str:
    from fsrace_lint.explore.scenario import FILESYSTEMS  # noqa: PLC0415  # other commands do not need it

    for name in value.split(","):
        if name not in FILESYSTEMS:
            raise click.BadParameter(mistaken(name, list(FILESYSTEMS)), ctx, param)
    return value


class _Grouped(Grouped):
    """The command; its help lists the options in groups."""

    groups: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "Scenario": (
            *("processes", "nodes", "distributed", "setup", "check", "agree", "expect", "allow_outside"),
            *("finding", "scenario_file", "no_cache"),
        ),
        "Filesystem and failures": (
            *("filesystem", "crash", "power_loss", "power_loss_unordered", "kills", "restarts", "same_pids"),
            "faults",
        ),
        "Search": (
            *("max_schedules", "preemptions", "samples", "seed", "resume", "max_calls", "step_timeout"),
            "replay",
        ),
        "Report": ("shrink", "shrink_runs", "form", "html"),
    }
    variables: ClassVar[Mapping[str, str]] = {}


@click.command(
    cls=_Grouped,
    short_help="Test a function under every interleaving of its filesystem calls.",
    epilog="""\b
Examples:
  fsrace-lint prove scenario.py::prepare
  fsrace-lint prove scenario.py::save --processes 3 --samples 500
  fsrace-lint prove scenario.py::save --crash --check whole
  fsrace-lint prove scenario.py::prepare --replay fsr1.2posix.ab2a.e797
  fsrace-lint prove --finding src/train.py:4
""",
)
@click.argument("scenario", metavar="FILE::FUNCTION", required=False)
@click.option(
    "--processes", type=click.IntRange(1, 26), default=2, show_default=True, help="Number of processes."
)
@click.option(
    "--nodes",
    type=click.IntRange(1, 26),
    default=1,
    show_default=True,
    help="Number of nodes to divide the processes among. Process ids can be equal on two nodes.",
)
@click.option("--distributed", is_flag=True, help="Replace `torch.distributed` with a simulation.")
@click.option(
    "--setup", metavar="NAME", help="Function that creates the initial files.  [default: setup, if defined]"
)
@click.option(
    "--check", metavar="NAME", help="Function that checks the resulting files.  [default: check, if defined]"
)
@click.option("--agree", is_flag=True, help="Require all processes to return the same result.")
@click.option("--expect", metavar="NAMES", help="Comma-separated exceptions that are not failures.")
@click.option(
    "--allow-outside", is_flag=True, help="Permit changes of files outside of the temporary directory."
)
@click.option(
    "--finding", metavar="FILE:LINE", help="Write a scenario for the finding at this line, and run it."
)
@click.option(
    "--scenario",
    "scenario_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="With --finding, the file to write.  [default: `prove_STEM_LINE.py`]",
)
@click.option("--no-cache", is_flag=True, help="With --finding, neither read nor write the cache of checks.")
@click.option(
    "--filesystem",
    metavar="NAMES",
    callback=_filesystems,
    default="posix",
    show_default=True,
    help="Comma-separated filesystems to simulate: posix, nfs-attributes, nfs-names, nfs-data, nfs-handles,"
    " nfs-nolock, or nfs for all but nfs-nolock.",
)
@click.option("--crash", is_flag=True, help="Also kill one process, or all processes, before any call.")
@click.option(
    "--power-loss", is_flag=True, help="Like --crash, and also lose names and data that were not synced."
)
@click.option(
    "--power-loss-unordered", is_flag=True, help="Like --power-loss, but names are lost in any order."
)
@click.option(
    "--kills",
    type=click.IntRange(1),
    help="Maximum number of kills in a schedule; includes --crash.  [default: 1 with --crash]",
)
@click.option(
    "--restarts",
    type=click.IntRange(0),
    default=0,
    help="How many times each killed process starts again; includes --crash.",
)
@click.option(
    "--same-pids", is_flag=True, help="A process that starts again gets its old process id; includes --crash."
)
@click.option(
    "--faults",
    metavar="NAMES",
    help="Comma-separated errors that one call can get: ENOSPC, EIO, EINTR, ESTALE.",
)
@click.option(
    "--max-schedules",
    type=click.IntRange(0),
    default=10_000,
    show_default=True,
    help="Maximum number of schedules to run in the systematic search.",
)
@click.option(
    "--preemptions",
    type=click.IntRange(0),
    help="Run only the schedules that preempt a process at most this often.  [default: no limit]",
)
@click.option(
    "--samples",
    type=click.IntRange(0),
    default=0,
    help="Number of random schedules to run after the systematic search.",
)
@click.option("--seed", type=int, default=0, help="Seed for the random schedules.")
@click.option(
    "--resume",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Save a systematic search that stops before its end in FILE, and continue it from there.",
)
@click.option(
    "--max-calls",
    type=click.IntRange(1),
    default=5000,
    show_default=True,
    help="Maximum number of calls in one schedule.",
)
@click.option(
    "--step-timeout",
    type=click.FloatRange(0, 86_400, min_open=True),
    default=10.0,
    show_default=True,
    help="Maximum number of seconds between two calls of a process.",
)
@click.option("--replay", metavar="TOKEN", help="Run only the schedule with this token.")
@click.option(
    "--shrink/--no-shrink", default=True, help="Minimize the failing schedule.  [default: --shrink]"
)
@click.option(
    "--shrink-runs",
    type=click.IntRange(0),
    default=150,
    show_default=True,
    help="Maximum number of runs that minimize the failing schedule.",
)
@click.option(
    "--output-format",
    "--format",
    "form",
    type=OptionChoice(["full", "json"]),
    default="full",
    show_default=True,
    help="Report format.",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write the result as a page with the interleaving and the code of each call.",
)
def prove(
    scenario: str | None,
    finding: str | None,
    scenario_file: Path | None,
    form: str,
    html: Path | None,
    **choices: Any,
) -> None:
    """Run FUNCTION from FILE in multiple processes, under every distinct interleaving of filesystem calls.

    WARNING: This command executes your code many times, in forked processes, in a temporary directory.
    Each process passes that directory and its rank to the function, for example
    def prepare(root: pathlib.Path, rank: int). With --finding, such a function is written for a finding of
    `fsrace-lint check`.

    Exit status: 0 if every schedule passes, 1 if a schedule fails, 2 if the usage is invalid or the run
    fails, 130 after Ctrl-C, and 128 plus its number after another signal.
    """
    # other commands do not need it
    from fsrace_lint.explore import ExploreError, as_data, explore  # noqa: PLC0415

    if finding is not None:
        _prove_finding(finding, scenario, scenario_file, choices, form, html)
    if scenario is None:
        raise click.UsageError("name FILE::FUNCTION, or use --finding FILE:LINE")
    for option, is_given in (
        ("--scenario", scenario_file is not None),
        ("--no-cache", choices.pop("no_cache")),
    ):
        if is_given:
            raise click.UsageError(f"{option} requires --finding")
    file, _, name = scenario.partition("::")
    if not file or not name:
        what = "a function" if file else "a file"
        raise click.UsageError(f"`{visible(scenario)}` does not name {what}; use FILE::FUNCTION")
    module = _loaded(Path(file))
    function = _named(module, name)
    _take_model(choices)
    choices["expected"] = _exceptions(module, choices.pop("expect"))
    for usual in ("setup", "check"):
        choices[usual] = _function(module, choices[usual], usual)
    processes = "1 process" if choices["processes"] == 1 else f"{choices['processes']} processes"
    where = f"in {processes}" if choices["replay"] is None else f"with the schedule {choices['replay']}"
    click.echo(visible(f"Running {scenario} {where}"), err=True)
    try:
        with search_progress.shown() as progress:
            result = explore(function, **choices, progress=progress, raise_signals=False)
    except ExploreError as error:
        click.echo(f"Error: {_lines(str(error))}", err=True)
        sys.exit(FAILED)
    show(json.dumps(as_data(result), indent=2) + "\n" if form == "json" else _lines(str(result)) + "\n")
    if html is not None:
        page = proof_page.render(as_data(result), scenario, __version__, linecache.getlines)
        if not write(html, page):
            sys.exit(FAILED)
    click.echo(f"{count(result.runs, 'run')} in {result.seconds:.1f} s", err=True)
    if result.interrupted:
        name = signal.Signals(result.interrupted).name
        saved = f"; the same command continues from {choices['resume']}" if choices["resume"] else ""
        told = f"Interrupted by {name} after {count(result.schedules, 'interleaving')}{saved}"
        click.echo(visible(told), err=True)
        sys.exit(128 + result.interrupted)
    sys.exit(CLEAN if result.ok else FOUND)


def _take_model(choices: dict[str, Any]) -> None:
    """Turn the options about crashes and faults into arguments of `explore()`."""
    kills = choices["crash"] or choices["kills"] or choices["restarts"] or choices["same_pids"]
    crashes = {
        "power-unordered": choices.pop("power_loss_unordered"),
        "power": choices.pop("power_loss"),
        "kill": kills,
    }
    choices["crash"] = next((crash for crash, chosen in crashes.items() if chosen), "none")
    choices["kills"] = choices["kills"] or 1
    choices["faults"] = tuple((choices["faults"] or "").replace(",", " ").split())


def _prove_finding(
    place: str, scenario: str | None, file: Path | None, choices: dict[str, Any], form: str, html: Path | None
) -> NoReturn:
    """Write the scenario of a finding, run it, and exit."""
    from fsrace_lint.cli.commands import prove_finding  # noqa: PLC0415  # loads the analysis
    from fsrace_lint.explore import as_data, explore  # noqa: PLC0415  # as above
    from fsrace_lint.reproduce import stand_ins  # noqa: PLC0415  # as above
    from fsrace_lint.reproduce.target import CannotReproduce  # noqa: PLC0415  # as above

    given = [f"--{name}" for name in ("setup", "check", "replay", "resume") if choices[name] is not None]
    given += ["--html"] if html is not None else []
    if scenario is not None or given:
        raise click.UsageError(f"--finding cannot be used with {given[0] if given else 'FILE::FUNCTION'}")
    found = prove_finding.find(place, no_cache=choices.pop("no_cache"))
    try:
        file, written = prove_finding.write(found, file)
    except CannotReproduce as error:
        click.echo(f"Error: no scenario for {visible(place)}: {visible(str(error))}", err=True)
        sys.exit(FAILED)
    click.echo(visible(f"Wrote {file}"), err=True)
    for name in written.guessed:
        click.echo(
            visible(f"note: nothing shows what `{name}` is; an object without attributes is passed"), err=True
        )
    _take_model(choices)
    del choices["replay"], choices["resume"]
    # the function can import more
    with stand_ins.for_missing_modules(found.project) as missing:
        module = _loaded(file)
        choices["expected"] = _exceptions(module, choices.pop("expect"))
        for name in missing:
            click.echo(visible(f"note: `{name}` is not installed; its functions do nothing here"), err=True)
        shown = prove_finding.prove(found, written, module, explore, **choices)
    _show_proof(shown, found.finding.code, form, as_data)
    sys.exit({"proven": FOUND, "differs": FOUND, "passes": CLEAN}.get(shown.status, FAILED))


def _show_proof(shown: Shown, code: str, form: str, as_data: Callable[[Result], dict[str, object]]) -> None:
    result = shown.result
    if form == "json":
        data = {
            "code": code,
            "status": shown.status,
            "text": shown.text,
            "result": None if result is None else as_data(result),
        }
        show(json.dumps(data, indent=2) + "\n")
        return
    if result is not None and shown.status != "failed":
        show(_lines(str(result)) + "\n")
    elif shown.details:
        click.echo(_lines(shown.details), err=True)
    show(f"{shown.status}: {visible(shown.text)}\n")


def _lines(text: str) -> str:
    return "\n".join(map(visible, text.split("\n")))


def _loaded(file: Path) -> ModuleType:
    """Import a file like a script, with its directory first in `sys.path`."""
    if not file.is_file():
        kind = "a directory" if file.is_dir() else "not a regular file"
        what = f"is {kind}; name a Python file" if os.path.lexists(file) else "no such file"
        raise click.UsageError(f"{visible(str(file))}: {what}")
    name = f"fsrace_scenario_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise click.UsageError(f"{visible(str(file))} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent.resolve()))
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # any error of the file is shown to the user
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename != spec.origin:
            frames = frames.tb_next
        lines = traceback.format_exception(type(error), error, frames)
        click.echo(f"Error: cannot import {visible(str(file))}\n{_lines(''.join(lines))}", err=True)
        sys.exit(FAILED)
    return module


def _named(module: ModuleType, name: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if not callable(found):
        known = [known for known, value in vars(module).items() if callable(value)]
        what = f"{module.__file__} has no function `{name}`{did_you_mean(name, known)}"
        raise click.UsageError(visible(what))
    return found  # type: ignore[no-any-return]


def _function(module: ModuleType, name: str | None, usual: str) -> Callable[..., Any] | None:
    if name is None and not hasattr(module, usual):
        return None
    return _named(module, name or usual)


def _exceptions(module: ModuleType, names: str | None) -> tuple[type[BaseException], ...]:
    found = []
    for name in (names or "").replace(",", " ").split():
        kind = getattr(module, name, None) or getattr(builtins, name, None)
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise click.UsageError(
                f"unknown exception `{visible(name)}`; name a builtin or a class of the file"
            )
        found.append(kind)
    return tuple(found)
