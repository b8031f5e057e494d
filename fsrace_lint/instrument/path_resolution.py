"""The names that the resolution of a path visits, including those from links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_NAMES: Final = 300
"""The maximum number of names to visit; the kernel fails after 40 links."""


def trail(path: str, top: str, says: Callable[[str], str | None], *, follow: bool) -> Iterator[str]:
    """Resolve a path as the kernel does.

    Args:
        path: An absolute path below the top, which can contain links and dots.
        top: The directory that the resolution does not leave.
        says: Returns the target of a link, or None for anything else.
        follow: Whether to follow a link at the end.

    Yields:
        Every name that is read, as a path without links before its last part. The last one is the resolved
        path, or the link that leads out of the top, and then "".
    """
    current, left = top, _names(path[len(top) :])
    yield top
    for _ in range(MOST_NAMES):
        if not left:
            return
        name = left.pop()
        if name == "..":
            if current == top:
                yield ""
                return
            current = current.rpartition("/")[0]
            yield current
            continue
        here = f"{current}/{name}"
        yield here
        target = says(here) if left or follow else None
        if target is None:
            current = here
        elif target.startswith("/"):
            if target != top and not target.startswith(top + "/"):
                yield ""
                return
            current, left = top, left + _names(target[len(top) :])
        else:
            left += _names(target)


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")][::-1]
