"""The paths that nodes share, according to the settings."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING, Final

from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.paths.abstract_path import AbstractPath, Component

_NAME: Final = re.compile(r"\w+")


class Storage(Record, frozen=True):
    """The filesystem settings of the user.

    An entry of `shared` and `local` is one of:

    * the beginning of a path, whose components can be globs (`/mnt/*/data`);
    * an environment variable (`$SCRATCH`);
    * the name of a variable, an option, or a directory (`checkpoint_dir`).

    Attributes:
        filesystem: The storage of all other paths: `shared`, `local`, or `auto` if unknown.
        shared: Paths that all nodes share.
        local: Paths that differ per node.
    """

    filesystem: str = "auto"
    shared: tuple[str, ...] = ()
    local: tuple[str, ...] = ()

    def named(self, path: AbstractPath | None, spelled: str) -> bool | None:
        """Return whether the settings declare a path as shared.

        Args:
            path: The normal form of the path, if known.
            spelled: The path, as in the source.

        Returns:
            True for a shared path, False for a node-local one, and None if no entry matches. The longest
            matching entry decides.
        """
        shared = max((len(text) for text in self.shared if _fits(text, path, spelled)), default=0)
        local = max((len(text) for text in self.local if _fits(text, path, spelled)), default=0)
        return None if not shared and not local else shared > local


def _fits(text: str, path: AbstractPath | None, spelled: str) -> bool:
    if text.startswith("$"):
        return _fits_variable(text.strip("${}"), path, spelled)
    if _NAME.fullmatch(text):
        spellings = (spelled, *(symbol.text for symbol in path.variables())) if path else (spelled,)
        folders = [] if path is None else list(_literal(path.components))
        return text in folders or any(text in _names(spelling) for spelling in spellings)
    wanted = text.rstrip("/").split("/")
    found = [] if path is None else list(_literal(path.components))
    return len(found) >= len(wanted) and all(map(_matches, found, wanted))


def _fits_variable(name: str, path: AbstractPath | None, spelled: str) -> bool:
    """Return whether a path contains an environment variable, read in Python or left to the shell."""
    spellings = (spelled, *(symbol.text for symbol in path.variables())) if path else (spelled,)
    if any(repr(name) in spelling and "env" in spelling for spelling in spellings):
        return True
    return path is not None and not {f"${name}", f"${{{name}}}"}.isdisjoint(_literal(path.components))


def _names(spelling: str) -> Iterator[str]:
    """Yield the identifiers in a spelling, without its string literals."""
    yield from _NAME.findall(re.sub(r"'[^']*'", "", spelling))


def _literal(components: tuple[Component, ...]) -> Iterator[str | None]:
    """Yield the components of a path as text, or None if a component is not literal."""
    for component in components:
        text = "".join(piece for piece in component if isinstance(piece, str))
        yield None if any(not isinstance(piece, str) for piece in component) else text


def _matches(found: str | None, wanted: str) -> bool:
    return found is not None and fnmatch.fnmatchcase(found, wanted)
