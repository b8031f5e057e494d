"""One HTML page that needs no network, server, or script; a script adds filters."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Final

from fsrace_lint.findings.finding import Applicability, Severity, Tier
from fsrace_lint.report.lines import Lines
from fsrace_lint.report.page import rulebook
from fsrace_lint.report.page.changes import change, pill
from fsrace_lint.report.page.document import document
from fsrace_lint.report.page.frames import frames
from fsrace_lint.report.page.lanes import timeline
from fsrace_lint.report.page.markup import Markup, join, prose, tag
from fsrace_lint.report.provenance import proof_note
from fsrace_lint.report.words import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fsrace_lint.files.source import Source
    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.report import Options, Outcome, Preview

_ALL_OPEN: Final = 3
"""The maximum number of findings for which all are expanded."""
_FILES_OPEN: Final = 40
"""The maximum number of findings for which each file, and the first finding, is expanded."""
_EVIDENCE: Final[Mapping[str, str]] = {
    "evident": "runs in multiple processes",
    "likely": "probably runs in multiple processes",
    "plausible": "may run in multiple processes",
    "none": "no evidence that multiple processes run this",
}
_EVIDENCE_LABELS: Final[Mapping[str, str]] = {
    "evident": "yes",
    "likely": "probably",
    "plausible": "maybe",
    "none": "no evidence",
}
_NOTE: Final = (
    "Each diff shows the change that its fix makes alone. Before ",
    " writes anything, it applies all fixes together and checks the whole project again with all rules.",
)


def render(outcome: Outcome, sources: Mapping[str, Source], options: Options) -> str:
    """Return one HTML document in ASCII, including its style and its script."""
    found = outcome.findings
    return document(
        _headline(found),
        options.tool.version,
        tag("a", "Skip to the findings", href="#findings", class_="skip"),
        _summary(outcome),
        tag("div", _aside(found, options), _main(outcome, sources, options), class_="columns"),
        _footer(options, fixes=bool(outcome.previews)),
    )


def _headline(findings: Sequence[Finding]) -> str:
    if not findings:
        return "No filesystem races found"
    files = len({finding.place.path for finding in findings})
    return f"{count(len(findings), 'finding')} in {count(files, 'file')}"


def _summary(outcome: Outcome) -> Markup:
    found = outcome.findings
    facts: list[str] = []
    severities = Counter(finding.severity for finding in found)
    for severity in Severity:
        if number := severities[severity]:
            word = count(number, severity.value).partition(" ")[2]
            dot = tag("span", class_=f"dot {severity.value}")
            facts.append(tag("li", dot, tag("b", str(number)), f" {word}"))
    offered = (finding.fix_within(tuple(Tier)) for finding in found)
    fixes = Counter(fix.applicability for fix in offered if fix)
    for kind, told in (
        (Applicability.SAFE, "fixable with `fsrace-lint fix`"),
        (Applicability.UNSAFE, "possibly fixable with `--unsafe-fixes`"),
    ):
        if number := fixes[kind]:
            facts.append(tag("li", tag("b", str(number)), " ", prose(told)))
    if (files := outcome.statistics.get("files")) is not None:
        facts.append(tag("li", tag("b", str(files)), f" {count(files, 'file').partition(' ')[2]} checked"))
    shown = tag("ul", *facts, class_="facts") if facts else ""
    return tag(
        "section",
        tag("h1", _headline(found)),
        shown,
        _failures(outcome),
        class_="summary" if found or outcome.errors else "summary clean",
    )


def _failures(outcome: Outcome) -> Markup:
    if not outcome.errors:
        return Markup()
    rows = [
        tag("li", f"{error.path}: " if error.path else "", prose(error.message)) for error in outcome.errors
    ]
    title = f"{count(len(rows), 'error')}: some files were not checked"
    return tag("div", tag("h2", title), tag("ul", *rows), class_="failures")


def _aside(findings: Sequence[Finding], options: Options) -> Markup:
    """Return the filters, which need the script, and the list of rules, which does not."""
    if not findings:
        return Markup()
    text = tag("input", type="search", id="text", placeholder="Path, message, or code", autocomplete="off")
    severities = Counter(finding.severity.value for finding in findings)
    evidences = Counter(finding.evidence for finding in findings)
    buttons = [tag("button", label, type="button", id=name) for name, label in _BUTTONS]
    form = tag(
        "form",
        tag("label", "Search", for_="text"),
        text,
        _choices("Severity", "severity", [(s.value, s.value, severities[s.value]) for s in Severity]),
        _choices(
            "Runs in multiple processes",
            "evidence",
            [(name, label, evidences[name]) for name, label in _EVIDENCE_LABELS.items()],
        ),
        tag("div", *buttons, class_="buttons"),
        tag("p", role="status", id="shown"),
        class_="script",
        role="search",
    )
    rules = [
        _rule(rule.code, rule.name, number) for rule, number in rulebook.occurring(findings, options.tool)
    ]
    listed = tag("details", tag("summary", tag("h2", "Rules")), tag("ul", *rules), open=True, id="by-rule")
    return tag("aside", form, tag("nav", listed, aria_label="Rules"), aria_label="Filter findings")


_BUTTONS: Final = (("open", "Expand all"), ("close", "Collapse all"), ("clear", "Clear filters"))


def _choices(title: str, name: str, values: Iterable[tuple[str, str, int]]) -> Markup:
    boxes = [
        tag(
            "label",
            tag("input", type="checkbox", name=name, value=value),
            tag("span", label, " ", tag("small", str(number))),
            class_="chip",
        )
        for value, label, number in values
        if number
    ]
    return tag("fieldset", tag("legend", title), tag("div", *boxes, class_="chips"))


def _rule(code: str, name: str, number: int) -> Markup:
    label = f"Show only {code} {name}"
    box = tag("input", type="checkbox", name="rule", value=code, class_="script", aria_label=label)
    link = tag("a", tag("span", code, class_="code"), " ", name, href=f"#{code}")
    return tag("li", box, link, tag("small", str(number)))


def _main(outcome: Outcome, sources: Mapping[str, Source], options: Options) -> Markup:
    found = outcome.findings
    lines = Lines(sources)
    previews = outcome.previews or {}
    numbered = enumerate(found, 1)
    files = []
    for path, group in groupby(numbered, key=lambda pair: pair[1].place.path):
        members = list(group)
        rows = []
        for number, finding in members:
            is_open = len(found) <= _ALL_OPEN or (number == 1 and len(found) <= _FILES_OPEN)
            preview = previews.get(finding)
            shown = _body(finding, lines, preview, sources.get(path))
            rows.append(_finding(number, finding, shown, preview, is_open=is_open))
        files.append(
            _file(path, [finding for _, finding in members], rows, is_open=len(found) <= _FILES_OPEN)
        )
    nothing = tag("p", "No findings match the filters.", id="nothing", hidden=True)
    heading = tag("h2", "Findings", id="findings", tabindex="-1", class_="sr")
    return tag(
        "main", heading, *files, nothing, rulebook.pages(found, options.tool), _statistics(outcome, options)
    )


def _file(path: str, findings: Sequence[Finding], rows: Sequence[Markup], *, is_open: bool) -> Markup:
    tally = Counter(finding.severity for finding in findings)
    counts = [
        tag("span", str(tally[s]), class_=f"count {s.value}", title=s.value) for s in Severity if tally[s]
    ]
    folder, slash, name = path.rpartition("/")
    title = tag("h3", tag("span", folder + slash, class_="folder"), tag("bdi", name))
    summary = tag("summary", title, tag("span", *counts, class_="counts"))
    return tag("details", summary, *rows, class_="file", open=is_open)


def _finding(
    number: int, finding: Finding, shown: Markup, preview: Preview | None, *, is_open: bool
) -> Markup:
    span = finding.place.span
    fix = pill(finding.fix, preview) if finding.fix else ""
    where = tag("span", f"{span.line}:{span.column}", class_="at")
    told = tag(
        "span", tag("span", finding.code, class_="code"), " ", prose(finding.message), class_="message"
    )
    dot = tag(
        "span", tag("span", f"{finding.severity.value} ", class_="sr"), class_=f"dot {finding.severity.value}"
    )
    return tag(
        "details",
        tag("summary", where, dot, tag("h4", told), fix),
        tag("div", shown, class_="body", id=f"f{number}"),
        class_=f"finding {finding.severity.value}",
        open=is_open,
        data_rule=finding.code,
        data_severity=finding.severity.value,
        data_evidence=finding.evidence,
    )


def _body(finding: Finding, lines: Lines, preview: Preview | None, source: Source | None) -> Markup:
    within = finding.function if not finding.function.startswith("<") else ""
    about = [
        tag("a", tag("span", finding.code, class_="code"), " ", finding.name, href=f"#{finding.code}"),
        tag("span", finding.severity.value),
        join(["in ", tag("code", within)]) if within else "at module level",
        tag("span", _EVIDENCE.get(finding.evidence, "")),
        tag("span", f"{finding.confidence} confidence"),
        tag("span", proof_note(finding.proof)) if finding.proof else "",
        "reported only with the strict profile" if finding.strict else "",
    ]
    facts = tag("ul", *(tag("li", fact) for fact in about if fact), class_="about")
    parts = [facts, frames(finding, lines)]
    if finding.witness:
        parts.append(tag("section", tag("h5", "Failing interleaving"), timeline(finding.witness)))
    if finding.fix:
        parts.append(change(finding, finding.fix, preview, source))
    return join(parts)


def _statistics(outcome: Outcome, options: Options) -> Markup:
    if not options.statistics:
        return Markup()
    rows = [
        tag("tr", tag("th", key, scope="row"), tag("td", str(n))) for key, n in outcome.statistics.items()
    ]
    table = tag("table", tag("tbody", *rows))
    return tag("section", tag("h2", "Statistics"), table, class_="statistics")


def _footer(options: Options, *, fixes: bool) -> Markup:
    made = f"Generated by fsrace-lint {options.tool.version}".strip()
    note = join([_NOTE[0], tag("code", "fsrace-lint fix"), _NOTE[1]]) if fixes else ""
    return tag("footer", tag("p", note) if note else "", tag("p", f"{made}."))
