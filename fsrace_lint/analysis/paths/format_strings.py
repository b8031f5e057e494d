"""Format strings: `"…%s…" % value` and `"…{}…".format(value)`."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final

from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PERCENT: Final = re.compile(r"%[sdi]")


def filled_by_percent(template: str, values: Sequence[m.Expr]) -> tuple[m.Expr, ...] | None:
    """Return the parts of `template % values`, or None if placeholders and values do not match."""
    texts = _PERCENT.split(template)
    if len(texts) != len(values) + 1 or "%" in "".join(texts):
        return None
    return tuple(_interleaved(texts, values))


def filled_by_format(template: m.Expr, values: Sequence[m.Expr]) -> tuple[m.Expr, ...] | None:
    """Return the parts of `template.format(*values)`, or None if it has other than plain `{}` fields."""
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
