"""How the classes of a project are related."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from fsrace_lint.engine.query import query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fsrace_lint.engine.dependencies import Dependencies
    from fsrace_lint.program.modules import LinkedClass, LinkedFunction

Classes = TypeVar("Classes", bound="tuple[LinkedClass, ...]")

_MOST_HEIRS: Final = 500
"""How many classes may inherit from one, before what they bind says nothing of its objects."""


class ClassLinks(Protocol):
    """Finds what a class derives from, and what derives from it, in one step."""

    def bases_of(self, class_: LinkedClass, /) -> Iterable[LinkedClass]:
        """Return the bases of a class that are in the project, in the order of the code."""

    def subclasses_of(self, class_: LinkedClass, /) -> Iterable[LinkedClass]:
        """Return the classes that have a class among their bases, in the order of the project."""


class ClassHierarchy:
    """Finds the relatives of classes, and remembers them."""

    def __init__(self, links: ClassLinks, dependencies: Dependencies | None) -> None:
        """Take what finds the bases and the subclasses of one class."""
        self._links = links
        self.dependencies = dependencies

    @query
    def bases(self, class_: LinkedClass) -> tuple[LinkedClass, ...]:
        """Give those bases of a class that are in the project too."""
        return self._by_interface(lambda: tuple(self._links.bases_of(class_)))

    @query
    def subclasses(self, class_: LinkedClass) -> tuple[LinkedClass, ...]:
        """Give the classes of the project that have a class among their bases, each as often as it does."""
        return self._by_interface(lambda: tuple(self._links.subclasses_of(class_)))

    @query
    def ancestors(self, class_: LinkedClass) -> dict[LinkedClass, None]:
        """Give a class and those it inherits from, nearest first, each once."""
        return _reached(class_, self.bases, 0)

    @query
    def descendants(self, class_: LinkedClass) -> dict[LinkedClass, None]:
        """Give a class and those that inherit from it, each once."""
        return _reached(class_, self.subclasses, -1)

    @query
    def relatives(self, class_: LinkedClass) -> tuple[LinkedClass, ...]:
        """Give a class with its ancestors and its descendants; very many of these are left out."""
        family = self.descendants(class_)  # with this one
        heirs = family if len(family) - 1 <= _MOST_HEIRS else ()
        return tuple(dict.fromkeys((*self.ancestors(class_), *heirs)))

    def _by_interface(self, find: Callable[[], Classes]) -> Classes:
        """Find what depends on the interfaces of files alone."""
        return find() if self.dependencies is None else self.dependencies.interface_of(find)

    def method(self, class_: LinkedClass, name: str) -> LinkedFunction | None:
        """Find a method of a class, or of the nearest that it inherits from."""
        return self._first(name, self.ancestors(class_))

    def inherited(self, class_: LinkedClass, name: str) -> LinkedFunction | None:
        """Find a method in the nearest class that one inherits from."""
        return self._first(name, (each for each in self.ancestors(class_) if each is not class_))

    def _first(self, name: str, classes: Iterable[LinkedClass]) -> LinkedFunction | None:
        found = next((each.methods[name] for each in classes if name in each.methods), None)
        if found is not None and self.dependencies is not None:
            self.dependencies.file(found.module.relative)
        return found


def _reached(
    class_: LinkedClass, lead: Callable[[LinkedClass], Iterable[LinkedClass]], turn: int
) -> dict[LinkedClass, None]:
    """Give a class and all that it leads to; of those that wait, the first or the last has its turn."""
    seen: dict[LinkedClass, None] = {}
    waiting = [class_]
    while waiting:
        each = waiting.pop(turn)
        if each not in seen:
            seen[each] = None
            waiting.extend(lead(each))
    return seen
