"""A finding, as immutable data without syntax nodes."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.files.spans import Place, Span

if TYPE_CHECKING:
    from collections.abc import Collection


class Severity(enum.Enum):
    """How severe a finding is: its consequence, limited by the confidence."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


CONFIDENCES: Final = ("high", "medium", "low")
"""The values of `Finding.confidence`, highest first."""


BY_HAND: Final = "; not applied, because "
"""Separates what a fix does from the reason why it is manual here, in its description."""


class Applicability(enum.Enum):
    """How a fix may be applied.

    * `SAFE` fixes do not change the behavior of a single process, nor the control flow between ranks.
    * `UNSAFE` fixes need review and `--unsafe-fixes`.
    * `SKETCH` fixes are manual: they are shown and never applied.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    SKETCH = "sketch"


class Tier(enum.Enum):
    """How far an unsafe fix reaches, and so how much of it there is to review.

    * `LOCAL` fixes change one call, such as `missing_ok=True` or `timeout=600`.
    * `ATOMIC` fixes create a file or a link under another name, and rename it.
    * `COORDINATION` fixes change which processes run a line, or where they wait for each other.
    """

    LOCAL = "local"
    ATOMIC = "atomic"
    COORDINATION = "coordination"


TIERS: Final = tuple(tier.value for tier in Tier)


class Fix(msgspec.Struct, frozen=True):
    """An intended change, as data.

    Attributes:
        recipe: The module of `fsrace_lint.fixes.recipes` that rewrites the source, or refuses.
        span: The call to change.
        applicability: How the fix may be applied.
        description: What the fix does.
        check: The check that the fix also affects. It is an existence check to remove or move, or the rank
            check after which a barrier is added.
        otherwise: The recipe to try if `recipe` refuses, always of the coordination tier. Empty if there is
            none.
        path: The path argument as in the source. Empty if not known.
        api: The called API by its name in the library models. Empty if not known.
        tier: How far the change reaches. None for manual fixes and for edits of comments.
    """

    recipe: str
    span: Span
    applicability: Applicability
    description: str
    check: Span | None = None
    otherwise: str = ""
    path: str = ""
    api: str = ""
    tier: Tier | None = None

    @property
    def reason(self) -> str:
        """Why a fix that is usually applied is manual here, or an empty string."""
        return self.description.partition(BY_HAND)[2]

    @property
    def kind(self) -> str:
        """The applicability and, for an unsafe fix, the tier: `safe`, `unsafe: local`, or `manual`."""
        if self.applicability is Applicability.SKETCH:
            return "manual"
        is_unsafe = self.applicability is Applicability.UNSAFE and self.tier is not None
        return f"unsafe: {self.tier.value}" if is_unsafe and self.tier else self.applicability.value

    def within(self, tiers: Collection[Tier]) -> Fix | None:
        """Return the part of a fix that may be applied if only unsafe fixes of some tiers are wanted."""
        if self.applicability is Applicability.SKETCH:
            return None
        if self.applicability is Applicability.UNSAFE and self.tier not in tiers:
            return None
        if self.otherwise and Tier.COORDINATION not in tiers:
            return msgspec.structs.replace(self, otherwise="")
        return self


class Idiom(msgspec.Struct, frozen=True):
    """The spellings of a rank check and a barrier that fit a call in a file, best first.

    Attributes:
        tests: Conditions that are true on the main process only.
        barriers: Statements with a call in which all processes wait for each other.
        framework_tests: Conditions of a visible library module, which fit if the project has no own.
        framework_barriers: Calls of such a module in which all processes wait for each other.
    """

    tests: tuple[str, ...] = ()
    barriers: tuple[str, ...] = ()
    framework_tests: tuple[str, ...] = ()
    framework_barriers: tuple[str, ...] = ()


class OwnHelper(msgspec.Struct, frozen=True):
    """A function of the project that a fix can call: how the file of the fix imports it.

    Attributes:
        module: The module as an import names it, with leading dots if the import is relative.
        name: The name of the function.
        is_chosen: Whether the settings name the function.
    """

    module: str
    name: str
    is_chosen: bool


class WitnessStep(msgspec.Struct, frozen=True):
    """One step of one process in a failing interleaving."""

    process: int
    action: str
    result: str = ""


class Witness(msgspec.Struct, frozen=True):
    """A failing interleaving: its steps in order, and the outcome."""

    steps: tuple[WitnessStep, ...]
    outcome: str


class Role(enum.Enum):
    """The role of a related place.

    `PLACE` takes part in the race. `CALL` is in the call chain to the finding, nearest first. `REASON` is
    evidence that multiple processes run it.
    """

    PLACE = "place"
    CALL = "call"
    REASON = "reason"


class Related(msgspec.Struct, frozen=True):
    """A place related to a finding, with a message and a role."""

    place: Place
    message: str
    role: Role = Role.PLACE


class Proof(msgspec.Struct, frozen=True):
    """What running the code of a finding has shown.

    Attributes:
        status: "proven" if an interleaving fails at the place of the finding, "differs" if one fails
            elsewhere, "passes" if none fails, and "failed" if the code cannot be run.
        text: How it fails, or why nothing is proven.
    """

    status: str
    text: str


class Finding(msgspec.Struct, frozen=True):
    """A hazard at a place.

    Attributes:
        code: The code of the rule.
        name: The name of the rule.
        message: One sentence without a period.
        place: The place.
        function: The qualified name of the enclosing function. `<module>` for module code.
        severity: The severity.
        evidence: What shows that multiple processes run the place: `evident`, `likely`, `plausible`, or
            `none`.
        strict: Whether only the strict profile reports it.
        related: Related places.
        witness: The failing interleaving.
        fix: The fix.
        confidence: How certain it is that the race can occur in ordinary use: `high`, `medium`, or `low`.
        scenario: The processes that run the place at the same time: `ranks` of one job, `workers` of one
            process, processes with `imports` of the module, `calls` by any process, or two `commands`.
            `crash` if one process that is killed in between is enough. Empty if one process runs it.
        proof: What running the code has shown. None if it was not run.
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
    confidence: str = "high"
    scenario: str = ""
    proof: Proof | None = None

    @property
    def is_certain(self) -> bool:
        """Whether it is certain that multiple processes run the code."""
        is_shown = self.evidence in {"evident", "likely"} and self.confidence != CONFIDENCES[-1]
        return is_shown or self.confidence == CONFIDENCES[0]

    def fix_within(self, tiers: Collection[Tier]) -> Fix | None:
        """Return the fix that may be applied if only unsafe fixes of some tiers are wanted.

        Processes are coordinated only where it is certain that multiple processes run the code.
        """
        certain = [tier for tier in tiers if self.is_certain or tier is not Tier.COORDINATION]
        return None if self.fix is None else self.fix.within(certain)

    def sort_key(self) -> tuple[str, int, int, str]:
        """Return the key that defines the order by place."""
        return (self.place.path, self.place.span.line, self.place.span.column, self.code)

    def certainty_key(self) -> tuple[int, int]:
        """Return the key that puts the most severe and most certain findings first."""
        return list(Severity).index(self.severity), CONFIDENCES.index(self.confidence)


class Suppression(msgspec.Struct, frozen=True):
    """A finding that is suppressed.

    Attributes:
        finding: The finding.
        by: What suppresses it: `comment` or `baseline`.
        reason: The reason in the comment.
    """

    finding: Finding
    by: str
    reason: str = ""

    def sort_key(self) -> tuple[str, int, int, str]:
        """Return the key that defines the report order."""
        return self.finding.sort_key()


class Silenced(msgspec.Struct, frozen=True):
    """A filesystem operation that was analyzed and not reported.

    Attributes:
        place: The place.
        function: The qualified name of the enclosing function.
        operation: The kind of operation.
        call: The call as in the source.
        reason: One of `tolerant`, `synchronized`, `exclusive`, `guard`, `private`, `lock`, `handled`,
            `first`, `preceded`, `empty`, `callers`, `unproven`, `unknown`, `unexposed`, `note`, `strict`,
            `suppressed`, and `baseline`.
        message: The reason in words.
        cause: The place of the reason.
    """

    place: Place
    function: str
    operation: str
    call: str
    reason: str
    message: str
    cause: Place | None = None

    def sort_key(self) -> tuple[str, int, int]:
        """Return the key that defines the report order."""
        return (self.place.path, self.place.span.line, self.place.span.column)
