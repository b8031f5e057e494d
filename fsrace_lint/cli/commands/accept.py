"""What check does with findings that are to stay: it writes a baseline, prunes one, or adds comments."""

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
    """Add the options."""
    for option in (
        write.option,
        click.option("--reason", metavar="TEXT", help="Say why behind the codes that --add-noqa adds."),
        click.option(
            "--add-noqa",
            is_flag=True,
            help="Report nothing; put `# noqa: FSR...` behind every line that would be reported.",
        ),
        click.option(
            "--prune-baseline", is_flag=True, help="Take out of the baseline what no longer occurs."
        ),
        click.option(
            "--write-baseline",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Report nothing; write all that would be reported to this file, for --baseline.",
        ),
    ):
        command = option(command)
    return command


def refuse_mixtures(choices: dict[str, Any], others: dict[str, bool], *, handed: bool) -> None:
    """Refuse options that do not go together.

    Args:
        choices: The values of the options of check.
        others: Which of the options about reports are given.
        handed: Whether the file is read from standard input.

    Raises:
        click.UsageError: Two of them do not go together, or one lacks what it is about.
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
        raise click.UsageError(f"{given[0]} and {given[1]} do not go together")
    if choices["require_clean"] and not acts["--add-noqa"]:
        raise click.UsageError("--require-clean is for --add-noqa")
    reason = choices["reason"]
    if reason is None:
        return
    if not acts["--add-noqa"]:
        raise click.UsageError("--reason is for --add-noqa")
    if not reason.strip() or visible(reason) != reason or "# noqa" in reason.lower():
        raise click.UsageError("--reason must be one line of words")


@contextlib.contextmanager
def baseline_errors(watch: Watch) -> Iterator[None]:
    """End with the message and the code 2 where a baseline cannot be used."""
    try:
        yield
    except baseline.BaselineError as error:
        _complain(f"Error: {error}", watch)
        sys.exit(FAILED)


def _complain(text: str, watch: Watch) -> None:
    if not watch.silent:
        click.echo(visible(text), err=True)


def act(results: Results, checked: Checked, choices: dict[str, Any], watch: Watch) -> None:
    """Write a baseline or add comments, and end the command, if that is wanted in place of a report.

    Args:
        results: Each project and what was found in it.
        checked: All of it.
        choices: The values of the options of check.
        watch: Tells of it.

    Raises:
        click.UsageError: There is nothing to prune.
        SystemExit: That was done.
    """
    known = any(run.settings.baseline for run, _ in results) or checked.outcome.errors
    if choices["prune_baseline"] and not known:
        raise click.UsageError(
            "--prune-baseline needs a baseline: --baseline FILE, or `baseline` in the settings"
        )
    if choices["write_baseline"] is not None:
        with baseline_errors(watch):
            _write_baseline(choices["write_baseline"], results, checked, watch)
        leave(checked, watch, findings=0)
    if choices["add_noqa"]:
        left, written = _add_noqa(results, choices["reason"] or "", watch, clean=choices["require_clean"])
        leave(written.told_in(checked), watch, findings=left)


def _write_baseline(file: Path, results: Results, checked: Checked, watch: Watch) -> None:
    """Write all that was reported to a file, and tell how many.

    Args:
        file: The baseline; of one that is there, what this run could not see stays.
        results: The project and what was found in it.
        checked: The same, with what went wrong: then nothing is written.
        watch: Tells of it.

    Raises:
        click.UsageError: There are several projects.
        BaselineError: What is there is no baseline, or it cannot be written.
    """
    one_project("--write-baseline", [run.settings for run, _ in results])
    if checked.outcome.errors or not results:
        _complain(f"{file} is not written, because the run failed.", watch)
        return
    ((run, one),) = results
    known = baseline.existing(file, run.settings.root)
    written = accept_baseline.accepted(run, one, known)
    baseline.write(file, written, run.settings.root)
    _tell_written(file, known, written, sum(one.seen.reported.values()), watch)
    stays = [finding for finding in checked.outcome.findings if finding.code in baseline.ABOUT_THE_TOOL]
    for finding in stays:
        _complain(f"{finding.place.position}: {finding.code} not written: {finding.message}", watch)


def _tell_written(file: Path, known: Baseline, written: Baseline, new: int, watch: Watch) -> None:
    told = [f"Wrote {count(new, 'finding')} to {file}"]
    lost = len(baseline.gone(known, written))
    if lost:
        told.append(f"took {lost} out that no longer {'occurs' if lost == 1 else 'occur'}")
    if len(written) > new:
        told.append(f"kept {len(written) - new} that this run could not see")
    watch.hint(", and ".join([", ".join(told[:-1]), told[-1]] if told[1:] else told) + ".")


def look_after_baselines(results: Results, checked: Checked, watch: Watch, *, prune: bool) -> None:
    """Tell what the baselines hold that no longer occurs, and take it out if that is wanted.

    Args:
        results: Each project and what was found in it.
        checked: All of it; after a failure of the run nothing can be said to be gone.
        watch: Tells of it.
        prune: Whether to rewrite the files.

    Raises:
        SystemExit: A baseline cannot be written.
    """
    if checked.outcome.errors:
        return
    for run, one in results:
        if not run.baseline:
            continue
        file = Path(run.settings.baseline)
        left = accept_baseline.pruned(run, one, run.baseline)
        gone = baseline.gone(run.baseline, left)
        if not gone:
            continue
        if not prune:
            lost = f"{count(len(gone), 'finding')} of the baseline {file} no longer"
            verb = "occurs" if len(gone) == 1 else "occur"
            watch.hint(f"Note: {lost} {verb}; --prune-baseline takes them out.")
            continue
        with baseline_errors(watch):
            baseline.write(file, left, run.settings.root)
        _tell_gone(gone, file, left, watch)


def _tell_gone(gone: Baseline, file: Path, left: Baseline, watch: Watch) -> None:
    for known_by, number in sorted(gone.counts.items()):
        times = "" if number == 1 else f" ({number} times)"
        where = f"{known_by.path}: {known_by.code} in {known_by.function}"
        watch.hint(f"{where} has gone from the baseline{times}.")
    watch.hint(f"Took {count(len(gone), 'finding')} out of {file}; {len(left)} left.")


def _add_noqa(results: Results, reason: str, watch: Watch, *, clean: bool) -> tuple[int, Written]:
    """Put comments behind what is reported, and tell how many.

    Args:
        results: Each project and what was found in it.
        reason: Why; may be empty.
        watch: Tells of it.
        clean: Whether all that is changed must be in git as it is.

    Returns:
        How many findings are left without one, and what became of the files.
    """
    from fsrace_lint.pipeline import comments  # noqa: PLC0415  # the rules: not needed where it is not asked for

    made = [(run, *comments.add_noqa(run, one, reason)) for run, one in results]
    written = write.write([(run, patches) for run, patches, _ in made], watch, clean=clean)
    refusals = [(refusal.finding, refusal.reason) for _, _, refused in made for refusal in refused]
    refusals += written.refused
    for finding, why in sorted(refusals, key=lambda pair: pair[0].sort_key()):
        _complain(f"{finding.place.position}: {finding.code} not suppressed: {why}", watch)
    files = len({finding.place.path for finding in written.done})
    left = f"; {len(refusals)} left" if refusals else ""
    watch.hint(f"Suppressed {count(len(written.done), 'problem')} in {count(files, 'file')}{left}.")
    return len(refusals), written
