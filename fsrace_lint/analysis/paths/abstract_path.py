"""Normal forms of paths: components of literal text and variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from fsrace_lint.catalog.lexicon import says
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.analysis.values.abstract_values import Binding

Origins: TypeAlias = frozenset[str]
"""Why a text differs between processes: `rank`, or an origin in the library models. Empty if equal."""

NO_ORIGINS: Final[Origins] = frozenset()
"""The origins of most texts. A shared object, because each empty set takes 216 bytes."""
RANK_ALONE: Final[Origins] = frozenset({"rank"})

LOCAL_RANK: Final = ("rank", "local")
"""The key of the local rank."""

RESULT: Final = "result"
"""The first item of the key of a call result that depends only on the arguments."""

BOUND: Final = "bound"
"""The first item of the key of a name with multiple bindings."""

_FOLLOWED: Final = frozenset({RESULT, BOUND})
"""Keys whose text is certain only if callers pass certain values for the parameters in it."""

PART: Final = "part"
"""The first item of the key of an item that is unpacked from an argument."""

PARENT: Final = "parent"
"""The first item of the key of an unresolved parent directory."""


class PathVariable(Record, frozen=True, eq=False):
    """A part of a path whose text is unknown.

    Two variables are equal if their keys are equal. They then have the same text, however the source
    spells them.

    Attributes:
        key: The identity of the text.
        text: The spelling for messages.
        rank_dependence: Why the text differs between ranks.
        is_replicated: Whether the text certainly does not differ between ranks for other reasons.
        parameter: The name of the parameter that it represents, if any.
        local: Whether it names a node, or a location on a node.
        is_on_node: Whether it is the result of a function that names a location on a node.
        is_work_item: Whether it is one of many items that are divided among the ranks. Values derived from
            it may then differ between ranks.
        definition: The binding or expression of its value, if it is not just a parameter.
        is_plain: Whether the text certainly contains no slash, like a number.
        is_assumed: Whether it is only assumed to be equal on all ranks: a part of an unknown object.
    """

    key: tuple[object, ...]
    text: str
    rank_dependence: Origins = NO_ORIGINS
    is_replicated: bool = True
    parameter: str = ""
    local: bool = False
    is_on_node: bool = False
    is_work_item: bool = False
    definition: Binding | None = None
    is_plain: bool = False
    is_assumed: bool = False

    @property
    def rank_dependent(self) -> bool:
        """Whether the text differs between ranks."""
        return bool(self.rank_dependence)

    @property
    def is_local_rank(self) -> bool:
        """Whether the text differs between ranks only by the local rank."""
        if self.key == LOCAL_RANK:
            return True
        told = [symbol for symbol in variables_of(self.key) if symbol.rank_dependent]
        return (
            self.rank_dependence == RANK_ALONE and bool(told) and all(symbol.is_local_rank for symbol in told)
        )

    @property
    def handed(self) -> tuple[PathVariable, ...]:
        """The variables of the parameters that determine the text: this one, or those in its key."""
        if self.parameter:
            return (self,)
        return handed_in(variables_of(self.key)) if self.key[0] in _FOLLOWED else ()

    @property
    def is_part(self) -> bool:
        """Whether it is, or contains, an item that is unpacked from an argument."""
        return self.key[0] == PART or any(symbol.is_part for symbol in variables_of(self.key))

    def __eq__(self, other: object) -> bool:
        """Compare the keys."""
        return isinstance(other, PathVariable) and self.key == other.key

    def __hash__(self) -> int:
        """Return the hash of the key."""
        return hash(self.key)


def variables_of(key: Iterable[object]) -> list[PathVariable]:
    """Return the variables in the key of another variable."""
    return [
        piece for part in key if isinstance(part, tuple) for piece in part if isinstance(piece, PathVariable)
    ]


Piece: TypeAlias = "str | PathVariable"
Component: TypeAlias = "tuple[Piece, ...]"


class AbstractPath(msgspec.Struct, frozen=True):
    """A path as components, each a sequence of literal text and variables.

    An absolute path starts with an empty component.
    """

    components: tuple[Component, ...]

    @property
    def rank_dependent(self) -> bool:
        """Whether the path differs between ranks."""
        return any(symbol.rank_dependent for symbol in self.variables())

    @property
    def rank_dependence(self) -> Origins:
        """Why the path differs between ranks."""
        return NO_ORIGINS.union(*(symbol.rank_dependence for symbol in self.variables()))

    @property
    def certain(self) -> bool:
        """Whether all of the path is analyzed, so that no unknown part differs between ranks."""
        return all(symbol.is_replicated for symbol in self.variables())

    @property
    def is_known(self) -> bool:
        """Whether the path is certain without assumptions about the parts of unknown objects."""
        return self.certain and not any(symbol.is_assumed for symbol in self.variables())

    @property
    def certain_of_the_rest(self) -> bool:
        """Whether all parts are analyzed, except those that are known to differ between ranks."""
        return all(symbol.is_replicated or symbol.rank_dependent for symbol in self.variables())

    @property
    def has_work_item(self) -> bool:
        """Whether the path contains one of many items that are divided among the ranks."""
        return any(symbol.is_work_item for symbol in self.variables())

    @property
    def is_part(self) -> bool:
        """Whether callers determine the path: it contains an item that is unpacked from an argument."""
        return any(symbol.is_part for symbol in self.variables())

    def is_parent_of(self, other: AbstractPath) -> bool:
        """Return whether this is the unresolved parent directory of `other`."""
        only = self._only_symbol
        return only is not None and only.key == (PARENT, tuple(other.pieces()))

    @property
    def is_some_parent(self) -> bool:
        """Whether this is an unresolved parent directory."""
        only = self._only_symbol
        return only is not None and only.key[:1] == (PARENT,)

    @property
    def _only_symbol(self) -> PathVariable | None:
        only = self.components[0] if len(self.components) == 1 else ()
        return only[0] if len(only) == 1 and isinstance(only[0], PathVariable) else None

    @property
    def spells_its_last_part(self) -> bool:
        """Whether the path has a directory, and the file name a literal part."""
        last = self.components[-1] if len(self.components) > 1 else ()
        return any(isinstance(piece, str) and piece != "" for piece in last)

    @property
    def has_literal_name(self) -> bool:
        """Whether the path has a directory, and the file name is entirely literal."""
        last = self.components[-1] if len(self.components) > 1 else (None,)
        return all(isinstance(piece, str) for piece in last)

    @property
    def names_its_last_part(self) -> bool:
        """Whether the file name also has no part that a parameter determines."""
        return self.spells_its_last_part and not handed_in(self.components[-1])

    @property
    def names_a_lock(self) -> bool:
        """Whether the file name says that the file is a lock."""
        last = self.components[-1] if self.components else ()
        return any(says(piece.text if isinstance(piece, PathVariable) else piece, "lock") for piece in last)

    @property
    def text(self) -> str:
        """The path for a message, with variables in braces."""
        symbols = tuple(self.variables())
        if self.components == (symbols,) and len(symbols) == 1:
            return symbols[0].text
        return "".join(piece if isinstance(piece, str) else f"{{{piece.text}}}" for piece in self.pieces())

    @classmethod
    def of(cls, pieces: Iterable[Piece]) -> AbstractPath:
        """Create a path from a sequence of text and variables. Slashes in the text separate components."""
        return _split(pieces)

    def pieces(self) -> Iterable[Piece]:
        """Yield the text and variables, with a slash between components."""
        if self.components == ((),):
            yield "/"
            return
        for index, component in enumerate(self.components):
            if index:
                yield "/"
            yield from component

    def variables(self) -> Iterable[PathVariable]:
        """Yield the parts that are not literal text."""
        return (
            piece for component in self.components for piece in component if isinstance(piece, PathVariable)
        )

    def is_suffixed(self, other: AbstractPath) -> bool:
        """Return whether this is `other` with a suffix, in the same directory, such as `model.pt.json`."""
        mine, others = self.components[-1:], other.components[-1:]
        if self.components[:-1] != other.components[:-1] or not (mine and others) or mine == others:
            return False
        *head, end = others[0] or ("",)
        begins = mine[0][: len(head)] == tuple(head) and len(mine[0]) > len(head)
        last = mine[0][len(head)] if begins else ""
        return begins and (
            last == end or (isinstance(last, str) and isinstance(end, str) and last.startswith(end))
        )

    def is_within(self, other: AbstractPath) -> bool:
        """Return whether this is `other` or is in it."""
        return self.components[: len(other.components)] == other.components


def _split(pieces: Iterable[Piece]) -> AbstractPath:
    components: list[list[Piece]] = [[]]
    for piece in pieces:
        if isinstance(piece, PathVariable):
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
    return AbstractPath(tuple(_merged(component) for component in kept))


def _merged(component: Component) -> Component:
    merged: list[Piece] = []
    for piece in component:
        if merged and isinstance(piece, str) and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    return tuple(merged)


def all_certain(pieces: Iterable[Piece] | None) -> bool:
    """Return whether some pieces are known, and none may differ between ranks for unknown reasons."""
    return pieces is not None and all(
        piece.is_replicated for piece in pieces if isinstance(piece, PathVariable)
    )


def handed_in(pieces: Iterable[Piece]) -> tuple[PathVariable, ...]:
    """Return the variables of the parameters that determine some pieces, without duplicates."""
    found = (each for piece in pieces if isinstance(piece, PathVariable) for each in piece.handed)
    return tuple(dict.fromkeys(found))


def renamed(
    pieces: tuple[Piece, ...] | None, name: str, binding: Binding | None = None
) -> tuple[Piece, ...] | None:
    """Return pieces with the text of the last variable replaced by the name that it is bound to.

    Args:
        pieces: The pieces of a path.
        name: The name.
        binding: What the variable is then derived from, if not from what it was.
    """
    last = pieces[-1] if pieces else None
    named = (
        replace(last, text=name, definition=binding or last.definition)
        if isinstance(last, PathVariable)
        else last
    )
    return (*pieces[:-1], named) if pieces and named is not None else pieces


def split_last(pieces: tuple[Piece, ...]) -> tuple[tuple[Piece, ...] | None, Component | None]:
    """Return the pieces of the parent directory and of the last component of a path, each None if unknown.

    A component can contain slashes if it consists of variables whose text is unknown.
    """
    components = AbstractPath.of(pieces).components
    last = components[-1] if components else ()
    ends = next((piece for piece in reversed(pieces) if piece != ""), "")
    if not last or (isinstance(ends, str) and ends.endswith("/")):
        return None, None
    plain = [isinstance(piece, str) or piece.is_plain for piece in last]
    if len(components) > 1 and any(plain):
        return tuple(AbstractPath(components[:-1]).pieces()), last
    return None, last if all(plain) else None


def is_new(pieces: tuple[Piece, ...]) -> bool:
    """Return whether pieces end with a newly created file or directory with a unique name."""
    last = pieces[-1] if pieces else ""
    return isinstance(last, PathVariable) and last.rank_dependence == {"creation"}
