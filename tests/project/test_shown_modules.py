"""From any module of these packages a reader finds what shows what it does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest
from support import CASE_DOCUMENTS, TESTS
from support.imports import MODULES, PACKAGE

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES: Final = ("analysis", "engine", "program")
LISTED: Final = re.compile(r"^Shows: ((?:.+\n)+)", re.MULTILINE)
NAMED_AFTER: Final = {"catalog", "rules"}
"""Folders whose documents have the names of what they show."""


def shown(file: Path) -> list[str]:
    """The modules that a document or a module of tests lists after `Shows:`."""
    listed = LISTED.search(file.read_text("utf-8"))
    return re.findall(r"`(\S+?)`", listed[1]) if listed else []


DOCUMENTS: Final = [file for file in CASE_DOCUMENTS.rglob("*.md") if file.parent.name not in NAMED_AFTER]
SHOWN: Final = {file: shown(file) for file in (*DOCUMENTS, *TESTS.rglob("test_*.py"))}
EVERY: Final = {path.relative_to(PACKAGE).as_posix() for path in MODULES.values()}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: file.relative_to(CASE_DOCUMENTS).as_posix())
def test_a_document_says_what_it_shows(document: Path) -> None:
    assert SHOWN[document]


def test_what_is_shown_exists() -> None:
    assert {module for modules in SHOWN.values() for module in modules} - EVERY == set()


def test_each_module_is_shown() -> None:
    """One lists it after `Shows:`, or a module of tests has its name in its place."""
    named = {module for modules in SHOWN.values() for module in modules}
    own = {
        module for module in EVERY if (TESTS / module).with_name(f"test_{module.rpartition('/')[2]}").exists()
    }
    ours = {module for module in EVERY if module.startswith(PACKAGES) and not module.endswith("__init__.py")}
    assert ours - named - own == set()
