"""The JSON schema of `[tool.fsrace-lint]`: of the table and of a whole pyproject.toml."""

from __future__ import annotations

import inspect
import json
import keyword
from typing import Any, Final, TypeAlias, get_args, get_origin

import catalog_page
import msgspec

from fsrace_lint import catalog, rules
from fsrace_lint.catalog.entries import CatalogEntry, Returns
from fsrace_lint.catalog.reading import listed
from fsrace_lint.config import settings, tables

Schema: TypeAlias = "dict[str, Any]"

# JSON schema knows letters of ASCII only, and Python more: punctuation is what no identifier holds.
_PUNCTUATION: Final = r"\s!-/:-@\[-^`{-~"
_IDENTIFIER: Final = rf"[^{_PUNCTUATION}0-9][^{_PUNCTUATION}]*"
_DOTTED: Final = rf"{_IDENTIFIER}(?:\.{_IDENTIFIER})*"
_NAME: Final = rf"{_DOTTED}|\*\.{_IDENTIFIER}"
_MODULE: Final = rf"^(?!(?:.*\.)?(?:{'|'.join(keyword.kwlist)})(?:\.|$)){_DOTTED}$"
_FUNCTION: Final = _MODULE.replace(f"{_DOTTED}$", rf"{_IDENTIFIER}(?:\.{_IDENTIFIER})+$")
_PLACE: Final = rf"/\S*|\$[^{_PUNCTUATION}]+"
_ARGUMENT: Final = rf"(?:self|[0-9]+(?::(?:{_IDENTIFIER})?)?|:{_IDENTIFIER})"
_DEFAULTS: Final = {"mode": "(?:=.*)?", "count": "(?:=.*)?", "path": "(?:=(?!true$).*)?"}
_FLAG: Final = rf"{_ARGUMENT}(?:=(?:true)?)?"

_SELECTORS: Final = ("select", "extend-select", "ignore")
_PATTERNS: Final = ("exclude", "extend-exclude")
_PLACES: Final = ("shared-paths", "local-paths")
_CHOICES: Final = {
    "profile": settings.Profile,
    "filesystem": settings.Filesystem,
    "min-severity": settings.Severity,
    "min-confidence": settings.Confidence,
    "fail-on": settings.Severity,
}
_TYPES: Final[dict[type, str]] = {str: "string", bool: "boolean", int: "integer"}


def table() -> str:
    """Give the schema of the table.

    Returns:
        JSON of draft 7, which editors know.

    Raises:
        ValueError: A key is not described.
    """
    said = "The table [tool.fsrace-lint] of pyproject.toml."
    return _document({"title": "fsrace-lint", "description": said, **_table()})


def file() -> str:
    """Give the schema of a `pyproject.toml` of which only our table is described; as `table` else."""
    tool = {"type": "object", "properties": {tables.TABLE: _table()}}
    said = "The part of pyproject.toml that fsrace-lint reads."
    return _document({"description": said, "type": "object", "properties": {"tool": tool}})


def _document(schema: Schema) -> str:
    whole = {"$schema": "http://json-schema.org/draft-07/schema#", **schema, "definitions": _definitions()}
    return json.dumps(whole, indent=1) + "\n"


def _table() -> Schema:
    said = catalog_page.descriptions(tables)
    properties = {}
    for field in msgspec.structs.fields(tables.Table):
        described = said.get(("Table", field.name))
        if described is None:
            raise ValueError(f"Table.{field.name} has no docstring")
        properties[field.encode_name] = {"description": described, **_key(field)}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _key(field: msgspec.structs.FieldInfo) -> Schema:
    """Say what a key of the table takes."""
    key = field.encode_name
    if key in _CHOICES:
        default = {} if field.default is None else {"default": field.default}
        return {"enum": list(get_args(_CHOICES[key])), **default}
    if key == "fix-tiers":
        return _array({"enum": list(get_args(settings.FixTier))})
    if key == "programs":
        return _array({"$ref": "#/definitions/launched-program"})
    for keys, name in ((_SELECTORS, "selector"), (_PATTERNS, "pattern"), (_PLACES, "place")):
        if key in keys:
            return _array({"$ref": f"#/definitions/{name}"})
    if key == "per-file-ignores":
        ignored = _array({"$ref": "#/definitions/selector"})
        return {
            "type": "object",
            "propertyNames": {"$ref": "#/definitions/pattern"},
            "additionalProperties": ignored,
        }
    if key == "catalog":
        kinds_known = {kind: _array({"$ref": f"#/definitions/{kind}"}) for kind in catalog.KINDS}
        return {"type": "object", "additionalProperties": False, "properties": kinds_known}
    if key == "helpers":
        return _helpers()
    if key == "helper-module":
        return {"type": "string", "pattern": _MODULE, "examples": ["mypackage.fs_safe"]}
    return _typed(field.type) | ({"default": field.default} if isinstance(field.default, bool) else {})


def _helpers() -> Schema:
    """Describe the table of helpers."""
    said = catalog_page.descriptions(tables)
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            field.encode_name: {
                "description": said["HelperSettings", field.name],
                "type": "string",
                "pattern": _FUNCTION,
            }
            for field in msgspec.structs.fields(tables.HelperSettings)
        },
    }


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _typed(type_: Any) -> Schema:
    """Say what a type takes; nothing but a missing key is None in TOML."""
    if get_origin(type_) is tuple:
        return _array(_typed(get_args(type_)[0]))
    plain = [part for part in get_args(type_) or (type_,) if part is not type(None)]
    names = [_TYPES[part] for part in plain]
    return {"type": names[0] if len(names) == 1 else names}


def _definitions() -> dict[str, Schema]:
    return {
        "selector": _selector(),
        "pattern": {
            "description": "A file or directory name anywhere, or, with a slash, a path from the root.",
            "type": "string",
            "pattern": r"^(?!(?:[/\\]|\.[/\\])*\.?[/\\]*$)",
        },
        "place": {
            "description": "The beginning of a path, an environment variable, or the name of an option.",
            "type": "string",
            "pattern": r"^(?!(?:[^]*/)?\.\.?(?:/|$))(?=[^]*[^/${}*])".replace("[^]", r"[\s\S]"),
            "examples": ["/mnt/*/data", "$SCRATCH", "checkpoint_dir"],
        },
        "launched-program": _program(),
        **{kind: _kind(class_) for kind, class_ in catalog.KINDS.items()},
    }


def _program() -> Schema:
    """Describe the tables of programs."""
    said = catalog_page.descriptions(tables)
    patterns = {
        "file": r"^(?!/)(?!(?:[^]*/)?\.\.(?:/|$))[^]+$".replace("[^]", r"[\s\S]"),
        "module": _MODULE,
        "command": r"^[A-Za-z0-9_.-]+$",
    }
    values: dict[str, Schema] = {
        **{key: {"type": "string", "pattern": pattern} for key, pattern in patterns.items()},
        "processes": {"type": "integer", "minimum": 1},
        "role": {"enum": list(get_args(tables.Role)), "default": "rank"},
        "launcher": {"type": "string"},
    }
    fields = msgspec.structs.fields(tables.ProgramSettings)
    return {
        "description": " ".join(inspect.cleandoc(tables.ProgramSettings.__doc__ or "").split()),
        "type": "object",
        "additionalProperties": False,
        "oneOf": [{"required": [key]} for key in patterns],
        "properties": {
            field.encode_name: {
                "description": said["ProgramSettings", field.name],
                **values[field.encode_name],
            }
            for field in fields
        },
    }


def _selector() -> Schema:
    names = rules.names()
    prefixes = sorted({code[:end] for code in names for end in range(len(settings.FAMILY), len(code) + 1)})
    known = ["ALL", *prefixes, *sorted(names.values())]
    either = "|".join(_in_either_case(word) for word in (*known, *settings.RENAMED))
    return {
        "description": "A rule name, a code, a code prefix, or ALL; separate multiple selectors with commas.",
        "anyOf": [
            {"enum": known},
            {"type": "string", "pattern": rf"^\s*(?:(?:{either})\s*)?(?:,\s*(?:(?:{either})\s*)?)*$"},
        ],
    }


def _in_either_case(word: str) -> str:
    return "".join(f"[{char.upper()}{char.lower()}]" if char.isalpha() else char for char in word)


def _kind(class_: type[CatalogEntry]) -> Schema:
    """Describe the entries of a kind."""
    fields = msgspec.structs.fields(class_)
    return {
        "description": " ".join(inspect.cleandoc(class_.__doc__ or "").split()),
        "type": "object",
        "additionalProperties": False,
        "required": [field.encode_name for field in fields if field.required],
        "properties": {
            field.encode_name: {
                "description": catalog_page.said_of(class_, field.name),
                **_value(class_, field),
            }
            for field in fields
        },
    }


def _value(class_: type[CatalogEntry], field: msgspec.structs.FieldInfo) -> Schema:
    """Say what a key of an entry takes."""
    key = field.name
    if key == "names":
        forms = {
            catalog.KINDS["node-local"]: f"{_NAME}|{_PLACE}",
            catalog.KINDS["command"]: r"[\w+-]+(?: [\w+-]+)*",
        }
        form = forms.get(class_, _NAME)
        return {**_array({"type": "string", "pattern": f"^(?:{form})$"}), "minItems": 1}
    if issubclass(class_, Returns) and key == "type":
        return {"type": "string", "pattern": f"^{_DOTTED}$"}
    if key in class_.FLAGS:
        flags = rf"^\s*{_FLAG}(?:\s+{_FLAG})*\s*$"
        return {**_typed(field.type), **_optional(flags, field)}
    if key in class_.ARGUMENTS:
        default = _DEFAULTS.get(key, "=?")
        return {"type": "string", **_optional(f"^{_ARGUMENT}{default}$", field)}
    if values := listed(field.type):
        return {"enum": values}
    return _typed(field.type)


def _optional(pattern: str, field: msgspec.structs.FieldInfo) -> Schema:
    """Take a pattern; an empty text is as good as none, where there may be none."""
    return {"pattern": pattern if field.required else f"^$|{pattern}"}
