"""The relations between the classes of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from fsrace_lint.engine.query import query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fsrace_lint.engine.dependencies import Dependencies
    from fsrace_lint.program.modules import LinkedClass, LinkedFunction

Classes = TypeVar("Classes", bound="tuple[LinkedClass, ...]")

_MOST_HEIRS: Final = 500
"""The number of descendants above which their code says little about an object of the class."""


class ClassLinks(Protocol):
    """A finder of the direct bases and the direct subclasses of a class."""

    def bases_of(self, class_: LinkedClass, /) -> Iterable[LinkedClass]:
        """Return the bases of a class that are in the project, in the order of the code."""

    def subclasses_of(self, class_: LinkedClass, /) -> Iterable[LinkedClass]:
        """Return the classes that have a class among their bases, in the order of the project."""


class ClassHierarchy:
    """The relatives of classes, memoized."""

    def __init__(self, links: ClassLinks, dependencies: Dependencies | None) -> None:
        """Initialize with a finder of direct bases and subclasses."""
        self._links = links
        self.dependencies = dependencies

    @query
    def bases(self, class_: LinkedClass) -> tuple[LinkedClass, ...]:
        """Return the bases of a class that are in the project."""
        return self._by_interface(lambda: tuple(self._links.bases_of(class_)))

    @query
    def subclasses(self, class_: LinkedClass) -> tuple[LinkedClass, ...]:
        """Return the direct subclasses of a class in the project, as often as each lists it as a base."""
        return self._by_interface(lambda: tuple(self._links.subclasses_of(class_)))

    @query
    def ancestors(self, class_: LinkedClass) -> dict[LinkedClass, None]:
        """Return a class and its ancestors, nearest first, each once."""
        return _reached(class_, self.bases, 0)

    @query
    def descendants(self, class_: LinkedClass) -> dict[LinkedClass, None]:
        """Return a class and its descendants, each once."""
        return _reached(class_, self.subclasses, -1)

    @query
    def relatives(self, class_: LinkedClass) -> tuple[LinkedClass, ...]:
        """Return a class with its ancestors, and its descendants unless there are very many."""
        family = self.descendants(class_)  # including this class
        heirs = family if len(family) - 1 <= _MOST_HEIRS else ()
        return tuple(dict.fromkeys((*self.ancestors(class_), *heirs)))

    def _by_interface(self, find: Callable[[], Classes]) -> Classes:
        """Compute a result that depends only on the interfaces of files."""
        return find() if self.dependencies is None else self.dependencies.interface_of(find)

    def method(self, class_: LinkedClass, name: str) -> LinkedFunction | None:
        """Return a method of a class or of its nearest ancestor that has it, or None."""
        return self._first(name, self.ancestors(class_))

    def inherited(self, class_: LinkedClass, name: str) -> LinkedFunction | None:
        """Return a method of the nearest ancestor that has it, or None."""
        return self._first(name, (each for each in self.ancestors(class_) if each is not class_))

    def _first(self, name: str, classes: Iterable[LinkedClass]) -> LinkedFunction | None:
        found = next((each.methods[name] for each in classes if name in each.methods), None)
        if found is not None and self.dependencies is not None:
            self.dependencies.file(found.module.relative)
        return found


def _reached(
    class_: LinkedClass, lead: Callable[[LinkedClass], Iterable[LinkedClass]], turn: int
) -> dict[LinkedClass, None]:
    """Return a class and all classes reachable from it.

    Args:
        class_: The class.
        lead: Returns the neighbors of a class.
        turn: The index of the next class to visit in the list of waiting ones: 0 or -1.
    """
    seen: dict[LinkedClass, None] = {}
    waiting = [class_]
    while waiting:
        each = waiting.pop(turn)
        if each not in seen:
            seen[each] = None
            waiting.extend(lead(each))
    return seen
