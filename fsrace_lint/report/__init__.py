"""The results of a run and their output formats: one module for each format, all with one signature.

A format is imported only when it is used, so that `json` does not pay for `rich`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from fsrace_lint.files.spans import Span
from fsrace_lint.findings.finding import Finding, Severity, Silenced, Suppression

if TYPE_CHECKING:
    from fsrace_lint.files.source import Source


class Problem(msgspec.Struct, frozen=True):
    """A failure of the run itself, such as a directory that cannot be listed."""

    path: str
    message: str


class Edit(msgspec.Struct, frozen=True):
    """A span of a file, and the text that replaces it."""

    span: Span
    text: str


class Preview(msgspec.Struct, frozen=True):
    """The edits of one fix in its file, in order, or the reason why the fix is refused."""

    edits: tuple[Edit, ...] = ()
    refusal: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """The results of a run.

    Attributes:
        findings: The findings, sorted.
        errors: The failures of the run itself.
        statistics: Counts by name.
        silenced: The calls that are not reported, with reasons; None if not requested.
        suppressed: The suppressed findings; None if not requested.
        previews: The previews of all safe and unsafe fixes; None if not requested.
    """

    findings: tuple[Finding, ...] = ()
    errors: tuple[Problem, ...] = ()
    statistics: dict[str, int] = {}
    silenced: tuple[Silenced, ...] | None = None
    suppressed: tuple[Suppression, ...] | None = None
    previews: dict[Finding, Preview] | None = None


class RuleInfo(msgspec.Struct, frozen=True):
    """The description of a rule in a report.

    Attributes:
        code: The code of the rule.
        name: The name of the rule.
        page: The page of the rule; its first line is the title.
        severity: The severity of its findings.
        cwe: The CWE number; 0 for the rules about the tool itself.
        evidence: The weakest evidence that the default profile reports; empty for a rule of the strict
            profile.
    """

    code: str
    name: str
    page: str
    severity: Severity
    cwe: int = 0
    evidence: str = ""


class Tool(msgspec.Struct, frozen=True):
    """The description of the tool in a report: its version, and its rules by code."""

    version: str = ""
    rules: tuple[RuleInfo, ...] = ()


class Options(msgspec.Struct, frozen=True):
    """The options of a report; a format ignores those that it does not use.

    Attributes:
        color: Whether to use colors.
        width: The width of the terminal.
        statistics: Whether to show statistics.
        seconds: Returns the duration of each phase so far, for the statistics.
        summary: Whether to end with a closing line.
        list_errors: Whether to list the failures of the run; if they are already on standard error, only
            count them.
        hints: Whether to add a line about the next step after the closing line.
        tool: The description of the tool.
    """

    color: bool = False
    width: int = 100
    statistics: bool = False
    seconds: Callable[[], Mapping[str, float]] | None = None
    summary: bool = True
    list_errors: bool = True
    hints: bool = False
    tool: Tool = Tool()


class Renderer(Protocol):
    """The signature of a format."""

    def __call__(self, outcome: Outcome, sources: Mapping[str, Source], options: Options) -> str:
        """Return the whole report; it ends with a newline unless it is empty."""
        ...


FOR_PEOPLE: Final = ("full", "concise", "grouped", "trace")
"""The formats for a terminal; the first is the default."""
FORMATS: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: f"{__name__}.{name}"
        for name in (*FOR_PEOPLE, "json", "github", "gitlab", "html", "junit", "sarif")
    }
)
"""The name of each format, and the module that defines its `render()`."""
SHOWING_FIXES: Final = frozenset(("html", "sarif"))
"""The formats that show the edits of fixes, so that each fix must be computed."""


def render(name: str, outcome: Outcome, sources: Mapping[str, Source], options: Options) -> str:
    """Return the report in one of `FORMATS`; the keys of `sources` are values of `Place.path`."""
    renderer: Renderer = import_module(FORMATS[name]).render
    return renderer(outcome, sources, options)
