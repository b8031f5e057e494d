"""Which paths the nodes share, as far as the user says so."""

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
    """What the user says of the filesystems of a job.

    `shared` and `local` name paths that all nodes share, or that each node has for
    itself: the beginning of a path, whose components may be globs (`/mnt/*/data`);
    an environment variable (`$SCRATCH`); or the name of a variable, an option or a
    folder (`checkpoint_dir`). `filesystem` says it of all others: `shared`, `local`,
    or `auto` where nothing is known of them.
    """

    filesystem: str = "auto"
    shared: tuple[str, ...] = ()
    local: tuple[str, ...] = ()

    def named(self, path: AbstractPath | None, spelled: str) -> bool | None:
        """Tell whether the user names a path as shared.

        Args:
            path: Its normal form, where that is known.
            spelled: How the source spells it.

        Returns:
            True for a path that all nodes share, False for one that each node has
            for itself, as the longest name says that fits; None where none does.
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
    """Tell whether an environment variable is a part of a path, read by the program or left to the shell."""
    spellings = (spelled, *(symbol.text for symbol in path.variables())) if path else (spelled,)
    if any(repr(name) in spelling and "env" in spelling for spelling in spellings):
        return True
    return path is not None and not {f"${name}", f"${{{name}}}"}.isdisjoint(_literal(path.components))


def _names(spelling: str) -> Iterator[str]:
    """Give the identifiers of a spelling, without its literal texts."""
    yield from _NAME.findall(re.sub(r"'[^']*'", "", spelling))


def _literal(components: tuple[Component, ...]) -> Iterator[str | None]:
    """Give the components of a path as text, None for one that is not literal."""
    for component in components:
        text = "".join(piece for piece in component if isinstance(piece, str))
        yield None if any(not isinstance(piece, str) for piece in component) else text


def _matches(found: str | None, wanted: str) -> bool:
    return found is not None and fnmatch.fnmatchcase(found, wanted)
