"""Options of `check` that accept findings: write a baseline, prune it, or add comments."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsrace_lint.cli.commands import write
from fsrace_lint.cli.commands.options import leave, one_project
from fsrace_lint.cli.terminal import FAILED
from fsrace_lint.findings import baseline
from fsrace_lint.pipeline import accept_baseline
from fsrace_lint.report.words import count, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fsrace_lint.cli.commands.progress_bar import Watch
    from fsrace_lint.cli.commands.write import Written
    from fsrace_lint.findings.baseline import Baseline
    from fsrace_lint.pipeline.run import Checked, Run

    Results = Sequence[tuple[Run, Checked]]


def options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options to a command."""
    for option in (
        write.option,
        click.option("--reason", metavar="TEXT", help="Text to add after the codes that --add-noqa writes."),
        click.option(
            "--add-noqa",
            is_flag=True,
            help="Add a `# noqa` comment to each line with a finding instead of reporting it.",
        ),
        click.option(
            "--prune-baseline",
            is_flag=True,
            help="Remove the entries that no longer match from the baseline.",
        ),
        click.option(
            "--write-baseline",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Write all findings to this file instead of reporting them. Use the file with --baseline.",
        ),
    ):
        command = option(command)
    return command


def refuse_mixtures(choices: dict[str, Any], others: dict[str, bool], *, handed: bool) -> None:
    """Refuse options that cannot be combined.

    Args:
        choices: The option values of `check`.
        others: Whether each of the options about reports is given.
        handed: Whether the file is read from standard input.

    Raises:
        click.UsageError: Two options cannot be combined, or an option requires another one.
    """
    acts = {
        "--write-baseline": choices["write_baseline"] is not None,
        "--prune-baseline": choices["prune_baseline"],
        "--add-noqa": choices["add_noqa"],
    }
    given = [option for option, is_given in acts.items() if is_given]
    given += [option for option, is_given in others.items() if is_given and given != ["--prune-baseline"]]
    if acts["--write-baseline"] and choices["baseline"] is not None:
        given.append("--baseline")
    if acts["--prune-baseline"] and choices["no_baseline"]:
        given.append("--no-baseline")
    if handed:
        given.append("standard input")
    if any(acts.values()) and len(given) > 1:
        raise click.UsageError(f"{given[0]} cannot be used with {given[1]}")
    if choices["require_clean"] and not (acts["--add-noqa"] or others["--fix"]):
        raise click.UsageError("--require-clean requires --add-noqa or --fix")
    reason = choices["reason"]
    if reason is None:
        return
    if not acts["--add-noqa"]:
        raise click.UsageError("--reason requires --add-noqa")
    if not is_reason(reason):
        raise click.UsageError("--reason must be a single line of printable text without `# noqa`")


def is_reason(text: str) -> bool:
    """Return whether a text can follow the codes of a comment."""
    return bool(text.strip()) and visible(text) == text and "# noqa" not in text.lower()


@contextlib.contextmanager
def baseline_errors(watch: Watch) -> Iterator[None]:
    """Print the error and exit with status 2 if a baseline cannot be used."""
    try:
        yield
    except baseline.BaselineError as error:
        _complain(f"Error: {error}", watch)
        sys.exit(FAILED)


def _complain(text: str, watch: Watch) -> None:
    if not watch.silent:
        click.echo(visible(text), err=True)


def act(results: Results, checked: Checked, choices: dict[str, Any], watch: Watch) -> None:
    """Write a baseline or add comments instead of a report, and exit, if the options request that.

    Args:
        results: The run and the result of each project.
        checked: The merged result.
        choices: The option values of `check`.
        watch: Prints messages.

    Raises:
        click.UsageError: There is no baseline to prune, or the paths belong to multiple projects.
        SystemExit: A baseline was written, or comments were added.
    """
    known = any(run.baselines for run, _ in results) or checked.outcome.errors
    if choices["prune_baseline"] and not known:
        raise click.UsageError(
            "--prune-baseline requires a baseline: pass --baseline FILE or set `baseline` in pyproject.toml"
        )
    if choices["write_baseline"] is not None:
        with baseline_errors(watch):
            _write_baseline(choices["write_baseline"], results, checked, watch)
        leave(checked, watch, findings=0)
    if choices["add_noqa"]:
        left, written = _add_noqa(results, choices["reason"] or "", watch, clean=choices["require_clean"])
        leave(written.told_in(checked), watch, findings=left)


def _write_baseline(file: Path, results: Results, checked: Checked, watch: Watch) -> None:
    """Write all findings to a baseline, and print their number.

    Args:
        file: The baseline. Existing entries stay if this run could not see their findings.
        results: The run and the result of the project.
        checked: The merged result. If it has errors, nothing is written.
        watch: Prints messages.

    Raises:
        click.UsageError: The paths belong to multiple projects.
        BaselineError: The existing file is not a baseline, or it cannot be written.
    """
    one_project("--write-baseline", [run.settings for run, _ in results])
    if checked.outcome.errors or not results:
        _complain(f"{file} was not written because the run failed.", watch)
        return
    ((run, one),) = results
    known = baseline.existing(file, run.settings.root)
    written = accept_baseline.accepted(run, one, known)
    baseline.write(file, written, run.settings.root)
    _tell_written(file, known, written, sum(one.seen.reported.values()), watch)
    stays = [finding for finding in checked.outcome.findings if finding.code in baseline.ABOUT_THE_TOOL]
    for finding in stays:
        _complain(
            f"{finding.place.position}: {finding.code} was not added to the baseline: {finding.message}",
            watch,
        )


def _tell_written(file: Path, known: Baseline, written: Baseline, new: int, watch: Watch) -> None:
    told = [f"Wrote {count(new, 'finding')} to {file}"]
    lost = len(baseline.gone(known, written))
    if lost:
        told.append(f"removed {lost} that no longer {'occurs' if lost == 1 else 'occur'}")
    if len(written) > new:
        told.append(f"kept {len(written) - new} that this run did not check")
    watch.hint(", and ".join([", ".join(told[:-1]), told[-1]] if told[1:] else told) + ".")


def look_after_baselines(results: Results, checked: Checked, watch: Watch, *, prune: bool) -> None:
    """Print which baseline entries no longer match, and remove them if requested.

    Args:
        results: The run and the result of each project.
        checked: The merged result. If it has errors, no entry counts as stale.
        watch: Prints messages.
        prune: Whether to rewrite the baselines.

    Raises:
        SystemExit: A baseline cannot be written.
    """
    if checked.outcome.errors:
        return
    applied = [(run, one, *item) for run, one in results for item in run.baselines.items()]
    for run, one, name, known in applied:
        file, left = Path(name), accept_baseline.pruned(run, one, known, name)
        gone = baseline.gone(known, left)
        if not gone:
            continue
        if not prune:
            entries = "1 entry" if len(gone) == 1 else f"{len(gone)} entries"
            verb = "matches" if len(gone) == 1 else "match"
            advice = "Use --prune-baseline to remove stale entries."
            watch.hint(f"Note: {entries} in the baseline {file} no longer {verb} a finding. {advice}")
            continue
        with baseline_errors(watch):
            baseline.write(file, left, run.settings.root)
        _tell_gone(gone, file, left, watch)


def _tell_gone(gone: Baseline, file: Path, left: Baseline, watch: Watch) -> None:
    for known_by, number in sorted(gone.counts.items()):
        times = "" if number == 1 else f" ({number} times)"
        where = f"{known_by.path}: {known_by.code} in {known_by.function}"
        watch.hint(f"{where} was removed from the baseline{times}.")
    watch.hint(f"Removed {count(len(gone), 'finding')} from {file}. {len(left)} remaining.")


def _add_noqa(results: Results, reason: str, watch: Watch, *, clean: bool) -> tuple[int, Written]:
    """Add comments to the reported lines, and print their number.

    Args:
        results: The run and the result of each project.
        reason: The reason to add. May be empty.
        watch: Prints messages.
        clean: Whether git must have no uncommitted changes in the files to change.

    Returns:
        The number of findings without a comment, and the written patches.
    """
    from fsrace_lint.pipeline import comments  # noqa: PLC0415  # loads the rules, only on request

    made = [(run, *comments.add_noqa(run, one, reason)) for run, one in results]
    written = write.write([(run, patches) for run, patches, _ in made], watch, clean=clean)
    refusals = [(refusal.finding, refusal.reason) for _, _, refused in made for refusal in refused]
    refusals += written.refused
    for finding, why in sorted(refusals, key=lambda pair: pair[0].sort_key()):
        _complain(f"{finding.place.position}: {finding.code} not suppressed: {why}", watch)
    files = len({finding.place.path for finding in written.done})
    left = f" {len(refusals)} remaining." if refusals else ""
    watch.hint(f"Suppressed {count(len(written.done), 'finding')} in {count(files, 'file')}.{left}")
    return len(refusals), written
