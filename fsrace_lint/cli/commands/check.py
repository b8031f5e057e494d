"""The command `check`, which reports races."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from fsrace_lint.cli.commands import accept, output, stdin
from fsrace_lint.cli.commands.grouped_options import Grouped, Jobs, OptionChoice
from fsrace_lint.cli.commands.options import choosing, failing, leave, run
from fsrace_lint.cli.commands.progress_bar import Watch, talking
from fsrace_lint.config.settings import SEVERITIES
from fsrace_lint.engine.parallel import machine

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.cli.commands.output import OutputTarget
    from fsrace_lint.pipeline.warm import WarmProjects


@click.command(
    cls=Grouped,
    short_help="Report filesystem races.",
    epilog="""\b
Examples:
  fsrace-lint check train.py data/
  fsrace-lint check --select FSR1,shared-extraction --profile strict
  fsrace-lint check --output-format github
  fsrace-lint check --output-format json --output-file races.json
  fsrace-lint check --output-format html --output-file races.html
  fsrace-lint check --report sarif=races.sarif --report junit=races.xml
  fsrace-lint check --write-baseline fsrace-baseline.json
  fsrace-lint check --baseline fsrace-baseline.json
  fsrace-lint check --show-settings
  fsrace-lint check --stdin-filename src/train.py -
""",
)
@choosing
@click.option(
    "--fail-on",
    type=OptionChoice(list(SEVERITIES)),
    help="Exit with status 1 only if a finding has at least this severity.  [default: every finding]",
)
@output.options
@accept.options
@click.option(
    "--statistics",
    is_flag=True,
    help="Print counts of files, findings, and unresolved names, and the time that each phase takes.",
)
@click.option(
    "--show-silenced", is_flag=True, help="Also list calls that were analyzed and not reported, and why."
)
@click.option(
    "--show-suppressed", is_flag=True, help="Also list findings that a comment or the baseline suppresses."
)
@click.option(
    "--show-settings",
    is_flag=True,
    help="Print the effective settings and the source of each, and exit.",
)
@click.option(
    "-j",
    "--jobs",
    type=Jobs(),
    default="auto",
    metavar="N",
    help="Number of worker processes.  [default: auto, one per CPU]",
)
@click.option(
    "--daemon",
    is_flag=True,
    help="Use a background daemon to speed up repeated checks of a few files. Not available on Windows.",
)
@talking
@click.option("--color/--no-color", default=None, help="Color the output.  [default: on a terminal]")
@click.pass_obj
@machine.gc_disabled()
def check(  # one parameter per option
    warm: WarmProjects | None,
    /,
    paths: tuple[Path, ...],
    form: str | None,
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
    """Report filesystem races in files and directories (by default, in the current directory).

    fsrace-lint always analyzes the whole project, because the rank check that protects a line is
    often in another file.

    Exit status: 0 if there are no findings, 1 if there are findings (see `--fail-on`), 2 if the usage or
    the settings are invalid or the run fails.
    """
    watch = Watch(choices, color=color)
    if daemon and choices["no_cache"]:
        raise click.UsageError("--daemon cannot be used with --no-cache")
    listing = "--show-silenced" if show_silenced else "--show-suppressed" if show_suppressed else ""
    others = {"--report": bool(reports), "--output-file": output_file is not None}
    others |= {"--output-format": form is not None, "--statistics": statistics, listing: bool(listing)}
    form = form or ("concise" if watch.quiet else "full")
    wanted = output.targets(form, output_file, reports, listing=listing)
    if show_settings:
        from fsrace_lint.cli.commands import effective_settings  # noqa: PLC0415  # loads nearly all modules

        effective_settings.show(paths, choices, [option for option, given in others.items() if given])
    handed = stdin.taken(paths, choices)
    accept.refuse_mixtures(choices, others, handed=handed is not None)
    # a new baseline includes the findings of the current one
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
        from fsrace_lint.pipeline import preview  # noqa: PLC0415  # loads libcst, and few formats show fixes

        checked = preview.preview(results, checked)
    written = output.deliver(checked, wanted, watch, color=color, statistics=statistics)
    accept.look_after_baselines(results, checked, watch, prune=choices["prune_baseline"])
    if daemon and warm is None and not checked.outcome.errors:
        from fsrace_lint.cli.daemon import client  # noqa: PLC0415  # few runs use the daemon

        client.keep(sys.argv[2:])
    leave(checked, watch, findings=failing(results), written=written)
