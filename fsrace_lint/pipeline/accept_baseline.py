"""Compare a baseline with the findings of a run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fsrace_lint.files.source import path_below
from fsrace_lint.findings import baseline
from fsrace_lint.findings.fingerprints import spelled

if TYPE_CHECKING:
    from fsrace_lint.findings.baseline import Baseline
    from fsrace_lint.findings.fingerprints import Key
    from fsrace_lint.pipeline.run import Checked, Run


def pruned(run: Run, checked: Checked, known: Baseline, file: str | None = None) -> Baseline:
    """Return a baseline without the entries that no longer match.

    Entries that the run could not see stay: those of files that it did not check, of rules that were off, and
    of findings that only the strict profile reports.

    Args:
        run: The run that was checked.
        checked: The result of the run.
        known: The baseline.
        file: Its absolute path. Entries of files to which it does not apply stay. None if it applies to all.
    """
    others = frozenset(map(spelled, (*run.files, *run.links))) - checked.seen.files

    def was_checked(entry: Key) -> bool:
        if file is not None and run.settings.of(entry.path).baseline != file:
            return False
        if not run.settings.selects(entry.code, entry.path) or entry.path in others:
            return False
        return entry.path in checked.seen.files or _is_missing(run, entry.path)

    return baseline.pruned(known, checked.seen, was_checked)


def accepted(run: Run, checked: Checked, known: Baseline) -> Baseline:
    """Return a baseline of everything that a run reports, plus the old entries that the run could not see."""
    return baseline.extended(pruned(run, checked, known), checked.seen)


def _is_missing(run: Run, relative: str) -> bool:
    """Return whether a file below a path that the user named no longer exists."""
    file = os.path.normpath(run.settings.root / relative)
    named = any(file == name or path_below(file, name) is not None for name in run.named)
    # A backslash may be the escape of a byte that does not decode.
    return named and "\\" not in relative and not os.path.lexists(file)
