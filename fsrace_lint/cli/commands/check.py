"""The command `check`, which reports races."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from fsrace_lint.cli.commands import accept, fixing, output, stdin
from fsrace_lint.cli.commands.grouped_options import Grouped, Jobs, OptionChoice
from fsrace_lint.cli.commands.options import choosing, failing, leave, run
from fsrace_lint.cli.commands.progress_bar import Watch, talking
from fsrace_lint.config.settings import SEVERITIES
from fsrace_lint.engine.parallel import machine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fsrace_lint.cli.commands.output import OutputTarget
    from fsrace_lint.cli.commands.write import Made
    from fsrace_lint.pipeline.run import Checked
    from fsrace_lint.pipeline.warm import WarmProjects


@click.command(
    cls=Grouped,
    short_help="Report filesystem races.",
    epilog="""\b
Examples:
  fsrace-lint check train.py data/
  fsrace-lint check --select FSR1,shared-extraction --profile strict
  fsrace-lint check --fix
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
@click.option("-e", "--exit-zero", is_flag=True, help="Exit with status 0 even if there are findings.")
@click.option("--exit-non-zero-on-fix", is_flag=True, help="Exit with status 1 if --fix changed a file.")
@output.options
@click.option("--fix", "fixes", is_flag=True, help="Apply fixes, and report the findings that remain.")
@fixing.options
@click.option("--diff", "only_diff", is_flag=True, help="Print a diff of the fixes and write nothing.")
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
@click.option("-w", "--watch", "watches", is_flag=True, help="Check again whenever a file changes.")
@click.option("--ignore-noqa", is_flag=True, help="Report findings regardless of `# noqa` comments.")
@click.option("--show-files", is_flag=True, help="List the files to check, and exit.")
@click.option(
    "--show-settings",
    is_flag=True,
    help="Print the effective settings and the source of each, and exit.",
)
@click.option(
    "--prove",
    type=click.IntRange(1),
    metavar="N",
    help="Run the code of the first N findings as `fsrace-lint prove --finding` does, and mark those"
    " that fail. WARNING: This executes your code. At most two minutes for each finding.",
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
    no_fix_preview: bool,
    exit_zero: bool,
    exit_non_zero_on_fix: bool,
    fixes: bool,
    only_diff: bool,
    statistics: bool,
    show_silenced: bool,
    show_files: bool,
    show_settings: bool,
    show_suppressed: bool,
    watches: bool,
    prove: int | None,
    color: bool | None,
    jobs: int | None,
    daemon: bool,
    **choices: Any,
) -> None:
    """Report filesystem races in files and directories (by default, in the current directory).

    fsrace-lint always analyzes the whole project, because the rank check that protects a line is
    often in another file.

    Exit status: 0 if there are no findings, 1 if there are findings (see `--fail-on` and `--exit-zero`;
    with --fix: if findings remain; with --diff: if a file would change), 2 if the usage or the settings
    are invalid or the run fails.
    """
    watch = Watch(choices, color=color)
    if daemon and choices["no_cache"]:
        raise click.UsageError("--daemon cannot be used with --no-cache")
    _refuse_fixes(choices, fixes=fixes, only_diff=only_diff, daemon=daemon, fails=exit_non_zero_on_fix)
    listing = "--show-silenced" if show_silenced else "--show-suppressed" if show_suppressed else ""
    others = {"--report": bool(reports), "--output-file": output_file is not None}
    others |= {"--output-format": form is not None, "--statistics": statistics, listing: bool(listing)}
    form = form or ("concise" if watch.quiet else "full")
    wanted = output.targets(form, output_file, reports, listing=listing)
    if show_settings or show_files:
        from fsrace_lint.cli.commands import effective_settings  # noqa: PLC0415  # loads nearly all modules

        acts = {**others, "--prove": prove is not None, "--fix": fixes, "--diff": only_diff}
        show = effective_settings.show_files if show_files else effective_settings.show
        acts["--show-settings"] = show_settings and show_files
        show(paths, choices, [option for option, is_given in acts.items() if is_given])
    if watches:
        _refuse_watching(paths, choices, only_diff=only_diff, proves=prove is not None)
        from fsrace_lint.cli.commands import watching  # noqa: PLC0415  # few runs watch

        watching.watch(paths, choices, sys.argv[2:])
    handed = stdin.taken(paths, choices)
    others |= {"--prove": prove is not None}
    if prove and (handed is not None or daemon):
        raise click.UsageError(f"--prove cannot be used with {'--daemon' if daemon else 'standard input'}")
    others |= {"--fix": fixes and not only_diff, "--diff": only_diff}
    accept.refuse_mixtures(choices, others, handed=handed is not None)
    if only_diff and any(given for option, given in others.items() if option != "--diff"):
        raise click.UsageError(f"--diff cannot be used with {next(name for name in others if others[name])}")
    if others["--fix"] and handed is not None:
        raise click.UsageError("--fix cannot be used with standard input; use `fsrace-lint fix`")
    # a new baseline includes the findings of the current one
    choices["no_baseline"] |= choices["write_baseline"] is not None
    how: dict[str, Any] = {"silenced": show_silenced, "suppressed": show_suppressed, "counted": statistics}
    how |= {"jobs": jobs or machine.cpus(), "warm": warm, "handed": handed}
    held = choices["add_noqa"] or fixes or only_diff
    failures = 0
    results, checked = run(paths, choices, watch, held=held, **how)
    if fixes or only_diff:
        made = fixing.patches_of(results, choices, watch)
        if only_diff:
            _show_diff(made, checked, watch, color=color, exit_zero=exit_zero)
        fixed = fixing.finish(made, checked, watch, clean=choices["require_clean"])
        # the places of the findings that remain may have moved
        results, checked = run(paths, choices, watch, **how) if fixed.done else (results, checked)
        checked = fixed.told_in(checked)
        failures = len(fixed.done) if exit_non_zero_on_fix else 0
    accept.act(results, checked, choices, watch)
    if prove:
        from fsrace_lint.cli.commands import proving  # noqa: PLC0415  # few runs execute code

        is_apart = choices["no_cache"] or choices["cache_dir"] is not None
        checked = proving.prove_first(checked, prove, no_cache=is_apart, quiet=watch.quiet)
    output.spare(wanted, results)
    if not no_fix_preview and output.showing_fixes(wanted):
        from fsrace_lint.pipeline import preview  # noqa: PLC0415  # loads libcst, and few formats show fixes

        checked = preview.preview(results, checked)
    written = output.deliver(checked, wanted, watch, color=color, statistics=statistics)
    accept.look_after_baselines(results, checked, watch, prune=choices["prune_baseline"])
    if daemon and warm is None and not checked.outcome.errors:
        from fsrace_lint.cli.daemon import client  # noqa: PLC0415  # few runs use the daemon

        client.keep(sys.argv[2:])
    failures += 0 if exit_zero else failing(results)
    leave(checked, watch, findings=failures, written=written)


def _refuse_fixes(
    choices: dict[str, Any], *, fixes: bool, only_diff: bool, daemon: bool, fails: bool
) -> None:
    """Refuse options about fixes and comments that cannot be combined, and read the tiers.

    Raises:
        click.UsageError: An option requires another one, or two options contradict each other.
    """
    given = [option for option, is_on in (("--fix", fixes), ("--diff", only_diff)) if is_on]
    if given and daemon:
        raise click.UsageError(f"{given[0]} cannot be used with --daemon")
    for option, is_on in (("--unsafe-fixes", choices["unsafe_fixes"]), ("--tier", choices["fix_tiers"])):
        if is_on and not given:
            raise click.UsageError(f"{option} requires --fix or --diff")
    if fails and not fixes:
        raise click.UsageError("--exit-non-zero-on-fix requires --fix")
    if choices["ignore_noqa"] and choices["add_noqa"]:
        raise click.UsageError("--ignore-noqa cannot be used with --add-noqa")
    fixing.take_tiers(choices)


def _refuse_watching(
    paths: Sequence[Path], choices: dict[str, Any], *, only_diff: bool, proves: bool
) -> None:
    """Refuse options with which a check is done only once.

    Raises:
        click.UsageError: Such an option is given.
    """
    acts = {
        "--write-baseline": choices["write_baseline"] is not None,
        "--prune-baseline": choices["prune_baseline"],
        "--add-noqa": choices["add_noqa"],
        "standard input": choices["stdin_filename"] is not None or stdin.STDIN in paths,
        "--diff": only_diff,
        "--prove": proves,
    }
    given = next((name for name, is_given in acts.items() if is_given), None)
    if given is not None:
        raise click.UsageError(f"--watch cannot be used with {given}")


def _show_diff(
    made: Made, checked: Checked, watch: Watch, *, color: bool | None, exit_zero: bool
) -> NoReturn:
    """Print the diff of the fixes, and exit with status 1 if a file would change, unless `exit_zero`."""
    patches = [patch for _, part in made for patch in part]
    for patch in patches if not watch.silent else ():
        fixing.show(patch, checked, color)
    fixed = [finding for patch in patches for finding in patch.applied]
    fixing.tell(made, checked, fixed, watch, would=True)
    leave(checked, watch, findings=0 if exit_zero else len(fixed))
