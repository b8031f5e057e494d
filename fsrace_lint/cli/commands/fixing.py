"""Shared by `fix` and `check --fix`: the options that choose fixes, the patches, and the messages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from fsrace_lint.cli import terminal
from fsrace_lint.cli.commands import write
from fsrace_lint.cli.commands.grouped_options import mistaken
from fsrace_lint.findings.finding import TIERS, Applicability, Tier
from fsrace_lint.report.words import count, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fsrace_lint.cli.commands.progress_bar import Watch
    from fsrace_lint.cli.commands.write import Made
    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.fixes import Patch
    from fsrace_lint.pipeline.run import Checked, Run

SAFE: Final = "safe"
"""The tier without unsafe fixes."""


def _completed(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001  # click passes them
    before, comma, last = incomplete.rpartition(",")
    return [CompletionItem(before + comma + name) for name in (SAFE, *TIERS) if name.startswith(last.lower())]


def _tiers(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> list[str] | None:
    """Return the tiers of unsafe fixes that an option names, or None if it is not given."""
    names = [part.strip().lower() for row in given for part in row.split(",") if part.strip()]
    for name in names:
        if name not in (SAFE, *TIERS):
            raise click.BadParameter(mistaken(name, (SAFE, *TIERS)), ctx, param)
    return [name for name in TIERS if name in names] if names else None


def options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that choose the fixes to apply."""
    for option in (
        click.option(
            "--tier",
            "fix_tiers",
            multiple=True,
            metavar="TIERS",
            callback=_tiers,
            shell_complete=_completed,
            help="Also apply the unsafe fixes of these tiers: comma-separated names. local changes one call"
            " or lock, atomic writes under another name and renames, coordination adds rank checks and"
            " barriers. safe means none.  [default: the `fix-tiers` setting]",
        ),
        click.option(
            "--unsafe-fixes", is_flag=True, help="Also apply the fixes of all tiers, which need review."
        ),
    ):
        command = option(command)
    return command


def take_tiers(choices: dict[str, Any]) -> None:
    """Turn `--unsafe-fixes` into tiers.

    Args:
        choices: The option values of `options`.

    Raises:
        click.UsageError: Both options are given.
    """
    if choices.pop("unsafe_fixes"):
        if choices["fix_tiers"] is not None:
            raise click.UsageError("--unsafe-fixes cannot be used with --tier")
        choices["fix_tiers"] = list(TIERS)


def patches_of(
    results: Iterable[tuple[Run, Checked]], choices: dict[str, Any], watch: Watch, *, tidied: bool = True
) -> Made:
    """Turn the chosen fixes of each project into patches, without writing any file.

    Args:
        results: The run and the result of each project.
        choices: The option values.
        watch: Prints messages and the progress.
        tidied: Whether to also remove codes that suppress nothing from comments.
    """
    from fsrace_lint.pipeline import repair  # noqa: PLC0415  # `check` loads it only with --fix

    # a comment that is unused on this filesystem may be needed on the configured one
    comments = tidied and choices["filesystem"] is None
    with watch.progress(), watch.phase("fix"):
        return [(ran, repair.repair(ran, one, unsafe=None, comments=comments)) for ran, one in results]


def finish(made: Made, checked: Checked, watch: Watch, *, clean: bool) -> write.Written:
    """Write patches, and print which fixes were refused, and what was fixed.

    Args:
        made: The patches of each project.
        checked: The merged result of the check before the fixes.
        watch: Prints messages.
        clean: Whether git must have no uncommitted changes in the files to change.
    """
    written = write.write(made, watch, clean=clean)
    tell(made, checked, written.done, watch, refused=written.refused)
    return written


def tell(  # one parameter per message
    made: Made,
    checked: Checked,
    fixed: Sequence[Finding],
    watch: Watch,
    *,
    refused: Iterable[tuple[Finding, str]] = (),
    would: bool = False,
) -> None:
    """Print which fixes were refused, and what was fixed.

    Args:
        made: The patches of each project.
        checked: The merged result of the check before the fixes.
        fixed: The fixed findings.
        watch: Prints messages.
        refused: Findings of patches that were not written, with the reasons.
        would: Whether nothing was written, because only a diff is wanted.
    """
    patches = [patch for _, part in made for patch in part]
    refusals = [(one.finding, one.reason) for patch in patches for one in patch.refused]
    if not watch.silent:
        tell_refusals([*refusals, *refused])
    if made:
        watch.hint(_summary(made, checked, fixed, "Would fix" if would else "Fixed"))


def show(patch: Patch, checked: Checked, color: bool | None) -> None:  # noqa: FBT001  # None detects a terminal
    """Print the diff of a patch."""
    from fsrace_lint.report import diff  # noqa: PLC0415  # loads difflib, only to show a diff

    source = checked.sources[patch.path]
    shown = diff.unified(patch.path, patch.before, patch.after, source.encoding)
    is_colored = terminal.is_colored(color)
    if is_colored or (sys.stdout is not None and sys.stdout.isatty()):
        terminal.show(diff.for_the_eyes(shown, color=is_colored))
    else:
        try:
            terminal.emit(shown.encode("utf-8" if source.bom else source.encoding))
        except UnicodeError:  # some codecs write only single lines
            terminal.emit(shown.encode("utf-8", "surrogateescape"))


def tell_refusals(refusals: Iterable[tuple[Finding, str]]) -> None:
    """Print the refused fixes and the reasons to standard error."""
    for finding, reason in refusals:
        click.echo(visible(f"{finding.place.position}: {finding.code} not fixed: {reason}"), err=True)


def _summary(made: Made, checked: Checked, fixed: Sequence[Finding], verb: str) -> str:
    files = len({finding.place.path for finding in fixed})
    left = len(checked.outcome.findings) - len(fixed)
    more = _unchosen(made, checked)
    hint = f" (up to {more} fixable with `--unsafe-fixes`)" if more else ""
    return f"{verb} {count(len(fixed), 'finding')} in {count(files, 'file')}. {left} remaining{hint}."


def _unchosen(made: Made, checked: Checked) -> int:
    """Return the number of unsafe fixes that are not of a chosen tier."""
    paths = {file.path: run for run, _ in made for file in run.files.values()}
    more = 0
    for finding in checked.outcome.findings:
        fix = finding.fix_within(tuple(Tier))
        run = paths.get(finding.place.path)
        if run is None or fix is None or fix.tier is None or fix.applicability is not Applicability.UNSAFE:
            continue
        more += fix.tier.value not in run.settings_at(finding.place.path).fix_tiers
    return more
