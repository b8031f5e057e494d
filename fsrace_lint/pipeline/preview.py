"""Compute the edits of each fix of a check, for reports that show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.findings import suppressions
from fsrace_lint.findings.finding import Applicability
from fsrace_lint.pipeline import comments
from fsrace_lint.pipeline.repair import surroundings
from fsrace_lint.pipeline.run import Checked
from fsrace_lint.pipeline.tiers import doubt
from fsrace_lint.report import Preview
from fsrace_lint.report.edits import Lined, between

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fsrace_lint.files.source import Source
    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.fixes import Replaced
    from fsrace_lint.pipeline.run import Run
    from fsrace_lint.report import Edit

MOST: Final = 4_000_000
LEAST: Final = 20
"""The limits for previews in one file: after `MOST` bytes of rebuilt code, only the first `LEAST` are shown.

Each fix rebuilds its function or its file.
"""
MANY: Final = 1_000
MOST_OF_MANY: Final = 1_000_000
"""The limits for a file with more than `MANY` fixes: their number, and the bytes of rebuilt code.

Without them, the previews of such a file take many times as long as its check.
"""
TOO_MANY: Final = (
    "this file has too many fixes to preview each one; to show all of them, run fsrace-lint fix --diff"
)


def preview(results: Iterable[tuple[Run, Checked]], checked: Checked) -> Checked:
    """Apply each safe or unsafe fix by itself, and add its edits to the result.

    Nothing is written, and the project is not linked again. `repair` checks all fixes with all rules, so it
    may refuse a fix that is shown here or apply the alternative recipe.

    Args:
        results: The run and the result of each project.
        checked: The merged result.

    Returns:
        The merged result with `previews`. Manual fixes and findings without a fix have no preview.
    """
    made: dict[Finding, Preview] = {}
    for run, one in results:
        wanted: dict[str, list[Finding]] = {}
        for finding in one.outcome.findings:
            if finding.fix is not None and finding.fix.applicability is not Applicability.SKETCH:
                wanted.setdefault(finding.place.path, []).append(finding)
        for path, findings in wanted.items():
            try:
                previews = _of_file(run, one.sources[path], findings)
            except Exception as error:  # noqa: BLE001  # a bug in a recipe must not lose the report
                reason = f"fixing this file failed: {type(error).__name__}: {error}"
                previews = [Preview(refusal=reason)] * len(findings)
            made.update(zip(findings, previews, strict=True))
    outcome = msgspec.structs.replace(checked.outcome, previews=made)
    return Checked(outcome, checked.sources)


def _of_file(run: Run, source: Source, findings: Sequence[Finding]) -> list[Preview]:
    from fsrace_lint import fixes  # noqa: PLC0415  # libcst is loaded only if there is something to fix

    text = Lined(source.text)
    code = (finding for finding in findings if finding.code != suppressions.CODE and not doubt(finding))
    making = fixes.alone(source, code, surroundings(run, source))
    made: list[Preview] = []
    size = 0
    for finding in findings:
        if _is_enough(len(made), size, len(findings)):
            made.append(Preview(refusal=TOO_MANY))
        elif reason := doubt(finding):
            made.append(Preview(refusal=reason))
        elif finding.code == suppressions.CODE:
            made.append(_tidied(source, finding))
            size += len(source.data)
        else:
            one = next(making)
            made.append(Preview(_edits(text, one.replaced), one.refusal))
            size += one.size
    return made


def _is_enough(shown: int, size: int, wanted: int) -> bool:
    """Return whether a limit is reached: by the number of previews, and by the bytes of rebuilt code."""
    if wanted > MANY:
        return shown >= MANY or size > MOST_OF_MANY
    return shown >= LEAST and size > MOST


def _tidied(source: Source, finding: Finding) -> Preview:
    changed = comments.alone(source, finding)
    if changed is None:
        return Preview(refusal="the code cannot be removed from the comment")
    return Preview(between(source.text, changed.text))


def _edits(text: Lined, replaced: Iterable[Replaced]) -> tuple[Edit, ...]:
    return tuple(edit for one in replaced for edit in text.edits(one.first, one.last, one.text))
