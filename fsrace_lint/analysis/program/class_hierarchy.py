"""How the classes of a project are related."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fsrace_lint.analysis.program.modules import LinkedClass, LinkedFunction

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

    def __init__(self, links: ClassLinks) -> None:
        """Take what finds the bases and the subclasses of one class."""
        self._links = links
        self._bases: dict[LinkedClass, tuple[LinkedClass, ...]] = {}
        self._subclasses: dict[LinkedClass, tuple[LinkedClass, ...]] = {}
        self._ancestors: dict[LinkedClass, dict[LinkedClass, None]] = {}
        self._descendants: dict[LinkedClass, dict[LinkedClass, None]] = {}
        self._relatives: dict[LinkedClass, tuple[LinkedClass, ...]] = {}

    def bases(self, class_: LinkedClass) -> tuple[LinkedClass, ...]:
        """Give those bases of a class that are in the project too."""
        if class_ not in self._bases:
            self._bases[class_] = tuple(self._links.bases_of(class_))
        return self._bases[class_]

    def subclasses(self, class_: LinkedClass) -> tuple[LinkedClass, ...]:
        """Give the classes of the project that have a class among their bases, each as often as it does."""
        if class_ not in self._subclasses:
            self._subclasses[class_] = tuple(self._links.subclasses_of(class_))
        return self._subclasses[class_]

    def ancestors(self, class_: LinkedClass) -> dict[LinkedClass, None]:
        """Give a class and those it inherits from, nearest first, each once."""
        if class_ not in self._ancestors:
            self._ancestors[class_] = _reached(class_, self.bases, 0)
        return self._ancestors[class_]

    def descendants(self, class_: LinkedClass) -> dict[LinkedClass, None]:
        """Give a class and those that inherit from it, each once."""
        if class_ not in self._descendants:
            self._descendants[class_] = _reached(class_, self.subclasses, -1)
        return self._descendants[class_]

    def relatives(self, class_: LinkedClass) -> tuple[LinkedClass, ...]:
        """Give a class with its ancestors and its descendants; very many of these are left out."""
        if class_ not in self._relatives:
            family = self.descendants(class_)  # with this one
            heirs = family if len(family) - 1 <= _MOST_HEIRS else ()
            self._relatives[class_] = tuple(dict.fromkeys((*self.ancestors(class_), *heirs)))
        return self._relatives[class_]

    def method(self, class_: LinkedClass, name: str) -> LinkedFunction | None:
        """Find a method of a class, or of the nearest that it inherits from."""
        return next((each.methods[name] for each in self.ancestors(class_) if name in each.methods), None)

    def inherited(self, class_: LinkedClass, name: str) -> LinkedFunction | None:
        """Find a method in the nearest class that one inherits from."""
        above = (each for each in self.ancestors(class_) if each is not class_)
        return next((each.methods[name] for each in above if name in each.methods), None)


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
