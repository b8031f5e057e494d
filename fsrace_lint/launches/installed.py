"""The commands that a repository installs, read from its packaging files."""

from __future__ import annotations

import configparser
import re
import sys
from typing import Any, Final

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TABLES: Final = (
    ("project", "scripts"),
    ("project", "gui-scripts"),
    ("project", "entry-points", "console_scripts"),
)
_ENTRY: Final = re.compile(r"([\w.-]+)\s*=\s*([\w.]+:[\w.]+)")
_QUOTED: Final = re.compile(rf"(['\"])\s*{_ENTRY.pattern}\s*(?:\[[^\]]*\])?\s*\1")


def read_packaging(name: str, text: str) -> dict[str, str]:
    """Read the commands that one packaging file installs.

    Args:
        name: The name of the file, one of `kinds.PACKAGING`.
        text: Its content. If it is malformed, it installs nothing.

    Returns:
        For each command, `module:function`.
    """
    if name == "setup.py":
        return {found[2]: found[3] for found in _QUOTED.finditer(text)}
    return _of_pyproject(text) if name == "pyproject.toml" else _of_setup_cfg(text)


def _of_pyproject(text: str) -> dict[str, str]:
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}
    found: dict[str, str] = {}
    tools = _table(document, ("tool",))
    for keys in (*_TABLES, *(("tool", name, "scripts") for name in tools)):
        found |= {
            command: target
            for command, target in _table(document, keys).items()
            if isinstance(target, str) and _ENTRY.fullmatch(f"{command}={target}")
        }
    return found


def _table(document: Any, keys: tuple[str, ...]) -> dict[str, Any]:  # TOML values of any type
    """Return the table below some keys, or an empty one."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def _of_setup_cfg(text: str) -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}
    listed = parser.get("options.entry_points", "console_scripts", fallback="")
    return {found[1]: found[2] for found in _ENTRY.finditer(listed)}
