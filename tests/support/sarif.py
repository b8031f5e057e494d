"""A parser for SARIF reports."""

from __future__ import annotations

import json
from typing import Any, Final

import jsonschema

from support import FIXTURES

SCHEMA: Final = json.loads((FIXTURES / "sarif" / "sarif-2.1.0-rtm.4.json").read_text("utf-8"))


VALIDATOR: Final = jsonschema.Draft4Validator(SCHEMA)


def sarif(text: str) -> Any:
    """Return the only run of a valid log."""
    assert text.isascii()
    assert text.endswith("}\n")
    log = json.loads(text)
    VALIDATOR.validate(log)
    assert log["version"] == "2.1.0"
    (only,) = log["runs"]
    for row in only["results"]:
        assert only["tool"]["driver"]["rules"][row["ruleIndex"]]["id"] == row["ruleId"]
    return only
