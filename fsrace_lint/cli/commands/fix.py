"""The command `fix`, which rewrites files or shows a diff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fsrace_lint.cli import interrupts, terminal
from fsrace_lint.cli.commands import fixing, stdin, write
from fsrace_lint.cli.commands.grouped_options import Grouped
from fsrace_lint.cli.commands.options import choosing, leave, run
from fsrace_lint.cli.commands.progress_bar import Watch, talking
from fsrace_lint.engine.parallel import machine

if TYPE_CHECKING:
    from pathlib import Path


@click.command(
    cls=Grouped,
    short_help="Fix filesystem races.",
    epilog="""\b
Examples:
  fsrace-lint fix --diff          # preview the changes
  fsrace-lint fix
  fsrace-lint fix --tier local,atomic
  fsrace-lint fix --select FSR101 --unsafe-fixes src/
  fsrace-lint fix --stdin-filename src/train.py -
""",
)
@choosing
@fixing.options
@click.option("--diff", "only_diff", is_flag=True, help="Print a diff of the changes and write nothing.")
@click.option("--interactive", is_flag=True, help="Show the fixes one at a time and ask about each.")
@click.option("--commit", is_flag=True, help="Make one git commit for the fixes of each rule.")
@write.option
@talking
@click.option("--color/--no-color", default=None, help="Color the diff.  [default: on a terminal]")
@interrupts.reporting
@machine.gc_disabled()
def fix(
    paths: tuple[Path, ...],
    *,
    only_diff: bool,
    interactive: bool,
    commit: bool,
    require_clean: bool,
    color: bool | None,
    **choices: Any,
) -> None:
    """Fix filesystem races in files and directories (by default, in the current directory).

    By default, only safe fixes are applied. A safe fix does not change what a single process does.

    With standard input, the fixed text is written to standard output.

    Exit status: 0 if no findings remain, 1 if findings remain (with --diff: if a file would change), 2 if
    the usage or the settings are invalid, a file cannot be written, or the run fails, 130 after Ctrl-C.
    """
    watch = Watch(choices, color=color)
    modes = {"--diff": only_diff, "--interactive": interactive, "--commit": commit}
    modes["standard input"] = choices["stdin_filename"] is not None or stdin.STDIN in paths
    _refuse_mixtures([mode for mode, is_on in modes.items() if is_on], watch, require_clean=require_clean)
    fixing.take_tiers(choices)
    if commit:
        from fsrace_lint.cli.commands import fix_commit  # noqa: PLC0415  # few runs make commits

        fix_commit.commit(paths, choices, watch)
    if interactive:
        from fsrace_lint.cli.commands import fix_interactive  # noqa: PLC0415  # few runs ask

        fix_interactive.ask(paths, choices, watch, clean=require_clean, color=color)
    handed = stdin.taken(paths, choices)
    results, checked = run(
        paths, choices, watch, results=False, held=True, handed=handed, jobs=machine.cpus()
    )
    made = fixing.patches_of(results, choices, watch)
    patches = [patch for _, part in made for patch in part]
    fixed = [finding for patch in patches for finding in patch.applied]
    if only_diff or handed is not None:
        for patch in patches if only_diff and not watch.silent else ():
            fixing.show(patch, checked, color)
        if not only_diff and handed is not None and results:
            terminal.emit(patches[0].after if patches else handed.data)
        fixing.tell(made, checked, fixed, watch, would=only_diff)
    else:
        written = fixing.finish(made, checked, watch, clean=require_clean)
        fixed, checked = written.done, written.told_in(checked)
    left = len(checked.outcome.findings) - len(fixed)
    leave(checked, watch, findings=len(fixed) if only_diff else left)


def _refuse_mixtures(modes: list[str], watch: Watch, *, require_clean: bool) -> None:
    """Refuse options that cannot be combined.

    Raises:
        click.UsageError: Two of them contradict each other.
    """
    if require_clean and modes[:1] and modes[0] in {"--diff", "standard input"}:
        raise click.UsageError(f"--require-clean cannot be used with {modes[0]}, which does not write files")
    # `fix --diff -` prints the diff of the standard input
    if len(modes) > 1 and modes != ["--diff", "standard input"]:
        raise click.UsageError(f"{modes[0]} cannot be used with {modes[1]}")
    if watch.silent and "--interactive" in modes:
        raise click.UsageError("--interactive cannot be used with --silent")
