"""Normal forms of paths: text and symbols, in components."""

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
"""By what a text differs between processes: `rank`, or an origin of the catalog; empty if it does not."""

NO_ORIGINS: Final[Origins] = frozenset()
"""What most texts have: one object for all of them, as each empty set takes 216 bytes."""
RANK_ALONE: Final[Origins] = frozenset({"rank"})

LOCAL_RANK: Final = ("rank", "local")
"""The key of the number of a process on its node."""

RESULT: Final = "result"
"""How the key begins of what a call makes of what it is given."""

BOUND: Final = "bound"
"""How the key begins of what a name is bound to on one way or another."""

_FOLLOWED: Final = frozenset({RESULT, BOUND})
"""Keys of what is sure only if all callers pass something sure for the parameters in it."""

PART: Final = "part"
"""How the key begins of what is unpacked from what a function is handed."""

PARENT: Final = "parent"
"""How the key begins of the folder of what is not known."""


class PathVariable(Record, frozen=True, eq=False):
    """A part of a path whose text is not known.

    Two symbols are equal when their keys are: then they have the same text,
    however the source spells them. `origins` tells by what the text differs from
    process to process; `certain` that nothing in it could do so unseen.
    `parameter` names the parameter it stands for; `local` says that it names a
    node, or a place on one; `varies` that it is one of many over which the work
    is divided, so that nothing got from it can be taken for equal everywhere.
    `made_of` is what its text is made of, where that is more than a parameter.
    """

    key: tuple[object, ...]
    text: str
    rank_dependence: Origins = NO_ORIGINS
    is_replicated: bool = True
    parameter: str = ""
    local: bool = False
    is_work_item: bool = False
    definition: Binding | None = None

    @property
    def rank_dependent(self) -> bool:
        """Whether the text differs from process to process."""
        return bool(self.rank_dependence)

    @property
    def is_local_rank(self) -> bool:
        """Whether the number of the process on its node is all by which its text differs."""
        if self.key == LOCAL_RANK:
            return True
        told = [symbol for symbol in variables_of(self.key) if symbol.rank_dependent]
        return (
            self.rank_dependence == RANK_ALONE and bool(told) and all(symbol.is_local_rank for symbol in told)
        )

    @property
    def handed(self) -> tuple[PathVariable, ...]:
        """The symbols of the parameters from which its text follows: itself, or what its key names."""
        if self.parameter:
            return (self,)
        return handed_in(variables_of(self.key)) if self.key[0] in _FOLLOWED else ()

    @property
    def is_part(self) -> bool:
        """Whether it is a part of what a function is handed, or made of one."""
        return self.key[0] == PART or any(symbol.is_part for symbol in variables_of(self.key))

    def __eq__(self, other: object) -> bool:
        """Compare what it stands for."""
        return isinstance(other, PathVariable) and self.key == other.key

    def __hash__(self) -> int:
        """Go with equality."""
        return hash(self.key)


def variables_of(key: Iterable[object]) -> list[PathVariable]:
    """Give the symbols from whose texts that of another follows, by its key."""
    return [
        piece for part in key if isinstance(part, tuple) for piece in part if isinstance(piece, PathVariable)
    ]


Piece: TypeAlias = "str | PathVariable"
Component: TypeAlias = "tuple[Piece, ...]"


class AbstractPath(msgspec.Struct, frozen=True):
    """A path as components, each a run of literal text and symbols.

    An absolute path starts with an empty component.
    """

    components: tuple[Component, ...]

    @property
    def rank_dependent(self) -> bool:
        """Whether its text differs from process to process."""
        return any(symbol.rank_dependent for symbol in self.variables())

    @property
    def rank_dependence(self) -> Origins:
        """By what its text differs from process to process."""
        return NO_ORIGINS.union(*(symbol.rank_dependence for symbol in self.variables()))

    @property
    def certain(self) -> bool:
        """Whether all of it was followed, so that it is not private unseen."""
        return all(symbol.is_replicated for symbol in self.variables())

    @property
    def certain_of_the_rest(self) -> bool:
        """Whether all was followed but for what is private already."""
        return all(symbol.is_replicated or symbol.rank_dependent for symbol in self.variables())

    @property
    def has_work_item(self) -> bool:
        """Whether it is one of many over which the work is divided."""
        return any(symbol.is_work_item for symbol in self.variables())

    @property
    def is_part(self) -> bool:
        """Whether something in it is unpacked from what a function is handed: who has it, its callers say."""
        return any(symbol.is_part for symbol in self.variables())

    def is_parent_of(self, other: AbstractPath) -> bool:
        """Tell whether this is the folder of `other`, where the name of that is not known apart."""
        only = self._only_symbol
        return only is not None and only.key == (PARENT, tuple(other.pieces()))

    @property
    def is_some_parent(self) -> bool:
        """Whether this is the folder of some path, whose name is not known apart."""
        only = self._only_symbol
        return only is not None and only.key[:1] == (PARENT,)

    @property
    def _only_symbol(self) -> PathVariable | None:
        only = self.components[0] if len(self.components) == 1 else ()
        return only[0] if len(only) == 1 and isinstance(only[0], PathVariable) else None

    @property
    def spells_its_last_part(self) -> bool:
        """Whether the file, below some folder, has a name of which a part is literal."""
        last = self.components[-1] if len(self.components) > 1 else ()
        return any(isinstance(piece, str) and piece != "" for piece in last)

    @property
    def names_its_last_part(self) -> bool:
        """Whether the file, below some folder, has a name of which a part is literal and none handed in."""
        return self.spells_its_last_part and not handed_in(self.components[-1])

    @property
    def names_a_lock(self) -> bool:
        """Whether the name of the file says that it is a lock."""
        last = self.components[-1] if self.components else ()
        return any(says(piece.text if isinstance(piece, PathVariable) else piece, "lock") for piece in last)

    @property
    def text(self) -> str:
        """The path for a message, with what is not literal in braces."""
        symbols = tuple(self.variables())
        if self.components == (symbols,) and len(symbols) == 1:
            return symbols[0].text
        return "".join(piece if isinstance(piece, str) else f"{{{piece.text}}}" for piece in self.pieces())

    @classmethod
    def of(cls, pieces: Iterable[Piece]) -> AbstractPath:
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

    def variables(self) -> Iterable[PathVariable]:
        """Give the parts that are not literal text."""
        return (
            piece for component in self.components for piece in component if isinstance(piece, PathVariable)
        )

    def is_suffixed(self, other: AbstractPath) -> bool:
        """Tell whether this is a file beside `other` whose name begins with all of that: `model.pt.json`."""
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
        """Tell whether this is `other` or lies below it."""
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
    """Tell whether some pieces are known, and nothing in them could differ from process to process unseen."""
    return pieces is not None and all(
        piece.is_replicated for piece in pieces if isinstance(piece, PathVariable)
    )


def handed_in(pieces: Iterable[Piece]) -> tuple[PathVariable, ...]:
    """Give the symbols of the parameters from which some pieces follow, each one once."""
    found = (each for piece in pieces if isinstance(piece, PathVariable) for each in piece.handed)
    return tuple(dict.fromkeys(found))


def renamed(pieces: tuple[Piece, ...] | None, name: str) -> tuple[Piece, ...] | None:
    """Give pieces whose last one, a symbol, is shown by the name that it is bound to."""
    last = pieces[-1] if pieces else None
    return (*pieces[:-1], replace(last, text=name)) if pieces and isinstance(last, PathVariable) else pieces


def is_new(pieces: tuple[Piece, ...]) -> bool:
    """Tell whether pieces end with a file or folder that was newly made under a name of its own."""
    last = pieces[-1] if pieces else ""
    return isinstance(last, PathVariable) and last.rank_dependence == {"creation"}
