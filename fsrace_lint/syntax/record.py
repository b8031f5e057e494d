"""What the project room says of code, as values: quick to define, to make, and to change into another one."""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, frozen=True):
    """A frozen value; it is never decoded, so nobody evaluates the annotations of its fields."""
