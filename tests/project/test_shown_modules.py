"""Every module of these packages has a document or a test module that shows its behavior."""

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
"""Directories whose documents are named after the modules that they show."""


def shown(file: Path) -> list[str]:
    """Return the modules that a document or test module lists after `Shows:`."""
    listed = LISTED.search(file.read_text("utf-8"))
    return re.findall(r"`(\S+?)`", listed[1]) if listed else []


DOCUMENTS: Final = [file for file in CASE_DOCUMENTS.rglob("*.md") if file.parent.name not in NAMED_AFTER]
SHOWN: Final = {file: shown(file) for file in (*DOCUMENTS, *TESTS.rglob("test_*.py"))}
EVERY: Final = {path.relative_to(PACKAGE).as_posix() for path in MODULES.values()}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: file.relative_to(CASE_DOCUMENTS).as_posix())
def test_document_lists_its_modules(document: Path) -> None:
    assert SHOWN[document]


def test_listed_modules_exist() -> None:
    assert {module for modules in SHOWN.values() for module in modules} - EVERY == set()


def test_each_module_is_listed() -> None:
    """A file lists the module after `Shows:`, or a test module has the corresponding name and directory."""
    named = {module for modules in SHOWN.values() for module in modules}
    own = {
        module for module in EVERY if (TESTS / module).with_name(f"test_{module.rpartition('/')[2]}").exists()
    }
    ours = {module for module in EVERY if module.startswith(PACKAGES) and not module.endswith("__init__.py")}
    assert ours - named - own == set()
