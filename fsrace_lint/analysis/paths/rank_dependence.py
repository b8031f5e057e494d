"""Whether a value differs between ranks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.dataflow.infeasible_paths import feasible_exits
from fsrace_lint.analysis.paths.abstract_path import NO_ORIGINS, RANK_ALONE
from fsrace_lint.analysis.values.abstract_values import (
    Argument,
    ContextResult,
    Derived,
    Expression,
    IterationElement,
    Union,
    UnpackedPart,
)
from fsrace_lint.analysis.values.call_arguments import library_argument
from fsrace_lint.analysis.values.entered_values import entered_values
from fsrace_lint.engine.query import query
from fsrace_lint.launches.launchers import is_own_directory
from fsrace_lint.program.symbols import is_property
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name, parts, variable_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fsrace_lint.analysis.dataflow.abstract_state import ExitPoint
    from fsrace_lint.analysis.paths.abstract_path import Origins
    from fsrace_lint.analysis.ranks.rank_tests import RankTests
    from fsrace_lint.analysis.values.abstract_values import Binding, Environment
    from fsrace_lint.program.modules import LinkedFunction

# A value that is read from a private file need not be private: the step in a checkpoint is the same.
_READING: Final = frozenset(
    {"load", "loads", "safe_load", "read", "read_text", "read_bytes", "open", "load_state_dict"}
)
_SENT: Final = ("0:object_list", "0:tensor")
"""The arguments that a broadcast changes in place."""
_CLOCK: Final = frozenset({"clock"})
_OF_A_DATE: Final = frozenset({"year", "month", "day", "tm_year", "tm_mon", "tm_mday"})
_FINER_THAN_A_DAY: Final = re.compile(r"%[-#_0^]?[^aAbBdjmyYUWVGuwxDFeCghnt%]")
"""Matches a directive of `strftime()` that differs between two times of a day."""
_NOTHING: Final[frozenset[str]] = frozenset()
_PRINTING: Final = frozenset({"verbose", "quiet", "silent", "disable", "progress", "show_progress"})


class RankDependence:
    """Finds ranks, process IDs, and temporary names in values."""

    def __init__(self, rank_tests: RankTests) -> None:
        """Initialize with the rank checks of a project."""
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
        """Return whether the value of an expression differs between ranks.

        Args:
            expr: The expression.
            scope: The environment in which it is evaluated.

        Returns:
            Whether it contains a rank, a process ID, or similar.
        """
        return bool(self.origins(expr, scope))

    @query(provisional=NO_ORIGINS)
    def origins(self, expr: m.Expr, scope: Environment) -> Origins:
        """Return why the value of an expression differs between ranks.

        Args:
            expr: The expression.
            scope: The environment in which it is evaluated.

        Returns:
            `rank`, and origins in the library models. Empty if the value is equal on all ranks. The result of
            a rank check does not count, because many ranks share it.
        """
        found = self._find(expr, scope)
        return (found - _CLOCK if found and self.is_day(expr, scope) else found) or NO_ORIGINS

    def is_day(self, expr: m.Expr, scope: Environment) -> bool:
        """Return whether a value is a date, or a part of one: equal in all processes that start together."""
        match expr:
            case m.Attribute(name=name):
                return name in _OF_A_DATE
            case m.Call(function=m.Attribute(name="date"), arguments=()):
                return True
            case m.Call(function=function, arguments=arguments) if last_name(function) == "strftime":
                template = next((self._constant(each, scope) for each in arguments), None)
                return template is not None and _FINER_THAN_A_DAY.search(template) is None
            case _:
                return False

    def _constant(self, expr: m.Expr, scope: Environment) -> str | None:
        bound = self.rank_tests.known(expr, scope) if isinstance(expr, m.Name) else None
        value = bound.expr if isinstance(bound, Expression) else expr
        return value.value if isinstance(value, m.Constant) and isinstance(value.value, str) else None

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
            returned = NO_ORIGINS if is_read else self._returned_to(expr, scope, callee)
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
        """Return whether the result of a call is broadcast from one rank."""
        return self.sends(call) or (callee is not None and self.agrees(callee))

    def agrees(self, function: LinkedFunction) -> bool:
        """Return whether a function itself broadcasts a value from one rank to all."""
        return not self.sources.isdisjoint(function.facts.referenced_names)

    def is_sent(self, expr: m.Expr, function: LinkedFunction) -> bool:
        """Return whether a variable of a function is broadcast from one rank."""
        sent = self._sent_in(function) if self.agrees(function) else _NOTHING
        return bool(sent) and variable_of(expr) in sent

    @query
    def _sent_in(self, function: LinkedFunction) -> frozenset[str]:
        """Return the variables that a function passes to a broadcast."""
        sending = [
            call_site.call
            for call_site in self.interpretation.call_sites(function)
            if self.sends(call_site.call)
        ]
        values = (library_argument(call, each) for call in sending for each in _SENT)
        return frozenset(variable_of(value) for value in values if value is not None) - {""}

    def sends(self, call: m.Call) -> bool:
        """Return whether a call broadcasts a value from one rank to all, not only within a group."""
        return last_name(call.function) in self.sources and library_argument(call, "2:group") is None

    def origins_of(self, binding: Binding) -> Origins:
        """Return why a bound value differs between ranks."""
        match binding:
            case Expression(expr=expr, scope=scope):
                return self.origins(expr, scope)
            case UnpackedPart(source=Expression(expr=m.Call(function=function))) if (
                last_name(function) in _READING
            ):
                return NO_ORIGINS
            case Argument(function=function, parameter=parameter):
                is_own = is_own_directory(parameter.name, function.module.relative)
                return frozenset({"creation"}) if is_own else NO_ORIGINS
            case IterationElement() if is_counter(binding):
                return NO_ORIGINS
            case UnpackedPart() if parts := tuple(self.rank_tests.parts(binding)):
                return NO_ORIGINS.union(*(self.origins(*part) for part in parts))
            case ContextResult(source=value):
                entered = entered_values(self.resolver, binding)
                own = NO_ORIGINS.union(*(self.origins(each.expr, each.scope) for each in entered))
                return own or self.origins(value.expr, value.scope)
            case Derived(source=value):
                return self.origins(value.expr, value.scope)
            case Union(options=options):
                return NO_ORIGINS.union(*(self.origins_of(option) for option in options))
            case _:
                return NO_ORIGINS

    def of_property(self, expr: m.Expr, scope: Environment) -> Origins:
        """Return why the value of a property differs between ranks."""
        entity = self.resolver.symbol(expr, scope) if isinstance(expr, m.Attribute) else None
        return self._returned(entity, self._exits(entity)) if is_property(entity) else NO_ORIGINS

    def _returned_to(self, call: m.Call, scope: Environment, callee: LinkedFunction | None) -> Origins:
        """Return why the result of one call differs between ranks."""
        if callee is None:
            return NO_ORIGINS
        return self._returned(callee, feasible_exits(call, scope, callee, self._exits(callee)))

    def _exits(self, function: LinkedFunction) -> Sequence[ExitPoint]:
        return self.interpretation.result_points(function)

    def _returned(self, function: LinkedFunction, ways: Iterable[ExitPoint]) -> Origins:
        """Return why the result at some exits differs. If it is broadcast, only the rank counts."""
        found = (self.origins(way.value, way.state.scope) for way in ways if way.value is not None)
        origins = NO_ORIGINS.union(*found)
        return origins & RANK_ALONE if self.agrees(function) else origins

    def _source(self, expr: m.Expr, scope: Environment) -> Origins:
        entry = self.catalog.find("private", self.resolver.qualify(expr, scope))
        if entry is None or entry.scope == "node" or entry.is_day:
            return NO_ORIGINS
        return frozenset({entry.by})


def is_counter(binding: Binding) -> bool:
    """Return whether a binding is the number of an element in `enumerate(elements)`."""
    if not isinstance(binding, IterationElement) or binding.index != 0:
        return False
    called = binding.source.expr
    return (
        isinstance(called, m.Call) and called.function == m.Name("enumerate") and len(called.arguments) == 1
    )


def is_given(expr: m.Boolean) -> bool:
    """Return whether a value is a setting with a fallback, such as `args.folder or f"data-{rank}"`.

    The setting is equal on all ranks. Only the fallback can differ between ranks.
    """
    setting = expr.values[0]
    if expr.operator != "or" or not isinstance(setting, m.Attribute):
        return False
    return isinstance(setting.value, m.Name) and setting.value.id not in {"self", "cls"}


def _told(call: m.Call) -> tuple[m.Expr, ...]:
    """Return the parts of a call that affect its result. Arguments for verbosity do not."""
    quiet = [keyword.value for keyword in call.keywords if keyword.name in _PRINTING]
    return tuple(part for part in parts(call) if not any(part is value for value in quiet))
