"""Make one git commit for the fixes of each rule: `fix --commit`."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING, Any, NoReturn

import click

from fsrace_lint import report, rules
from fsrace_lint.cli import interrupts, manual, terminal
from fsrace_lint.cli.commands import fixing, write
from fsrace_lint.cli.commands.options import leave, run
from fsrace_lint.cli.terminal import FAILED
from fsrace_lint.files import git_clean, git_commits
from fsrace_lint.findings import suppressions
from fsrace_lint.pipeline.run import Checked
from fsrace_lint.report.words import count, visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fsrace_lint.cli.commands.progress_bar import Watch
    from fsrace_lint.cli.commands.write import Made
    from fsrace_lint.findings.finding import Finding

_WIDTH = 72


def commit(paths: tuple[Path, ...], choices: dict[str, Any], watch: Watch) -> NoReturn:
    """Fix the findings of one rule after another, with a commit for each.

    Each rule is checked in the tree that the commits before it left.

    Args:
        paths: The paths that the user named.
        choices: The option values.
        watch: Prints messages.

    Raises:
        click.UsageError: The files are not in one git repository, or it has uncommitted changes.
        SystemExit: Always.
    """
    results, checked = run(paths, choices, watch, results=False, held=True)
    try:
        repository = git_commits.Repository.around([ran.settings.root for ran, _ in results])
        repository.require_clean()
    except git_clean.GitError as error:
        raise click.UsageError(visible(f"--commit: {error}")) from None
    made = fixing.patches_of(results, choices, watch)
    codes = {finding.code for _, part in made for patch in part for finding in patch.applied}
    refused = [(one.finding, one.reason) for _, part in made for patch in part for one in patch.refused]
    done: list[str] = []
    fixed = 0
    try:
        for code in sorted(codes, key=lambda code: (code == suppressions.CODE, code)):
            results, checked = run(paths, choices, watch, results=False, held=True)
            only = [(ran, _only(one, code)) for ran, one in results]
            made = fixing.patches_of(only, choices, watch, tidied=code == suppressions.CODE)
            with interrupts.deferred():  # a commit is finished, or its files are put back
                fixed += _commit(repository, code, made, watch, done, refused)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"Interrupted: {count(len(done), 'commit')} made; nothing else was written"
        ) from None
    except git_clean.GitError as error:
        if not watch.silent:
            before = f"; {count(len(done), 'commit')} made before it" if done else "; nothing was committed"
            click.echo(visible(f"Error: --commit: {error}{before}"), err=True)
        sys.exit(FAILED)
    if fixed:
        results, checked = run(paths, choices, watch)
    if not watch.silent:
        fixing.tell_refusals(refused)
    left = len(checked.outcome.findings)
    watch.hint(f"Fixed {count(fixed, 'finding')} in {count(len(done), 'commit')}. {left} remaining.")
    leave(checked, watch, findings=left)


def _only(checked: Checked, code: str) -> Checked:
    found = tuple(finding for finding in checked.outcome.findings if finding.code == code)
    return Checked(report.Outcome(found), checked.sources)


def _commit(  # one parameter per result
    repository: git_commits.Repository,
    code: str,
    made: Made,
    watch: Watch,
    done: list[str],
    refused: list[tuple[Finding, str]],
) -> int:
    """Write the fixes of a rule, and commit them; return the number of fixed findings.

    Raises:
        GitError: A file cannot be written, or git refuses the commit. The files are as before.
    """
    changed = {patch.file: patch.before for _, part in made for patch in part if patch.before != patch.after}
    bad = git_clean.uncommitted(changed)
    patches = [(ran, patch) for ran, part in made for patch in part if patch.file in changed]
    refused += [(one, f"the file {bad[p.file]}") for _, p in patches if p.file in bad for one in p.applied]
    kept = [(ran, patch) for ran, patch in patches if patch.file not in bad]
    if not kept:
        return 0
    applied = [finding for _, patch in kept for finding in patch.applied]
    is_committed = is_tried = False
    try:
        written = write.write([(ran, [patch]) for ran, patch in kept], watch, clean=False)
        _refuse_unwritten(written)
        is_tried = True
        name = repository.commit([patch.file.resolve() for _, patch in kept], _message(code, applied))
        is_committed = True
    finally:
        if not is_committed:
            # a hook may have changed the files; before that, another process
            ours = [p.file for _, p in kept if is_tried or p.file.read_bytes() == p.after]
            repository.restore([file.resolve() for file in ours])
    done.append(f"{name} {_subject(code)}")
    if not watch.silent:
        terminal.show(visible(done[-1]) + "\n")
    return len(applied)


def _refuse_unwritten(written: write.Written) -> None:
    for problem in written.problems:
        raise git_clean.GitError(f"{problem.path}: {problem.message}")
    for finding, reason in written.refused:
        raise git_clean.GitError(f"{finding.place.path}: {reason}")


def _subject(code: str) -> str:
    title = manual.sections(_rule(code)).title.rstrip(".")
    return textwrap.shorten(f"Fix {code}: {title[:1].lower()}{title[1:]}", _WIDTH, placeholder="...")


def _rule(code: str) -> rules.LoadedRule:
    return next(loaded for loaded in rules.load() if loaded.rule.code == code)


def _message(code: str, applied: Sequence[Finding]) -> str:
    """Return the message of a commit: what the race is, what the fix does, and where."""
    told = manual.sections(_rule(code))
    whats = dict.fromkeys(finding.fix.description for finding in applied if finding.fix)
    places = dict.fromkeys(f"{one.place.path}:{one.place.span.line} in {one.function}" for one in applied)
    why = [
        textwrap.fill(" ".join(part.split()), _WIDTH, break_long_words=False)
        for part in told.why.split("\n\n")
    ]
    whole = [
        *why,
        "\n".join(["What changes:", *(f"* {what}" for what in whats)]),
        "\n".join(["Places, before the change:", *(f"* {place}" for place in places)]),
    ]
    return "\n\n".join([_subject(code), *whole]) + "\n"
