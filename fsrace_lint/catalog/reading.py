"""Reading and validation of library models in TOML tables."""

from __future__ import annotations

import functools
import re
import sys
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin

import msgspec

from fsrace_lint.catalog.arguments import argument, flags
from fsrace_lint.catalog.entries import CatalogEntry, CatalogError, Returns
from fsrace_lint.catalog.kinds import KINDS
from fsrace_lint.config.suggestions import did_you_mean, in_toml_words

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_DOTTED: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_LAST: Final = re.compile(r"\*\.[^\W\d]\w*")
_PLACE: Final = re.compile(r"/\S*|\$\w+")
_WORDS: Final = re.compile(r"[\w+-]+(?: [\w+-]+)*")
_FORMS: Final = {"node-local": (_DOTTED, _LAST, _PLACE), "command": (_WORDS,)}


def document(text: str, origin: str) -> dict[str, Any]:
    """Parse the text of a TOML file of library models.

    Args:
        text: The TOML document.
        origin: The origin of the document, for error messages.

    Returns:
        The tables.

    Raises:
        CatalogError: The document is malformed.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CatalogError(f"{origin}: {error}") from error


def read(tables: dict[str, Any], origin: str, default_source: str = "") -> Iterator[tuple[str, CatalogEntry]]:
    """Read the tables of library models.

    Args:
        tables: Arrays of tables, by kind.
        origin: The origin of the tables, for error messages.
        default_source: The source of entries without one. If it is empty, a missing source is an error.

    Yields:
        Pairs of kind and entry.

    Raises:
        CatalogError: A kind or an entry is malformed.
    """
    for kind, rows in tables.items():
        if kind not in KINDS:
            hint = _meant(kind.replace("_", "-"), KINDS)
            raise CatalogError(f"{origin}: unknown kind [[{kind}]]{hint}")
        if not isinstance(rows, list):
            raise CatalogError(f"{origin}: `{kind}` must be an array of tables, written [[{kind}]]")
        for number, row in enumerate(rows, 1):
            yield kind, _entry(row, kind, f"{origin}: [[{kind}]] number {number}", default_source)


def _meant(word: str, known: Iterable[str]) -> str:
    """Return a hint with the most similar known word, or with all known words."""
    return did_you_mean(word.lower(), known) or f"; expected one of {', '.join(f'`{one}`' for one in known)}"


def _entry(row: Any, kind: str, place: str, default_source: str) -> CatalogEntry:  # a TOML value of any type
    entry = _converted(row, KINDS[kind], place)
    if not entry.names:
        raise CatalogError(f"{place}: `names` must not be empty")
    for name in entry.names:
        if not any(form.fullmatch(name) for form in _FORMS.get(kind, (_DOTTED, _LAST))):
            form = "words separated by spaces" if kind == "command" else "a dotted name or `*.name`"
            raise CatalogError(f"{place}: `names`: `{name}` is not {form}")
    if isinstance(entry, Returns):
        _check_types(entry, place)
    if not entry.source.strip():
        if not default_source:
            raise CatalogError(
                f"{place}: `source` must name the documentation or code that the entry is based on"
            )
        entry = msgspec.structs.replace(entry, source=default_source)
    _check_arguments(entry, place)
    return entry


def _check_types(entry: Returns, place: str) -> None:
    if not _DOTTED.fullmatch(entry.type):
        raise CatalogError(f"{place}: `type`: `{entry.type}` is not a dotted name")
    for pair in entry.by_protocol:
        protocol, is_pair, class_ = pair.partition("=")
        if not (protocol and is_pair and _DOTTED.fullmatch(class_)):
            raise CatalogError(f"{place}: `by-protocol`: `{pair}` is not of the form `protocol=dotted.name`")


def _converted(row: Any, class_: type[CatalogEntry], place: str) -> CatalogEntry:  # a TOML value of any type
    """Check the keys and types of an entry, and convert it."""
    fields = _fields(class_)
    if not isinstance(row, dict):
        raise CatalogError(f"{place} must be a table")
    for key in row:
        if key not in fields:
            raise CatalogError(f"{place}: unknown key `{key}`{_meant(key.replace('_', '-'), fields)}")
    for key, field in fields.items():
        if field.required and key not in row:
            raise CatalogError(f"{place}: `{key}` is missing")
        values = listed(field.type)
        if key in row and values and row[key] not in values:
            hint = _meant(str(row[key]), values)
            raise CatalogError(f"{place}: `{key}`: unknown value `{row[key]}`{hint}")
    try:
        return msgspec.convert(row, class_)
    except msgspec.ValidationError as error:
        key, what = in_toml_words(error)
        raise CatalogError(f"{place}: `{key}`: {what}") from error


@functools.cache
def _fields(class_: type[CatalogEntry]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(class_)}


def listed(type_: Any) -> list[str]:
    """Return the values of a `Literal` type or of the `Literal` types in a union."""
    literals = (part for part in (type_, *get_args(type_)) if get_origin(part) is Literal)
    return [value for literal in literals for value in get_args(literal)]


def _check_arguments(entry: CatalogEntry, place: str) -> None:
    for key in (*entry.ARGUMENTS, *entry.FLAGS):
        value = getattr(entry, key)
        if not value and not _fields(type(entry))[key].required:
            continue
        try:
            if key in entry.FLAGS:
                fine = isinstance(value, bool) or _are_flags(value)
            else:
                default = argument(value).default
                fine = key in {"mode", "count"} or not default or (key == "path" and default != "true")
        except ValueError:
            fine = False
        if not fine:
            raise CatalogError(
                f"{place}: `{key}` must be an argument such as `0:path` or `self`, not {value!r}"
            )


def _are_flags(text: str) -> bool:
    parsed = flags(text)
    return bool(parsed) and all(which.default in {"", "true"} for which in parsed)
