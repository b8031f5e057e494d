"""The purpose of files, according to their names."""

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
_DESCRIBING: Final = frozenset({"record", "description"})


class FileName(Record, frozen=True):
    """The meanings of the words in a path, as `path-word` entries of the catalog define them.

    Attributes:
        means: The meanings of the file name.
        hints: The meanings of the names of variables in it.
        folders: The meanings of the directories.
        is_scratch: Whether a literal part of the path names a scratch file.
        is_temporary: Whether any part of the path names a temporary file.
        is_numbered: Whether it is one of a numbered series, which is never overwritten.
        is_private: Whether the file is private to a process.
        is_known: Whether the whole path is known.
        told: The meanings of the names of the functions that lead to the file.
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
        """Whether the file is a pointer, or a shared record outside a checkpoint directory."""
        if self.is_numbered or not self.is_known or "data" in self.means:
            return False
        is_of_all = "checkpoint" not in self.folders and not self.is_private
        return "pointer" in self.means or ("record" in self.means and is_of_all)

    @property
    def describes(self) -> bool:
        """Whether the file describes the run or other files, as an index or a manifest does."""
        return not self.is_numbered and "data" not in self.means and bool(_DESCRIBING & self.means)

    @property
    def may_be_read_back(self) -> bool:
        """Whether a run may resume from the file, according to its suffix or the name of a variable."""
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
        """Whether a function that leads to the file is named after checkpoints, and the file is not data."""
        return "checkpoint" in self.told and "data" not in self.means

    @property
    def hints_checkpoint(self) -> bool:
        """Whether a variable in the name is named after checkpoints."""
        return "checkpoint" in self.hints


class FileNames:
    """Reads the names of files."""

    def __init__(self, entry_states: EntryStates) -> None:
        """Initialize for a project."""
        self.entry_states = entry_states
        self.flows = entry_states.flows
        self.catalog = self.flows.catalog
        self._collections = CollectionContents(self.flows.resolver)

    def of(self, access: Access) -> FileName:
        """Return the meanings of the path of an access; of an unknown path, those of its literals."""
        name = self._guessed(access.operation.path) if access.path is None else self._read(access.path)
        return replace(name, told=self._meanings(words(" ".join(_leading(access)))))

    def is_expected(self, write: Access) -> bool:
        """Return whether a later run reads a file, or each process has something else to write to it.

        The names of the file, of the functions that lead to it, and of their callers show that.
        """
        name, callers = self.of(write), self.entry_states.callers(write.call_site.function)
        above = " ".join(edge.call_site.function.facts.name for edge in callers)
        around = name.hints | name.told | self._meanings(words(above))
        of_a_run = {"pointer", "record", "description", "settings", "checkpoint", "share"}
        return not name.means.isdisjoint(of_a_run) or not around.isdisjoint({"checkpoint", "share"})

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
            is_temporary=self.entry_states.paths.node_local.names(path)
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
        """Return the meanings of the names that functions of the project return."""
        made: frozenset[str] = frozenset()
        for symbol in _symbols(last):
            function = symbol.key[1] if symbol.key[0] == RESULT else None
            if not isinstance(function, LinkedFunction):
                continue
            for way in self.flows.result_points(function):
                value, scope = way.value, way.state.scope
                path = None if value is None else self.entry_states.paths.normalize(value, scope)
                if path is not None and path.components:
                    made |= self._meanings(_literal_words(path.components[-1]))
        return made

    def _collected(self, last: Component) -> frozenset[str]:
        """Return the meanings of the names in the collections that a part of a name comes from."""
        made_of = (symbol.definition for symbol in _symbols(last) if symbol.definition is not None)
        named = (_end_of(expr) for binding in made_of for expr in self._collections.elements_for(binding))
        return self._meanings(word for text in named for word in words(text))

    def _is_numbered(self, symbols: Iterable[PathVariable]) -> bool:
        """Return whether a name contains a number that differs each time; formatted values count as such."""
        return any(
            symbol.key[0] == _FORMATTED
            or "number" in self._meanings(words(symbol.text))
            or not symbol.rank_dependence <= {"rank"}
            for symbol in symbols
        )

    def _is_in_scratch(self, path: AbstractPath) -> bool:
        """Return whether a file is in a scratch directory, or has a literal name in a temp directory."""
        place = self.entry_states.paths.node_local.folder(path)
        texts = [_text(component) for component in path.components]
        if place and len(texts) == place + 1:
            return texts[-1] is not None
        inner = (text for text in texts[place:-1] if text is not None)
        return "scratch" in self._meanings(inner)


def _leading(access: Access) -> Iterator[str]:
    """Yield the names of the functions from the call site of an access to its leaf call."""
    yield access.function
    if access.callee_access is not None:
        yield from _leading(access.callee_access)


def _text(component: Component) -> str | None:
    """Return the text of a component that is entirely literal."""
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
    """Return the source of the value from which a variable is derived, if any."""
    return () if symbol.definition is None else (source_of(symbol.definition),)


def _end_of(expr: m.Expr) -> str:
    """Return the last string in an expression, which is usually the file name."""
    return ["", *_texts(expr)][-1]


def _texts(expr: m.Expr) -> Iterator[str]:
    if isinstance(expr, m.Constant) and isinstance(expr.value, str):
        yield expr.value
    for part in parts(expr):
        yield from _texts(part)
