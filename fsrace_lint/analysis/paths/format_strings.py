"""Format strings: `"…%s…" % value` and `"…{}…".format(value)`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Sequence

_PERCENT: Final = re.compile(r"%([-+ 0#]?\d*(?:\.\d+)?[sdiuxXfg])")
_FIELD: Final = re.compile(r"\{(:[^{}]*)?\}")
_PLAIN: Final = frozenset({"s", "d", "i", None})
"""The placeholders that add nothing to a value."""


def filled_by_percent(template: str, values: Sequence[m.Expr]) -> tuple[m.Expr, ...] | None:
    """Return the parts of `template % values`, or None if placeholders and values do not match."""
    texts = _PERCENT.split(template)
    return None if "%" in "".join(texts[::2]) else _filled(texts, values)


def filled_by_format(template: m.Expr, values: Sequence[m.Expr]) -> tuple[m.Expr, ...] | None:
    """Return the parts of `template.format(*values)`, or None if it has other fields than `{}` and `{:…}`."""
    if not (isinstance(template, m.Constant) and isinstance(template.value, str)):
        return None
    texts = _FIELD.split(template.value)
    return None if any("{" in text or "}" in text for text in texts[::2]) else _filled(texts, values)


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
