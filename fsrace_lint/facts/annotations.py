"""The classes that an annotation names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.facts import model as m
from fsrace_lint.facts.names import dotted

if TYPE_CHECKING:
    from collections.abc import Iterable

_OPTIONAL: Final = frozenset({"Optional", "Union", "Annotated", "Final", "ClassVar"})


def class_names(annotation: m.Expr) -> Iterable[str]:
    """Give the classes that an annotation names, within `Optional[…]`, `… | None` and quotes too."""
    match annotation:
        case m.Name() | m.Attribute():
            name = dotted(annotation)
            if name is not None:
                yield name
        case m.Constant(value=str() as text):
            for part in text.split("|"):
                name = part.strip()
                if name.startswith("Optional[") and name.endswith("]"):
                    name = name.removeprefix("Optional[").removesuffix("]")
                if all(piece.isidentifier() for piece in name.split(".")) and name != "None":
                    yield name
        case m.Binary(operator="|", left=left, right=right):
            yield from class_names(left)
            yield from class_names(right)
        case m.Subscript(value=value, index=index):
            outer = dotted(value)
            if outer is not None and outer.rpartition(".")[2] in _OPTIONAL:
                for item in index.items if isinstance(index, m.Sequence) else (index,):
                    yield from class_names(item)
        case _:
            return
