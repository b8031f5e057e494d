"""Write expressions of facts.model as source text, short enough for a message."""

from __future__ import annotations

from fsrace_lint.facts import model as m

LONGEST = 60
_LOOSE = (m.Binary, m.Boolean, m.Compare, m.Conditional, m.Not, m.Lambda)


def spell(expr: m.Expr) -> str:
    """Write an expression as a reader would.

    Args:
        expr: The expression.

    Returns:
        Python-like text of at most LONGEST characters; what was not kept reads `…`.
    """
    text = _spell(expr, 8)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _spell(expr: m.Expr, depth: int) -> str:  # noqa: C901  # one line a kind of expression
    if depth == 0:
        return "…"
    depth -= 1
    match expr:
        case m.Name(id=name):
            return name
        case m.Attribute(value=value, name=name):
            owner = _spell(value, depth)
            return f"({owner}).{name}" if isinstance(value, _LOOSE) else f"{owner}.{name}"
        case m.Constant(value=value):
            return repr(value)
        case m.Call(function=function, arguments=arguments, keywords=keywords):
            parts = [_spell(argument, depth) for argument in arguments]
            parts += [
                f"{k.name}={_spell(k.value, depth)}" if k.name else f"**{_spell(k.value, depth)}"
                for k in keywords
            ]
            return f"{_spell(function, depth)}({', '.join(parts)})"
        case m.Not(value=value):
            return f"not {_spell(value, depth)}"
        case m.Compare(left=left, operators=operators, rights=rights):
            pairs = zip(operators, rights, strict=True)
            return _spell(left, depth) + "".join(
                f" {operator} {_spell(right, depth)}" for operator, right in pairs
            )
        case m.Boolean(operator=operator, values=values):
            return f" {operator} ".join(_spell(value, depth) for value in values)
        case m.Binary(operator=operator, left=left, right=right):
            return f"{_spell(left, depth)} {operator} {_spell(right, depth)}"
        case m.Subscript(value=value, index=index):
            return f"{_spell(value, depth)}[{_spell(index, depth)}]"
        case m.Format(parts=parts):
            return 'f"' + "".join(_fragment(part, depth) for part in parts) + '"'
        case m.Sequence(items=items):
            return f"({', '.join(_spell(item, depth) for item in items)})"
        case m.Conditional(test=test, body=body, orelse=orelse):
            return f"{_spell(body, depth)} if {_spell(test, depth)} else {_spell(orelse, depth)}"
        case _:
            return "…"


def _fragment(part: m.Expr, depth: int) -> str:
    if isinstance(part, m.Constant) and isinstance(part.value, str):
        return part.value
    return "{" + _spell(part, depth) + "}"
