"""Which names a path leads through, one after the other, links included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_NAMES: Final = 300
"""How many names a path may lead through: the kernel gives up after 40 links."""


def trail(path: str, top: str, says: Callable[[str], str | None], *, follow: bool) -> Iterator[str]:
    """Follow a path as the kernel does.

    Args:
        path: An absolute path below the top, with links and dots in it.
        top: The folder that is not left.
        says: Tells what a link says, and None of what is no link.
        follow: Whether a link at the end is followed.

    Yields:
        Every name that is read, as a path without links before its end. The last is where the path leads, or
        the link that leads away from the top.
    """
    current, left = top, _names(path[len(top) :])
    yield top
    for _ in range(MOST_NAMES):
        if not left:
            return
        name = left.pop()
        if name == "..":
            current = top if current == top else current.rpartition("/")[0]
            yield current
            continue
        here = f"{current}/{name}"
        yield here
        target = says(here) if left or follow else None
        if target is None:
            current = here
        elif target.startswith("/"):
            if target != top and not target.startswith(top + "/"):
                return
            current, left = top, left + _names(target[len(top) :])
        else:
            left += _names(target)


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")][::-1]
