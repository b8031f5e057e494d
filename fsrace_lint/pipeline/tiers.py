"""Choose the fixes to apply by their tiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.findings.finding import TIERS, Tier
from fsrace_lint.findings.suppressions import RECIPE as DROP_NOQA

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.fixes import Patch
    from fsrace_lint.pipeline.run import Checked, Run

_DOUBT: Final = (
    "a fix that coordinates processes needs `likely` evidence and medium confidence,"
    " but this finding has `{}` evidence and {} confidence"
)


def choose(
    run: Run, findings: Iterable[Finding], *, unsafe: bool | None, certain: bool
) -> tuple[list[Finding], list[Finding]]:
    """Choose the findings to fix.

    Args:
        run: The run that reported them.
        findings: The findings.
        unsafe: Whether to include unsafe fixes. If None, those of the `fix-tiers` setting.
        certain: Whether fixes that coordinate processes need certain evidence of them.

    Returns:
        The findings to fix, and those whose fix is refused because the evidence is too weak.
    """
    wanted: list[Finding] = []
    doubtful: list[Finding] = []
    for finding in findings:
        if finding.fix is None or finding.fix.recipe == DROP_NOQA:
            continue
        named = TIERS if unsafe else () if unsafe is False else run.settings_at(finding.place.path).fix_tiers
        tiers = [Tier(name) for name in named]
        every = finding.fix.within(tiers)
        fix = finding.fix_within(tiers) if certain else every
        if fix is not None:
            wanted.append(finding if fix is finding.fix else msgspec.structs.replace(finding, fix=fix))
        elif every is not None:
            doubtful.append(finding)
    made = {(one.place.path, one.fix.recipe, one.fix.span) for one in wanted if one.fix}
    return wanted, [
        one for one in doubtful if one.fix and (one.place.path, one.fix.recipe, one.fix.span) not in made
    ]


def doubt(finding: Finding) -> str:
    """Return why no fix of a finding is applied in spite of `--unsafe-fixes`, or an empty string."""
    is_offered = finding.fix is not None and finding.fix.within(tuple(Tier)) is not None
    is_certain = finding.is_certain or finding.fix_within(tuple(Tier)) is not None
    return _DOUBT.format(finding.evidence, finding.confidence) if is_offered and not is_certain else ""


def with_refusals(checked: Checked, patches: Sequence[Patch], doubtful: Iterable[Finding]) -> list[Patch]:
    """Add refused findings to the patches of their files.

    Returns:
        The patches, sorted by file.
    """
    from fsrace_lint.fixes import Patch, Refusal  # noqa: PLC0415  # libcst is loaded only if there is something to fix

    by_path = {patch.path: patch for patch in patches}
    for finding in doubtful:
        path = finding.place.path
        source = checked.sources[path]
        patch = by_path.get(path) or Patch(source.file, path, source.data, source.data, (), ())
        refused = (*patch.refused, Refusal(finding, doubt(finding)))
        by_path[path] = msgspec.structs.replace(patch, refused=refused)
    return [by_path[path] for path in sorted(by_path)]
