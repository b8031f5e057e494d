"""Work items that are divided among the ranks, such as samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.paths.abstract_path import PART, PathVariable
from fsrace_lint.analysis.ranks.rank_tests import setting_of
from fsrace_lint.analysis.values.abstract_values import (
    Argument,
    Derived,
    Expression,
    Union,
)
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name, parts
from fsrace_lint.syntax.identity import Identity
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.ranks.rank_tests import RankTests
    from fsrace_lint.analysis.values.abstract_values import Binding, Environment, UnpackedPart
    from fsrace_lint.program.modules import LinkedFunction

_FOLDERS: Final = frozenset({"dirname", "parent", "parents"})
_NUMBERED: Final = ("_id", "_idx")
_MOST: Final = 200
"""The number of expressions and bindings that are analyzed for one path."""


class WorkItems:
    """Finds work items by common names, and the parameters that determine a value."""

    def __init__(self, rank_tests: RankTests) -> None:
        """Initialize with the rank checks of a project."""
        self.rank_tests = rank_tests
        self.catalog = rank_tests.catalog

    def is_data(self, name: str) -> bool:
        """Return whether a name is a common one for a work item, such as a batch or a sample."""
        variable = self.catalog.exact("variable", name)
        return variable is not None and variable.means == "data"

    def is_data_of(self, argument: Argument) -> bool:
        """Return whether an argument is a work item, or the index of one."""
        return argument.function.facts.name == "__getitem__" or self.is_data(argument.parameter.name)

    def is_work_item(self, expr: m.Expr, scope: Environment) -> bool:
        """Return whether an expression contains a work item."""
        if isinstance(expr, m.Name):
            bound = self.rank_tests.known(expr, scope)
            return isinstance(bound, Argument) and self.is_data_of(bound)
        return self.is_numbered(expr) or any(self.is_work_item(part, scope) for part in parts(expr))

    def is_numbered(self, expr: m.Expr) -> bool:
        """Return whether a setting is the number of a part of the work, such as `args.shard_id`."""
        named = expr.name if isinstance(expr, m.Attribute) else setting_of(expr)
        return named.endswith(_NUMBERED) and self.is_data(named)

    def part(self, binding: UnpackedPart, expr: m.Expr) -> tuple[PathVariable] | None:
        """Return a variable for an item that is unpacked from an argument, or None for other items.

        The variable is a work item, and no two such variables are equal.
        """
        whole = binding.source
        if not isinstance(self.rank_tests.known(whole.expr, whole.scope), Argument):
            return None
        return (
            PathVariable(
                (PART, Identity(expr)),
                spell(expr),
                is_replicated=False,
                is_work_item=True,
                definition=binding,
            ),
        )

    def parameters(self, binding: Binding, function: LinkedFunction) -> Iterator[m.Parameter]:
        """Yield the parameters of a function that a value is derived from, except `self`."""
        waiting = [binding]
        seen: set[Identity[object]] = set()
        while waiting and len(seen) < _MOST:
            here = waiting.pop()
            key: Identity[object] = Identity(here.expr if isinstance(here, Expression) else here)
            if key in seen:
                continue
            seen.add(key)
            match here:
                case Argument(function=own, parameter=parameter) if own is function:
                    if not (function.takes_object and parameter is function.facts.parameters[0]):
                        yield parameter
                case Derived(source=value):
                    waiting.append(value)
                case Expression():
                    waiting += self._made_of(here)
                case Union(options=options):
                    waiting += options

    def _made_of(self, value: Expression) -> Iterator[Binding]:
        """Yield the binding of a name, or the parts of another expression. Directories have no parts."""
        expr, scope = value.expr, value.scope
        if last_name(expr) in _FOLDERS:
            return
        bound = self.rank_tests.known(expr, scope) if isinstance(expr, (m.Name, m.Attribute)) else None
        if bound is not None:
            yield bound
        else:
            yield from (Expression(part, scope) for part in parts(expr))
