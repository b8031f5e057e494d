"""Whether a value differs from process to process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.dataflow.infeasible_paths import feasible_exits
from fsrace_lint.analysis.paths.abstract_path import NO_ORIGINS, RANK_ALONE
from fsrace_lint.analysis.values.abstract_values import (
    Derived,
    Expression,
    Union,
    UnpackedPart,
)
from fsrace_lint.analysis.values.call_arguments import library_argument
from fsrace_lint.engine.query import query
from fsrace_lint.program.symbols import is_property
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name, parts, variable_of

if TYPE_CHECKING:
    from fsrace_lint.analysis.paths.abstract_path import Origins
    from fsrace_lint.analysis.ranks.rank_tests import RankTests
    from fsrace_lint.analysis.values.abstract_values import Binding, Environment
    from fsrace_lint.program.modules import LinkedFunction

# What is read from a file of one's own need not be: the step in a checkpoint is equal everywhere.
_READING: Final = frozenset(
    {"load", "loads", "safe_load", "read", "read_text", "read_bytes", "open", "load_state_dict"}
)
_SENT: Final = ("0:object_list", "0:tensor")
"""What a broadcast sends, in place."""
_NOTHING: Final[frozenset[str]] = frozenset()
_PRINTING: Final = frozenset({"verbose", "quiet", "silent", "disable", "progress", "show_progress"})


class RankDependence:
    """Finds ranks, process ids and temporary names in values."""

    def __init__(self, rank_tests: RankTests) -> None:
        """Prepare for a project whose rank tests are read with `rank_tests`."""
        self.rank_tests = rank_tests
        self.resolver = rank_tests.resolver
        self.interpretation = rank_tests.interpretation
        self.catalog = catalog = rank_tests.catalog
        self.sources = frozenset(
            name.rpartition(".")[2]
            for name in catalog.names("collective")
            if catalog.exact("collective", name).orders == "source" and "scatter" not in name
        )

    def is_rank_dependent(self, expr: m.Expr, scope: Environment) -> bool:
        """Tell whether the value of an expression differs from process to process.

        Args:
            expr: The expression.
            scope: The names as they stand where it is evaluated.

        Returns:
            True if a rank, a process id or the like is part of it.
        """
        return bool(self.origins(expr, scope))

    @query(provisional=NO_ORIGINS)
    def origins(self, expr: m.Expr, scope: Environment) -> Origins:
        """Tell by what the value of an expression differs from process to process.

        Args:
            expr: The expression.
            scope: The names as they stand where it is evaluated.

        Returns:
            `rank`, and the origins of the catalog; empty where the value is the same everywhere.
            What a test of a rank comes to is no name of one's own: many processes share it.
        """
        return self._find(expr, scope) or NO_ORIGINS

    def _find(self, expr: m.Expr, scope: Environment) -> Origins:
        rank = self.rank_tests.rank_scope(expr, scope)
        if rank is not None:
            return NO_ORIGINS if rank == "node" else RANK_ALONE
        if isinstance(expr, (m.Name, m.Attribute)):
            if self.is_sent(expr, scope.function):
                return NO_ORIGINS
            binding = self.rank_tests.known(expr, scope)
            if binding is not None:
                return self.origins_of(binding)
            own = self.of_property(expr, scope) or self._source(expr, scope)
            if own:
                return own
        elif isinstance(expr, m.Call):
            callee = self.resolver.callee(expr, scope)
            is_read = last_name(expr.function) in _READING
            returned = NO_ORIGINS if is_read else self.returned_by(callee, expr)
            own = self._source(expr.function, scope) or returned
            if own or is_read or self.is_agreed(expr, callee):
                return own
        elif isinstance(expr, m.Boolean) and is_given(expr):
            setting, *fallbacks = (self.origins(value, scope) for value in expr.values)
            return setting if "rank" in fallbacks[-1] else setting.union(*fallbacks)
        told = _told(expr) if isinstance(expr, m.Call) else parts(expr)
        found = NO_ORIGINS.union(*(self.origins(part, scope) for part in told))
        return found - RANK_ALONE if isinstance(expr, (m.Compare, m.Not)) else found

    def is_agreed(self, call: m.Call, callee: LinkedFunction | None) -> bool:
        """Tell whether the result of a call is what one process has sent to all others."""
        return self.sends(call) or (callee is not None and self.agrees(callee))

    def agrees(self, function: LinkedFunction) -> bool:
        """Tell whether a function, by its own calls, sends to all processes what one of them has."""
        return not self.sources.isdisjoint(function.facts.referenced_names)

    def is_sent(self, expr: m.Expr, function: LinkedFunction) -> bool:
        """Tell whether a variable of a function holds what one process has sent to all others."""
        sent = self._sent_in(function) if self.agrees(function) else _NOTHING
        return bool(sent) and variable_of(expr) in sent

    @query
    def _sent_in(self, function: LinkedFunction) -> frozenset[str]:
        """Name the variables that a function gives to a broadcast."""
        sending = [
            call_site.call
            for call_site in self.interpretation.call_sites(function)
            if self.sends(call_site.call)
        ]
        values = (library_argument(call, each) for call in sending for each in _SENT)
        return frozenset(variable_of(value) for value in values if value is not None) - {""}

    def sends(self, call: m.Call) -> bool:
        """Tell whether a call sends what one process has to all others, and not to those of a group alone."""
        return last_name(call.function) in self.sources and library_argument(call, "2:group") is None

    def origins_of(self, binding: Binding) -> Origins:
        """Tell by what the value that a name is bound to differs from process to process."""
        match binding:
            case Expression(expr=expr, scope=scope):
                return self.origins(expr, scope)
            case UnpackedPart(source=Expression(expr=m.Call(function=function))) if (
                last_name(function) in _READING
            ):
                return NO_ORIGINS
            case UnpackedPart() if parts := tuple(self.rank_tests.parts(binding)):
                return NO_ORIGINS.union(*(self.origins(*part) for part in parts))
            case Derived(source=value):
                return self.origins(value.expr, value.scope)
            case Union(options=options):
                return NO_ORIGINS.union(*(self.origins_of(option) for option in options))
            case _:
                return NO_ORIGINS

    def of_property(self, expr: m.Expr, scope: Environment) -> Origins:
        """Tell by what an attribute differs that is a property and returns something private."""
        entity = self.resolver.symbol(expr, scope) if isinstance(expr, m.Attribute) else None
        return self.returned_by(entity) if is_property(entity) else NO_ORIGINS

    def returned_by(self, function: LinkedFunction | None, call: m.Call | None = None) -> Origins:
        """Tell by what the result of a function, or of one call of it, differs from process to process.

        One that sends something is taken to make up a name of its own only where it is alone.
        """
        ways = () if function is None else self.interpretation.exit_points(function)
        if function is not None and call is not None:
            ways = feasible_exits(call, function, ways)
        found = (self.origins(way.value, way.state.scope) for way in ways if way.value is not None)
        origins = NO_ORIGINS.union(*found)
        return origins & RANK_ALONE if function is not None and self.agrees(function) else origins

    def _source(self, expr: m.Expr, scope: Environment) -> Origins:
        entry = self.catalog.find("private", self.resolver.qualify(expr, scope))
        return frozenset({entry.by}) if entry is not None and entry.scope != "node" else NO_ORIGINS


def is_given(expr: m.Boolean) -> bool:
    """Tell whether a value is a setting with a fallback: `args.folder or f"data-{rank}"`.

    All processes are given the same; such a fallback alone tells them apart.
    """
    setting = expr.values[0]
    if expr.operator != "or" or not isinstance(setting, m.Attribute):
        return False
    return isinstance(setting.value, m.Name) and setting.value.id not in {"self", "cls"}


def _told(call: m.Call) -> tuple[m.Expr, ...]:
    """Give the parts of a call that its result can follow from: how much it prints is none."""
    quiet = [keyword.value for keyword in call.keywords if keyword.name in _PRINTING]
    return tuple(part for part in parts(call) if not any(part is value for value in quiet))
