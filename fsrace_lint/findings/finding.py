"""What a rule says: frozen data, and never a syntax node."""

from __future__ import annotations

import enum

import msgspec

from fsrace_lint.files.spans import Place, Span


class Severity(enum.Enum):
    """How bad it is when the schedule of the witness happens."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Applicability(enum.Enum):
    """What may be done with a fix.

    SAFE behaves the same for one process and touches no control flow between
    ranks; UNSAFE needs `--unsafe-fixes` and a reader; SKETCH is shown, never written.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    SKETCH = "sketch"


class Fix(msgspec.Struct, frozen=True):
    """An intended change as data.

    `span` is the call to change. `check` is the test that the change is about as
    well: the existence test that it makes needless or moves, or the rank test behind
    which it adds a barrier. `recipe` names the module of the fixes room that turns this
    into new source text, or refuses; `otherwise` the one that is tried then. `path` is
    the path that the call is about, as the source spells it, and `api` what is called, by its
    name in the catalog; both are empty where that is not known.
    """

    recipe: str
    span: Span
    applicability: Applicability
    description: str
    check: Span | None = None
    otherwise: str = ""
    path: str = ""
    api: str = ""


class Idiom(msgspec.Struct, frozen=True):
    """How a file would spell, at one call, what a fix may have to add there; the nearest spelling first.

    `tests` pick the first process of the job, `barriers` make all processes wait for each other.
    """

    tests: tuple[str, ...] = ()
    barriers: tuple[str, ...] = ()


class WitnessStep(msgspec.Struct, frozen=True):
    """One thing that one process does in a witness."""

    process: int
    action: str
    result: str = ""


class Witness(msgspec.Struct, frozen=True):
    """The interleaving that goes wrong, in the order of time, and how it ends."""

    steps: tuple[WitnessStep, ...]
    outcome: str


class Related(msgspec.Struct, frozen=True):
    """Another place that belongs to the finding, and what it has to do with it."""

    place: Place
    message: str


class Finding(msgspec.Struct, frozen=True):
    """One hazard at one place.

    `function` is the qualified name of the function it stands in (`<module>`
    for module code). `evidence` is how sure it is that several processes run
    the place: `evident`, `plausible` or `none`. `strict` marks a finding that
    only the strict profile reports.
    """

    code: str
    name: str
    message: str
    place: Place
    function: str
    severity: Severity
    evidence: str
    strict: bool = False
    related: tuple[Related, ...] = ()
    witness: Witness | None = None
    fix: Fix | None = None

    def sort_key(self) -> tuple[str, int, int, str]:
        """Give the one order in which findings are reported."""
        return (self.place.path, self.place.span.line, self.place.span.column, self.code)


class Suppression(msgspec.Struct, frozen=True):
    """A finding that is not reported.

    `by` is what keeps it back: `comment` or `baseline`; `reason` is what the comment says.
    """

    finding: Finding
    by: str
    reason: str = ""

    def sort_key(self) -> tuple[str, int, int, str]:
        """Give the one order in which they are listed."""
        return self.finding.sort_key()


class Silenced(msgspec.Struct, frozen=True):
    """A filesystem act that was looked at and is no finding.

    `operation` is what it does, `call` how the source spells it. `reason` is one
    of `tolerant`, `synchronized`, `exclusive`, `guard`, `private`, `lock`,
    `handled`, `first`, `preceded`, `callers`, `unproven`, `unknown`, `unexposed`, `strict`,
    `suppressed` and `baseline`; `message` says it in words, `cause` where it stands.
    """

    place: Place
    function: str
    operation: str
    call: str
    reason: str
    message: str
    cause: Place | None = None

    def sort_key(self) -> tuple[str, int, int]:
        """Give the one order in which they are listed."""
        return (self.place.path, self.place.span.line, self.place.span.column)
