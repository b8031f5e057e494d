"""The pages of the catalog contain every kind, key, and entry, and their tables are valid."""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support import SCRIPTS

from fsrace_lint import catalog

if TYPE_CHECKING:
    from types import ModuleType

SCRIPT = SCRIPTS / "catalog_page.py"
FIRST = "# A library. More of it.\n"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("catalog_page", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def page(script: ModuleType) -> str:
    return str(script.page())


def section(page: str, heading: str) -> str:
    assert page.count(f"\n{heading}\n") == 1
    return re.split(r"\n##", page.split(f"\n{heading}\n")[1])[0]


def rows(text: str) -> list[list[str]]:
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.split("\n") if line.startswith("|")]


def test_every_kind_is_listed_with_its_keys(page: str) -> None:
    common = set(catalog.CatalogEntry.__struct_encode_fields__)
    for kind, class_ in catalog.KINDS.items():
        keys = [row[0].strip(" `") for row in rows(section(page, f"### `{kind}`"))[2:]]
        assert keys == [key for key in class_.__struct_encode_fields__ if key not in common]


def test_every_entry_is_listed_with_its_names(page: str, script: ModuleType) -> None:
    pages = script.library_pages()
    assert list(pages) == list(catalog.files())
    for library, text in catalog.files().items():
        found = list(catalog.parse(text, library))
        assert f"[{script.title(library, text)}](catalog/{library}.md)" in page
        for kind in dict.fromkeys(kind for kind, _ in found):
            items = re.findall(r"^\* (.*)", section(pages[library], f"## {kind}"), re.MULTILINE)
            names = [tuple(re.findall(r"`([^`]+)`", item)) for item in items]
            assert names == [entry.names for its_kind, entry in found if its_kind == kind]


def test_all_rows_of_a_table_have_the_same_length(page: str) -> None:
    for paragraph in page.split("\n\n"):
        assert len({len(row) for row in rows(paragraph)}) <= 1


def test_markdown_characters_are_escaped(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    entry: dict[str, Any] = {
        "names": ["*.a", "b.c"],
        "kind": "release",
        "source": "docs: f(a, *, b|c)\n  __init__.py a_b <x>",
        "note": "`a|b*` is [one]",
    }
    text = "[[lock]]\n" + "".join(
        f"{key} = {msgspec.json.encode(value).decode()}\n" for key, value in entry.items()
    )
    monkeypatch.setattr(catalog, "files", lambda: {"lib": FIRST + text})
    assert section(script.library_pages()["lib"], "## lock") == (
        "\n* `*.a`, `b.c`\n"
        '    * `kind = "release"`\n'
        "    * `a\\|b*` is \\[one\\]\n"
        "    * Source: docs: f(a, \\*, b\\|c) \\_\\_init\\_\\_.py a_b \\<x\\>\n"
    )


def test_model_file_without_title_is_an_error(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "files", lambda: {"lib": "\n" + FIRST})
    with pytest.raises(ValueError, match=r"lib\.toml must begin with a comment"):
        script.page()


def test_key_without_docstring_is_an_error(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    class Rest(catalog.CatalogEntry, frozen=True, kw_only=True):
        """A call that does nothing."""

        length: str

    monkeypatch.setitem(catalog.KINDS, "rest", Rest)
    with pytest.raises(ValueError, match=r"Rest\.length has no docstring"):
        script.page()
