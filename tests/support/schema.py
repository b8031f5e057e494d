"""Artificial settings, and the errors of loading them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from fsrace_lint import catalog, rules
from fsrace_lint.catalog import reading
from fsrace_lint.config.settings import load
from fsrace_lint.config.tables import KEYS
from fsrace_lint.config.validation import SettingsError
from support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

if sys.version_info >= (3, 11):
    pass
else:
    pass


SCHEMA = json.loads((ROOT / "docs" / "settings.schema.json").read_text("utf-8"))
NAMES = rules.names()


def toml(value: Any) -> str:
    """Return a value as TOML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def refusal(directory: Path, table: dict[str, Any]) -> str:
    """Return the error of loading a settings table, or an empty string if the table is valid."""
    directory.mkdir(exist_ok=True)
    (directory / "pyproject.toml").write_text(f"tool = {{fsrace-lint = {toml(table)}}}\n", "utf-8")
    (directory / "other.toml").write_text("[tool.fsrace-lint]\n", "utf-8")
    try:
        chosen = load(directory, NAMES)
        tuple(reading.read(json.loads(chosen.catalog or "{}"), "pyproject.toml", "here"))
    except (SettingsError, catalog.CatalogError) as error:
        return str(error)
    return ""


WORDS = st.sampled_from(["a", "runs", "self", "path", "import", "mkdir", "x_1", "Out", "été", "0", "1a", ""])
SELECTORS = st.one_of(
    st.sampled_from(["ALL", "all", "FSR", "fsr1", "FSR10", "Check-Then-Mkdir", " FSR101 , fsr4,", "", ","]),
    st.sampled_from([*NAMES, *NAMES.values()]),
    st.sampled_from(["FSR9", "FSR1011", "F", "check-then", "FSR101 FSR102", "fsr101;", "E501"]),
)


PATTERNS = st.lists(
    st.sampled_from(["a", "*", "**/", "/", "./", ".", "..", "?", "[a]", "\\", " "]), max_size=4
).map("".join)


PLACES = st.lists(
    st.sampled_from(["/", "mnt", "*", "$", "{", "}", ".", "..", "a.b", "SCRATCH"]), max_size=5
).map("".join)


DOTTED = st.lists(WORDS, max_size=3).map(".".join)
ODD = st.sampled_from([3, True, "text", [], {}, ["a"], [1], {"a": "b"}, [{}]])


CATALOG_NAMES = st.one_of(
    DOTTED, DOTTED.map("*.".__add__), st.sampled_from(["*.ok", "lib.ok", "/tmp", "$TMP", "$", "a b", "$A-B"])
)
ARGUMENTS = st.lists(
    st.sampled_from(["self", "0", "12", ":", "path", "=", "true", "w", " ", "-", "ok"]), max_size=4
).map("".join)


def values_of(schema: dict[str, Any], key: str) -> st.SearchStrategy[Any]:
    """Return a strategy for the values of a key of a model, many of which are valid."""
    if "enum" in schema:
        return st.sampled_from([*schema["enum"], "gobal"])
    if key == "names":
        return st.lists(CATALOG_NAMES, max_size=2)
    if key == "type" and "pattern" in schema:
        return DOTTED
    if "pattern" in schema:
        return st.one_of(ARGUMENTS, st.booleans()) if "boolean" in schema["type"] else ARGUMENTS
    types = {"string": st.just("text"), "boolean": st.booleans(), "array": st.just(["LOCK_EX"])}
    return types[schema["type"]]


@st.composite
def entries(draw: st.DrawFn) -> dict[str, Any]:
    """Draw one model of one kind, with its required keys and a few others."""
    kind = draw(st.sampled_from([*catalog.KINDS]))
    schema = SCHEMA["definitions"][kind]
    required = schema["required"]
    keys = [*required, *draw(st.lists(st.sampled_from([*schema["properties"]]), max_size=2))]
    entry = {key: draw(values_of(schema["properties"][key], key)) for key in keys}
    if draw(st.integers(0, 5)) == 0:
        entry[draw(st.sampled_from(["name", "scopes", *required]))] = draw(ODD)
    if draw(st.integers(0, 8)) == 0:
        entry.pop(draw(st.sampled_from(required)))
    return {kind: [entry]}


@st.composite
def programs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw tables of programs, many of which are valid."""
    key = draw(st.sampled_from(["file", "module", "command"]))
    names = {
        "file": st.sampled_from(["pyproject.toml", "./pyproject.toml", "/a.py", "../a.py"]),
        "module": DOTTED,
        "command": st.sampled_from(["train", "pkg-train", "two words", "a/b"]),
    }
    program: dict[str, Any] = {key: draw(names[key])}
    if draw(st.booleans()):
        program["processes"] = draw(st.sampled_from([1, 8, 0, -1, True, "8"]))
    if draw(st.booleans()):
        program["role"] = draw(st.sampled_from(["rank", "worker", "ranks"]))
    if draw(st.integers(0, 3)) == 0:
        program[draw(st.sampled_from(["file", "module", "command", "launcher", "path"]))] = draw(
            ODD.filter(lambda odd: odd != "text")  # no such file
        )
    return [program]


LEVELS = ["error", "warning", "note", "Error", "high"]


TABLE_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "profile": st.sampled_from(["default", "strict", "Strict"]),
    "filesystem": st.sampled_from(["auto", "shared", "local", "nfs"]),
    "min-severity": st.sampled_from(LEVELS),
    "min-confidence": st.sampled_from(["high", "medium", "low", "none"]),
    "fail-on": st.sampled_from(LEVELS),
    "programs": programs(),
    "select": st.lists(SELECTORS, max_size=3),
    "extend-select": st.lists(SELECTORS, max_size=3),
    "ignore": st.lists(SELECTORS, max_size=3),
    "exclude": st.lists(PATTERNS, max_size=2),
    "extend-exclude": st.lists(PATTERNS, max_size=2),
    "per-file-ignores": st.dictionaries(PATTERNS, st.lists(SELECTORS, max_size=2), max_size=2),
    "extend": st.sampled_from(["other.toml", "./other.toml"]),
    "root": st.sampled_from([".", "..", "./"]),
    "baseline": st.sampled_from(["known.json", ""]),
    "cache-dir": st.sampled_from(["../kept", ""]),
    "fix-tiers": st.lists(st.sampled_from(["local", "atomic", "coordination", "safe", "Local"]), max_size=2),
    "helper-module": DOTTED,
    "helpers": st.dictionaries(
        st.sampled_from(["barrier", "ensure-dir", "is-main-process", "lock", "wait"]), DOTTED, max_size=2
    ),
    "include-tests": st.booleans(),
    "respect-gitignore": st.booleans(),
    "shared-paths": st.lists(PLACES.filter(lambda place: "a.b" not in place), max_size=2),
    "local-paths": st.lists(PLACES.filter(lambda place: place.endswith("a.b")), max_size=2),
    "catalog": entries(),
}


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    keys = draw(st.lists(st.sampled_from([*TABLE_VALUES]), min_size=1, max_size=3, unique=True))
    table = {key: draw(TABLE_VALUES[key]) for key in keys}
    match draw(st.integers(0, 7)):
        case 0:
            table[draw(st.sampled_from(["profil", "extend_select", "Select", ""]))] = draw(ODD)
        case 1:
            # strings are left out, because a directory of that name may not exist
            table[draw(st.sampled_from(sorted(KEYS)))] = draw(ODD.filter(lambda odd: odd != "text"))
    return table
