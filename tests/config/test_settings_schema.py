"""The JSON schema of the settings agrees with the code that reads them."""

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
from fsrace_lint.config.tables import KEYS

if TYPE_CHECKING:
    from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VALIDATOR = Draft7Validator(SCHEMA)


def schema_errors(table: dict[str, Any]) -> str:
    """Why the schema rejects a table; empty if it accepts it."""
    return "; ".join(error.message for error in VALIDATOR.iter_errors(table))


class TestSchema:
    def test_schema_is_valid_draft_7(self) -> None:
        Draft7Validator.check_schema(SCHEMA)

    def test_schema_has_every_key_and_every_catalog_kind(self) -> None:
        assert set(SCHEMA["properties"]) == set(KEYS) == set(TABLE_VALUES)
        assert set(SCHEMA["properties"]["catalog"]["properties"]) == set(catalog.KINDS)

    def test_tables_are_described_and_closed(self) -> None:
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
    def test_schema_and_code_reject_the_same_tables(self, tmp_path: Path, table: dict[str, Any]) -> None:
        code_error = refusal(tmp_path / "project", table)
        assert bool(schema_errors(table)) == bool(code_error), code_error or schema_errors(table)

    def test_generated_tables_are_valid_and_invalid(self) -> None:
        """Otherwise the comparison above would prove nothing."""
        found: list[dict[str, Any]] = []

        @given(table=tables())
        @hypothesis_settings(max_examples=200, deadline=None, database=None, derandomize=True)
        def collect(table: dict[str, Any]) -> None:
            found.append(table)

        collect()
        right = sum(not schema_errors(table) for table in found)
        assert 40 <= right <= len(found) - 40

    @pytest.mark.parametrize("text", catalog.files().values(), ids=catalog.files().keys())
    def test_bundled_catalog_is_valid(self, text: str) -> None:
        assert schema_errors({"catalog": tomllib.loads(text)}) == ""


def documented_examples() -> list[str]:
    pages = (ROOT / "docs" / name for name in ("settings.md", "catalog.md", "helpers.md", "pre-commit.md"))
    found = [
        block
        for page in pages
        for block in re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        if "[tool.fsrace-lint" in block
    ]
    assert len(found) >= 3
    return found


class TestDocumentation:
    @pytest.mark.parametrize("example", documented_examples())
    def test_examples_are_valid(self, example: str, tmp_path: Path) -> None:
        table = tomllib.loads(example)["tool"]["fsrace-lint"]
        package = tmp_path / "packages" / "project"
        package.mkdir(parents=True)
        (tmp_path / "pyproject.toml").write_text("[tool.fsrace-lint]\n")
        for program in table.get("programs", ()):
            file = package / program.get("file", "train.py")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("")
        assert schema_errors(table) == ""
        assert refusal(package, table) == ""

    def test_settings_page_has_a_section_for_each_key(self) -> None:
        text = (ROOT / "docs" / "settings.md").read_text("utf-8")
        assert sorted(re.findall(r"^### `(.+)`$", text, re.MULTILINE)) == sorted(KEYS)

    def test_pyproject_schema_includes_the_settings_schema(self) -> None:
        schema = json.loads((ROOT / "docs" / "pyproject.schema.json").read_text("utf-8"))
        table = schema["properties"]["tool"]["properties"]["fsrace-lint"]
        assert table == {key: SCHEMA[key] for key in ("type", "additionalProperties", "properties")}
        assert schema["definitions"] == SCHEMA["definitions"]
        whole = Draft7Validator(schema)
        assert whole.is_valid({"project": {}, "tool": {"other": 1, "fsrace-lint": {"profile": "strict"}}})
        assert not whole.is_valid({"tool": {"fsrace-lint": {"profile": "stern"}}})
