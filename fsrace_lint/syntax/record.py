"""The base class of frozen values."""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, frozen=True):
    """A frozen value. It is never decoded, so the annotations of its fields are never evaluated."""
