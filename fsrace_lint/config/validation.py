"""Check the values of settings."""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec

from fsrace_lint.config.suggestions import did_you_mean
from fsrace_lint.files.globs import glob

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_DEEPEST: Final = 10
"""How deep tables and arrays of library models can be nested; the kinds need three levels."""


class SettingsError(Exception):
    """The configuration is invalid; the message is for the user and names the file and the key."""


def one_of(choices: Any, file: Path, key: str, text: str) -> str:  # a Literal
    """Check that a text is one of the allowed choices."""
    known = get_args(choices)
    if text not in known:
        listed = ", ".join(f"`{choice}`" for choice in known)
        hint = did_you_mean(text, known) or f"; expected one of {listed}"
        raise SettingsError(f"{file}: `{key}`: unknown {key} `{text}`{hint}")
    return text


def level(choices: Any, file: Path, key: str, text: str | None) -> str | None:  # a Literal
    """Check that a text, if there is one, is one of the allowed choices."""
    return None if text is None else one_of(choices, file, key, text)


def check_catalog(file: Path, tables: Any) -> str:  # a TOML value of any type
    """Return the user's library models as JSON, in which only the order of array items matters."""
    if not isinstance(tables, dict):
        raise SettingsError(f"{file}: `catalog`: must be a table")
    _check_json(file, tables, "catalog")
    return msgspec.json.encode(tables, order="deterministic").decode() if tables else ""


def _check_json(file: Path, value: Any, key: str, depth: int = 0) -> None:  # a TOML value of any type
    if depth > _DEEPEST:
        raise SettingsError(f"{file}: `catalog`: nested too deeply")
    if isinstance(value, dict):
        for name, item in value.items():
            _check_json(file, item, f"{key}.{name}", depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_json(file, item, f"{key}[{index}]", depth + 1)
    elif not isinstance(value, (str, int)):
        kinds = "a string, boolean, array, or table"
        raise SettingsError(f"{file}: `{key}`: expected {kinds}, found {type(value).__name__}")


def check_globs(texts: Iterable[str], origin: str) -> None:
    """Check that texts are patterns."""
    text = ""
    try:
        for text in texts:
            glob(text)
    except ValueError as error:
        raise SettingsError(f"{origin}: `{text}` is {error}") from error


def check_places(texts: Iterable[str], origin: str) -> None:
    """Check that texts are places of `shared-paths` or `local-paths`."""
    for text in texts:
        if not text.strip("/${}*") or "\0" in text or any(part in {".", ".."} for part in text.split("/")):
            what = "a directory, a glob such as `/mnt/*/runs`, a `$VARIABLE`, or an option name"
            raise SettingsError(f"{origin}: `{text}` is not {what}")


def check_module(name: str | None, origin: str) -> None:
    """Check that a name, if there is one, is the dotted name of a module."""
    if name is not None and not _is_dotted(name):
        raise SettingsError(f"{origin}: `{name}` is not a dotted module name such as `mypackage.fs_safe`")


def check_function(name: str, origin: str) -> None:
    """Check that a name is the dotted name of a function in a module."""
    if "." not in name or not _is_dotted(name):
        raise SettingsError(f"{origin}: `{name}` is not the dotted name of a function in a module")


def _is_dotted(name: str) -> bool:
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in name.split("."))
