"""Annotations: the classes that they name, and the annotations of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import dotted, last_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EACH: Final = "each"
"""The element that a loop over a collection yields."""
VALUE: Final = "value"
"""The element of a collection at a key, or at an unknown position."""

_OPTIONAL: Final = frozenset({"Optional", "Union", "Annotated", "Final", "ClassVar"})
_TUPLES: Final = frozenset({"Tuple", "tuple"})
_MAPPINGS: Final = frozenset(
    {"Dict", "dict", "Mapping", "MutableMapping", "OrderedDict", "DefaultDict", "defaultdict"}
)
_COLLECTIONS: Final = frozenset(
    {
        *("List", "list", "Sequence", "MutableSequence", "Deque", "deque"),
        *("Set", "set", "FrozenSet", "frozenset", "AbstractSet"),
        *("Collection", "Iterable", "Iterator", "Generator", "AsyncIterable", "AsyncIterator"),
    }
)


def class_names(annotation: m.Expr) -> Iterable[str]:
    """Yield the classes that an annotation names, also inside `Optional[…]`, `… | None`, and quotes."""
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


def parts_of(annotation: m.Expr, step: int | str) -> Iterator[m.Expr]:
    """Yield the annotations of an element of an annotated collection.

    Args:
        annotation: The annotation of the collection, possibly inside `Optional[…]` or `… | None`.
        step: The element: its position, `EACH`, or `VALUE`.
    """
    match annotation:
        case m.Binary(operator="|", left=left, right=right):
            yield from parts_of(left, step)
            yield from parts_of(right, step)
        case m.Subscript(value=value, index=index):
            inner = index.items if isinstance(index, m.Sequence) else (index,)
            name = last_name(value)
            if name in _OPTIONAL:
                for item in inner:
                    yield from parts_of(item, step)
            elif name in _TUPLES:
                yield from _of_tuple(inner, step)
            elif name in _MAPPINGS:
                yield inner[0 if step == EACH else -1]
            elif name in _COLLECTIONS:
                yield inner[0]
        case _:
            return


def _of_tuple(inner: tuple[m.Expr, ...], step: int | str) -> Iterator[m.Expr]:
    if inner[1:] == (m.Opaque(),):  # `Tuple[X, ...]`
        yield inner[0]
    elif isinstance(step, int):
        yield from inner[step : step + 1]
    else:
        yield from inner
