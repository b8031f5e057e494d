"""Files that exist when a process checks or lists them, and that other code of the project deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.accesses.model import Operation
from fsrace_lint.analysis.paths.abstract_path import AbstractPath, PathVariable, variables_of
from fsrace_lint.analysis.values.abstract_values import (
    Expression,
    IterationElement,
    UnpackedPart,
)
from fsrace_lint.analysis.values.trace_back import sources
from fsrace_lint.engine.query import lazy, query
from fsrace_lint.files.spans import Place
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import parts
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.accesses.accesses import Accesses
    from fsrace_lint.analysis.accesses.model import Access, ExistenceCheck
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.values.abstract_values import Binding, Environment
    from fsrace_lint.program.modules import LinkedFunction

_DEEPEST: Final = 8
_TAKING: Final = frozenset({"delete", "rename"})
_SHORTEST_NAME: Final = 4


class DirectoryListing(Record, frozen=True, eq=False):
    """A call that lists a directory; `folder` is None if the directory is unknown."""

    call: m.Call
    folder: AbstractPath | None
    file: str
    answer: str = "finds it"
    """The result, as shown in an interleaving."""

    @property
    def place(self) -> Place:
        """The place of the call."""
        return Place(self.file, self.call.span)

    @property
    def path_source(self) -> str:
        """The call, as spelled in the source."""
        return spell(self.call)


class Removal(Record, frozen=True, eq=False):
    """A call that deletes or renames a file; `listing` is the listing that contains the name."""

    call_site: CallSite
    path: AbstractPath | None
    listing: DirectoryListing | None

    @property
    def place(self) -> Place:
        """The place of the call."""
        return Place(self.call_site.function.module.path, self.call_site.call.span)

    @property
    def path_source(self) -> str:
        """The call, as spelled in the source."""
        return spell(self.call_site.call)


class VanishingFile(Record, frozen=True, eq=False):
    """A read of a file that other code can delete.

    Attributes:
        access: The read.
        seen: The listing or check that found the file.
        removal: The call that deletes or renames the file.
    """

    access: Access
    seen: DirectoryListing | ExistenceCheck
    removal: Removal

    @property
    def seen_at(self) -> Place:
        """The place of the listing or check."""
        return (
            self.seen.place
            if isinstance(self.seen, DirectoryListing)
            else Place(self.access.file, self.seen.span)
        )


class VanishingFiles:
    """Finds reads of files that other processes can delete."""

    def __init__(self, accesses: Accesses) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.accesses = accesses
        self.entry_states = accesses.entry_states
        self.flows = accesses.flows
        catalog, self.relevance = self.flows.catalog, self.flows.relevance
        self._names = self.relevance.library_names(catalog.last_names["effect"])
        taking = (name for name in catalog.names("effect") if catalog.exact("effect", name).op in _TAKING)
        self._taking = self.relevance.library_names(name.rpartition(".")[2] for name in taking)

    def of(self, function: LinkedFunction) -> Iterator[VanishingFile]:
        """Yield the reads in a function of files that another process can delete."""
        if not self.relevance.may_use(function, self._names):
            return
        for call_site in self.flows.call_sites(function):
            operation = self._read(call_site)
            if operation is None:
                continue
            scope = call_site.state.scope
            listing = self.listing(operation.path, scope)
            path = self.entry_states.paths.normalize(operation.path, scope)
            seen = listing if path is None or listing is not None else self._present(call_site, path)
            if seen is None:
                continue
            if isinstance(seen, DirectoryListing):
                removal = self._removal_from(seen, path, function)
            else:
                removal = None if path is None else self._removal_of(path, function)
            if removal is not None:
                yield VanishingFile(self.accesses.access_at(operation, call_site, scope), seen, removal)

    def _read(self, call_site: CallSite) -> Operation | None:
        """Return the operation of a call that reads a file: itself, or by its `key` function."""
        scope = call_site.state.scope
        operation = self.accesses.effects.operation(call_site.call, scope)
        if operation is not None:
            return operation if operation.op == "read" else None
        if not call_site.call.keywords:
            return None
        key = next((keyword.value for keyword in call_site.call.keywords if keyword.name == "key"), None)
        if key is None or not self._reads(key, scope):
            return None
        values = (*call_site.call.arguments, *parts(call_site.call.function))
        return Operation("read", values[0], "key", tolerant=False) if values else None

    def _reads(self, key: m.Expr, scope: Environment) -> bool:
        """Return whether a `key` function reads something of the file that it is passed."""
        if isinstance(key, m.Lambda):
            function = scope.function.module.functions[key.function]
            operations = (
                self.accesses.effects.operation(e.call, e.state.scope)
                for e in self.flows.call_sites(function)
            )
            return any(operation is not None and operation.op == "read" for operation in operations)
        name = self.flows.resolver.qualify(key, scope)
        effect = None if name is None else self.flows.catalog.exact("effect", name)
        return effect is not None and effect.op == "read"

    def listing(self, expr: m.Expr, scope: Environment, depth: int = 0) -> DirectoryListing | None:
        """Return the directory listing that a path comes from, or None."""
        if depth > _DEEPEST:
            return None
        if isinstance(expr, m.Call):
            operation = self.accesses.effects.operation(expr, scope)
            if operation is not None and operation.op == "list":
                folder = _folder(self.entry_states.paths.normalize(operation.path, scope))
                return DirectoryListing(expr, folder, scope.function.module.path)
        if isinstance(expr, (m.Name, m.Attribute)):
            bound = self.entry_states.rank_tests.known(expr, scope)
            if bound is not None:
                traced = sources(bound, depth + 1, through=(IterationElement, UnpackedPart))
                found = (self.listing(v.expr, v.scope, steps) for v, steps in traced if v is not None)
                return _first(found) or self._gathered(expr, bound, depth + 1)
        values: Iterable[m.Expr] = parts(expr)
        if isinstance(expr, m.Comprehension):
            values = (generator.iterable for generator in expr.generators)
        return _first(self.listing(value, scope, depth + 1) for value in values)

    def _gathered(self, name: m.Expr, binding: Binding, depth: int) -> DirectoryListing | None:
        """Return the listing whose entries a function appends to an initially empty list."""
        if (
            not (isinstance(binding, Expression) and isinstance(binding.expr, m.Sequence))
            or binding.expr.items
        ):
            return None
        appending = m.Attribute(name, "append")
        calls = (
            call_site
            for call_site in self.flows.call_sites(binding.scope.function)
            if call_site.call.arguments
        )
        added = ((e.call.arguments[0], e.state.scope) for e in calls if e.call.function == appending)
        return _first(self.listing(value, scope, depth) for value, scope in added)

    def _present(self, call_site: CallSite, path: AbstractPath) -> ExistenceCheck | None:
        """Return the check that found a path, or None."""
        probes = self.accesses.tests.among(call_site.state.conditions, call_site.call)
        return next((probe for probe in probes if not probe.found_missing and probe.path == path), None)

    def _removal_of(self, path: AbstractPath, reader: LinkedFunction) -> Removal | None:
        """Return a removal of a path, or of a directory that contains it, in another function."""
        here = _begins_with_a_parameter(path) and not _name_of(path)
        for removal in self._removals(reader, here=here):
            if removal.path is None or removal.call_site.function is reader:
                continue
            if path.is_within(removal.path) or _has_same_name(path, removal.path):
                return removal
        return None

    def _removal_from(
        self, listing: DirectoryListing, path: AbstractPath | None, reader: LinkedFunction
    ) -> Removal | None:
        """Return a removal of files in a listed directory, except of the file itself after the read."""
        around = (reader, reader.enclosing)
        here = listing.folder is None or _begins_with_a_parameter(listing.folder)
        for removal in self._removals(reader, here=here):
            own = removal.call_site.function in around and path is not None and removal.path == path
            if not own and _empties(removal, listing, around):
                return removal
        return None

    def _removals(self, reader: LinkedFunction, *, here: bool) -> Iterable[Removal]:
        """Return the removals in the project; if `here`, only those in the file of `reader`.

        Paths that begin with a parameter can only be compared within one file.
        """
        if here:
            return (removal for function in reader.module.functions for removal in self._found(function))
        return self._everywhere

    @lazy
    def _everywhere(self) -> tuple[Removal, ...]:
        using = self.relevance.using(self._taking)
        return tuple(removal for function in using for removal in self._found(function))

    @query
    def _found(self, function: LinkedFunction) -> tuple[Removal, ...]:
        """Return the removals in a function."""
        if not self.relevance.may_use(function, self._taking):
            return ()
        return tuple(self._find(function))

    def _find(self, function: LinkedFunction) -> Iterator[Removal]:
        for call_site in self.flows.call_sites(function):
            scope = call_site.state.scope
            operation = self.accesses.effects.operation(call_site.call, scope)
            if operation is not None and operation.op in _TAKING:
                path = self.entry_states.paths.normalize(operation.path, scope)
                yield Removal(call_site, path, self.listing(operation.path, scope))


def _folder(path: AbstractPath | None) -> AbstractPath | None:
    """Return the directory in which a glob pattern is searched."""
    if path is None or not path.components:
        return None
    for index, component in enumerate(path.components):
        if any(isinstance(piece, str) and "*" in piece for piece in component):
            return AbstractPath(path.components[:index]) if index else None
    return path


def _empties(removal: Removal, listing: DirectoryListing, around: tuple[LinkedFunction | None, ...]) -> bool:
    """Return whether a removal can delete one of the listed files."""
    if removal.path is not None and listing.folder is not None and removal.path.is_within(listing.folder):
        return True
    if removal.call_site.function in around:
        return removal.listing is not None or removal.path is None or not removal.path.certain
    one, other = listing.folder, None if removal.listing is None else removal.listing.folder
    beside = removal.place.path == listing.file
    return one is not None and other is not None and (one == other or (beside and one.text == other.text))


def _begins_with_a_parameter(path: AbstractPath) -> bool:
    """Return whether a path begins with the value of a parameter, which is unknown in other files."""
    first = path.components[0] if path.components else ()
    return any(isinstance(piece, PathVariable) and _is_of_a_parameter(piece) for piece in first)


def _is_of_a_parameter(symbol: PathVariable) -> bool:
    """Return whether a variable is a parameter, or is derived from one."""
    return bool(symbol.parameter) or any(map(_is_of_a_parameter, variables_of(symbol.key)))


def _name_of(path: AbstractPath) -> str:
    """Return the literal name of a file in a directory, or an empty string if it is too short."""
    last = path.components[-1] if len(path.components) > 1 else ()
    text = last[0] if len(last) == 1 else None
    return text if isinstance(text, str) and len(text) >= _SHORTEST_NAME else ""


def _has_same_name(one: AbstractPath, other: AbstractPath) -> bool:
    """Return whether two files have the same literal name."""
    name = _name_of(one)
    return name != "" and other.components[-1:] == ((name,),)


def _first(found: Iterable[DirectoryListing | None]) -> DirectoryListing | None:
    return next((listing for listing in found if listing is not None), None)
