"""Format strings: `"…%s…" % value` and `"…{}…".format(value)`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PERCENT: Final = re.compile(r"%([-+ 0#]?\d*(?:\.\d+)?[sdiuxXfg])")
_FIELD: Final = re.compile(r"\{(\w*)(:[^{}]*)?\}")
_PLAIN: Final = frozenset({"s", "d", "i", None})
"""The placeholders that add nothing to a value."""


def filled_by_percent(template: str, values: Sequence[m.Expr]) -> tuple[m.Expr, ...] | None:
    """Return the parts of `template % values`, or None if placeholders and values do not match."""
    texts = _PERCENT.split(template)
    return None if "%" in "".join(texts[::2]) else _filled(texts, values)


def filled_by_format(
    template: m.Expr, values: Sequence[m.Expr], keywords: Sequence[m.Keyword] = ()
) -> tuple[m.Expr, ...] | None:
    """Return the parts of `template.format(…)`, or None if it has fields such as `{name.attribute}`.

    Args:
        template: The template.
        values: The positional arguments.
        keywords: The keyword arguments.
    """
    if not (isinstance(template, m.Constant) and isinstance(template.value, str)):
        return None
    texts = _FIELD.split(template.value)
    if any("{" in text or "}" in text for text in texts[::3]):
        return None
    given = {str(index): value for index, value in enumerate(values)}
    given |= {keyword.name: keyword.value for keyword in keywords if keyword.name is not None}
    fields = texts[1::3]
    if all(field == "" for field in fields):
        fields = [str(index) for index in range(max(len(fields), len(given)))]
    ordered = [given[field] for field in fields if field in given]
    return _filled([*_interleaved(texts)], ordered)


def _interleaved(texts: Sequence[str]) -> Iterator[str]:
    """Yield the literal parts of a split template, with the formats between them."""
    return (text for index, text in enumerate(texts) if index % 3 != 1)


def _filled(texts: Sequence[str], values: Sequence[m.Expr]) -> tuple[m.Expr, ...] | None:
    """Return the parts of a filled template, or None if placeholders and values do not match.

    Args:
        texts: The literal parts, with the placeholders between them.
        values: The values.
    """
    placeholders = texts[1::2]
    if len(placeholders) != len(values):
        return None
    parts: list[m.Expr] = [m.Constant(texts[0])]
    for placeholder, value, text in zip(placeholders, values, texts[2::2], strict=True):
        parts += (value if placeholder in _PLAIN else m.Opaque((value,)), m.Constant(text))
    return tuple(parts)
