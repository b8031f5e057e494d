"""Work items that are divided among the ranks, such as samples."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.paths.abstract_path import PART, PathVariable
from fsrace_lint.analysis.paths.directory_listings import loop_yields
from fsrace_lint.analysis.paths.rank_dependence import is_counter
from fsrace_lint.analysis.values.abstract_values import (
    Argument,
    Derived,
    Expression,
    IterationElement,
    Union,
)
from fsrace_lint.analysis.values.call_arguments import holds
from fsrace_lint.catalog.lexicon import meaning, says, words
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name, parts, setting_of, unnegated
from fsrace_lint.syntax.identity import Identity
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fsrace_lint.analysis.dataflow.abstract_state import PathCondition
    from fsrace_lint.analysis.ranks.rank_tests import RankTests
    from fsrace_lint.analysis.values.abstract_values import Binding, Environment, UnpackedPart
    from fsrace_lint.program.modules import LinkedFunction

_FOLDERS: Final = frozenset({"dirname", "parent", "parents"})
_TAKING: Final = frozenset({"get", "get_nowait"})
_IN_PROCESS: Final = ("queue.", "asyncio.")
"""Modules whose queues distribute items within one process."""
_EQUAL: Final = frozenset({("==", True), ("is", True), ("!=", False), ("is not", False)})
_NAMES: Final = 4
"""The number of names that are followed from a test."""
_MOST: Final = 200
"""The number of expressions and bindings that are analyzed for one path."""


class Share(enum.IntEnum):
    """The processes that have the same value, of those that run the same code."""

    ALL = 0
    JOB = 1
    """The processes of one job: the number of a job."""
    FEW = 2
    """Usually one process: the number of a part of the work, a sample, or an item of a queue."""
    ONE = 3


class WorkItems:
    """Finds work items, by common names too, and the parameters that determine a value."""

    def __init__(self, rank_tests: RankTests) -> None:
        """Initialize with the rank checks of a project."""
        self.rank_tests = rank_tests
        self.catalog = rank_tests.catalog

    def is_data(self, name: str) -> bool:
        """Return whether a name is a common one for a work item, such as a batch or a sample."""
        return self._means(name) in {"data", "part"}

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
        return self._means(_setting(expr)) == "part"

    def share_by_name(self, name: str) -> Share:
        """Return which processes have the same value for a setting or a parameter, by its name."""
        means = self._means(name)
        return Share.FEW if means == "part" else Share.JOB if means == "job" else Share.ALL

    def _means(self, name: str) -> str:
        variable = self.catalog.exact("variable", name)
        return "" if variable is None else variable.means

    def dealt_out(self, conditions: Iterable[PathCondition]) -> Mapping[Identity[m.Expr], Share]:
        """Return the iterables of loops whose elements are divided by a test.

        Each process passes `i % world_size == rank` for other elements.
        """
        found: dict[Identity[m.Expr], Share] = {}
        for literal in conditions:
            test, truth = unnegated(literal.test, truth=literal.truth)
            is_equal = isinstance(test, m.Compare) and (*test.operators, truth) in _EQUAL
            is_remainder = isinstance(test, m.Binary) and test.operator == "%" and not truth
            terms = set(self._terms(test, literal.scope)) if is_equal or is_remainder else set()
            share = max((term for term in terms if isinstance(term, Share)), default=Share.ALL)
            if share is not Share.ALL:
                found.update((term, share) for term in terms if isinstance(term, Identity))
        return found

    def _terms(self, expr: m.Expr, scope: Environment, depth: int = 0) -> Iterator[Identity[m.Expr] | Share]:
        """Yield the iterables of the loop elements in a value, and whose the other parts are."""
        bound = self.rank_tests.known(expr, scope)
        if isinstance(bound, IterationElement):
            yield Identity(bound.source.expr)
        elif self.rank_tests.rank_scope(expr, scope) is not None:
            yield Share.ONE
        elif isinstance(bound, Expression) and depth < _NAMES:
            yield from self._terms(bound.expr, bound.scope, depth + 1)
        else:
            yield self._share_of(expr, scope)
            for part in parts(expr):
                yield from self._terms(part, scope, depth)

    def _share_of(self, expr: m.Expr, scope: Environment) -> Share:
        """Return which processes have the same value, by the expression alone."""
        variable = self.rank_tests.environment_variable(expr, scope)
        entry = None if variable is None else self.catalog.exact("environment", variable)
        if entry is not None and entry.means == "job":
            return Share.JOB
        if self._is_taken(expr, scope):
            return Share.FEW
        return self.share_by_name(expr.id if isinstance(expr, m.Name) else _setting(expr))

    def _is_taken(self, expr: m.Expr, scope: Environment) -> bool:
        """Return whether an expression takes an item from a queue, such as `queue.get()`."""
        if not isinstance(expr, m.Call):
            return False
        taking = next(iter(expr.arguments), None) if expr.function == m.Name("iter") else expr.function
        keys = [
            each for each in expr.arguments if isinstance(each, m.Constant) and isinstance(each.value, str)
        ]
        if not isinstance(taking, m.Attribute) or taking.name not in _TAKING or keys:
            return False
        resolver = self.rank_tests.resolver
        kind = resolver.type_name(resolver.symbol(taking.value, scope)) or ""
        return says(last_name(taking.value), "queue") and not kind.startswith(_IN_PROCESS)

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

    def origins(
        self, binding: Binding, function: LinkedFunction, dealt: Mapping[Identity[m.Expr], Share]
    ) -> Iterator[m.Parameter | Share]:
        """Yield the parameters of a function that a value is derived from, except `self`, and other shares.

        Args:
            binding: The value.
            function: The function.
            dealt: The iterables of the loops whose elements a test has divided.
        """
        waiting = [(binding, False)]
        seen: set[Identity[object]] = set()
        while waiting and len(seen) < _MOST:
            here, is_element = waiting.pop()
            key: Identity[object] = Identity(here.expr if isinstance(here, Expression) else here)
            if key in seen:
                continue
            seen.add(key)
            match here:
                case Argument(function=own, parameter=parameter) if own is function:
                    if not (function.takes_object and parameter is function.facts.parameters[0]):
                        yield parameter
                case Derived(source=value):
                    yield dealt.get(Identity(value.expr), Share.ALL)
                    if not is_counter(here):
                        is_batch = isinstance(here, IterationElement) and self._yields_batches(value)
                        yield Share.FEW if is_batch else Share.ALL
                        waiting.append((value, is_element or isinstance(here, IterationElement)))
                case Expression(expr=expr, scope=scope):
                    yield self._share_of(expr, scope)
                    if is_element and self._yields_share(expr, scope):
                        yield Share.ONE
                    waiting += ((part, is_element) for part in self._made_of(here))
                case Union(options=options):
                    waiting += ((option, is_element) for option in options)

    def _yields_batches(self, iterable: Expression, depth: int = 0) -> bool:
        """Return whether an iterable is a data loader, unless its batches are the same in all processes."""
        expr, scope = iterable.expr, iterable.scope
        if isinstance(expr, m.Call):
            wrapped = any(self._yields_batches(Expression(each, scope), depth) for each in expr.arguments)
            return wrapped or _is_loader(expr.function)
        bound = self.rank_tests.known(expr, scope) if isinstance(expr, (m.Name, m.Attribute)) else None
        if isinstance(bound, Expression) and isinstance(bound.expr, m.Call) and depth < _NAMES:
            name = self.rank_tests.resolver.qualify(bound.expr.function, bound.scope) or ""
            entry = self.catalog.exact("iterator", name)
            if entry is not None and entry.yields == "batches":
                return holds(entry.sampled, bound.expr)
            if self._yields_batches(bound, depth + 1):
                return True
        return _is_loader(expr)

    def _yields_share(self, expr: m.Expr, scope: Environment) -> bool:
        """Return whether an iterable yields only the elements for this process, according to its model."""
        name = self.rank_tests.resolver.qualify(expr.function, scope) if isinstance(expr, m.Call) else None
        return name is not None and loop_yields(self.catalog, name) == "share"

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


def _setting(expr: m.Expr) -> str:
    """Return the name of a setting that is read, or an empty string."""
    return expr.name if isinstance(expr, m.Attribute) else setting_of(expr)


def _is_loader(expr: m.Expr) -> bool:
    """Return whether an object or a function is named after a data loader, such as `test_loader`."""
    return not meaning("loader").isdisjoint(words(last_name(expr))[-1:])
