"""Rank checks and barriers that a file already uses."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final, cast

from msgspec.structs import replace

from fsrace_lint.analysis.dataflow.rank_partition import is_first
from fsrace_lint.analysis.values.abstract_values import Argument
from fsrace_lint.engine.query import query
from fsrace_lint.program.symbols import ExternalName
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import unnegated
from fsrace_lint.syntax.traversal import bound_in, suites, within
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.synchronization.process_groups import ProcessGroups
    from fsrace_lint.catalog import Catalog
    from fsrace_lint.catalog.entries import IdiomEntry
    from fsrace_lint.program.modules import LinkedFunction
    from fsrace_lint.program.symbols import Symbol

_TESTS: Final = (m.Name, m.Attribute, m.Call, m.Compare)
_NOT_ASKED: Final = "not {asked} or {code}"
_ASKED: Final = "if {asked}: {code}"
"""The forms of a rank check and of a barrier that also work without a process group."""
_OTHERS: Final = {"!=": "==", "is not": "is", ">": "=="}
_CONSTANT: Final = frozenset({"True", "False", "None", "int", "str", "bool", "len"})
"""Names with the same meaning in every file."""


class Idioms:
    """Finds the rank checks and barriers of a file that can be used at a call unchanged."""

    def __init__(self, entry_states: EntryStates, groups: ProcessGroups) -> None:
        """Initialize for a project."""
        self.entry_states = entry_states
        self.flows = entry_states.flows
        self.catalog: Catalog = entry_states.catalog
        self.groups = groups

    def tests(self, call_site: CallSite) -> Iterator[str]:
        """Yield the checks by which a file selects rank 0 and that also do so at a call.

        Args:
            call_site: The call.

        Yields:
            The checks as in the source, those of the function first, then those that visible objects
            provide according to the library models.
        """
        for function in self._nearest(call_site):
            for test in _tests(function.facts.body):
                if self._is_known(test, call_site, function) and self._picks(test, call_site):
                    yield from self._safely(test, call_site, _NOT_ASKED)
        for owner, entry in self._offering(call_site):
            if entry.first and not entry.needs_group:
                yield f"{owner}.{entry.first}"

    def barriers(self, call_site: CallSite) -> Iterator[str]:
        """Yield the calls by which a file waits for all ranks and that also do so at a call."""
        for function in self._nearest(call_site):
            for call in self._barriers_in(function):
                is_known = self._is_known(call, call_site, function)
                if is_known and self.entry_states.summaries.waits(replace(call_site, call=call)):
                    yield from self._safely(call, call_site, _ASKED)
        for owner, entry in self._offering(call_site):
            if entry.barrier and not entry.needs_group:
                yield _waiting(owner, entry, call_site)

    def framework_tests(self, call_site: CallSite) -> Iterator[str]:
        """Yield the checks for rank 0 of visible modules that need a process group, which can exist."""
        for owner, entry in self._offering(call_site):
            if entry.first and entry.needs_group:
                yield self._asking(owner, entry, f"{owner}.{entry.first}", call_site, _NOT_ASKED)

    def framework_barriers(self, call_site: CallSite) -> Iterator[str]:
        """Yield the barriers of visible modules that need a process group, which can exist."""
        for owner, entry in self._offering(call_site):
            if entry.barrier and entry.needs_group:
                yield self._asking(owner, entry, _waiting(owner, entry, call_site), call_site, _ASKED)

    def _safely(self, expr: m.Expr, call_site: CallSite, form: str) -> Iterator[str]:
        """Yield the code of a check or a barrier that also works in a program without a process group."""
        needing = self.groups.needing(expr, call_site)
        if needing is not None:
            call, entry = needing
            if isinstance(call.function, m.Attribute):
                yield self._asking(spell(call.function.value), entry, spell(expr), call_site, form)
            elif self.groups.exists(call_site):
                yield spell(expr)
        elif not (self.groups.is_needed_inside(expr, call_site) and self.groups.may_lack(call_site)):
            yield spell(expr)

    def _asking(self, owner: str, entry: IdiomEntry, code: str, call_site: CallSite, form: str) -> str:
        """Return code that first asks a module whether the process group exists, unless it certainly does."""
        if not entry.exists or self.groups.exists(call_site):
            return code
        return form.format(asked=f"{owner}.{entry.exists}", code=code)

    def _nearest(self, call_site: CallSite) -> list[LinkedFunction]:
        """Return the functions of the file: the function of the call, those of its class, then the rest."""
        own = call_site.function
        return sorted(
            own.module.functions,
            key=lambda function: (function is not own, own.owner is None or function.owner is not own.owner),
        )

    def _picks(self, test: m.Expr, call_site: CallSite) -> bool:
        """Return whether a check selects rank 0 at a call, and the process group exists by then."""
        if self.entry_states.rank_tests.partition(test, call_site.state.scope) != is_first("global"):
            return False
        return not self.groups.before_init.is_vain(test, call_site)

    def _is_known(self, expr: m.Expr, call_site: CallSite, spelled_in: LinkedFunction) -> bool:
        """Return whether the names of an expression have the same meaning at a call."""
        if any(isinstance(part, (m.Opaque, m.Lambda, m.Comprehension)) for part in within(expr)):
            return False
        names = (part.id for part in within(expr) if isinstance(part, m.Name))
        return all(self._is_same(name, call_site, spelled_in) for name in names)

    def _is_same(self, name: str, call_site: CallSite, spelled_in: LinkedFunction) -> bool:
        if name in _CONSTANT or spelled_in is call_site.function:
            return True
        resolver = self.flows.resolver
        final = self.flows.final_environment(spelled_in)
        bound = resolver.binding(name, call_site.state.scope)
        there = None if final is None else resolver.binding(name, final)
        if isinstance(bound, Argument):
            related = isinstance(there, Argument) and there.parameter == bound.parameter
            return related and spelled_in.owner is call_site.function.owner
        if bound is not None or there is not None:
            return bound is there
        return resolver.member(call_site.function.module, name) is not None

    def _offering(self, call_site: CallSite) -> Iterator[tuple[str, IdiomEntry]]:
        """Yield the names that are visible at a call, and the idioms of the library models for them."""
        resolver, scope = self.flows.resolver, call_site.state.scope
        for name in dict.fromkeys(self._visible(call_site)):
            first, *others = name.split(".")
            expr = reduce(m.Attribute, others, cast("m.Expr", m.Name(first)))
            entity = resolver.symbol(expr, scope)
            entry = None if _is_class(entity) else self.catalog.find("idiom", resolver.type_name(entity))
            if entry is not None and self._is_in_use(entry, call_site):
                yield name, entry

    def _is_in_use(self, entry: IdiomEntry, call_site: CallSite) -> bool:
        """Return whether the library of an idiom is the one that starts the processes."""
        imported = {row.module.partition(".")[0] for row in call_site.function.module.imports.values()}
        return imported.isdisjoint(entry.not_with) and (
            not entry.needs_group or self.groups.is_used(call_site)
        )

    def _visible(self, call_site: CallSite) -> Iterator[str]:
        """Yield the names that are visible at a call: attributes, locals, enclosing scopes, and imports.

        The modules in a package whose functions the file calls by their full names come last.
        """
        function: LinkedFunction | None = call_site.function
        first = next(iter(call_site.function.parameters), None)
        if call_site.function.owner is not None and first is not None:
            methods = call_site.function.owner.methods.values()
            yield from (f"{first}.{name}" for method in methods for name in method.facts.attributes)
        while function is not None:
            local = function is call_site.function
            names = (*function.parameters, *self._variables(function))
            yield from (name for name in names if not local or call_site.state.scope.get(name))
            function = function.enclosing
        imports = call_site.function.module.imports
        yield from imports
        for other in self._nearest(call_site):
            yield from self._modules_called(other)

    @query(provisional=())
    def _barriers_in(self, function: LinkedFunction) -> tuple[m.Call, ...]:
        """Return the calls of a function that wait for all ranks and can be copied elsewhere."""
        waits = self.entry_states.summaries.waits
        return tuple(
            each.call for each in self.flows.call_sites(function) if _is_bare(each.call) and waits(each)
        )

    @query
    def _variables(self, function: LinkedFunction) -> tuple[str, ...]:
        """Return the variables that a function may bind."""
        return tuple(name for name in bound_in(function.facts) if "." not in name)

    @query(provisional=())
    def _modules_called(self, function: LinkedFunction) -> tuple[str, ...]:
        """Return the modules in imported packages whose functions a function calls by their full names."""
        found: dict[str, None] = {}
        for each in self.flows.call_sites(function):
            called = each.call.function
            first, *others = spell(called.value).split(".") if isinstance(called, m.Attribute) else ("",)
            if others and first in function.module.imports and all(map(str.isidentifier, others)):
                found[".".join((first, *others))] = None
        return tuple(found)


def _is_class(entity: Symbol | None) -> bool:
    """Return whether a library name is spelled as a class, not as an instance."""
    name = entity.name.rpartition(".")[2] if isinstance(entity, ExternalName) else ""
    return name[:1].isupper() and not name.isupper()


def _waiting(owner: str, entry: IdiomEntry, call_site: CallSite) -> str:
    """Return the barrier of a library, with the name of the function in it if it needs one."""
    name = call_site.function.facts.name.strip("<>")
    return f"{owner}.{entry.barrier.replace('{function}', name)}"


def _tests(statements: Iterable[m.Statement]) -> Iterator[m.Expr]:
    """Yield the conditions of `if` statements, negated if needed so that they select one rank."""
    for statement in statements:
        if isinstance(statement, m.If):
            yield from _parts(statement.test)
        for inner in suites(statement):
            yield from _tests(inner)


def _parts(test: m.Expr) -> Iterator[m.Expr]:
    bare, _ = unnegated(test, truth=True)
    match bare:
        case m.Boolean(values=values):
            for value in values:
                yield from _parts(value)
        case m.Compare(left=left, operators=(operator,), rights=rights) if operator in _OTHERS:
            yield m.Compare(left, (_OTHERS[operator],), rights)
        case m.Name() | m.Attribute() | m.Call() | m.Compare():
            yield bare


def _is_bare(call: m.Call) -> bool:
    """Return whether a call has no arguments, or only constants, so that it can be copied elsewhere."""
    given = (*call.arguments, *(keyword.value for keyword in call.keywords))
    return all(isinstance(value, m.Constant) for value in given)
