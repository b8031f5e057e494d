"""The document of a page: its head, its style and script, and its bar."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
from typing import Final

from fsrace_lint.report.page.markup import Markup, join, tag

_LOGO: Final = Markup(
    '<svg class="logo" viewBox="0 0 32 32" aria-hidden="true" focusable="false">'
    '<path class="p0" d="M10 2v9c0 6 12 4 12 10v9"></path>'
    '<path class="p1" d="M22 2v9c0 6-12 4-12 10v9"></path></svg>'
)


def document(title: str, version: str, skip: Markup, *content: str) -> str:
    """Return one HTML document in ASCII, including its style and its script.

    Args:
        title: The title of the page.
        version: The version of fsrace-lint.
        skip: The link to the main content, for keyboards.
        content: The parts of the body after the bar.
    """
    style, script = _resource("style.css"), _resource("script.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"fsrace-lint {version}".strip()),
        tag("title", f"{title} \u00b7 fsrace-lint"),
        tag("link", rel="icon", href="data:,"),
        tag("style", style),
        tag("script", script),
    )
    body = tag("body", skip, _bar(version), *content)
    page = f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"
    return page.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _resource(name: str) -> Markup:
    """Return the style or the script, which are included without changes."""
    file = importlib.resources.files("fsrace_lint.report.page").joinpath(name)
    return Markup(file.read_text("ascii").replace("\r\n", "\n"))


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("ascii")).digest()).decode("ascii")


def _bar(version: str) -> Markup:
    name = join([_LOGO, tag("span", "fsrace-lint", class_="name")])
    shown = tag("span", version, class_="version") if version else ""
    button = tag("button", "Theme: auto", type="button", id="theme", class_="script")
    return tag("header", tag("div", name, shown, class_="brand"), button, class_="bar")
