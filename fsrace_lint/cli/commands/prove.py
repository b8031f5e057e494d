"""The command `prove`: loads a scenario from a file, has it explored, and tells what was found."""

from __future__ import annotations

import builtins
import importlib.util
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsrace_lint.cli.commands.grouped_options import OptionChoice
from fsrace_lint.cli.terminal import CLEAN, FAILED, FOUND, show
from fsrace_lint.config.suggestions import did_you_mean
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


@click.command(
    short_help="Run a function in every order of its filesystem calls.",
    epilog="""\b
Examples:
  fsrace-lint prove scenario.py::prepare
  fsrace-lint prove scenario.py::save --processes 3 --samples 500
  fsrace-lint prove scenario.py::save --crash --check whole
  fsrace-lint prove scenario.py::prepare --replay fsr1.2posix.ab2a.e797
""",
)
@click.argument("scenario", metavar="FILE::FUNCTION")
@click.option(
    "--processes", type=click.IntRange(1, 26), default=2, show_default=True, help="How many run it at once."
)
@click.option(
    "--filesystem",
    type=OptionChoice(["posix", "nfs"]),
    default="posix",
    show_default=True,
    help="What the kernel does, or a network filesystem that may answer stat and listings from the past.",
)
@click.option("--crash", is_flag=True, help="Kill a process at any call, and all of them.")
@click.option("--power-loss", is_flag=True, help="Crash, and lose what was not synced.")
@click.option(
    "--setup", metavar="NAME", help="What makes the tree before.  [default: setup, if there is one]"
)
@click.option(
    "--check", metavar="NAME", help="What must hold of the tree.  [default: check, if there is one]"
)
@click.option("--agree", is_flag=True, help="All processes must give the same result.")
@click.option("--expect", metavar="NAMES", help="Exceptions that are no failure, with commas.")
@click.option("--distributed", is_flag=True, help="Stand in for torch.distributed.")
@click.option(
    "--max-schedules",
    type=click.IntRange(0),
    default=10_000,
    show_default=True,
    help="How many to run in order.",
)
@click.option(
    "--preemptions", type=click.IntRange(0), help="Interrupt a process that could go on so often at most."
)
@click.option(
    "--samples", type=click.IntRange(0), default=0, help="Run so many random schedules beyond that."
)
@click.option("--seed", type=int, default=0, help="Which random schedules.")
@click.option(
    "--step-timeout",
    type=click.FloatRange(0, 86_400, min_open=True),
    default=10.0,
    show_default=True,
    help="Seconds that a process may take between two calls.",
)
@click.option("--replay", metavar="TOKEN", help="Run this schedule and no other.")
def prove(scenario: str, **choices: Any) -> None:
    """Run FUNCTION of FILE in several processes, in every order of their filesystem calls that can differ.

    THIS RUNS THE CODE IT IS POINTED AT: in forked processes, in a scratch directory, many times. The function
    is given that directory and its rank: def prepare(root: pathlib.Path, rank: int).

    Exit status: 0 no schedule fails, 1 one does, 2 wrong usage or a failure of the run.
    """
    from fsrace_lint.explore import ExploreError, explore  # noqa: PLC0415  # not for the other commands

    file, _, name = scenario.partition("::")
    if not name:
        raise click.UsageError(f"{visible(scenario)} names no function: write FILE::FUNCTION")
    module = _loaded(Path(file))
    function = _named(module, name)
    choices["crash"] = "power" if choices.pop("power_loss") else "kill" if choices["crash"] else "none"
    choices["expected"] = _exceptions(module, choices.pop("expect"))
    for usual in ("setup", "check"):
        choices[usual] = _function(module, choices[usual], usual)
    several = "1 process" if choices["processes"] == 1 else f"{choices['processes']} processes"
    click.echo(f"running {visible(scenario)} for real, in {several}", err=True)
    # nothing is left behind by `kill` either
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        result = explore(function, **choices)
    except ExploreError as error:
        click.echo(f"Error: {_lines(str(error))}", err=True)
        sys.exit(FAILED)
    show(_lines(str(result)) + "\n")
    rate = f"{result.runs / max(result.seconds, 1e-9):.0f} a second"
    click.echo(f"{result.runs} runs in {result.seconds:.1f} s, {rate}", err=True)
    sys.exit(CLEAN if result.ok else FOUND)


def _lines(text: str) -> str:
    return "\n".join(map(visible, text.split("\n")))


def _loaded(file: Path) -> ModuleType:
    """Import a file as a script would find itself: its folder comes first on the path."""
    if not file.is_file():
        raise click.UsageError(f"there is no file {visible(str(file))}")
    name = f"fsrace_scenario_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise click.UsageError(f"{visible(str(file))} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent.resolve()))
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever the file raises is the user's to see
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename != spec.origin:
            frames = frames.tb_next
        lines = traceback.format_exception(type(error), error, frames)
        click.echo(f"Error: {visible(str(file))} cannot be imported\n{_lines(''.join(lines))}", err=True)
        sys.exit(FAILED)
    return module


def _named(module: ModuleType, name: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if not callable(found):
        known = [known for known, value in vars(module).items() if callable(value)]
        what = f"{module.__file__} has no function {name!r}{did_you_mean(name, known)}"
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
            raise click.UsageError(f"no exception is called {visible(repr(name))}")
        found.append(kind)
    return tuple(found)
