"""The rules of the findings: their pages, and the locations of the findings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fsrace_lint.report import RuleInfo
from fsrace_lint.report.page.frames import code
from fsrace_lint.report.page.markup import Markup, join, markup, prose, tag
from fsrace_lint.report.pages import bullets, parts
from fsrace_lint.report.words import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.report import Tool
    from fsrace_lint.report.pages import PagePart


def occurring(findings: Sequence[Finding], tool: Tool) -> list[tuple[RuleInfo, int]]:
    """Return the rules of some findings with their counts, most frequent first."""
    known = {rule.code: rule for rule in tool.rules}
    for finding in findings:
        known.setdefault(finding.code, RuleInfo(finding.code, finding.name, finding.name, finding.severity))
    tally = Counter(finding.code for finding in findings)
    return [
        (known[code], number) for code, number in sorted(tally.items(), key=lambda pair: (-pair[1], pair[0]))
    ]


def pages(findings: Sequence[Finding], tool: Tool) -> Markup:
    """Return the page of each rule, with links to its findings."""
    places: dict[str, list[Markup]] = {}
    for number, finding in enumerate(findings, 1):
        link = tag("a", finding.place.position, href=f"#f{number}")
        places.setdefault(finding.code, []).append(tag("li", link))
    shown = [
        _page(rule, places[rule.code])
        for rule, _ in sorted(occurring(findings, tool), key=lambda pair: pair[0].code)
    ]
    return tag("section", tag("h2", "Rules", id="rules"), *shown, class_="rules") if shown else Markup()


def _page(rule: RuleInfo, places: Sequence[Markup]) -> Markup:
    title, paragraphs = parts(rule.page)
    head = tag("h3", tag("span", rule.code, class_="code"), " ", rule.name)
    summary = tag("summary", head, tag("span", prose(title), class_="title"))
    weakness = tag("p", f"CWE-{rule.cwe}", class_="aside") if rule.cwe else ""
    text = [piece for part in paragraphs for piece in _paragraph(part)]
    found = join([tag("h4", f"Found in {count(len(places), 'place')}"), tag("ul", *places, class_="places")])
    body = tag("div", *text, weakness, found, class_="body", id=rule.code)
    return tag("details", summary, body, class_="rule")


def _paragraph(part: PagePart) -> Iterator[Markup]:
    if part.code:
        yield tag("h4", part.label)
        shown = Markup("\n").join(markup(code(line)) for line in part.code.split("\n"))
        yield tag(
            "pre", tag("code", Markup(shown)), tabindex="0", role="group", aria_label=f"{part.label}, example"
        )
        return
    items = bullets(part.text)
    text = Markup() if items else prose(" ".join(part.text.split()))
    yield tag("p", tag("b", part.label), " ", text) if part.label else tag("p", text)
    if items:
        yield tag("ul", *(tag("li", prose(item)) for item in items))
