"""Where the reports of a run go: one to the screen or a file, and as many more to files as are wanted."""

from __future__ import annotations

import os
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

LISTING: Final = ("text", "json")
_FILE: Final = click.Path(dir_okay=False, path_type=Path)


class OutputTarget(NamedTuple):
    """A report to make: its format, and the file it goes to (None: the screen)."""

    form: str
    file: Path | None


def _reports(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[OutputTarget, ...]:
    """Read `FORMAT=FILE`."""
    found = []
    for text in given:
        form, _, file = text.partition("=")
        if not form or not file:
            message = f"'{visible(text)}' is not FORMAT=FILE, such as sarif=races.sarif"
            raise click.BadParameter(message, ctx, param)
        if form not in report.FORMATS:
            known = sorted(report.FORMATS)
            message = f"'{visible(form)}' is not one of {', '.join(map(repr, known))}"
            message = mistaken(message, form, known)
            raise click.BadParameter(message, ctx, param)
        found.append(OutputTarget(form, _FILE.convert(file, param, ctx)))
    return tuple(found)


def _once(ctx: click.Context, param: click.Parameter, given: tuple[Any, ...]) -> Any:
    """Take the only value of an option; a second one would take the place of the first in silence."""
    if len(given) > 1:
        message = f"{param.opts[0]} is given {len(given)} times; --report FORMAT=FILE adds a report"
        raise click.UsageError(message, ctx)
    return given[0] if given else None


def options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say which reports are made, and where they go."""
    for option in (
        click.option(
            "--report",
            "reports",
            multiple=True,
            callback=_reports,
            metavar="FORMAT=FILE",
            help="Write this report to this file too; may be given several times.",
        ),
        click.option(
            "--output-file",
            multiple=True,
            type=_FILE,
            callback=_once,
            help="Write what --format chooses there, not to the screen.",
        ),
        click.option(
            "--format",
            "form",
            multiple=True,
            type=OptionChoice(sorted(report.FORMATS)),
            default=("text",),
            callback=_once,
            help="What the report is for: people in a terminal (text) or a browser (html), programs, GitHub"
            " Actions, GitLab, lists of tests, code scanning.  [default: text]",
        ),
    ):
        command = option(command)
    return command


def targets(
    form: str, file: Path | None, more: Sequence[OutputTarget], *, listing: str = ""
) -> list[OutputTarget]:
    """Give all reports that are wanted.

    Args:
        form: The format of the first report.
        file: The file it goes to; None is the screen.
        more: The further reports.
        listing: The option for which one of them must be able to list what is not reported.

    Returns:
        The reports to files in the order in which they were named, then the one to the screen.

    Raises:
        click.UsageError: Two go to one file, a link leads one elsewhere, or none can list what is not
            reported.
    """
    wanted = [OutputTarget(form, file), *more]
    if listing and not any(target.form in LISTING for target in wanted):
        raise click.UsageError(f"{listing} needs --format {' or '.join(LISTING)}")
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
            raise click.UsageError(f"two reports would go to {visible(str(target.file))}")
        taken.add(place)
    return sorted(wanted, key=lambda target: target.file is None)


def spare(wanted: Sequence[OutputTarget], results: Iterable[tuple[Run, Checked]]) -> None:
    """Refuse a report that would go over a file that was read for it.

    Args:
        wanted: The reports.
        results: Each project and what was found in it.

    Raises:
        click.UsageError: One would go over a source file, a baseline or the settings.
    """
    if all(target.file is None for target in wanted):
        return
    read: set[str] = set()
    for run, _ in results:
        read |= {os.path.realpath(file.file) for file in run.files.values()}
        also = (run.settings.baseline, str(run.settings.root / "pyproject.toml"))
        read |= {os.path.realpath(file) for file in also if file}
    for target in wanted:
        if target.file is not None and os.path.realpath(target.file) in read:
            raise click.UsageError(
                f"a report would go over {visible(str(target.file))}, which was read for it"
            )


def showing_fixes(wanted: Sequence[OutputTarget]) -> bool:
    """Tell whether one of the reports shows what fixes would change."""
    return any(target.form in report.SHOWING_FIXES for target in wanted)


def deliver(
    checked: Checked, wanted: Sequence[OutputTarget], watch: Watch, *, color: bool | None, statistics: bool
) -> bool:
    """Make the reports, and put them where they belong.

    Args:
        checked: What was found.
        wanted: The reports.
        watch: Tells of the run; it says whether anything is shown.
        color: Whether the screen is colored; None leaves it to the terminal.
        statistics: Whether to show the counts.

    Returns:
        Whether all files could be written; one that cannot be does not cost the other reports.
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
    """Say what the tool is: its version and its rules."""
    from fsrace_lint import rules  # noqa: PLC0415  # most reports say nothing of them

    told = []
    for loaded in rules.load():
        rule = loaded.rule
        evidence = "" if rule.default_from is None else rule.default_from.name.lower()
        told.append(report.RuleInfo(rule.code, rule.name, loaded.page, rule.severity, rule.cwe, evidence))
    return report.Tool(__version__, tuple(told))
