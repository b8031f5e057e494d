"""Turn the fixes of a check into patches, and check the patched project."""

from __future__ import annotations

import functools
import os
from collections import Counter
from typing import TYPE_CHECKING, Final

from fsrace_lint.files.atomic_write import stale_temporaries
from fsrace_lint.findings.finding import Applicability, Finding, Severity
from fsrace_lint.pipeline.comments import tidy, with_data
from fsrace_lint.pipeline.other_files import is_needed, mentioning
from fsrace_lint.pipeline.project_link import entries
from fsrace_lint.pipeline.run import ORDER
from fsrace_lint.pipeline.tiers import choose, with_refusals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fsrace_lint.files.source import Source
    from fsrace_lint.fixes import Patch, Surroundings
    from fsrace_lint.pipeline.run import Checked, Run

_ROUNDS: Final = 3
"""The maximum number of times that the fixes of a file are made, each time with more checks."""
_GROUP: Final = len("FSR1")
"""The length of the part of a code that related rules have in common."""


def repair(
    run: Run, checked: Checked, *, unsafe: bool | None, comments: bool = True, certain: bool = True
) -> list[Patch]:
    """Turn the fixes of a check into patches, without writing any file.

    Unused codes in comments are removed last, from the fixed text.

    Args:
        run: The run that was checked.
        checked: The result of the run.
        unsafe: Whether to include fixes that need review. If None, those of the `fix-tiers` setting.
        comments: Whether to remove codes that suppress nothing from comments.
        certain: Whether fixes that coordinate processes need certain evidence of them.

    Returns:
        A patch for each file with a fix, sorted by file.
    """
    wanted, doubtful = choose(run, checked.outcome.findings, unsafe=unsafe, certain=certain)
    made, fixed_run = _repair(run, checked, wanted)
    patches = with_refusals(checked, made, doubtful)
    return tidy(run, checked, patches, fixed_run) if comments else patches


def _repair(run: Run, checked: Checked, fixable: Sequence[Finding]) -> tuple[list[Patch], Run]:
    """Apply the fixes of the code, and return the patches and the run with the fixed files.

    All fixed files are checked together, so the project is linked once and not for each file. If that check
    shows a problem, the files concerned are fixed again on top of the others, with a check after each fix.
    These checks look only where problems were, so all files are checked together once more.
    """
    from fsrace_lint import fixes  # noqa: PLC0415  # libcst is loaded only if there is something to fix

    by_path = _by_path(fixable)
    is_unsafe = any(finding.fix and finding.fix.applicability is Applicability.UNSAFE for finding in fixable)
    trial = _Trial(run, everywhere=is_unsafe)

    def attempt(path: str) -> Patch:
        source = checked.sources[path]
        try:
            return fixes.repair(source, by_path[path], trial.verify, surroundings(run, source))
        except Exception as error:
            if os.environ.get("FSRACE_DEBUG"):
                raise
            # a bug in a recipe must not lose the fixes of the other files
            reason = f"fixing this file failed: {type(error).__name__}: {error}"
            refused = tuple(fixes.Refusal(finding, reason) for finding in by_path[path])
            return fixes.Patch(source.file, path, source.data, source.data, (), refused)

    patches: dict[str, Patch] = {}
    wanted = frozenset(by_path)
    while wanted:
        trial.restart([patch for path, patch in patches.items() if path not in wanted], checked.sources)
        run.observer.stage("Repairing", len(wanted))
        for path in sorted(wanted):
            patches[path] = attempt(path)
            trial.accept(patches[path], checked.sources[path])
            run.observer.step()
        wanted = trial.suspects()
    return [patches[path] for path in by_path], trial.fixed_run


def surroundings(run: Run, source: Source) -> Surroundings:
    """Return the context that the fixes of a file need from its project."""
    from fsrace_lint import fixes  # noqa: PLC0415  # libcst is loaded only if there is something to fix

    chosen = run.settings.of(source.relative).helper_module
    return fixes.Surroundings(
        idiom=functools.partial(run.idiom, source.relative),
        collectives=functools.partial(run.collectives, source.relative),
        entries=functools.partial(entries, run),
        helpers=chosen,
        own=functools.partial(run.own_helpers, source.relative),
        is_needed=functools.partial(is_needed, run, source.relative),
        mentioning=functools.partial(mentioning, run, source.relative),
    )


def write(patch: Patch, run: Run | None = None) -> str | None:
    """Write a patch.

    Args:
        patch: The patch.
        run: The run of the patch. If given, a symbolic link must not lead out of its project.

    Returns:
        None if the file now has the patched content, otherwise why it was left unchanged.

    Raises:
        OSError: The file cannot be written because the disk or the system fails.
    """
    from fsrace_lint.fixes import apply  # noqa: PLC0415  # loaded only if there is a fix

    if run is None:
        return apply.write(patch)
    return apply.write(patch, within=run.settings.root, link=str(patch.file) in run.symlinks)


def sweep(run: Run) -> None:
    """Delete temporary files that killed runs left next to the files of a project."""
    for folder in sorted({file.file.parent for file in run.files.values()}):
        stale_temporaries.sweep(folder)


class _Trial:
    """The findings of all rules, selected or not, before and after some files are fixed."""

    def __init__(self, run: Run, *, everywhere: bool) -> None:
        """Prepare a trial. The findings before the fixes are computed on first use.

        Args:
            run: The run.
            everywhere: Whether to check all files of the project, and not only the fixed ones.
        """
        self._run = run
        self.fixed_run = run
        """The run with the files that are fixed so far."""
        self._everywhere = everywhere
        self._fixed: dict[str, tuple[Finding, ...]] = {}
        """The fixed findings of each file that was changed."""
        self._round = 0
        self._places: frozenset[str] = frozenset()
        """The files where problems were found."""
        self._before: dict[frozenset[str] | None, list[Finding]] = {}

    def restart(self, patches: Iterable[Patch], sources: Mapping[str, Source]) -> None:
        """Begin a round with the patches that are kept."""
        self._round += 1
        self.fixed_run, self._fixed = self._run, {}
        for patch in patches:
            self.accept(patch, sources[patch.path])

    def accept(self, patch: Patch, source: Source) -> None:
        """Add the patch of a file to those that are kept."""
        if patch.after != patch.before:
            self._fixed[patch.path] = patch.applied
            self.fixed_run = self.fixed_run.with_sources(with_data(source, patch.after))

    def suspects(self) -> frozenset[str]:
        """Return the paths of the fixed files that may have caused a problem."""
        fixed = frozenset(self._fixed)
        if not fixed or self._is_last:
            return frozenset()
        problems = self._problems(self.fixed_run, (), None if self._everywhere else fixed, counted=True)
        bad = frozenset(finding.place.path for finding, _ in problems)
        self._places |= bad
        return fixed if bad - fixed else bad

    def verify(self, changed: Source, fixed: tuple[Finding, ...]) -> str | None:
        """Return why a fixed file is unacceptable (a finding remains or is new), or None.

        In the first round, each file is accepted, because all are checked together at its end. The last round
        looks at all files that may matter, and the second one only where problems were.
        """
        if self._round == 1:
            return None
        wanted: frozenset[str] | None = self._places | {changed.path}
        if self._is_last:
            wanted = None if self._everywhere else frozenset((*self._fixed, changed.path))
        for finding, is_new in self._problems(self.fixed_run.with_sources(changed), fixed, wanted):
            if is_new:
                return f"the fix would cause {finding.code} in `{finding.function}`: {finding.message}"
            return f"{finding.code} would still be reported after the fix"
        return None

    @property
    def _is_last(self) -> bool:
        return self._round == _ROUNDS

    def _problems(
        self,
        run: Run,
        more: Sequence[Finding],
        wanted: frozenset[str] | None,
        *,
        counted: bool = False,
    ) -> Iterator[tuple[Finding, bool]]:
        """Yield findings that remain or are new after the fixes, each with whether it is new.

        A finding of a related rule that is not more severe is what a fix may leave of the finding. Where
        processes wait for each other, it is a new one.

        Args:
            run: The run with the fixed files.
            more: The fixed findings, besides those of the files that are kept.
            wanted: The files to check. None for all.
            counted: Whether the progress counts the files.
        """
        if wanted not in self._before:
            self._before[wanted] = self._run.everything(wanted)
        before, after = self._before[wanted], run.everything(wanted, counted=counted)
        fixed = [*more, *(finding for findings in self._fixed.values() for finding in findings)]
        expected = Counter(map(_identity, before)) - Counter(map(_identity, fixed))
        excess = Counter(map(_identity, after)) - expected
        told = {(*_identity(finding), _said(finding)) for finding in before}
        weaker = {
            (*_kind(finding), left)
            for finding in fixed
            if not finding.code.startswith(ORDER)
            for left in _up_to(finding.severity)
        }
        for is_new in (True, False):
            for finding in after:
                identity = _identity(finding)
                if excess[identity] > 0 and ((*identity, _said(finding)) not in told) == is_new:
                    excess[identity] -= 1
                    if not is_new or (*_kind(finding), finding.severity) not in weaker:
                        yield finding, is_new


def _identity(finding: Finding) -> tuple[str, str, str]:
    return finding.place.path, finding.code, finding.function


def _kind(finding: Finding) -> tuple[str, str, str]:
    """Return where a finding is, and the group of its rule."""
    return finding.place.path, finding.code[:_GROUP], finding.function


def _up_to(severity: Severity) -> list[Severity]:
    """Return a severity and the lower ones."""
    every = list(Severity)
    return every[every.index(severity) :]


def _said(finding: Finding) -> str:
    return finding.message.partition(" after the check on line ")[0]


def _by_path(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.place.path, []).append(finding)
    return found
