"""What a run found, and how it is shown: one format a file, one signature.

A format is loaded when it is asked for, so that `json` does not pay for `rich`.
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
    """Something that went wrong in the run itself, such as a folder that cannot be listed."""

    path: str
    message: str


class Edit(msgspec.Struct, frozen=True):
    """A stretch of a file as it is, and the text that takes its place."""

    span: Span
    text: str


class Preview(msgspec.Struct, frozen=True):
    """What a fix alone would change in its file, from the top, or the reason why it is refused."""

    edits: tuple[Edit, ...] = ()
    refusal: str = ""


class Outcome(msgspec.Struct, frozen=True):
    """Everything a run has to say: sorted findings, its own failures, and flat counts.

    `silenced`, `suppressed` and `previews` are None where nobody asked for them; `previews`
    are those of all fixes that can be made.
    """

    findings: tuple[Finding, ...] = ()
    errors: tuple[Problem, ...] = ()
    statistics: dict[str, int] = {}
    silenced: tuple[Silenced, ...] | None = None
    suppressed: tuple[Suppression, ...] | None = None
    previews: dict[Finding, Preview] | None = None


class RuleInfo(msgspec.Struct, frozen=True):
    """What a report may say of a rule.

    `page` begins with a line that is its title. `cwe` is 0 for the rules about the
    tool itself. `evidence` is the weakest with which the default profile reports it,
    and empty for a rule of the strict profile.
    """

    code: str
    name: str
    page: str
    severity: Severity
    cwe: int = 0
    evidence: str = ""


class Tool(msgspec.Struct, frozen=True):
    """What a report may say of the tool: its version, and its rules by code."""

    version: str = ""
    rules: tuple[RuleInfo, ...] = ()


class Options(msgspec.Struct, frozen=True):
    """How to show it; a format ignores what it has no use for.

    Without `list_errors` the text only counts the failures of the run, which
    are on standard error already; without `summary` it has no closing line. `seconds`
    tells what has taken how long so far, and belongs to the statistics.
    """

    color: bool = False
    width: int = 100
    statistics: bool = False
    seconds: Callable[[], Mapping[str, float]] | None = None
    summary: bool = True
    list_errors: bool = True
    tool: Tool = Tool()


class Renderer(Protocol):
    """The one signature of a format."""

    def __call__(self, outcome: Outcome, sources: Mapping[str, Source], options: Options) -> str:
        """Give the whole report; it ends with a newline unless it is empty."""
        ...


FORMATS: Final[Mapping[str, str]] = MappingProxyType(
    {name: f"{__name__}.{name}" for name in ("text", "json", "github", "gitlab", "html", "junit", "sarif")}
)
"""The name of each format, and the module whose `render` writes it."""
SHOWING_FIXES: Final = frozenset(("html", "sarif"))
"""The formats that show what fixes would change, which costs a repair of each."""


def render(name: str, outcome: Outcome, sources: Mapping[str, Source], options: Options) -> str:
    """Give the report in the format of that name, one of `FORMATS`; `sources` go by `Place.path`."""
    renderer: Renderer = import_module(FORMATS[name]).render
    return renderer(outcome, sources, options)
