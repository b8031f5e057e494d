"""What files are for, as far as their names tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.collection_contents import CollectionContents
from fsrace_lint.analysis.paths.abstract_path import RESULT, AbstractPath, PathVariable
from fsrace_lint.analysis.values.assignment import source_of
from fsrace_lint.catalog.lexicon import words
from fsrace_lint.program.modules import LinkedFunction
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import parts
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.paths.abstract_path import Component

_FORMATTED: Final = "opaque"


class FileName(Record, frozen=True):
    """What the words of a path mean, in the terms of the catalog's `path-word`.

    `means` is what the name of the file says, `hints` what the variables in it are
    called, `folders` what is said of the folders, `display` what the functions are called
    that lead to it. `is_scratch` says that a fixed
    part of the path stands for a scratch file, `is_temporary` that anything in it
    does. `is_numbered` tells one of a series, which nothing overwrites, and
    `is_private` the file of one process; `is_known` that all of the path was followed.
    """

    means: frozenset[str]
    hints: frozenset[str]
    folders: frozenset[str]
    is_scratch: bool
    is_temporary: bool
    is_numbered: bool
    is_private: bool
    is_known: bool = True
    told: frozenset[str] = frozenset()

    @property
    def is_read_back(self) -> bool:
        """Whether it points to where to go on, or holds the state of all outside a folder of checkpoints."""
        if self.is_numbered or not self.is_known or "data" in self.means:
            return False
        is_of_all = "checkpoint" not in self.folders and not self.is_private
        return "pointer" in self.means or ("record" in self.means and is_of_all)

    @property
    def may_be_read_back(self) -> bool:
        """Whether it could be gone on from, by its suffix or by the name of a variable."""
        if self.is_numbered or "data" in self.means:
            return False
        is_checkpoint = "checkpoint" in self.means and not self.is_private
        return (
            is_checkpoint
            or bool({"pointer", "record", "description"} & self.means)
            or "pointer" in self.hints
        )

    @property
    def may_be_of_a_run(self) -> bool:
        """Whether a run may go on from it, as from the newest of a series: a checkpoint is saved."""
        return "checkpoint" in self.told and "data" not in self.means

    @property
    def hints_checkpoint(self) -> bool:
        """Whether a variable in it is called a checkpoint."""
        return "checkpoint" in self.hints


class FileNames:
    """Reads the names of files."""

    def __init__(self, entry_states: EntryStates) -> None:
        """Prepare for a project."""
        self.entry_states = entry_states
        self.flows = entry_states.flows
        self.catalog = self.flows.catalog
        self._collections = CollectionContents(self.flows.resolver)

    def of(self, access: Access) -> FileName:
        """Tell what the path of a site is for; of one that could not be followed, by the texts in it."""
        name = self._guessed(access.operation.path) if access.path is None else self._read(access.path)
        return replace(name, told=self._meanings(words(" ".join(_leading(access)))))

    def _guessed(self, expr: m.Expr) -> FileName:
        texts = list(_texts(expr))
        means = self._meanings(words(_end_of(expr)))
        scratch = "scratch" in self._meanings(word for text in texts for word in words(text))
        nothing: frozenset[str] = frozenset()
        return FileName(
            means,
            hints=nothing,
            folders=nothing,
            is_scratch=scratch,
            is_temporary=scratch,
            is_numbered=False,
            is_private=False,
            is_known=False,
        )

    def _read(self, path: AbstractPath) -> FileName:
        last = path.components[-1] if path.components else ()
        folders = path.components[:-1]
        means = self._meanings(_literal_words(last)) | self._returned(last) | self._collected(last)
        folder = [symbol for component in folders for symbol in _symbols(component)]
        named = (path.text, *(told for symbol in path.variables() for told in _told(symbol)))
        return FileName(
            means=means,
            hints=self._meanings(_symbol_words(_symbols(last))),
            folders=self._meanings((*_symbol_words(folder), *_literal_words(*folders))),
            is_scratch="scratch" in means or self._is_in_scratch(path),
            is_temporary=self.entry_states.paths.node_local.holds(path)
            or "creation" in path.rank_dependence
            or "scratch" in self._meanings(word for text in named for word in words(text)),
            is_numbered=self._is_numbered(_symbols(last))
            or "number" in self._meanings(_symbol_words(folder)),
            is_private=path.rank_dependent,
        )

    def _meanings(self, words: Iterable[str]) -> frozenset[str]:
        entries = (self.catalog.exact("path-word", word) for word in words)
        return frozenset(entry.means for entry in entries if entry is not None)

    def _returned(self, last: Component) -> frozenset[str]:
        """What is said by the names that the project's own functions make up."""
        made: frozenset[str] = frozenset()
        for symbol in _symbols(last):
            function = symbol.key[1] if symbol.key[0] == RESULT else None
            if not isinstance(function, LinkedFunction):
                continue
            for result in self.flows.return_values(function):
                path = self.entry_states.paths.normalize(result.expr, result.scope)
                if path is not None and path.components:
                    made |= self._meanings(_literal_words(path.components[-1]))
        return made

    def _collected(self, last: Component) -> frozenset[str]:
        """What is said by the names of which it is one: those that a collection holds."""
        made_of = (symbol.definition for symbol in _symbols(last) if symbol.definition is not None)
        named = (_end_of(expr) for binding in made_of for expr in self._collections.elements_for(binding))
        return self._meanings(word for text in named for word in words(text))

    def _is_numbered(self, symbols: Iterable[PathVariable]) -> bool:
        """Tell whether a name holds a number that is another one each time; one that is formatted is."""
        return any(
            symbol.key[0] == _FORMATTED
            or "number" in self._meanings(words(symbol.text))
            or not symbol.rank_dependence <= {"rank"}
            for symbol in symbols
        )

    def _is_in_scratch(self, path: AbstractPath) -> bool:
        """Tell whether a file lies in a scratch folder, or under a fixed name where everybody's lie."""
        place = self.entry_states.paths.node_local.folder(path)
        texts = [_text(component) for component in path.components]
        if place and len(texts) == place + 1:
            return texts[-1] is not None
        inner = (text for text in texts[place:-1] if text is not None)
        return "scratch" in self._meanings(inner)


def _leading(access: Access) -> Iterator[str]:
    """Name the functions that lead from where a site is seen to where it is done."""
    yield access.function
    if access.callee_access is not None:
        yield from _leading(access.callee_access)


def _text(component: Component) -> str | None:
    """Give the text of a component that is all literal."""
    only = component[0] if len(component) == 1 else None
    return only if isinstance(only, str) else None


def _symbols(component: Component) -> tuple[PathVariable, ...]:
    return tuple(piece for piece in component if isinstance(piece, PathVariable))


def _literal_words(*components: Component) -> Iterator[str]:
    return (
        word
        for component in components
        for piece in component
        if isinstance(piece, str)
        for word in words(piece)
    )


def _symbol_words(symbols: Iterable[PathVariable]) -> Iterator[str]:
    return (word for symbol in symbols for text in (symbol.text, *_told(symbol)) for word in words(text))


def _told(symbol: PathVariable) -> tuple[str, ...]:
    """Give what else is said of a variable: how the source spells what it is an element or a part of."""
    return () if symbol.definition is None else (source_of(symbol.definition),)


def _end_of(expr: m.Expr) -> str:
    """Give the last text in an expression, which tells most of a path."""
    return ["", *_texts(expr)][-1]


def _texts(expr: m.Expr) -> Iterator[str]:
    if isinstance(expr, m.Constant) and isinstance(expr.value, str):
        yield expr.value
    for part in parts(expr):
        yield from _texts(part)
