"""Finds every place that stores a function: modules, classes, defaults, cells, containers, and partials."""

from __future__ import annotations

import builtins
import gc
import sys
import types
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

DEEPEST: Final = 5
"""How many containers can be nested around a function, such as a partial in a tuple of defaults."""
_LOCALS: Final = (types.FrameType, types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_WRAPPERS: Final = (staticmethod, classmethod)
_INSIDE: Final = (types.FunctionType, types.MethodType, types.CellType, tuple, list, dict, partial, type)


_FEW: Final = 200
"""Up to this number of objects, `gc.get_referrers()` is faster: it takes time for each of them."""


class Site(NamedTuple):
    """A place that stores a function, and the setter that replaces it."""

    put: Callable[[Any], None]
    kept: Any
    replacement: Any


class Holders:
    """The places that store some functions.

    Args:
        table: The replacements, by original function.
        exempt: Prefixes of the names of modules that keep the original functions.
        kept: Containers that keep the original functions.

    Attributes:
        sites: The places that can be changed.
    """

    def __init__(self, table: Mapping[Any, Any], exempt: tuple[str, ...], kept: list[Any]) -> None:
        self.sites: list[Site] = []
        self._exempt = exempt
        self._classes: dict[int, type] = {}
        self._own = self._reachable(table)
        self._own.update({id(each): each for each in (table, *kept)})
        self._objects: list[Any] = []
        functions = [(old, new) for old, new in table.items() if not isinstance(old, type)]
        self._names = {id(old): old.__name__ for old, _ in functions}
        frozen = gc.get_freeze_count()
        # `gc.get_objects()` skips frozen objects
        gc.unfreeze()
        try:
            self._search(functions)
        finally:
            if frozen:
                gc.freeze()

    def _reachable(self, table: Mapping[Any, Any]) -> dict[int, Any]:
        """Return the objects of the exempt modules, which keep the original functions."""
        loaded: list[tuple[str, Any]] = list(sys.modules.items())
        modules = [vars(module) for name, module in loaded if module and name.startswith(self._exempt)]
        outside = {id(vars(builtins)), id(sys.modules)}
        found: dict[int, Any] = {}
        todo: list[Any] = [*modules, *table.values()]
        while todo:
            each = todo.pop()
            if id(each) in found or id(each) in outside:
                continue
            found[id(each)] = each
            for inner in gc.get_referents(each):
                if isinstance(inner, _INSIDE):
                    if isinstance(inner, (type, types.FunctionType)) and not self._is_ours(inner):
                        continue
                    todo.append(inner)
                elif self._is_ours(type(inner)):
                    todo.append(inner)
        return found

    def _is_ours(self, made: Any) -> bool:
        return str(getattr(made, "__module__", "")).startswith(self._exempt)

    def _search(self, level: list[tuple[Any, Any]]) -> None:
        objects = gc.get_objects()
        classes = [each for each in objects if isinstance(each, type)]
        for _ in range(DEEPEST):
            if level:
                level = self._replace(level, objects, classes)

    def _replace(
        self, level: list[tuple[Any, Any]], objects: list[Any], classes: list[type]
    ) -> list[tuple[Any, Any]]:
        """Find where some objects are stored, and return the immutable holders with their replacements."""
        old_by_id = {id(old): new for old, new in level}
        ignored = {id(level), *map(id, level), *self._own}
        found = _referring([old for old, _ in level], objects)
        holders = [each for each in found if id(each) not in ignored and not isinstance(each, _LOCALS)]
        self._note_classes(holders, classes)
        copies: list[tuple[Any, Any]] = []
        for holder in holders:
            made = _remade(holder, old_by_id)
            if made is None:
                self.sites += self._sites(holder, old_by_id)
            else:
                copies.append((holder, made))
        return copies

    def _note_classes(self, holders: list[Any], classes: list[type]) -> None:
        """Find which of the dictionaries are those of classes."""
        known = {id(each) for each in holders if type(each) is dict}
        for owner in classes if known else ():
            for inner in gc.get_referents(owner):
                if id(inner) in known:
                    self._classes[id(inner)] = owner

    def fixed(self, audited: tuple[str, ...]) -> list[str]:
        """Return descriptions of the objects that still refer to an original function.

        Args:
            audited: The names of functions that do not matter, because an audit hook reports their calls.
        """
        old = {each for each, name in self._names.items() if name not in audited}
        remain = [each for each in self._objects if any(id(inner) in old for inner in gc.get_referents(each))]
        return [*dict.fromkeys(map(_named, remain))]

    def _sites(self, holder: Any, new: dict[int, Any]) -> Iterator[Site]:
        owner = self._classes.get(id(holder))
        if owner is not None:
            for name, value in list(holder.items()):
                if id(value) in new:
                    yield Site(partial(setattr, owner, name), value, _as_attribute(value, new[id(value)]))
        elif isinstance(holder, partial):
            yield _in_partial(holder, new)
        elif isinstance(holder, types.CellType):
            value = holder.cell_contents
            yield Site(partial(setattr, holder, "cell_contents"), value, new[id(value)])
        elif isinstance(holder, (dict, list, set, deque)):
            yield from _in_container(holder, new)
        elif not isinstance(holder, type):
            self._objects.append(holder)
            yield from _in_attributes(holder, new)


def _referring(held: list[Any], objects: list[Any]) -> list[Any]:
    """Return those of some objects that refer to one of some others."""
    if len(held) <= _FEW:
        return [each for each in gc.get_referrers(*held) if each is not held and each is not objects]
    referents, ids = gc.get_referents, set(map(id, held))
    return [each for each in objects if not ids.isdisjoint(map(id, referents(each)))]


def _remade(holder: Any, new: dict[int, Any]) -> Any:
    """Return a copy of an immutable holder that stores the replacements, or None if it can change."""
    kind = type(holder)
    if kind is tuple or kind is frozenset:
        return kind(new.get(id(each), each) for each in holder)
    if isinstance(holder, tuple) and hasattr(kind, "_make"):
        return kind._make(new.get(id(each), each) for each in holder)
    if kind is property:
        get, put, delete = (new.get(id(each), each) for each in (holder.fget, holder.fset, holder.fdel))
        return property(get, put, delete, holder.__doc__)
    if kind in _WRAPPERS and id(holder.__func__) in new:
        return kind(new[id(holder.__func__)])
    if kind is types.MethodType and id(holder.__func__) in new:
        return types.MethodType(new[id(holder.__func__)], holder.__self__)
    return None


def _in_container(holder: Any, new: dict[int, Any]) -> Iterator[Site]:
    if isinstance(holder, set):
        for value in list(holder):
            if id(value) in new:
                yield Site(partial(_put_in_set, holder, value, new[id(value)]), value, new[id(value)])
        return
    items = enumerate(holder) if not isinstance(holder, dict) else list(holder.items())
    put = dict.__setitem__ if isinstance(holder, dict) else type(holder).__setitem__
    for key, value in items:
        if id(value) in new:
            yield Site(partial(put, holder, key), value, new[id(value)])


def _as_attribute(value: Any, replacement: Any) -> Any:
    """Return what behaves as an attribute of a class as a function in C does: it does not bind."""
    if isinstance(value, types.BuiltinFunctionType):
        return staticmethod(replacement)
    return replacement


def _put_in_set(holder: set[Any], old: Any, new: Any, value: Any) -> None:
    holder.discard(new if value is old else old)
    holder.add(value)


def _in_partial(holder: partial[Any], new: dict[int, Any]) -> Site:
    def put(state: tuple[Any, ...]) -> None:
        holder.__setstate__(state)  # type: ignore[attr-defined]

    kept = (holder.func, holder.args, holder.keywords, vars(holder) or None)
    func, args = new.get(id(holder.func), holder.func), new.get(id(holder.args), holder.args)
    return Site(put, kept, (func, args, *kept[2:]))


def _in_attributes(holder: Any, new: dict[int, Any]) -> Iterator[Site]:
    """Find attributes of a function or another object: defaults, slots, and those that have no dictionary."""
    names = dict.fromkeys(
        ("__defaults__", "__kwdefaults__") if isinstance(holder, types.FunctionType) else ()
    )
    for kind in type(holder).__mro__:
        slots = vars(kind).get("__slots__", ())
        names |= dict.fromkeys((slots,) if isinstance(slots, str) else slots)
    names |= dict.fromkeys(getattr(holder, "__dict__", ()))
    for name in names:
        try:
            value = object.__getattribute__(holder, name)
        except Exception:  # noqa: BLE001, S112  # a descriptor can raise anything
            continue
        if id(value) in new:
            yield Site(partial(_put_attribute, holder, name), value, new[id(value)])


def _put_attribute(holder: Any, name: str, value: Any) -> None:
    if isinstance(holder, types.FunctionType):
        setattr(holder, name, value)
    else:
        object.__setattr__(holder, name, value)


def _named(holder: Any) -> str:
    wrapped = getattr(holder, "__wrapped__", None)
    name = getattr(holder, "__qualname__", None) or getattr(wrapped, "__qualname__", "")
    module = getattr(holder, "__module__", None) or getattr(wrapped, "__module__", "")
    kind = type(holder).__name__
    return f"{module}.{name} (a {kind})" if name else f"a {kind} object"
