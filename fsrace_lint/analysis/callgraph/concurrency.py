"""Evidence that multiple processes run a function."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.files.spans import Place


class Evidence(enum.IntEnum):
    """How certain it is that multiple processes run the code."""

    NONE = 0
    PLAUSIBLE = 1
    EVIDENT = 2


class ConcurrencyMarker(Record, frozen=True):
    """A place that shows that multiple processes run a function, and its description."""

    place: Place
    text: str


class ConcurrencyTrace(Record, frozen=True):
    """How multiple processes reach a function: the call chain, nearest first, and the marker at its end."""

    evidence: Evidence
    call_chain: tuple[CallSite, ...]
    marker: ConcurrencyMarker | None
