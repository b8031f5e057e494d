"""What is dealt out to the processes, so that each has another: a sample, an item of the work."""

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
"""How many expressions and bindings are looked at for one path."""


class WorkItems:
    """Tells by usual names what is dealt out, and from which parameters a value is made."""

    def __init__(self, rank_tests: RankTests) -> None:
        """Prepare for a project whose rank tests are read with `rank_tests`."""
        self.rank_tests = rank_tests
        self.catalog = rank_tests.catalog

    def is_data(self, name: str) -> bool:
        """Tell whether a name is a usual one for what each process has another of: a batch, a sample."""
        variable = self.catalog.exact("variable", name)
        return variable is not None and variable.means == "data"

    def is_data_of(self, argument: Argument) -> bool:
        """Tell whether each process is passed another value: a sample, or the index of one."""
        return argument.function.facts.name == "__getitem__" or self.is_data(argument.parameter.name)

    def is_work_item(self, expr: m.Expr, scope: Environment) -> bool:
        """Tell whether something is looked up by what each process has another of."""
        if isinstance(expr, m.Name):
            bound = self.rank_tests.known(expr, scope)
            return isinstance(bound, Argument) and self.is_data_of(bound)
        return self.is_numbered(expr) or any(self.is_work_item(part, scope) for part in parts(expr))

    def is_numbered(self, expr: m.Expr) -> bool:
        """Tell whether a setting says which part of the work this process does: `args.shard_id`."""
        named = expr.name if isinstance(expr, m.Attribute) else setting_of(expr)
        return named.endswith(_NUMBERED) and self.is_data(named)

    def part(self, binding: UnpackedPart, expr: m.Expr) -> tuple[PathVariable] | None:
        """Read a name of a part of what a function is handed; None where it is a part of anything else.

        It is one of many, and no two are the same. Where it is of an item of the work, it tells whose it is.
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
        """Give the parameters of a function from which a value is made; its object is none of them."""
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
        """Give what a name stands for, or the parts of any other expression; a folder has many items."""
        expr, scope = value.expr, value.scope
        if last_name(expr) in _FOLDERS:
            return
        bound = self.rank_tests.known(expr, scope) if isinstance(expr, (m.Name, m.Attribute)) else None
        if bound is not None:
            yield bound
        else:
            yield from (Expression(part, scope) for part in parts(expr))
