"""The command `check`: reports the races."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fsrace_lint.commands import accepting, deliver
from fsrace_lint.commands.choosing import choosing, leave, run

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.commands.deliver import Target


@click.command(
    short_help="Report the races in files and folders.",
    epilog="""\b
Examples:
  fsrace-lint check train.py data/
  fsrace-lint check --select FSR1,shared-extraction --profile strict
  fsrace-lint check --format github
  fsrace-lint check --format json --output-file races.json
  fsrace-lint check --report sarif=races.sarif --report junit=races.xml
  fsrace-lint check --write-baseline fsrace-baseline.json
  fsrace-lint check --baseline fsrace-baseline.json
""",
)
@choosing
@deliver.options
@accepting.options
@click.option(
    "--statistics", is_flag=True, help="Count what was checked, linked, suppressed and not resolved."
)
@click.option(
    "--show-silenced", is_flag=True, help="List what is no finding too, and why: a guard, a lock, its path."
)
@click.option(
    "--show-suppressed", is_flag=True, help="List what comments suppress and the baseline holds too."
)
@click.option("--color/--no-color", default=None, help="Color the text (by default on a terminal).")
def check(  # one parameter an option
    paths: tuple[Path, ...],
    form: str,
    output_file: Path | None,
    reports: tuple[Target, ...],
    *,
    statistics: bool,
    show_silenced: bool,
    show_suppressed: bool,
    color: bool | None,
    **choices: Any,
) -> None:
    """Report the races in files and folders (by default in the current folder).

    A single file is judged together with all files of its project: guards stand elsewhere.
    """
    listing = "--show-silenced" if show_silenced else "--show-suppressed" if show_suppressed else ""
    wanted = deliver.targets(form, output_file, reports, listing=listing)
    about_reports = {"--report": bool(reports), "--output-file": output_file is not None}
    about_reports |= {"--format": form != "text", "--statistics": statistics, listing: bool(listing)}
    accepting.refuse_mixtures(choices, about_reports)
    if choices["write_baseline"] is not None:
        choices["no_baseline"] = True
    results, checked = run(paths, choices, silenced=show_silenced, suppressed=show_suppressed)
    if choices["write_baseline"] is not None:
        with accepting.baseline_errors():
            accepting.write_baseline(choices["write_baseline"], results, checked)
        leave(checked, findings=0)
    if choices["add_noqa"]:
        leave(checked, findings=accepting.add_noqa(results, choices["reason"] or ""))
    written = deliver.deliver(checked, wanted, color=color, statistics=statistics)
    with accepting.baseline_errors():
        accepting.look_after_baselines(results, checked, prune=choices["prune_baseline"])
    leave(checked, findings=len(checked.outcome.findings), written=written)
