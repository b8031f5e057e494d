"""Source text of expressions of `syntax.model`, short enough for a message."""

from __future__ import annotations

from typing import Final

from fsrace_lint.syntax import model as m

LONGEST = 60
_CONDITIONAL, _OR, _AND, _NOT, _COMPARE, _WHOLE = 1, 2, 3, 4, 5, 20
"""The precedence of expressions; `_ARITHMETIC` has that of operators."""
_ARITHMETIC: Final = {"|": 6, "&": 8, "+": 10, "-": 10, "*": 11, "/": 11, "//": 11, "%": 11}
_DISPLAYS: Final = {"list": ("[", "]"), "set": ("{", "}")}


def spell(expr: m.Expr) -> str:
    """Return the source text of an expression.

    Args:
        expr: The expression.

    Returns:
        Python-like text of at most `LONGEST` characters. Parts that the facts do not contain are written as
        `…`.
    """
    text = _spell(expr, 8)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _spell(expr: m.Expr, depth: int) -> str:  # noqa: C901  # one case per kind of expression
    if depth == 0:
        return "…"
    depth -= 1
    strength = _strength(expr)
    match expr:
        case m.Name(id=name):
            return name
        case m.Attribute(value=value, name=name):
            return f"{_part(value, _WHOLE, depth)}.{name}"
        case m.Constant(value=value):
            return repr(value)
        case m.Call(function=function, arguments=arguments, keywords=keywords):
            parts = [_spell(argument, depth) for argument in arguments]
            parts += [
                f"{k.name}={_spell(k.value, depth)}" if k.name else f"**{_spell(k.value, depth)}"
                for k in keywords
            ]
            return f"{_part(function, _WHOLE, depth)}({', '.join(parts)})"
        case m.Not(value=value):
            return f"not {_part(value, _NOT, depth)}"
        case m.Compare(left=left, operators=operators, rights=rights):
            pairs = zip(operators, rights, strict=True)
            return _part(left, _COMPARE + 1, depth) + "".join(
                f" {operator} {_part(right, _COMPARE + 1, depth)}" for operator, right in pairs
            )
        case m.Boolean(operator=operator, values=values):
            return f" {operator} ".join(_part(value, strength, depth) for value in values)
        case m.Binary(operator=operator, left=left, right=right):
            return f"{_part(left, strength, depth)} {operator} {_part(right, strength + 1, depth)}"
        case m.Subscript(value=value, index=index):
            return f"{_part(value, _WHOLE, depth)}[{_spell(index, depth)}]"
        case m.Format(parts=parts):
            return 'f"' + "".join(_fragment(part, depth) for part in parts) + '"'
        case m.Sequence(kind=kind, items=items):
            first, last = _DISPLAYS.get(kind, ("(", ")"))
            comma = "," if kind not in _DISPLAYS and len(items) == 1 else ""
            return f"{first}{', '.join(_spell(item, depth) for item in items)}{comma}{last}"
        case m.Conditional(test=test, body=body, orelse=orelse):
            then, asked = _part(body, _OR, depth), _part(test, _OR, depth)
            return f"{then} if {asked} else {_spell(orelse, depth)}"
        case _:
            return "…"


def _strength(expr: m.Expr) -> int:
    match expr:
        case m.Conditional():
            return _CONDITIONAL
        case m.Boolean(operator=operator):
            return _AND if operator == "and" else _OR
        case m.Not():
            return _NOT
        case m.Compare():
            return _COMPARE
        case m.Binary(operator=operator):
            return _ARITHMETIC.get(operator, _COMPARE + 1)
        case _:
            return _WHOLE


def _part(expr: m.Expr, least: int, depth: int) -> str:
    """Return the source text of an operand, in parentheses if its precedence is too low."""
    text = _spell(expr, depth)
    return f"({text})" if _strength(expr) < least and text != "…" else text


def _fragment(part: m.Expr, depth: int) -> str:
    if isinstance(part, m.Constant) and isinstance(part.value, str):
        text = repr(part.value)[1:-1].replace("\\'", "'").replace('"', '\\"')
        return text.replace("{", "{{").replace("}", "}}")
    return "{" + _spell(part, depth) + "}"
