"""Evidence that several processes run a function, and what shows it."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.files.spans import Place


class Evidence(enum.IntEnum):
    """How sure it is that several processes run a place at all."""

    NONE = 0
    PLAUSIBLE = 1
    EVIDENT = 2


class ConcurrencyMarker(Record, frozen=True):
    """What shows that several processes run a function: where it stands, and what it is in words."""

    place: Place
    text: str


class ConcurrencyTrace(Record, frozen=True):
    """How several processes come to a function: the calls, nearest first, and what shows it at their end."""

    evidence: Evidence
    call_chain: tuple[CallSite, ...]
    marker: ConcurrencyMarker | None
