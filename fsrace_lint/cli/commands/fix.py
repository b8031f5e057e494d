"""The command `fix`, which rewrites files or shows a diff."""

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


_OWN: Final = "To use a copy in your project instead, run `fsrace-lint vendor` and set `helper-module`."


@click.command(
    cls=Grouped,
    short_help="Fix filesystem races.",
    epilog="""\b
Examples:
  fsrace-lint fix --diff          # preview the changes
  fsrace-lint fix
  fsrace-lint fix --select FSR101 --unsafe-fixes src/
  fsrace-lint fix --stdin-filename src/train.py -
""",
)
@choosing
@click.option("--unsafe-fixes", is_flag=True, help="Also apply fixes that need review.")
@click.option("--diff", "only_diff", is_flag=True, help="Print a diff of the changes and write nothing.")
@write.option
@talking
@click.option("--color/--no-color", default=None, help="Color the diff.  [default: on a terminal]")
def fix(
    paths: tuple[Path, ...],
    *,
    unsafe_fixes: bool,
    only_diff: bool,
    require_clean: bool,
    color: bool | None,
    **choices: Any,
) -> None:
    """Fix filesystem races in files and directories (by default, in the current directory).

    By default, only safe fixes are applied. A safe fix does not change what a single process does.

    With standard input, the fixed text is written to standard output.

    Exit status: 0 if no findings remain, 1 if findings remain (with --diff: if a file would change), 2 if
    the usage or the settings are invalid, a file cannot be written, or the run fails.
    """
    watch = Watch(choices, color=color)
    if require_clean and (only_diff or choices["stdin_filename"] is not None or stdin.STDIN in paths):
        other = "--diff" if only_diff else "standard input"
        raise click.UsageError(f"--require-clean cannot be used with {other}, which does not write files")
    handed = stdin.taken(paths, choices)
    results, checked = run(paths, choices, watch, results=False, held=True, handed=handed)
    with watch.progress(), watch.phase("fix"):
        # a comment that is unused on this filesystem may be needed on the configured one
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
    if results:
        watch.hint(_summary(checked, fixed, only_diff=only_diff, unsafe=unsafe_fixes))
    borrowing = sum(1 for patch in patches if _borrows(patch))
    if borrowing:
        verb = "would import" if only_diff else "imports" if borrowing == 1 else "import"
        watch.hint(f"Note: {count(borrowing, 'file')} {verb} `{catalog.HELPERS}`. {_OWN}")
    left = len(checked.outcome.findings) - len(fixed)
    leave(checked, watch, findings=len(fixed) if only_diff else left)


def _borrows(patch: Patch) -> bool:
    """Return whether a patch adds an import of `fsrace_lint.safe`, so that the project depends on it."""
    name = catalog.HELPERS.encode()
    return name in patch.after and name not in patch.before


def _show(patch: Patch, checked: Checked, color: bool | None) -> None:  # noqa: FBT001  # None detects a terminal
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


def _tell_refusals(refusals: Sequence[tuple[Finding, str]]) -> None:
    """Print the refused fixes and the reasons to standard error."""
    for finding, reason in refusals:
        click.echo(visible(f"{finding.place.position}: {finding.code} not fixed: {reason}"), err=True)


def _summary(checked: Checked, fixed: Sequence[Finding], *, only_diff: bool, unsafe: bool) -> str:
    verb = "Would fix" if only_diff else "Fixed"
    files = len({finding.place.path for finding in fixed})
    left = len(checked.outcome.findings) - len(fixed)
    hint = "" if unsafe else _unsafe_hint(checked)
    return f"{verb} {count(len(fixed), 'finding')} in {count(files, 'file')}. {left} remaining{hint}."


def _unsafe_hint(checked: Checked) -> str:
    unsafe = sum(
        1 for f in checked.outcome.findings if f.fix is not None and f.fix.applicability.value == "unsafe"
    )
    return f" (up to {unsafe} fixable with `--unsafe-fixes`)" if unsafe else ""
