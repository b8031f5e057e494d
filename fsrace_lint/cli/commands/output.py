"""The destinations of reports: standard output or a file, and any number of further files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from fsrace_lint import __version__, report
from fsrace_lint.cli import terminal
from fsrace_lint.cli.commands.grouped_options import OptionChoice, mistaken
from fsrace_lint.files.atomic_write import ObstacleError, within
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fsrace_lint.cli.commands.progress_bar import Watch
    from fsrace_lint.pipeline.run import Checked, Run

LISTING: Final = (*report.FOR_PEOPLE, "json")
_FOR_PROGRAMS: Final = [form for form in report.FORMATS if form not in report.FOR_PEOPLE]
_ALIASES: Final = {"text": "full"}


_Path: Any = click.Path


class _OneFile(_Path):  # type: ignore[misc]
    """The path of a file, which an environment variable can contain whole."""

    def split_envvar_value(self, rv: str) -> list[str]:
        """Return the value of a variable as the only value of the option."""
        return [rv]


_FILE: Final = _OneFile(dir_okay=False, path_type=Path)


class OutputTarget(NamedTuple):
    """A report to write: its format, and its file (None for standard output)."""

    form: str
    file: Path | None


def _reports(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[OutputTarget, ...]:
    """Parse `FORMAT=FILE`."""
    found = []
    for text in given:
        form, _, file = text.partition("=")
        if not form or not file:
            message = f"`{visible(text)}` is not of the form FORMAT=FILE, for example `sarif=races.sarif`"
            raise click.BadParameter(message, ctx, param)
        form = _ALIASES.get(form, form)
        if form not in report.FORMATS:
            message = mistaken(visible(form), sorted(report.FORMATS))
            raise click.BadParameter(message, ctx, param)
        found.append(OutputTarget(form, _FILE.convert(file, param, ctx)))
    return tuple(found)


def _once(ctx: click.Context, param: click.Parameter, given: tuple[Any, ...]) -> Any:
    """Return the only value of an option. A second value must not replace the first one silently."""
    if len(given) > 1:
        name = next(name for name in param.opts if name.startswith("--"))
        message = f"{name} can be used only once; to write another report, use --report FORMAT=FILE"
        raise click.UsageError(message, ctx)
    return given[0] if given else None


def options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that choose reports and their destinations."""
    for option in (
        click.option(
            "--report",
            "reports",
            multiple=True,
            callback=_reports,
            metavar="FORMAT=FILE",
            help="Also write a report in this format to this file. Repeatable.",
        ),
        click.option(
            "-o",
            "--output-file",
            multiple=True,
            type=_FILE,
            callback=_once,
            help="Write the report to this file instead of standard output.",
        ),
        click.option(
            "--output-format",
            "--format",
            "form",
            multiple=True,
            type=OptionChoice(list(report.FORMATS), _ALIASES),
            callback=_once,
            metavar="FORMAT",
            help="Report format. For each finding, full prints at most ten lines, concise one line, grouped"
            " one line below the file name, and trace every frame and the failing interleaving."
            f" The other formats are for browsers, programs, and CI services: {', '.join(_FOR_PROGRAMS)}."
            "  [default: full, or concise with --quiet]",
        ),
        click.option(
            "--no-fix-preview",
            is_flag=True,
            help="Do not compute the changes of fixes, so that HTML and SARIF reports only describe them.",
        ),
    ):
        command = option(command)
    return command


def targets(
    form: str, file: Path | None, more: Sequence[OutputTarget], *, listing: str = ""
) -> list[OutputTarget]:
    """Return all requested reports.

    Args:
        form: The format of the first report.
        file: The file of the first report. None for standard output.
        more: The further reports.
        listing: The option that requires a format which can list unreported operations. May be empty.

    Returns:
        The reports to files in the order in which they were named, then the one to standard output.

    Raises:
        click.UsageError: Two reports have the same file, a symbolic link leads elsewhere, or no format
            supports `listing`.
    """
    wanted = [OutputTarget(form, file), *more]
    if listing and not any(target.form in LISTING for target in wanted):
        *others, last = LISTING
        raise click.UsageError(f"{listing} requires --output-format {', '.join(others)}, or {last}")
    taken: set[str] = set()
    for target in wanted:
        if target.file is None or terminal.descriptor_of(target.file) is not None:
            continue
        try:
            real = within(target.file)
        except ObstacleError as obstacle:
            raise click.UsageError(visible(f"{target.file} {obstacle}")) from None
        if terminal.is_stream(real):
            continue
        place = os.path.normcase(real)
        if place in taken:
            raise click.UsageError(f"two reports have the same output file {visible(str(target.file))}")
        taken.add(place)
    return sorted(wanted, key=lambda target: target.file is None)


def spare(wanted: Sequence[OutputTarget], results: Iterable[tuple[Run, Checked]]) -> None:
    """Refuse a report that would overwrite an input of the run.

    Args:
        wanted: The reports.
        results: The run and the result of each project.

    Raises:
        click.UsageError: A report would overwrite a source file, a baseline, or the settings.
    """
    if all(target.file is None for target in wanted):
        return
    read: set[str] = set()
    for run, _ in results:
        read |= {os.path.realpath(file.file) for file in run.files.values()}
        read |= {os.path.realpath(file) for file in run.baselines}
        read |= {os.path.realpath(one.file) for one in run.settings.every}
    for target in wanted:
        if target.file is not None and os.path.realpath(target.file) in read:
            raise click.UsageError(
                f"a report would overwrite {visible(str(target.file))}, which is an input of this run"
            )


def showing_fixes(wanted: Sequence[OutputTarget]) -> bool:
    """Return whether a report can show the edits of fixes."""
    return any(target.form in report.SHOWING_FIXES for target in wanted)


def deliver(
    checked: Checked, wanted: Sequence[OutputTarget], watch: Watch, *, color: bool | None, statistics: bool
) -> bool:
    """Render the reports, and write them to their destinations.

    Args:
        checked: The merged result.
        wanted: The reports.
        watch: Measures the time, and determines what is printed.
        color: Whether to color standard output. None detects a terminal.
        statistics: Whether to show the counts.

    Returns:
        Whether all files were written. A failure does not stop the other reports.
    """
    written = True
    for form, file in wanted:
        if file is None and watch.silent:
            continue
        how = report.Options(
            color=file is None and terminal.is_colored(color),
            width=terminal.width(100),
            statistics=statistics,
            seconds=watch.seconds,
            summary=not (watch.quiet and file is None),
            list_errors=file is not None,
            hints=file is None and not watch.quiet and terminal.is_terminal(sys.stdout),
            tool=_tool() if form in report.SHOWING_FIXES else report.Tool(__version__),
        )
        with watch.phase("report"):
            shown = report.render(form, checked.outcome, checked.sources, how)
        if file is None:
            terminal.show(shown)
        else:
            written = terminal.write(file, shown) and written
    return written


def _tool() -> report.Tool:
    """Return the version and the rules of fsrace-lint, for reports that include them."""
    from fsrace_lint import rules  # noqa: PLC0415  # few reports include rules

    told = []
    for loaded in rules.load():
        rule = loaded.rule
        evidence = "" if rule.default_from is None else rule.default_from.name.lower()
        told.append(
            report.RuleInfo(rule.code, rule.name, loaded.page, rule.highest_severity, rule.cwe, evidence)
        )
    return report.Tool(__version__, tuple(told))
