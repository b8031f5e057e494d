"""Find and read the settings files of other tools above a directory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_STOPS: Final = (".git", ".hg")


def upwards(folder: Path) -> Iterator[Path]:
    """Yield a directory and those above it, up to the root of its repository."""
    for place in (folder, *folder.parents):
        yield place
        if any((place / stop).exists() for stop in _STOPS):
            return


def toml(file: Path) -> Mapping[str, Any]:
    """Return the content of a TOML file, or nothing if it cannot be read."""
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}


def table(of: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """Return a table within a table, or nothing if it is no table."""
    for key in keys:
        found = of.get(key)
        of = found if isinstance(found, dict) else {}
    return of


def minors(versions: object) -> list[int]:
    """Return the minor versions that names like `py310` stand for."""
    listed = versions if isinstance(versions, list) else [versions]
    names = (each for each in listed if isinstance(each, str) and each.startswith("py3"))
    return [int(name[3:]) for name in names if name[3:].isdecimal()]
