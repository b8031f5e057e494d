"""Shared by commands that rewrite source files: check git, and write patches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from fsrace_lint import report
from fsrace_lint.cli import interrupts
from fsrace_lint.cli.terminal import FAILED
from fsrace_lint.pipeline import merge
from fsrace_lint.pipeline.run import Checked
from fsrace_lint.report.words import count, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fsrace_lint.cli.commands.progress_bar import Watch
    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.fixes import Patch
    from fsrace_lint.pipeline.run import Run

    Made = Sequence[tuple[Run, Sequence[Patch]]]


def option(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option to check git first."""
    return click.option(
        "--require-clean",
        is_flag=True,
        help="Write nothing if a file that would change has uncommitted changes in git.",
    )(command)


class Written(NamedTuple):
    """The result of writing patches.

    Attributes:
        done: The findings of the patches that were written.
        refused: The findings of the patches that were refused, with the reasons.
        problems: Errors while writing.
    """

    done: list[Finding]
    refused: list[tuple[Finding, str]]
    problems: list[report.Problem]

    def told_in(self, checked: Checked) -> Checked:
        """Return a result with the errors added."""
        return merge.merge([checked, Checked(report.Outcome(errors=tuple(self.problems)), {})])


def write(made: Made, watch: Watch, *, clean: bool) -> Written:
    """Write patches, and delete temporary files that killed runs left next to them.

    Args:
        made: The patches of each project.
        watch: Prints messages.
        clean: Whether git must have no uncommitted changes in the files to change.

    Returns:
        The result.

    Raises:
        SystemExit: A file has uncommitted changes, or git cannot be asked.
    """
    if clean:
        _require_clean([patch for _, patches in made for patch in patches], watch)
    written = Written([], [], [])
    tried: list[Patch] = []
    try:
        for run, patches in made:
            for patch in patches:
                tried.append(patch)
                with interrupts.deferred():
                    _write(patch, run, written)
            from fsrace_lint.pipeline import repair  # noqa: PLC0415  # loads libcst, only to write files

            repair.sweep(run)
    except KeyboardInterrupt:
        every = [patch for _, patches in made for patch in patches]
        told = "" if watch.silent else _interrupted(every, len(tried), written)
        raise KeyboardInterrupt(told) from None
    return written


def _interrupted(patches: Sequence[Patch], tried: int, written: Written) -> str:
    """Return which files were written before an interrupt, and which were not."""
    failed = {problem.path for problem in written.problems}
    failed |= {finding.place.path for finding, _ in written.refused}
    changed = [patch.path for patch in patches if patch.before != patch.after]
    done = [patch.path for patch in patches[:tried] if patch.path in changed and patch.path not in failed]
    left = [path for path in changed if path not in done]
    told = [
        f"Interrupted: {count(len(done), 'file')} written{_listed(done)}",
        f"{len(left)} not written{_listed(left)}",
    ]
    return "; ".join(told)


def _listed(paths: Sequence[str]) -> str:
    return f": {', '.join(paths)}" if paths else ""


def _write(patch: Patch, run: Run, written: Written) -> None:
    try:
        from fsrace_lint.pipeline import repair  # noqa: PLC0415  # as above

        obstacle = repair.write(patch, run)
    except OSError as error:
        written.problems.append(
            report.Problem(patch.path, f"cannot write the file: {error.strerror or error}")
        )
        return
    if obstacle is None:
        written.done.extend(patch.applied)
    else:
        written.refused.extend((finding, f"the file {obstacle}") for finding in patch.applied)


def _require_clean(patches: Sequence[Patch], watch: Watch) -> None:
    """Exit if git could not restore a file that would be written.

    The contents that the run read are compared. A file that changes later is not written anyway.
    """
    from fsrace_lint.files import git_clean  # noqa: PLC0415  # needed only with --require-clean

    held = {patch.file: patch for patch in patches if patch.before != patch.after}
    try:
        bad = git_clean.uncommitted({file: patch.before for file, patch in held.items()})
    except git_clean.GitError as error:
        told = str(error)
    else:
        if not bad:
            return
        first = min(bad, key=lambda file: held[file].path)
        more = f", and {count(len(bad) - 1, 'file')} more" if len(bad) > 1 else ""
        told = f"{held[first].path} {bad[first]}{more}"
    if not watch.silent:
        click.echo(visible(f"Error: --require-clean: {told}; no file was written"), err=True)
    sys.exit(FAILED)
