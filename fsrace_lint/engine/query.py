"""Queries: methods that are computed on demand and memoized, even if they depend on themselves.

A method computes a result from its arguments; `query` decides when and how often the method runs. Classes
whose queries call each other share these attributes:

* `cycles`, a `CycleDetector`: the queries that may recurse into each other;
* `budget`, a `DepthBudget`: the recursion steps that the queries may take;
* `dependencies`, a `Dependencies`: the inputs of the results, or None to skip recording.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, TypeVar, cast, overload

from fsrace_lint.engine.cycles import CycleDetector
from fsrace_lint.engine.dependencies import UNSETTLED, recorded, recorded_in_cycles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fsrace_lint.engine.cycles import CombinedDependence, Dependence
    from fsrace_lint.engine.dependencies import Dependencies
    from fsrace_lint.engine.depth_budget import DepthBudget

Owner = TypeVar("Owner")
Key = ParamSpec("Key")
Result = TypeVar("Result")
One = TypeVar("One")
Asked = TypeVar("Asked")
Itself = TypeVar("Itself")

_ATTEMPTS: Final = 4
"""The number of computations of a key after which a result is kept even if it is not final."""
_NOTHING: Final = object()
_SELF_AND_ONE: Final = 2


class lazy(Generic[Owner, Result]):  # noqa: N801  # used as a decorator, as `property` is
    """A property that is computed on first access."""

    def __init__(self, compute: Callable[[Owner], Result]) -> None:
        """Initialize the property with the method that computes it."""
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self: Itself, owner: None, _class: type[Owner]) -> Itself: ...

    @overload
    def __get__(self, owner: Owner, _class: type[Owner] | None = None) -> Result: ...

    def __get__(self, owner: Owner | None, _class: type[Owner] | None = None) -> Any:
        """Compute the value and store it as an attribute, so that later accesses bypass the descriptor."""
        if owner is None:
            return self
        found = self._compute(owner)
        setattr(owner, self._name, found)  # `__dict__` would slow down all other attributes
        return found


class Query(lazy[Owner, "Callable[Key, Result]"], Generic[Owner, Key, Result]):
    """A memoized method whose results are stored in the object that it is called on."""

    def __init__(
        self,
        compute: Callable[Concatenate[Owner, Key], Result],
        make: Callable[[Any, Callable[..., Result]], Callable[..., Result] | Table[Any, Result]],
    ) -> None:
        """Initialize the query.

        Args:
            compute: The method.
            make: Creates the table of results for one object.

        Raises:
            TypeError: The method has keyword-only parameters.
        """
        if compute.__code__.co_kwonlyargcount:
            raise TypeError(f"{compute.__qualname__}: the key of a query is its positional arguments")
        self.compute, self._table_name = compute, f"{compute.__name__} table"

        @functools.wraps(compute)
        def ask(owner: Owner) -> Callable[Key, Result]:
            made = make(owner, functools.partial(compute, owner))
            if isinstance(made, Table):
                setattr(owner, self._table_name, made)
            return made.ask if isinstance(made, Table) else made

        super().__init__(ask)

    def table(self, owner: Owner) -> Table[Key, Result]:
        """Return the table of results of an object; only for queries with a provisional result."""
        if not hasattr(owner, self._table_name):
            self.__get__(owner)
        return cast("Table[Key, Result]", getattr(owner, self._table_name))


@overload
def query(compute: Callable[Concatenate[Owner, Key], Result], /) -> Query[Owner, Key, Result]: ...


@overload
def query(
    *, provisional: object = ..., shared: bool = ..., limit: int = ..., keep: int = ...
) -> Callable[[Callable[Concatenate[Owner, Key], Result]], Query[Owner, Key, Result]]: ...


def query(
    compute: Callable[..., Any] | None = None,
    /,
    *,
    provisional: object = _NOTHING,
    shared: bool = False,
    limit: int = 40,
    keep: int | None = None,
) -> Any:
    """Memoize a method by its positional arguments.

    Args:
        compute: The method. It must not depend on its own result for the same key, unless there is a
            `provisional` result.
        provisional: The result of a query that is called while it is being computed. A result that depends on
            a provisional one is reused only while the same queries are being computed, because a call from
            elsewhere can return another result.
        shared: Whether cycles may lead through other queries that use the same `cycles`. Without a
            provisional result, only final results are kept.
        limit: The number of nested queries from which on the result is `provisional`.
        keep: The maximum number of results to keep, or None for all.

    Returns:
        The query, or a decorator if `compute` is not passed.
    """
    if compute is not None:
        if compute.__code__.co_argcount == _SELF_AND_ONE:
            return Query(compute, _of_one_argument)
        return Query(compute, lambda owner, find: _plain(owner, find, None))
    if provisional is not _NOTHING:
        return lambda method: Query(
            method, lambda owner, find: Table(owner, find, provisional, limit, shared=shared)
        )
    if shared:
        return lambda method: Query(method, lambda owner, find: _final(owner, find, keep))
    return lambda method: Query(method, lambda owner, find: _plain(owner, find, keep))


def recursive_query(
    *, beyond: object, once: bool = False
) -> Callable[[Callable[Concatenate[Owner, Key], Result]], Query[Owner, Key, Result]]:
    """Memoize a method whose last parameter is the recursion depth, within the `budget` of its object.

    A result is reused where it would be the same: at the same depth, or wherever all its steps fit into the
    budget.

    Args:
        beyond: The result beyond the last step. Most results equal it, so these are stored compactly.
        once: Whether, during one outermost computation, a key is computed again only if its result was
            `beyond` and the depth is smaller. A key that is still being computed yields `beyond`; its outer
            computation finds the rest.

    Returns:
        A decorator that returns the query.
    """

    def of(method: Callable[Concatenate[Owner, Key], Result]) -> Query[Owner, Key, Result]:
        arguments = method.__code__.co_argcount - 2  # without the object and the depth
        return Query(method, lambda owner, find: _budgeted(owner, find, arguments, beyond, once=once))

    return of


def joint_query(
    compute: Callable[[Owner, One], Mapping[One, Result]],
) -> lazy[Owner, JointTable[One, Result]]:
    """Memoize a method that returns the results of multiple keys at once, including the requested one."""

    @functools.wraps(compute)
    def table(owner: Owner) -> JointTable[One, Result]:
        return JointTable(functools.partial(compute, owner))

    return lazy(table)


class JointTable(Generic[One, Result]):
    """The results of a joint query."""

    def __init__(self, find: Callable[[One], Mapping[One, Result]]) -> None:
        """Create an empty table.

        Args:
            find: Returns the results of a key and of related keys.
        """
        self._find = find
        self._known: dict[One, Result] = {}

    def __call__(self, key: One) -> Result:
        """Return the result for a key."""
        if key not in self._known:
            self._known.update(self._find(key))
        return self._known[key]

    def known(self, key: One) -> Result | None:
        """Return the result for a key if it is known already, for example from a related key; else None."""
        return self._known.get(key)


class _OfOneArgument(dict[Any, Any]):
    """The results of a query with one argument, in half the memory of a general table."""

    def __init__(self, find: Callable[[Any], Any]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, key: Any) -> Any:
        found = self[key] = self._find(key)
        return found


def _of_one_argument(owner: Any, find: Callable[[Any], Result]) -> Callable[[Any], Result]:
    return _table(owner, lambda: _OfOneArgument(find).__getitem__)


def computed_once(function: Callable[Key, Result]) -> Callable[Key, Result]:
    """Return a memoizing wrapper of a function, which keeps all results."""
    return cast("Callable[Key, Result]", functools.lru_cache(None)(function))


def _table(
    owner: Any,
    make: Callable[[], Callable[..., Result]],
    keep: int | None = None,
    arguments: int | None = None,
) -> Callable[..., Result]:
    dependencies = getattr(owner, "dependencies", None)
    return make() if dependencies is None else recorded(make, dependencies, keep=keep, arguments=arguments)


def _plain(owner: Any, find: Callable[..., Result], keep: int | None) -> Callable[..., Result]:
    return _table(owner, lambda: functools.lru_cache(keep)(find), keep)


def _final(owner: Any, find: Callable[..., Result], keep: int | None) -> Callable[..., Result]:
    return _table(owner, functools.partial(_of_final, owner.cycles, find, keep), keep)


def _of_final(cycles: CycleDetector, find: Callable[..., Result], keep: int | None) -> Callable[..., Result]:
    """Create a table of results that may depend on queries being computed, which other tables contain."""
    known: dict[Any, Result] = {}
    meanwhile = _Meanwhile[Any, Result]()

    def ask(*key: Any) -> Result:
        if key in known:
            return known[key]
        if key in meanwhile and (reused := meanwhile.of(key)):
            return reused[0]
        truncated, outer, dependence = cycles.truncated, cycles.begin(), None
        try:
            result = find(*key)
        finally:
            dependence = cycles.end(outer)
        if truncated != cycles.truncated:
            return result
        if dependence is not None:
            meanwhile[key] = result, dependence
        else:
            if keep is not None and len(known) >= keep:
                known.clear()
            known[key] = result
        return result

    return ask


class _Meanwhile(dict[Asked, "tuple[Result, Dependence | CombinedDependence]"]):
    """Results that are not final, each reused while the queries that it depends on are active."""

    def of(self, key: Asked) -> tuple[Result] | None:
        """Return the result for a key in a tuple, and that the current result depends on the same queries.

        A result that can no longer be used is dropped, and None is returned.
        """
        result, dependence = self[key]
        if not dependence.holds():
            del self[key]
            return None
        dependence.inherit()
        return (result,)


def _budgeted(
    owner: Any, find: Callable[..., Result], arguments: int, beyond: object, *, once: bool
) -> Callable[..., Result]:
    budget, nothing = owner.budget, cast("Result", beyond)
    look = functools.partial(_visited, budget, find, nothing) if once else find
    make = functools.partial(_of_budget, budget, look, arguments, nothing)
    return _table(owner, make, arguments=arguments)


def _of_budget(
    budget: DepthBudget, find: Callable[..., Result], arguments: int, nothing: Result
) -> Callable[..., Result]:
    """Create a table of results that stay within the depth budget."""
    cycles, limit = budget.cycles, budget.limit
    usual = tuple((steps, nothing) for steps in range(limit + 1))
    whole: dict[Any, tuple[int, Result]] = {}
    """The number of steps and the result of each query that stayed within the limit."""
    cut: dict[Any, Result] = {}
    """The results that the limit truncated, by key and depth."""
    meanwhile = _Meanwhile[Any, "tuple[int, Result]"]()
    """The deepest step and the result of each query whose result is not final, by key and depth."""

    def ask(question: Any, depth: int = 0) -> Result:
        if depth > budget.used:
            budget.used = depth
        if depth > limit:
            return nothing
        known = whole.get(question)
        if known is not None and (reached := depth + known[0]) <= limit:
            if reached > budget.used:
                budget.used = reached
            return known[1]
        if cut and (question, depth) in cut:
            budget.used = limit + 1
            return cut[question, depth]
        if (question, depth) in meanwhile and (reused := meanwhile.of((question, depth))):
            ((reached, result),) = reused
            budget.used = max(budget.used, reached)
            return result
        truncated, provisional = cycles.truncated, budget.provisional
        outer, budget.used = budget.used, depth
        began: Any = cycles.begin()
        dependence = None
        try:
            result = find(question, depth) if arguments == 1 else find(*question, depth)
        finally:
            reached = budget.used
            budget.used = max(outer, reached)
            dependence = cycles.end(began)
        if truncated != cycles.truncated or provisional != budget.provisional:
            return result
        if dependence is not None:
            meanwhile[question, depth] = (reached, result), dependence
        elif reached <= limit:
            steps = reached - depth
            whole[question] = usual[steps] if result is nothing else (steps, result)
        else:
            cut[question, depth] = result
        return result

    def ask_of_several(*key: Any) -> Result:
        return ask(key[:arguments], *key[arguments:])

    return ask if arguments == 1 else ask_of_several


def _visited(budget: DepthBudget, find: Callable[..., Result], nothing: Result, *key: Any) -> Result:
    """Compute a result, unless the key has one already or was visited at this depth or a smaller one."""
    if budget.visits is None:
        budget.visits = {}
        try:
            return _visited(budget, find, nothing, *key)
        finally:
            budget.visits = None
    *question, depth = key
    place = find, *question
    before, known = budget.visits.get(place, (depth + 1, nothing))
    if known is not nothing or before <= depth:
        budget.provisional += 1
        return cast("Result", known)
    budget.visits[place] = depth, nothing
    result = find(*key)
    budget.visits[place] = depth, result
    return result


class Table(Generic[Key, Result]):
    """The results of a query that may depend on itself, independent of the order of the calls.

    A query that is called while it is being computed returns the provisional result. Two limits are
    exceptions to the independence: the number of nested queries, and the number of computations of one key.
    """

    def __init__(
        self, owner: Any, find: Callable[Key, Result], provisional: object, limit: int, *, shared: bool
    ) -> None:
        """Create an empty table; see `query` for the arguments."""
        self._find, self._provisional, self._limit = find, cast("Result", provisional), limit
        self._cycles: CycleDetector = owner.cycles if shared else CycleDetector()
        self._known: dict[Any, Result] = {}
        self._active: dict[Any, int] = {}
        """The keys that are being computed, with their depths."""
        self._attempts: dict[Any, int] = {}
        self._meanwhile = _Meanwhile[Any, Result]()
        self.not_final: set[Any] = set()
        """Keys whose result was kept after `_ATTEMPTS` computations although it is not final."""
        self._dependencies: Dependencies | None = getattr(owner, "dependencies", None)
        self.ask: Callable[..., Result] = self._asked
        """Returns the result for a key."""
        self.inputs: dict[Any, int] = {}
        """The inputs that each result depends on, if dependencies are recorded."""
        if self._dependencies is not None:
            self.ask = recorded_in_cycles(self._asked, self._dependencies, self.inputs, self.is_final)

    def _asked(self, *key: Any) -> Result:
        if key in self._known:
            return self._known[key]
        cycles = self._cycles
        if key in self._active:
            cycles.note_cycle(self._active[key])
            return self._provisional
        if cycles.depth >= self._limit:
            cycles.truncated += 1
            return self._provisional
        if key in self._meanwhile and (reused := self._meanwhile.of(key)):
            return reused[0]
        self._active[key] = cycles.depth
        try:
            result, dependence = cycles.compute(functools.partial(self._find, *key))
        finally:
            del self._active[key]
        attempts = 0 if dependence is None else self._attempts.pop(key, 0) + 1
        if dependence is None or attempts >= _ATTEMPTS:
            self._known[key] = result
            if dependence is not None:
                self.not_final.add(key)
        else:
            self._attempts[key] = attempts
            self._meanwhile[key] = result, dependence
        return result

    def known(self, *key: Key.args, **_: Key.kwargs) -> Result | None:
        """Return the result for a key if it is known, else None."""
        result = self._known.get(key)
        if result is not None and self._dependencies is not None:
            self._dependencies.inputs |= self.inputs.get(key, 0)
        return result

    def is_final(self, *key: Any) -> bool:
        """Return whether the result for a key is known and final."""
        return key in self._known and key not in self.not_final

    def is_active(self, *key: Key.args, **_: Key.kwargs) -> bool:
        """Return whether a key is being computed, and if so note that the caller depends on a cycle."""
        if key not in self._active:
            return False
        self._cycles.note_cycle(self._active[key])
        return True

    def remember(self, results: dict[Any, Result], inputs: dict[Any, int]) -> None:
        """Add results from another table, for keys that have no result here.

        Args:
            results: The results by key. The table takes ownership of the dictionary.
            inputs: The inputs that the results depend on.
        """
        results.update(self._known)
        self._known = results
        self.inputs.update(inputs)

    def independent_of(self, changed: int) -> tuple[dict[Any, Result], dict[Any, int]]:
        """Return the results that depend on none of the changed inputs, and their inputs."""
        unwanted = changed | UNSETTLED
        inputs = {
            key: found for key, found in self.inputs.items() if not found & unwanted and key in self._known
        }
        return {key: self._known[key] for key in inputs}, inputs

    def __len__(self) -> int:
        """Return the number of known results."""
        return len(self._known)
