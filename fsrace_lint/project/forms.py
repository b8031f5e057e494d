"""Normal forms of paths: text and symbols, in components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """A part of a path whose text is not known.

    Two symbols are equal when their keys are: then they have the same text,
    however the source spells them. `private` says that the text differs from
    process to process; `certain` that nothing in it could do so unseen.
    `parameter` names the parameter it stands for; `local` says that it names a
    node, or a place on one; `varies` that it is one of many over which the work
    is divided, so that nothing got from it can be taken for equal everywhere.
    """

    key: tuple[object, ...]
    text: str
    private: bool = False
    certain: bool = True
    parameter: str = ""
    local: bool = False
    varies: bool = False

    def __eq__(self, other: object) -> bool:
        """Compare what it stands for."""
        return isinstance(other, Symbol) and self.key == other.key

    def __hash__(self) -> int:
        """Go with equality."""
        return hash(self.key)


Piece: TypeAlias = "str | Symbol"
Component: TypeAlias = "tuple[Piece, ...]"


class Path(msgspec.Struct, frozen=True):
    """A path as components, each a run of literal text and symbols.

    An absolute path starts with an empty component.
    """

    components: tuple[Component, ...]

    @property
    def private(self) -> bool:
        """Whether its text differs from process to process."""
        return any(symbol.private for symbol in self.symbols())

    @property
    def certain(self) -> bool:
        """Whether all of it was followed, so that it is not private unseen."""
        return all(symbol.certain for symbol in self.symbols())

    @property
    def varies(self) -> bool:
        """Whether it is one of many over which the work is divided."""
        return any(symbol.varies for symbol in self.symbols())

    def is_parent_of(self, other: Path) -> bool:
        """Tell whether this is the folder of `other`, where the name of that is not known apart."""
        only = self.components[0] if len(self.components) == 1 else ()
        symbol = only[0] if len(only) == 1 else None
        return isinstance(symbol, Symbol) and symbol.key == ("parent", tuple(other.pieces()))

    @property
    def spells_its_last_part(self) -> bool:
        """Whether the file, below some folder, has a name of which a part is literal."""
        last = self.components[-1] if len(self.components) > 1 else ()
        return any(isinstance(piece, str) and piece != "" for piece in last)

    @property
    def names_its_last_part(self) -> bool:
        """Whether the file, below some folder, has a name of which a part is literal and none handed in."""
        return self.spells_its_last_part and not any(
            isinstance(piece, Symbol) and piece.parameter for piece in self.components[-1]
        )

    @property
    def text(self) -> str:
        """The path for a message, with what is not literal in braces."""
        symbols = tuple(self.symbols())
        if self.components == (symbols,) and len(symbols) == 1:
            return symbols[0].text
        return "".join(piece if isinstance(piece, str) else f"{{{piece.text}}}" for piece in self.pieces())

    @classmethod
    def of(cls, pieces: Iterable[Piece]) -> Path:
        """Make a path of text and symbols in a row; slashes in the text part its components."""
        return _split(pieces)

    def pieces(self) -> Iterable[Piece]:
        """Give its text and symbols in a row, with a slash between components."""
        if self.components == ((),):
            yield "/"
            return
        for index, component in enumerate(self.components):
            if index:
                yield "/"
            yield from component

    def symbols(self) -> Iterable[Symbol]:
        """Give the parts that are not literal text."""
        return (piece for component in self.components for piece in component if isinstance(piece, Symbol))

    def is_within(self, other: Path) -> bool:
        """Tell whether this is `other` or lies below it."""
        return self.components[: len(other.components)] == other.components


def _split(pieces: Iterable[Piece]) -> Path:
    components: list[list[Piece]] = [[]]
    for piece in pieces:
        if isinstance(piece, Symbol):
            components[-1].append(piece)
            continue
        first, *rest = piece.split("/")
        if first:
            components[-1].append(first)
        components.extend([text] if text else [] for text in rest)
    kept = [
        tuple(component)
        for index, component in enumerate(components)
        if (component and component != ["."]) or (index == 0 and not component and len(components) > 1)
    ]
    return Path(tuple(_merged(component) for component in kept))


def _merged(component: Component) -> Component:
    merged: list[Piece] = []
    for piece in component:
        if merged and isinstance(piece, str) and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    return tuple(merged)


def all_certain(pieces: Iterable[Piece]) -> bool:
    """Tell whether nothing in some pieces could differ from process to process unseen."""
    return all(piece.certain for piece in pieces if isinstance(piece, Symbol))
