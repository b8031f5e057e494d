"""A parser for HTML reports."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

import html5lib

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


def elements(root: Element, name: str = "*", kind: str = "") -> list[Element]:
    """Return the descendants of an element with this name and class."""
    found = [each for each in root.iter() if name in ("*", each.tag.rpartition("}")[2])]
    return [each for each in found if not kind or kind in each.get("class", "").split()]


def text_of(element: Element) -> str:
    return "".join(element.itertext())


def only(root: Element, name: str = "*", kind: str = "") -> Element:
    (found,) = elements(root, name, kind)
    return found


def parsed(text: str) -> Element:
    """Parse a page strictly, and check the properties of every page."""
    assert text.isascii()
    assert text.startswith("<!DOCTYPE html>\n")
    assert text.endswith("</html>\n")
    root: Element = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)
    style, script = only(root, "style"), only(root, "script")
    allowed = next(each.get("content", "") for each in elements(root, "meta") if each.get("http-equiv"))
    assert f"style-src '{digest(style)}';" in allowed
    assert f"script-src '{digest(script)}';" in allowed
    assert "unsafe" not in allowed
    names = [each.get("id") for each in root.iter() if each.get("id") is not None]
    assert len(set(names)) == len(names)
    for each in root.iter():
        assert not [
            key for key in each.attrib if key.startswith("on") or key in {"style", "src", "srcdoc", "action"}
        ]
        address = each.get("href")
        if address is not None and address != "data:,":
            assert address.startswith("#")
            assert address[1:] in names
    assert {each.tag for each in root.iter()}.isdisjoint({"img", "iframe", "object", "embed", "base"})
    return root


def digest(element: Element) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text_of(element).encode()).digest()).decode()
