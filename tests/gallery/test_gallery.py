"""The gallery: its index, files, and page agree; scenarios hold where their libraries are installed."""

from __future__ import annotations

import ast
import re

import pytest

import gallery

ENTRIES = gallery.entries()
HOW = "run: python scripts/gallery.py --page"


def functions(entry: gallery.Entry) -> dict[str, list[str]]:
    """The functions of a scenario, and their parameters."""
    tree = ast.parse(entry.path.read_text("utf-8"))
    return {
        node.name: [each.arg for each in node.args.args]
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


def test_the_index_lists_every_file() -> None:
    assert {entry.path for entry in ENTRIES} == set(gallery.GALLERY.glob("*.py"))
    assert {entry.recorded for entry in ENTRIES} == set(gallery.RECORDED.glob("*"))


def test_the_page_is_up_to_date() -> None:
    assert gallery.PAGE.read_text("utf-8") == gallery.page(), HOW


def test_the_requirements_are_up_to_date() -> None:
    assert gallery.REQUIREMENTS.read_text("utf-8") == gallery.requirements(), (
        "run: python scripts/gallery.py --page"
    )


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_scenario_is_complete(entry: gallery.Entry) -> None:
    found = functions(entry)
    assert found["broken"] == found["repaired"] == ["root", "rank"]
    assert found.get("setup", ["root"]) == found.get("check", ["root"]) == ["root"]
    title, *paragraphs = entry.docstring().split("\n\n")
    assert re.fullmatch(r"[^\n]+: [^\n]+\.", title)
    assert [paragraph.partition(": ")[0] for paragraph in paragraphs] == list(gallery.PARTS)
    assert entry.model in gallery.MODELS


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_recorded_reports_are_those_of_a_race(entry: gallery.Entry) -> None:
    broken, repaired = entry.recorded.read_text("utf-8").split("\n\n$ ")
    assert broken.startswith(f"$ {entry.command('broken')}\n")
    assert "Found after" in broken
    assert "\nreplay: fsr1." in broken
    assert "not a race" not in broken
    assert repaired.startswith(entry.command("repaired").removeprefix("$ "))
    assert "distinct interleaving" in repaired or entry.limit


@pytest.mark.gallery
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_scenario_holds(entry: gallery.Entry) -> None:
    if missing := entry.missing():
        pytest.skip(missing)
    assert gallery.run(entry).problem == ""
