"""Findings in the types of the protocol: diagnostics, and rule pages for hovers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from lsprotocol import types
from pygls import uris

from fsrace_lint import rules
from fsrace_lint.findings import suppressions
from fsrace_lint.findings.finding import Severity
from fsrace_lint.integrations.server.positions import Text
from fsrace_lint.report.pages import paragraphs
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fsrace_lint.files.source import Source
    from fsrace_lint.findings.finding import Finding

SOURCE: Final = "fsrace-lint"
_SEVERITIES: Final = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}


class Wishes(NamedTuple):
    """The capabilities of the client for diagnostics."""

    encoding: str
    related: bool
    tags: bool
    data: bool


class Document(NamedTuple):
    """One version of a document."""

    uri: str
    version: int | None
    text: str


class Writer:
    """Converts the findings of one document to diagnostics."""

    def __init__(self, document: Document, sources: Mapping[str, Source], wishes: Wishes) -> None:
        """Initialize for a document; `sources` are the files that findings may refer to."""
        self._document = document
        self._sources = sources
        self._wishes = wishes
        self._texts: dict[str, Text] = {}

    def diagnostic(self, finding: Finding) -> types.Diagnostic:
        """Convert a finding."""
        message = visible(finding.message)
        if finding.witness is not None:
            message += f"\nOutcome: {visible(finding.witness.outcome)}"
        fix = finding.fix
        unused = finding.code == suppressions.CODE
        return types.Diagnostic(
            range=Text(self._document.text, self._wishes.encoding).range(finding.place.span),
            message=message,
            severity=_SEVERITIES[finding.severity],
            code=finding.code,
            source=SOURCE,
            tags=[types.DiagnosticTag.Unnecessary] if unused and self._wishes.tags else None,
            related_information=self._related(finding) if self._wishes.related else None,
            data={
                "name": finding.name,
                "confidence": finding.confidence,
                "evidence": finding.evidence,
                "applicability": None if fix is None else fix.applicability.value,
                "tier": None if fix is None or fix.tier is None else fix.tier.value,
            }
            if self._wishes.data
            else None,
        )

    def _related(self, finding: Finding) -> list[types.DiagnosticRelatedInformation] | None:
        found = []
        for related in finding.related:
            path, span = related.place.path, related.place.span
            known = self._sources.get(path)
            if path == finding.place.path:
                uri, text = self._document.uri, self._document.text
            elif known is not None:
                uri, text = uris.from_fs_path(str(known.file)) or "", known.text
            else:
                continue
            lines = self._texts.setdefault(path, Text(text, self._wishes.encoding))
            location = types.Location(uri, lines.range(span))
            found.append(types.DiagnosticRelatedInformation(location, visible(related.message)))
        return found or None


def page(code: str, *, markdown: bool) -> str:
    """Return the page of a rule as Markdown or as plain text."""
    loaded = rules.find(code)
    if loaded is None:
        return ""
    title = f"{loaded.rule.code} {loaded.rule.name}"
    if not markdown:
        return f"{title}\n\n{loaded.page}"
    return "\n\n".join([f"### {title}", *paragraphs(loaded.page)])
