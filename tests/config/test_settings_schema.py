"""The schema of the settings, held against the code that reads them."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from jsonschema import Draft7Validator
from support import ROOT
from support.sampling import bound
from support.schema import SCHEMA, TABLE_VALUES, refusal, tables

from fsrace_lint import catalog
from fsrace_lint.config.settings import KEYS

if TYPE_CHECKING:
    from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VALIDATOR = Draft7Validator(SCHEMA)


def complaint(table: dict[str, Any]) -> str:
    """What the schema says against a table."""
    return "; ".join(error.message for error in VALIDATOR.iter_errors(table))


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
        max_examples=bound(60, 300),
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
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

    @pytest.mark.parametrize("text", catalog.files().values(), ids=catalog.files().keys())
    def test_our_own_catalog_is_valid(self, text: str) -> None:
        assert complaint({"catalog": tomllib.loads(text)}) == ""


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
