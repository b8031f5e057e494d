"""The command `check`: reports the races."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fsrace_lint.commands import deliver, stdin
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
  fsrace-lint check --stdin-filename src/train.py -
""",
)
@choosing
@deliver.options
@click.option(
    "--statistics", is_flag=True, help="Count what was checked, linked, suppressed and not resolved."
)
@click.option(
    "--show-silenced", is_flag=True, help="List what is no finding too, and why: a guard, a lock, its path."
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
    color: bool | None,
    **choices: Any,
) -> None:
    """Report the races in files and folders (by default in the current folder).

    A single file is judged together with all files of its project: guards stand elsewhere.
    """
    wanted = deliver.targets(form, output_file, reports, silenced=show_silenced)
    _, checked = run(paths, choices, silenced=show_silenced, handed=stdin.taken(paths, choices))
    written = deliver.deliver(checked, wanted, color=color, statistics=statistics)
    leave(checked, findings=len(checked.outcome.findings), written=written)
