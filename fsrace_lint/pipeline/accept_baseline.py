"""Compare a baseline with what a run saw."""

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


def pruned(run: Run, checked: Checked, known: Baseline) -> Baseline:
    """Take out of a baseline what has gone.

    What the run could not see stays: files that it did not check, rules that were off,
    and what only the strict profile reports.

    Args:
        run: The run that was checked.
        checked: Its result.
        known: The baseline.

    Returns:
        What is left of it.
    """
    others = frozenset(map(spelled, (*run.files, *run.links))) - checked.seen.files

    def was_checked(entry: Key) -> bool:
        if not run.settings.selects(entry.code, entry.path) or entry.path in others:
            return False
        return entry.path in checked.seen.files or _is_missing(run, entry.path)

    return baseline.pruned(known, checked.seen, was_checked)


def accepted(run: Run, checked: Checked, known: Baseline) -> Baseline:
    """Give the baseline that holds all that a run reports, and of the old one what the run could not see."""
    return baseline.extended(pruned(run, checked, known), checked.seen)


def _is_missing(run: Run, relative: str) -> bool:
    """Tell whether a file has gone from below what was named."""
    file = os.path.normpath(run.settings.root / relative)
    named = any(file == name or path_below(file, name) is not None for name in run.named)
    # A backslash may stand for a byte that does not decode.
    return named and "\\" not in relative and not os.path.lexists(file)
