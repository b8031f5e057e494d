"""Evidence that multiple processes run a function."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Literal, TypeAlias

from fsrace_lint.syntax.record import Record

Role: TypeAlias = Literal["rank", "worker"]

if TYPE_CHECKING:
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.files.spans import Place


class Evidence(enum.IntEnum):
    """What shows that multiple processes run the code, weakest first.

    `NONE`: one process runs it. `PLAUSIBLE`: any number of processes can call it. `LIKELY`: code on the call
    chain checks ranks or synchronizes them, which also works in one process. `EVIDENT`: on the call chain,
    multiple processes are started, or the code fails unless a launcher started it.
    """

    NONE = 0
    PLAUSIBLE = 1
    LIKELY = 2
    EVIDENT = 3


class Doubt(enum.IntEnum):
    """Why a call chain might not be what runs, weakest first.

    `CLASS`: on the chain, an object of another class would run another method. `LOADED`: nothing names the
    file at the end of the chain, but code near it loads files by computed names. `PROCESS`: a test on the
    chain depends on the process, but it is not known which processes pass it. `UNUSED`: nothing runs the
    file at the end of the chain.
    """

    NONE = 0
    CLASS = 1
    LOADED = 2
    PROCESS = 3
    UNUSED = 4


class ConcurrencyMarker(Record, frozen=True):
    """A place that shows that multiple processes run a function.

    Attributes:
        place: The place.
        text: Its description.
        evidence: What it shows: `LIKELY` or `EVIDENT`.
        starts: Whether it starts processes, or joins them to a job.
        role: Whether the processes are ranks of one job, or workers.
        direct: Whether the code at the place shows it, and not a function that it calls.
        is_launch: Whether it is a command that starts the program.
        varies: Whether each process that the command starts gets other arguments.
        needs_job: Whether it shows something only in a program that joins a job: a check of an option with
            the name of a rank, as in `args.local_rank`, or a wrapper that needs a process group.
    """

    place: Place
    text: str
    evidence: Evidence = Evidence.LIKELY
    starts: bool = False
    role: Role = "rank"
    direct: bool = True
    is_launch: bool = False
    varies: bool = False
    needs_job: bool = False


class Entry(enum.Enum):
    """How code without callers is entered: by other code, as a command or a script, by imports, or never."""

    CALL = "call"
    COMMAND = "command"
    SCRIPT = "script"
    IMPORT = "import"
    NEVER = "never"


class ConcurrencyTrace(Record, frozen=True):
    """How multiple processes reach a function.

    Attributes:
        evidence: The evidence.
        call_chain: The call chain, nearest first.
        marker: The marker at its end. None if the evidence is less than `LIKELY`.
        entry: If the evidence is less than `EVIDENT`, how the functions above the chain without callers are
            entered. It is by other code only if that is so for all of them.
        doubt: Why the chain is not certain.
    """

    evidence: Evidence
    call_chain: tuple[CallSite, ...]
    marker: ConcurrencyMarker | None
    entry: Entry = Entry.CALL
    doubt: Doubt = Doubt.NONE

    @property
    def is_proof(self) -> bool:
        """Whether no better evidence is possible: the processes that come here are started alike."""
        return self.evidence is Evidence.EVIDENT and not self.varies and not self.doubt

    @property
    def varies(self) -> bool:
        """Whether each process gets other arguments from the command that starts it."""
        return self.marker is not None and self.marker.varies
