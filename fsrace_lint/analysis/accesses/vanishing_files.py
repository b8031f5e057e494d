"""Files that were there when a process looked, and that code of the project takes away."""

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
    """A call that lists a folder; `folder` is None where nothing is known of it."""

    call: m.Call
    folder: AbstractPath | None
    file: str
    answer: str = "finds it"
    """What it says of what it lists, as a test says whether something is there."""

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.file, self.call.span)

    @property
    def path_source(self) -> str:
        """The call as the source spells it."""
        return spell(self.call)


class Removal(Record, frozen=True, eq=False):
    """A call that takes a file away, by deleting or renaming it; `listing` is where it has its name from."""

    call_site: CallSite
    path: AbstractPath | None
    listing: DirectoryListing | None

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.call_site.function.module.path, self.call_site.call.span)

    @property
    def path_source(self) -> str:
        """The call as the source spells it."""
        return spell(self.call_site.call)


class VanishingFile(Record, frozen=True, eq=False):
    """A read of a file that was there; `seen` is the call that saw it there, `removal` what takes it away."""

    access: Access
    seen: DirectoryListing | ExistenceCheck
    removal: Removal

    @property
    def seen_at(self) -> Place:
        """Where it was seen."""
        return (
            self.seen.place
            if isinstance(self.seen, DirectoryListing)
            else Place(self.access.file, self.seen.span)
        )


class VanishingFiles:
    """Finds reads of files that others take away."""

    def __init__(self, accesses: Accesses) -> None:
        """Prepare for a project; nothing is looked at yet."""
        self.accesses = accesses
        self.entry_states = accesses.entry_states
        self.flows = accesses.flows
        catalog, self.relevance = self.flows.catalog, self.flows.relevance
        self._names = self.relevance.library_names(catalog.last_names["effect"])
        taking = (name for name in catalog.names("effect") if catalog.exact("effect", name).op in _TAKING)
        self._taking = self.relevance.library_names(name.rpartition(".")[2] for name in taking)

    def of(self, function: LinkedFunction) -> Iterator[VanishingFile]:
        """Give the reads of a function that another process can take the file away from."""
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
        """Read a call as one that uses a file, by itself or as the order in which others are put."""
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
        """Tell whether a function asks for something of the file that it is given."""
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
        """Find the call that listed a folder, where a path comes from that."""
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
        """Find the listing whose entries a function puts into a list, which was empty at first."""
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
        """Find the test that saw a path there."""
        probes = self.accesses.tests.among(call_site.state.conditions, call_site.call)
        return next((probe for probe in probes if not probe.found_missing and probe.path == path), None)

    def _removal_of(self, path: AbstractPath, reader: LinkedFunction) -> Removal | None:
        """Find what takes away a path, or a folder around it, in another function."""
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
        """Find what takes away files of a folder that was listed; not the very file, once it was read."""
        around = (reader, reader.enclosing)
        here = listing.folder is None or _begins_with_a_parameter(listing.folder)
        for removal in self._removals(reader, here=here):
            own = removal.call_site.function in around and path is not None and removal.path == path
            if not own and _empties(removal, listing, around):
                return removal
        return None

    def _removals(self, reader: LinkedFunction, *, here: bool) -> Iterable[Removal]:
        """Give what takes files away in the project, or only in the file of a function, in their order.

        What the parameters of a function are nobody else knows, but for those in it and around it.
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
        """Give what takes files away in a function."""
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
    """Give the folder that a pattern is looked for in."""
    if path is None or not path.components:
        return None
    for index, component in enumerate(path.components):
        if any(isinstance(piece, str) and "*" in piece for piece in component):
            return AbstractPath(path.components[:index]) if index else None
    return path


def _empties(removal: Removal, listing: DirectoryListing, around: tuple[LinkedFunction | None, ...]) -> bool:
    """Tell whether what is taken away can be one of the files that were listed."""
    if removal.path is not None and listing.folder is not None and removal.path.is_within(listing.folder):
        return True
    if removal.call_site.function in around:
        return removal.listing is not None or removal.path is None or not removal.path.certain
    one, other = listing.folder, None if removal.listing is None else removal.listing.folder
    beside = removal.place.path == listing.file
    return one is not None and other is not None and (one == other or (beside and one.text == other.text))


def _begins_with_a_parameter(path: AbstractPath) -> bool:
    """Tell whether only those who know a parameter can name anything that a path leads to."""
    first = path.components[0] if path.components else ()
    return any(isinstance(piece, PathVariable) and _is_of_a_parameter(piece) for piece in first)


def _is_of_a_parameter(symbol: PathVariable) -> bool:
    """Tell whether a text is a parameter, or follows from one."""
    return bool(symbol.parameter) or any(map(_is_of_a_parameter, variables_of(symbol.key)))


def _name_of(path: AbstractPath) -> str:
    """Give the name of a file in a folder, where it is written out and tells it from others."""
    last = path.components[-1] if len(path.components) > 1 else ()
    text = last[0] if len(last) == 1 else None
    return text if isinstance(text, str) and len(text) >= _SHORTEST_NAME else ""


def _has_same_name(one: AbstractPath, other: AbstractPath) -> bool:
    """Tell whether two files have the same name, written out in both."""
    name = _name_of(one)
    return name != "" and other.components[-1:] == ((name,),)


def _first(found: Iterable[DirectoryListing | None]) -> DirectoryListing | None:
    return next((listing for listing in found if listing is not None), None)
