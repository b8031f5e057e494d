"""Texts with places for values: `"…%s…" % value` and `"…{}…".format(value)`."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final

from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PERCENT: Final = re.compile(r"%[sdi]")


def filled_by_percent(template: str, values: Sequence[m.Expr]) -> tuple[m.Expr, ...] | None:
    """Give what `template % values` consists of, or None where not each value has its place."""
    texts = _PERCENT.split(template)
    if len(texts) != len(values) + 1 or "%" in "".join(texts):
        return None
    return tuple(_interleaved(texts, values))


def filled_by_format(template: m.Expr, values: Sequence[m.Expr]) -> tuple[m.Expr, ...] | None:
    """Give what `template.format(*values)` consists of, or None where that is not plain to see."""
    if not (isinstance(template, m.Constant) and isinstance(template.value, str)):
        return None
    texts = template.value.split("{}")
    if len(texts) != len(values) + 1 or any("{" in text or "}" in text for text in texts):
        return None
    return tuple(_interleaved(texts, values))


def _interleaved(texts: Sequence[str], values: Sequence[m.Expr]) -> Iterator[m.Expr]:
    for text, value in itertools.zip_longest(texts, values):
        yield m.Constant(text)
        if value is not None:
            yield value
