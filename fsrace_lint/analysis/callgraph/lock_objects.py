"""Which expressions are interprocess locks: objects of libraries, and context managers of the project."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.values.abstract_values import (
    Argument,
    ContextResult,
    Expression,
    IterationElement,
    Union,
)
from fsrace_lint.analysis.values.trace_back import sides_of
from fsrace_lint.catalog.lexicon import says
from fsrace_lint.program.modules import LinkedClass, LinkedFunction
from fsrace_lint.program.symbols import is_property
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.traversal import all_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.analysis.callgraph.parameter_values import CallerRankTests
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.values.abstract_values import Binding, Environment

_DEEPEST: Final = 6
_LOOKING_UP: Final = frozenset({"get", "setdefault", "pop"})
_SAME_ITEMS: Final = frozenset({"values", "items", "list", "tuple", "sorted", "reversed", "enumerate"})
_PUTTING: Final = frozenset({"append", "add", "insert", "setdefault"})


class LockObjects:
    """Finds out whether a value is an interprocess lock."""

    def __init__(self, flows: FunctionFlows, rank_tests: CallerRankTests) -> None:
        """Initialize for a project."""
        self.flows = flows
        self.catalog = flows.catalog
        self.rank_tests = rank_tests

    def is_lock(self, context: Expression) -> bool:
        """Return whether a context is an interprocess lock, of a library or of the project.

        The lock can be created earlier, under a name, in a collection, and in only one of multiple branches.
        If its origin is unknown, its name decides.
        """
        return self._is_lock(context, 0)

    def is_decorator(self, decorator: Expression) -> bool:
        """Return whether a decorator is itself an interprocess lock, which is held while the function runs.

        A decorator of the project is a lock only if its code shows it, whatever its name.
        """
        expr = decorator.expr
        called = expr.function if isinstance(expr, m.Call) else expr
        entity = self.flows.resolver.symbol(called, decorator.scope)
        return self._is_lock(decorator, 0, by_name=not isinstance(entity, (LinkedFunction, LinkedClass)))

    def _is_lock(self, context: Expression, depth: int, *, by_name: bool = True) -> bool:
        origins = tuple(self._origins(context, depth))
        kinds = [self._kind(each, depth) for each in origins]
        if True in kinds or False in kinds or not by_name:
            return True in kinds
        return any(says(last_name(each.expr), "lock") for each in origins)

    def _origins(self, value: Expression, depth: int) -> Iterator[Expression]:
        """Yield an expression, and the expressions that its value may come from."""
        yield value
        for source in self._sources(value) if depth < _DEEPEST else ():
            yield from self._origins(source, depth + 1)

    def _sources(self, value: Expression) -> Iterator[Expression]:
        expr, scope = value.expr, value.scope
        match expr:
            case m.Conditional():
                yield from sides_of(value)
            case m.Walrus(value=named):
                yield Expression(named, scope)
            case m.Name() | m.Attribute():
                entity = self.flows.resolver.symbol(expr, scope)
                if is_property(entity):
                    yield from self.flows.return_values(entity)
                yield from self._bound(self.rank_tests.known(expr, scope))
            case m.Subscript(value=filled):
                yield from self._items(filled, scope)
            case m.Call(function=m.Attribute(value=filled, name=name)) if name in _LOOKING_UP:
                yield from (Expression(default, scope) for default in expr.arguments[1:2])
                yield from self._items(filled, scope)
            case m.Call():
                callee = self.flows.resolver.symbol(expr.function, scope)
                if isinstance(callee, LinkedFunction) and not callee.facts.is_generator:
                    yield from self.flows.return_values(callee)

    def _bound(self, binding: Binding | None) -> Iterator[Expression]:
        match binding:
            case Expression():
                yield binding
            case Union(options=options):
                for option in options:
                    yield from self._bound(option)
            case ContextResult(source=source):
                yield source
            case IterationElement(source=source):
                yield from self._items(source.expr, source.scope)

    def _items(self, filled: m.Expr, scope: Environment, depth: int = 0) -> Iterator[Expression]:
        """Yield what a collection may contain, as far as the project fills it."""
        match filled:
            case m.Name() | m.Attribute() if depth < _DEEPEST:
                for made in self._bound(self.rank_tests.known(filled, scope)):
                    yield from self._items(made.expr, made.scope, depth + 1)
                for function in self._filling(filled, scope):
                    final = self.flows.final_environment(function)
                    put = () if final is None else _put_into(filled, function.facts.body)
                    yield from (Expression(item, final) for item in put if final is not None)
            case m.Sequence(items=items) | m.Opaque(parts=items):
                yield from (Expression(item, scope) for item in items)
            case m.Comprehension(results=results):
                yield Expression(results[-1], scope)
            case m.Call(arguments=[m.Lambda(function=index), *_]):
                yield from self.flows.return_values(scope.function.module.functions[index])
            case m.Call(function=called, arguments=arguments) if last_name(called) in _SAME_ITEMS:
                whole = called.value if isinstance(called, m.Attribute) else next(iter(arguments), None)
                yield from () if whole is None else self._items(whole, scope, depth + 1)

    def _filling(self, filled: m.Expr, scope: Environment) -> Iterable[LinkedFunction]:
        """Return the functions that can put items into a variable, or into an attribute."""
        if isinstance(filled, m.Name):
            return scope.function, scope.function.module.code
        owner = self.flows.resolver.class_of(
            self.flows.resolver.symbol(filled.value, scope) if isinstance(filled, m.Attribute) else None
        )
        return () if owner is None else (f for c in owner.relatives for f in c.methods.values())

    def _kind(self, value: Expression, depth: int) -> bool | None:
        """Return whether an expression itself creates or denotes an interprocess lock; None if unknown."""
        expr, scope = value.expr, value.scope
        resolver = self.flows.resolver
        bound = self.rank_tests.known(expr, scope)
        passed = self._is_passed(bound, depth) if isinstance(bound, Argument) and depth < _DEEPEST else None
        if passed is not None:
            return passed
        entity = resolver.symbol(expr.function if isinstance(expr, m.Call) else expr, scope)
        class_, name = resolver.class_of(entity), resolver.type_name(entity)
        for each in (name,) if class_ is None else resolver.known_as(class_, depth):
            entry = self.catalog.find("lock", each)
            if entry is not None:
                return bool(entry.kind == "context")
            if each is not None and self.catalog.is_in_process(each):
                return False
        if isinstance(entity, LinkedFunction) and entity.facts.is_generator and self._takes(entity, depth):
            return True
        enter = None if class_ is None else class_.method("__enter__")
        return True if enter is not None and self._takes(enter, depth) else None

    def _is_passed(self, parameter: Argument, depth: int) -> bool | None:
        """Return whether all callers pass an interprocess lock for a parameter; None if unknown."""
        passed = list(self.rank_tests.passed(parameter))
        known = [each for each in passed if each is not None]
        if not passed or len(known) < len(passed):
            return None
        return all(self._is_lock(each, depth + 2) for each in known)

    def takes_lock(self, function: LinkedFunction) -> bool:
        """Return whether a context manager of the project holds a lock during its body."""
        return self._takes(function, 0)

    def _takes(self, function: LinkedFunction, depth: int) -> bool:
        if depth > _DEEPEST:
            return False
        call_sites = self.flows.call_sites(function)
        is_generator = function.facts.is_generator
        if is_generator:
            around = [each.contexts for each in self.flows.yield_points(function)]
        else:
            around = [call_site.all_contexts for call_site in call_sites]
        contexts = dict.fromkeys(itertools.chain.from_iterable(around))
        if any(self._is_lock(each, depth + 1) for each in contexts):
            return True
        return any(self._takes_at(call_site, depth + 1, created=not is_generator) for call_site in call_sites)

    def _takes_at(self, call_site: CallSite, depth: int, *, created: bool) -> bool:
        """Return whether a call acquires a lock, enters one on an `ExitStack`, or creates one."""
        call, scope = call_site.call, call_site.state.scope
        entry = self.catalog.find("lock", self.flows.resolver.qualify(call.function, scope))
        if entry is not None and entry.kind == "enter":
            return any(self._is_lock(Expression(given, scope), depth) for given in call.arguments[:1])
        if entry is not None:
            return entry.kind != "within" and (created or entry.kind != "context")
        acquires = self.flows.control_role(call.function, scope) == "acquire"
        if not acquires or not isinstance(call.function, m.Attribute):
            return False
        return self._is_lock(Expression(call.function.value, scope), depth)


def _put_into(filled: m.Expr, body: Iterable[m.Statement]) -> Iterator[m.Expr]:
    """Yield the items that statements put into a collection."""
    for statement in all_in(body):
        match statement:
            case m.Assign(targets=targets, value=value) if value is not None:
                if any(isinstance(each, m.Subscript) and each.value == filled for each in targets):
                    yield value
            case m.Evaluate(value=m.Call(function=m.Attribute(value=value, name=put)) as call):
                if value == filled and put in _PUTTING:
                    yield from call.arguments[-1:]
