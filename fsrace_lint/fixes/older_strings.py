"""Write f-strings as code for Python 3.5 and older does."""

from __future__ import annotations

import re
from typing import Final, cast

import libcst as cst

_PERCENT: Final = re.compile(r"[\"'] %\s")


def without_f_strings(expression: cst.BaseExpression, text: str) -> cst.BaseExpression:
    """Return an expression with `format()` or `%` in place of f-strings, as a file formats its strings.

    Args:
        expression: The expression; its f-strings have no conversions and no format specifiers.
        text: The file.
    """
    by_percent = len(_PERCENT.findall(text)) > text.count(".format(")
    return cast("cst.BaseExpression", expression.visit(_Formatting(by_percent=by_percent)))


class _Formatting(cst.CSTTransformer):
    def __init__(self, *, by_percent: bool) -> None:
        super().__init__()
        self._by_percent = by_percent

    def leave_FormattedString(  # noqa: N802  # the name that libcst calls
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.BaseExpression:
        del original_node
        values = [
            part.expression for part in updated_node.parts if isinstance(part, cst.FormattedStringExpression)
        ]
        template = cst.SimpleString(
            updated_node.start[1:] + "".join(map(self._template, updated_node.parts)) + updated_node.end
        )
        if not self._by_percent:
            return cst.Call(cst.Attribute(template, cst.Name("format")), [cst.Arg(value) for value in values])
        pair = cst.Tuple([cst.Element(value) for value in values])
        return cst.BinaryOperation(template, cst.Modulo(), pair)

    def _template(self, part: cst.BaseFormattedStringContent) -> str:
        if not isinstance(part, cst.FormattedStringText):
            return "%s" if self._by_percent else "{}"
        return part.value.replace("%", "%%") if self._by_percent else part.value
