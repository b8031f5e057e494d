"""Variables for the parts of paths whose text is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.paths.abstract_path import NO_ORIGINS, RANK_ALONE, PathVariable, variables_of
from fsrace_lint.analysis.values.abstract_values import Expression
from fsrace_lint.catalog.lexicon import says
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.identity import Identity
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.analysis.paths.abstract_path import Origins
    from fsrace_lint.analysis.paths.node_local import NodeLocal
    from fsrace_lint.analysis.paths.rank_dependence import RankDependence
    from fsrace_lint.analysis.paths.work_items import WorkItems
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.catalog.entries import Private

OF_LAST: Final = frozenset({"name", "stem", "suffix", "suffixes"})
"""The attributes of a path that depend only on its last component."""
_PLAIN: Final = frozenset({"pid", "clock", "chance", "address"})
"""The origins of calls that return text without slashes, unless their arguments contain slashes."""


class VariableFactory:
    """Creates variables for expressions."""

    def __init__(self, rank_dependence: RankDependence, node_local: NodeLocal, work_items: WorkItems) -> None:
        """Initialize with the analyses of the values of a project."""
        self.rank_dependence = rank_dependence
        self.rank_tests = rank_dependence.rank_tests
        self.node_local = node_local
        self.work_items = work_items

    def process_or_node(self, expr: m.Expr, scope: Environment) -> PathVariable | None:
        """Return a variable for a rank or for a node-local location, or None."""
        rank = self.rank_tests.rank_scope(expr, scope)
        if rank is not None:
            here = rank == "node"
            origins = NO_ORIGINS if here else RANK_ALONE
            return PathVariable(("rank", rank), spell(expr), origins, local=here, is_plain=True)
        place = self.node_local.place(expr, scope)
        return None if place is None else PathVariable(("node-local", place), spell(expr), local=True)

    def own(self, own: Private, call: m.Call, scope: Environment, *, local: bool) -> PathVariable:
        """Return a variable for a call whose result is private to a process."""
        text = spell(call)
        is_plain = own.by in _PLAIN and "/" not in text
        key = ("call", Identity(call), scope)
        made_of, origins = Expression(call, scope), frozenset({own.by})
        return PathVariable(key, text, origins, local=local, definition=made_of, is_plain=is_plain)

    def opaque(self, expr: m.Expr, scope: Environment) -> PathVariable:
        """Return a variable for an expression of an unknown kind, which equals no other variable."""
        return PathVariable(
            ("expression", Identity(expr), scope),
            spell(expr),
            self.rank_dependence.origins(expr, scope),
            is_replicated=False,
            is_work_item=self.work_items.is_work_item(expr, scope),
            definition=Expression(expr, scope),
        )

    def derived(self, kind: str, key: tuple[object, ...], expr: m.Expr, scope: Environment) -> PathVariable:
        """Return a variable whose text is derived from others.

        An attribute or an item of an object is assumed to be a setting, which is equal on all ranks. It is
        not if the object differs between ranks, or is a work item or its number. If the object is unknown,
        only its name can say that it holds settings.
        """
        symbols = variables_of(key)
        own, known = self.rank_dependence.origins(expr, scope), origins_of(symbols)
        origins = own & known if kind == "item" or kind in OF_LAST else own | known
        if self.rank_dependence.is_day(expr, scope):
            origins = own
        numbered = self.work_items.is_numbered(expr)
        varies = numbered or any(symbol.is_work_item for symbol in symbols)
        is_setting = kind in {"attribute", "item"} and not varies
        are_replicated = all(symbol.is_replicated for symbol in symbols)
        certain = is_setting or (not numbered and are_replicated)
        is_assumed = are_assumed(symbols) or (is_setting and not are_replicated)
        made_of, text = Expression(expr, scope), spell(expr)
        is_plain = kind == "number" or are_plain(symbols, text)
        return PathVariable(
            (kind, *key),
            text,
            origins or NO_ORIGINS,
            is_replicated=certain,
            is_work_item=varies,
            definition=made_of,
            is_plain=is_plain,
            is_assumed=is_assumed and not (is_setting and _says_settings(expr, symbols)),
        )


def origins_of(symbols: Iterable[PathVariable]) -> Origins:
    """Return why some variables differ between ranks."""
    return NO_ORIGINS.union(*(each.rank_dependence for each in symbols))


def are_assumed(symbols: Iterable[PathVariable]) -> bool:
    """Return whether a value that is computed from some variables is assumed to be equal on all ranks."""
    return any(symbol.is_assumed for symbol in symbols)


def _says_settings(part: m.Expr, symbols: Iterable[PathVariable]) -> bool:
    """Return whether the object that an expression is a part of is named like one that holds settings.

    The name of the function that returns the object counts too.
    """
    whole = part.value if isinstance(part, (m.Attribute, m.Subscript)) else part
    made = (symbol.definition for symbol in symbols)
    calls = (each.expr for each in made if isinstance(each, Expression) and isinstance(each.expr, m.Call))
    names = (last_name(whole), *(spell(call.function) for call in calls))
    return any(says(name, "settings") for name in names)


def are_plain(symbols: list[PathVariable], text: str) -> bool:
    """Return whether a value that is computed from some variables contains no slash, by its spelling."""
    return bool(symbols) and all(symbol.is_plain for symbol in symbols) and "/" not in text
