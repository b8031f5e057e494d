"""The command `fix`: rewrites files, or shows how it would."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from fsrace_lint import catalog
from fsrace_lint.cli import terminal
from fsrace_lint.cli.commands import stdin, write
from fsrace_lint.cli.commands.grouped_options import Grouped
from fsrace_lint.cli.commands.options import choosing, leave, run
from fsrace_lint.cli.commands.progress_bar import Watch, talking
from fsrace_lint.pipeline import repair
from fsrace_lint.report import diff
from fsrace_lint.report.words import count, visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.fixes import Patch
    from fsrace_lint.pipeline.run import Checked


_OWN: Final = "`fsrace-lint vendor` and `helper-module` in the settings make it a file of your own."


@click.command(
    cls=Grouped,
    short_help="Rewrite files so that their races are gone.",
    epilog="""\b
Examples:
  fsrace-lint fix --diff          look first
  fsrace-lint fix
  fsrace-lint fix --select FSR101 --unsafe-fixes src/
  fsrace-lint fix --stdin-filename src/train.py -
""",
)
@choosing
@click.option("--unsafe-fixes", is_flag=True, help="Make the fixes that need a reader too.")
@click.option("--diff", "only_diff", is_flag=True, help="Show what would change, and write nothing.")
@write.option
@talking
@click.option("--color/--no-color", default=None, help="Color the diff (by default on a terminal).")
def fix(
    paths: tuple[Path, ...],
    *,
    unsafe_fixes: bool,
    only_diff: bool,
    require_clean: bool,
    color: bool | None,
    **choices: Any,
) -> None:
    """Rewrite files so that their races are gone, where that can be done.

    Safe fixes only, unless told otherwise: they behave the same for one process.

    What is read from standard input is written to standard output, fixed.

    Exit status: 0 nothing is left, 1 findings are left (with --diff: there is something to change), 2 wrong
    usage, bad settings, a file that cannot be written or another failure of the run.
    """
    watch = Watch(choices, color=color)
    if require_clean and (only_diff or choices["stdin_filename"] is not None or stdin.STDIN in paths):
        other = "--diff" if only_diff else "standard input"
        raise click.UsageError(f"--require-clean and {other} do not go together: nothing would be written")
    handed = stdin.taken(paths, choices)
    results, checked = run(paths, choices, watch, results=False, held=True, handed=handed)
    with watch.progress(), watch.phase("repair"):
        # what suppresses nothing on this filesystem may do so on that of the settings
        how = {"unsafe": unsafe_fixes, "comments": choices["filesystem"] is None}
        made = [(ran, repair.repair(ran, one, **how)) for ran, one in results]
    patches = [patch for _, part in made for patch in part]
    refusals = [(refusal.finding, refusal.reason) for patch in patches for refusal in patch.refused]
    fixed = [finding for patch in patches for finding in patch.applied]
    if only_diff:
        for patch in patches if not watch.silent else ():
            _show(patch, checked, color)
    elif handed is None:
        written = write.write(made, watch, clean=require_clean)
        fixed, checked = written.done, written.told_in(checked)
        refusals += written.refused
    elif results:
        terminal.emit(patches[0].after if patches else handed.data)
    if not watch.silent:
        _tell_refusals(refusals)
    watch.hint(_summary(checked, fixed, only_diff=only_diff, unsafe=unsafe_fixes))
    borrowing = sum(1 for patch in patches if _borrows(patch))
    if borrowing:
        verb = "would import" if only_diff else "import"
        watch.hint(f"Note: {count(borrowing, 'file')} {verb} {catalog.HELPERS}. {_OWN}")
    left = len(checked.outcome.findings) - len(fixed)
    leave(checked, watch, findings=len(fixed) if only_diff else left)


def _borrows(patch: Patch) -> bool:
    """Tell whether a patch makes a file import our helpers, and so makes us one of its dependencies."""
    name = catalog.HELPERS.encode()
    return name in patch.after and name not in patch.before


def _show(patch: Patch, checked: Checked, color: bool | None) -> None:  # noqa: FBT001  # None leaves it to the terminal
    source = checked.sources[patch.path]
    shown = diff.unified(patch.path, patch.before, patch.after, source.encoding)
    is_colored = terminal.is_colored(color)
    if is_colored or (sys.stdout is not None and sys.stdout.isatty()):
        terminal.show(diff.for_the_eyes(shown, color=is_colored))
    else:
        try:
            terminal.emit(shown.encode("utf-8" if source.bom else source.encoding))
        except UnicodeError:  # some codecs write single lines only
            terminal.emit(shown.encode("utf-8", "surrogateescape"))


def _tell_refusals(refusals: Sequence[tuple[Finding, str]]) -> None:
    """Say on standard error what was refused and why."""
    for finding, reason in refusals:
        click.echo(visible(f"{finding.place.position}: {finding.code} not fixed: {reason}"), err=True)


def _summary(checked: Checked, fixed: Sequence[Finding], *, only_diff: bool, unsafe: bool) -> str:
    """Say what was fixed and what is left."""
    verb = "Would fix" if only_diff else "Fixed"
    files = len({finding.place.path for finding in fixed})
    left = len(checked.outcome.findings) - len(fixed)
    hint = "" if unsafe else _unsafe_hint(checked)
    return f"{verb} {count(len(fixed), 'problem')} in {count(files, 'file')}; {left} left{hint}."


def _unsafe_hint(checked: Checked) -> str:
    unsafe = sum(
        1 for f in checked.outcome.findings if f.fix is not None and f.fix.applicability.value == "unsafe"
    )
    return f", {unsafe} of them fixable with --unsafe-fixes" if unsafe else ""
