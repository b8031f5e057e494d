"""The schema of the settings, held against the code that reads them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from fsrace_lint import catalog, rules
from fsrace_lint.catalog import reading
from fsrace_lint.settings import KEYS, SettingsError, load

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
SCHEMA = json.loads((ROOT / "docs" / "settings.schema.json").read_text("utf-8"))
VALIDATOR = Draft7Validator(SCHEMA)
NAMES = rules.names()


def toml(value: Any) -> str:
    """A value as TOML spells it in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def refusal(folder: Path, table: dict[str, Any]) -> str:
    """What reading the settings says against a table; nothing where it takes it."""
    folder.mkdir(exist_ok=True)
    (folder / "pyproject.toml").write_text(f"tool = {{fsrace-lint = {toml(table)}}}\n", "utf-8")
    try:
        chosen = load(folder, NAMES)
        tuple(reading.read(json.loads(chosen.catalog or "{}"), "pyproject.toml", "here"))
    except (SettingsError, catalog.CatalogError) as error:
        return str(error)
    return ""


def complaint(table: dict[str, Any]) -> str:
    """What the schema says against a table."""
    return "; ".join(error.message for error in VALIDATOR.iter_errors(table))


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
CATALOG_NAMES = st.one_of(
    DOTTED, DOTTED.map("*.".__add__), st.sampled_from(["*.ok", "lib.ok", "/tmp", "$TMP", "$", "a b", "$A-B"])
)
ARGUMENTS = st.lists(
    st.sampled_from(["self", "0", "12", ":", "path", "=", "true", "w", " ", "-", "ok"]), max_size=4
).map("".join)
ODD = st.sampled_from([3, True, "text", [], {}, ["a"], [1], {"a": "b"}, [{}]])


def values_of(schema: dict[str, Any], key: str) -> st.SearchStrategy[Any]:
    """Values for a key of a catalog entry, of which many are right."""
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
    """One entry of one kind, with its required keys and a few others."""
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


TABLE_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "profile": st.sampled_from(["default", "strict", "Strict"]),
    "filesystem": st.sampled_from(["auto", "shared", "local", "nfs"]),
    "select": st.lists(SELECTORS, max_size=3),
    "extend-select": st.lists(SELECTORS, max_size=3),
    "ignore": st.lists(SELECTORS, max_size=3),
    "exclude": st.lists(PATTERNS, max_size=2),
    "extend-exclude": st.lists(PATTERNS, max_size=2),
    "per-file-ignores": st.dictionaries(PATTERNS, st.lists(SELECTORS, max_size=2), max_size=2),
    "root": st.just("."),
    "baseline": st.sampled_from(["known.json", ""]),
    "cache-dir": st.sampled_from(["../kept", ""]),
    "helper-module": DOTTED,
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
            # texts are left out: a folder of that name need not exist
            table[draw(st.sampled_from(sorted(KEYS)))] = draw(ODD.filter(lambda odd: odd != "text"))
    return table


class TestTheSchema:
    def test_it_is_one(self) -> None:
        Draft7Validator.check_schema(SCHEMA)

    def test_it_has_every_key_and_every_kind(self) -> None:
        assert set(SCHEMA["properties"]) == set(KEYS) == set(TABLE_VALUES)
        assert set(SCHEMA["properties"]["catalog"]["properties"]) == set(catalog.KINDS)

    def test_everything_is_described_and_nothing_else_may_stand_there(self) -> None:
        tables = [SCHEMA, *(SCHEMA["definitions"][kind] for kind in catalog.KINDS)]
        for table in tables:
            assert table["additionalProperties"] is False
            assert table["description"]
            assert all(key["description"] for key in table["properties"].values())

    @given(table=tables())
    @hypothesis_settings(
        max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    def test_it_says_what_the_code_says(self, tmp_path: Path, table: dict[str, Any]) -> None:
        said = refusal(tmp_path / "project", table)
        assert bool(complaint(table)) == bool(said), said or complaint(table)

    def test_both_say_yes_and_no_to_many(self) -> None:
        """The tables above are neither all right nor all wrong."""
        found: list[dict[str, Any]] = []

        @given(table=tables())
        @hypothesis_settings(max_examples=200, deadline=None, database=None, derandomize=True)
        def collect(table: dict[str, Any]) -> None:
            found.append(table)

        collect()
        right = sum(not complaint(table) for table in found)
        assert 40 <= right <= len(found) - 40

    @pytest.mark.parametrize(
        "entry", [pair for text in catalog.files().values() for pair in tomllib.loads(text).items()], ids=str
    )
    def test_our_own_catalog_is_valid(self, entry: tuple[str, list[Any]]) -> None:
        kind, rows = entry
        assert complaint({"catalog": {kind: rows}}) == ""


def documented() -> list[str]:
    pages = (ROOT / "docs" / name for name in ("settings.md", "catalog.md", "helpers.md", "pre-commit.md"))
    found = [
        block
        for page in pages
        for block in re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        if "[tool.fsrace-lint" in block
    ]
    assert len(found) >= 3
    return found


class TestTheDocumentation:
    @pytest.mark.parametrize("example", documented())
    def test_examples_are_valid(self, example: str, tmp_path: Path) -> None:
        table = tomllib.loads(example)["tool"]["fsrace-lint"]
        assert complaint(table) == ""
        assert refusal(tmp_path / "project", table) == ""

    def test_each_key_has_a_section(self) -> None:
        text = (ROOT / "docs" / "settings.md").read_text("utf-8")
        assert sorted(re.findall(r"^### `(.+)`$", text, re.MULTILINE)) == sorted(KEYS)

    def test_a_whole_file_is_described_by_it(self) -> None:
        schema = json.loads((ROOT / "docs" / "pyproject.schema.json").read_text("utf-8"))
        table = schema["properties"]["tool"]["properties"]["fsrace-lint"]
        assert table == {key: SCHEMA[key] for key in ("type", "additionalProperties", "properties")}
        assert schema["definitions"] == SCHEMA["definitions"]
        whole = Draft7Validator(schema)
        assert whole.is_valid({"project": {}, "tool": {"other": 1, "fsrace-lint": {"profile": "strict"}}})
        assert not whole.is_valid({"tool": {"fsrace-lint": {"profile": "stern"}}})
