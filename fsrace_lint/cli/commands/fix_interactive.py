"""Ask about each fix: `fix --interactive`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click
import msgspec

from fsrace_lint import report
from fsrace_lint.cli import terminal
from fsrace_lint.cli.commands import fixing, write
from fsrace_lint.cli.commands.accept import is_reason
from fsrace_lint.cli.commands.options import leave, run
from fsrace_lint.findings import suppressions
from fsrace_lint.pipeline.run import Checked
from fsrace_lint.report import diff
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fsrace_lint.cli.commands.progress_bar import Watch
    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.fixes import Patch
    from fsrace_lint.pipeline.run import Run

_QUESTION: Final = "Apply this fix? [y]es, [n]o, [a]ll of {code}, [s]uppress, [q]uit: "
_ANSWERS: Final = ("y", "n", "a", "s", "q")


def ask(
    paths: tuple[Path, ...],
    choices: dict[str, Any],
    watch: Watch,
    *,
    clean: bool,
    color: bool | None,
) -> NoReturn:
    """Show the fixes one at a time, ask about each, and write those that the user accepts.

    Args:
        paths: The paths that the user named.
        choices: The option values.
        watch: Prints messages.
        clean: Whether git must have no uncommitted changes in the files to change.
        color: Whether to color the output. None detects a terminal.

    Raises:
        click.UsageError: Standard input or output is not a terminal.
        SystemExit: Always.
    """
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        raise click.UsageError("--interactive needs a terminal for standard input and output")
    results, checked = run(paths, choices, watch, results=False, held=True)
    made = fixing.patches_of(results, choices, watch, tidied=False)
    refusals = [(one.finding, one.reason) for _, part in made for patch in part for one in patch.refused]
    review = _Review(watch, color=color)
    final: list[tuple[Run, list[Patch]]] = []
    for (ran, patches), (_, one) in zip(made, results, strict=True):
        final.append((ran, review.patches(ran, one, patches)))
    written = write.write(final, watch, clean=clean)
    fixing.tell_refusals([*refusals, *review.refused, *written.refused])
    checked = written.told_in(checked)
    left = len(checked.outcome.findings) - len(written.done)
    suppressed = sum(1 for finding in written.done if finding in review.suppressed)
    said = f"Fixed {len(written.done) - suppressed}, suppressed {suppressed}, {left} remaining."
    watch.hint(said)
    leave(checked, watch, findings=left)


class _Review:
    """The answers of the user so far."""

    def __init__(self, watch: Watch, *, color: bool | None) -> None:
        self.suppressed: list[Finding] = []
        self.refused: list[tuple[Finding, str]] = []
        self._watch = watch
        self._color = terminal.is_colored(color)
        self._always: set[str] = set()
        self._is_over = False

    def patches(self, run: Run, checked: Checked, verified: Sequence[Patch]) -> list[Patch]:
        """Ask about each fix of a project, and return the patches with the accepted ones."""
        made: list[Patch] = []
        for patch in verified:
            if not self._is_over:
                made += self._of_file(run, checked, patch)
        return made

    def _of_file(self, run: Run, checked: Checked, verified: Patch) -> list[Patch]:
        """Ask about each fix of a file."""
        from fsrace_lint.pipeline import comments  # noqa: PLC0415  # loads the rules, only to suppress

        text = verified.before
        accepted: list[Finding] = []
        suppressed: list[Finding] = []
        for group in _groups(verified):
            if self._is_over:
                break
            draft = self._repaired(run, checked, verified.path, [*accepted, *group])
            done = set(draft.applied) if draft is not None else set()
            if draft is None or not done.issuperset(group):
                reasons = {} if draft is None else {one.finding: one.reason for one in draft.refused}
                self.refused += [(one, reasons.get(one, "the fix is not needed anymore")) for one in group]
                continue
            answer = self._answer(group, text, draft, checked)
            if answer == "s":
                reason = self._reason()
                if reason is None:
                    continue
                narrow = Checked(report.Outcome(tuple(group)), checked.sources)
                noted, refused = comments.add_noqa(run, narrow, reason)
                self.refused += [(one.finding, one.reason) for one in refused]
                if noted:
                    changed = comments.with_data(checked.sources[verified.path], noted[0].after)
                    run = run.with_sources(changed)
                    checked = Checked(checked.outcome, {**checked.sources, verified.path: changed})
                    suppressed += noted[0].applied
                    again = self._repaired(run, checked, verified.path, accepted)
                    text = (again or noted[0]).after
            elif answer == "y":
                accepted += group
                text = draft.after
        self.suppressed += suppressed
        if not accepted and not suppressed:
            return []
        return [msgspec.structs.replace(verified, after=text, applied=(*accepted, *suppressed), refused=())]

    def _repaired(self, run: Run, checked: Checked, path: str, findings: list[Finding]) -> Patch | None:
        """Return the verified patch of some findings of a file, or None if there is none."""
        from fsrace_lint.pipeline import repair  # noqa: PLC0415  # as above

        if not findings:
            return None
        wanted = Checked(report.Outcome(tuple(findings)), checked.sources)
        with self._watch.progress(), self._watch.phase("fix"):
            made = repair.repair(run, wanted, unsafe=None, comments=False)
        return next((patch for patch in made if patch.path == path), None)

    def _answer(self, group: list[Finding], before: bytes, draft: Patch, checked: Checked) -> str:
        """Show a fix below its finding, and return the answer."""
        options = report.Options(color=self._color, width=terminal.width(100), summary=False)
        outcome = report.Outcome(tuple(group))
        terminal.show(report.render("full", outcome, checked.sources, options))
        source = checked.sources[draft.path]
        shown = diff.unified(draft.path, before, draft.after, source.encoding)
        terminal.show(diff.for_the_eyes(shown, color=self._color) + "\n")
        code = group[0].code
        if code in self._always:
            return "y"
        answer = ""
        while answer not in _ANSWERS:
            answer = self._line(_QUESTION.format(code=code)).strip().lower()[:1]
            if self._is_over:
                return "q"
        if answer == "a":
            self._always.add(code)
        self._is_over = answer == "q"
        return "y" if answer == "a" else answer

    def _reason(self) -> str | None:
        """Ask for the reason of a comment, or return None at the end of the input."""
        while True:
            reason = self._line("Reason (empty for none): ").strip()
            if self._is_over:
                return None
            if not reason or is_reason(reason):
                return reason
            terminal.show("The reason must be a single line of printable text without `# noqa`.\n")

    def _line(self, question: str) -> str:
        """Ask a question. The end of the input ends the review."""
        terminal.show(visible(question))
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            terminal.show("\n")
            self._is_over = True
        return line


def _groups(patch: Patch) -> list[list[Finding]]:
    """Return the findings that a file shows as fixed, those of one change together."""
    groups: dict[object, list[Finding]] = {}
    for finding in patch.applied:
        if finding.fix is not None and finding.code != suppressions.CODE:
            groups.setdefault((finding.fix.recipe, finding.fix.span), []).append(finding)
    return list(groups.values())
