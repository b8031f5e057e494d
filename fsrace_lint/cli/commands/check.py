"""The command `check`: reports the races."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from fsrace_lint.cli.commands import accept, output, stdin
from fsrace_lint.cli.commands.grouped_options import Grouped, Jobs
from fsrace_lint.cli.commands.options import choosing, leave, run
from fsrace_lint.cli.commands.progress_bar import Watch, talking
from fsrace_lint.engine.parallel import machine

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.cli.commands.output import OutputTarget
    from fsrace_lint.pipeline.warm import WarmProjects


@click.command(
    cls=Grouped,
    short_help="Report the races in files and folders.",
    epilog="""\b
Examples:
  fsrace-lint check train.py data/
  fsrace-lint check --select FSR1,shared-extraction --profile strict
  fsrace-lint check --format github
  fsrace-lint check --format json --output-file races.json
  fsrace-lint check --format html --output-file races.html
  fsrace-lint check --report sarif=races.sarif --report junit=races.xml
  fsrace-lint check --write-baseline fsrace-baseline.json
  fsrace-lint check --baseline fsrace-baseline.json
  fsrace-lint check --show-settings
  fsrace-lint check --stdin-filename src/train.py -
""",
)
@choosing
@output.options
@accept.options
@click.option(
    "--statistics",
    is_flag=True,
    help="Count files, findings and what was not resolved, and measure the time.",
)
@click.option(
    "--show-silenced", is_flag=True, help="List what is no finding too, and why: a guard, a lock, its path."
)
@click.option(
    "--show-suppressed", is_flag=True, help="List what comments suppress and the baseline holds too."
)
@click.option(
    "--show-settings",
    is_flag=True,
    help="Check nothing; print the settings that count, and where each comes from.",
)
@click.option(
    "-j",
    "--jobs",
    type=Jobs(),
    default="auto",
    metavar="N",
    help="Work in at most so many processes.  [default: auto, one for each processor]",
)
@click.option(
    "--daemon",
    is_flag=True,
    help="Have a process stay that knows the project, and checks a few files of it at once. Not on Windows.",
)
@talking
@click.option("--color/--no-color", default=None, help="Color the text (by default on a terminal).")
@click.pass_obj
@machine.gc_disabled()
def check(  # one parameter an option
    warm: WarmProjects | None,
    /,
    paths: tuple[Path, ...],
    form: str,
    output_file: Path | None,
    reports: tuple[OutputTarget, ...],
    *,
    statistics: bool,
    show_silenced: bool,
    show_settings: bool,
    show_suppressed: bool,
    color: bool | None,
    jobs: int | None,
    daemon: bool,
    **choices: Any,
) -> None:
    """Report the races in files and folders (by default in the current folder).

    A single file is judged together with all files of its project: guards stand elsewhere.

    Exit status: 0 nothing found, 1 findings, 2 wrong usage, bad settings or a failure of the run.
    """
    watch = Watch(choices, color=color)
    if daemon and choices["no_cache"]:
        raise click.UsageError("--daemon and --no-cache do not go together")
    listing = "--show-silenced" if show_silenced else "--show-suppressed" if show_suppressed else ""
    wanted = output.targets(form, output_file, reports, listing=listing)
    others = {"--report": bool(reports), "--output-file": output_file is not None}
    others |= {"--format": form != "text", "--statistics": statistics, listing: bool(listing)}
    if show_settings:
        from fsrace_lint.cli.commands import effective_settings  # noqa: PLC0415  # it looks at everything

        effective_settings.show(paths, choices, [option for option, given in others.items() if given])
    handed = stdin.taken(paths, choices)
    accept.refuse_mixtures(choices, others, handed=handed is not None)
    # what is known already belongs into a new baseline
    choices["no_baseline"] |= choices["write_baseline"] is not None
    results, checked = run(
        paths,
        choices,
        watch,
        silenced=show_silenced,
        suppressed=show_suppressed,
        counted=statistics,
        held=choices["add_noqa"],
        handed=handed,
        jobs=jobs or machine.cpus(),
        warm=warm,
    )
    accept.act(results, checked, choices, watch)
    output.spare(wanted, results)
    if output.showing_fixes(wanted):
        from fsrace_lint.pipeline import preview  # noqa: PLC0415  # libcst: few formats show fixes

        checked = preview.preview(results, checked)
    written = output.deliver(checked, wanted, watch, color=color, statistics=statistics)
    accept.look_after_baselines(results, checked, watch, prune=choices["prune_baseline"])
    if daemon and warm is None and not checked.outcome.errors:
        from fsrace_lint.cli.daemon import client  # noqa: PLC0415  # few checks want one

        client.keep(sys.argv[2:])
    leave(checked, watch, findings=len(checked.outcome.findings), written=written)
