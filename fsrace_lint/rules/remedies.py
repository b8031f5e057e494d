"""What can be done about findings: the fixes that rules offer, each by the recipe that makes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.analysis.accesses.model import Access, Reach
from fsrace_lint.findings.finding import Applicability, Fix

if TYPE_CHECKING:
    from fsrace_lint.analysis.accesses.model import AtCall, ExistenceCheck
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.analysis.synchronization.unordered_pairs import UnorderedPair
    from fsrace_lint.files.spans import Span

_WRITING: Final = re.compile(
    r"_?(save|dump|write|store|export|record|log|persist|plot|serialize)(?=_|$|[A-Z])"
)
"""How the name of a function begins that is there to write."""

SKETCH: Final = "sketch"
"""The recipe of what is only told: there is none."""


HELPED: Final = frozenset(
    {
        "atomic-write",
        "barrier",
        "barrier-before",
        "download-once",
        "ensure-dir",
        "extract-once",
        "guard-and-barrier",
        "publish-symlink",
        "rank-guard",
    }
)
"""The recipes that may call a helper, so that `helper-module` matters."""


class FixTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A fix, but for its place.

    `otherwise` is the recipe to try where the first refuses. With `where_done` the
    call is changed that does it, where that stands in the same file as the one that is reported.
    """

    recipe: str
    description: str
    applicability: Applicability = Applicability.UNSAFE
    otherwise: str = ""
    where_done: bool = False

    @property
    def told(self) -> str:
        """The remedy as the page of a rule tells it."""
        if self.applicability is Applicability.SKETCH:
            return f"{self.description} (a sketch, which is shown and never made)"
        names = " or ".join(f"`{name}`" for name in (self.recipe, self.otherwise) if name)
        return f"{names} ({self.applicability.value}): {self.description}"

    def at(self, place: AtCall, check: Span | None = None) -> Fix:
        """Offer it for what is seen from a call.

        Args:
            place: What is seen from the call.
            check: The test that the fix is about as well.

        Returns:
            The fix.
        """
        call_site, path, api = place.call_site, "", ""
        if isinstance(place, Access):
            leaf, path = place.leaf_call, place.path_source
            if self.where_done and leaf.function.module.path == place.file:
                call_site = leaf
            api = place.operation.api if call_site is leaf else ""
        span = call_site.call.span
        return Fix(self.recipe, span, self.applicability, self.description, check, self.otherwise, path, api)


def _sketch(description: str) -> FixTemplate:
    return FixTemplate(recipe=SKETCH, description=description, applicability=Applicability.SKETCH)


ATOMIC_WRITE: Final = FixTemplate(
    recipe="atomic-write", description="write it beside and put it there in one step", where_done=True
)
EXCLUSIVE_OPEN: Final = FixTemplate(
    recipe="exclusive-open",
    description="let the mode `x` create it once, as the handler expects",
)
PUBLISH_SYMLINK: Final = FixTemplate(
    recipe="publish-symlink", description="put the link there in one step", where_done=True
)
LINK_AND_REPLACE: Final = FixTemplate(
    recipe="link-and-replace",
    description="make the link under another name and rename it",
    applicability=Applicability.SAFE,
)
EXIST_OK: Final = FixTemplate(recipe="exist-ok", description="accept a directory that is there already")
ENSURE_DIR: Final = FixTemplate(
    recipe="ensure-dir", description="make it with a helper that looks again", where_done=True
)
RANK_GUARD: Final = FixTemplate(
    recipe="rank-guard",
    description="let rank 0 alone do it, and the others wait where they use it",
    otherwise="guard-and-barrier",
)
GUARD_WHERE_DONE: Final = msgspec.structs.replace(RANK_GUARD, where_done=True)
GUARD_AND_BARRIER: Final = FixTemplate(
    recipe="guard-and-barrier", description="let rank 0 alone do it, and the others wait"
)
MISSING_OK: Final = FixTemplate(recipe="missing-ok", description="accept that it is gone already")
STAGE_BESIDE: Final = FixTemplate(
    recipe="stage-beside", description="make the temporary file or folder beside the target"
)
MKSTEMP: Final = FixTemplate(recipe="mkstemp", description="let `mkstemp` make a file of its own")
OWN_FILE: Final = FixTemplate(
    recipe="mkstemp",
    description="let `NamedTemporaryFile` make and open it in one",
)
EXTRACT_ONCE: Final = FixTemplate(
    recipe="extract-once",
    description="unpack beside, and rename the whole tree",
    otherwise="guard-and-barrier",
    where_done=True,
)
DOWNLOAD_ONCE: Final = FixTemplate(
    recipe="download-once",
    description="download beside, and rename the whole file",
    otherwise="guard-and-barrier",
    where_done=True,
)
BARRIER: Final = FixTemplate(recipe="barrier", description="let all wait behind it")
BARRIER_BEFORE: Final = FixTemplate(recipe="barrier-before", description="let all wait before it")
PASS_THE_FUNCTION: Final = FixTemplate(
    recipe="pass-the-function", description="hand over the function, not its result"
)
ENTER_THE_CONTEXT: Final = FixTemplate(
    recipe="enter-the-context", description="enter the context around the statement below"
)
FILELOCK: Final = FixTemplate(recipe="filelock", description="hold a lock of the system in its place")
DROP_UNLINK: Final = FixTemplate(recipe="drop-unlink", description="leave the lock file where it is")
TIMEOUT: Final = FixTemplate(recipe="timeout", description="give up after ten minutes")
CHECK_IN_LOCK: Final = FixTemplate(recipe="move-check-into-lock", description="ask once the lock is held")

READ_AND_HANDLE: Final = _sketch("read it without asking, and handle FileNotFoundError")
RESET_ON_FIRST: Final = _sketch("let rank 0 reset it, with a barrier before and one behind")
AGREE_ON_NAME: Final = _sketch("make the name on rank 0 and broadcast it")
FLUSH_FIRST: Final = _sketch("flush and close the data before it is named or unlocked")
ALL_CALL_IT: Final = _sketch("let every rank come to the collective, and guard what only one is to do")
DECIDE_ON_MAIN: Final = _sketch("decide on rank 0 and broadcast the answer")
GUARD_LATER: Final = _sketch("test the rank after the process group is there, or ask the environment")
GLOBAL_GUARD: Final = _sketch("let rank 0 of the job do it, or one process of each filesystem")
LOCAL_GUARD: Final = _sketch("let the first process of each node do it, or share the path")
WAIT_IN_BARRIER: Final = _sketch("let all wait in a barrier; between jobs use `wait_for_path`")
WAIT_BETWEEN: Final = _sketch("put a barrier, which all ranks reach, between the two")
BARRIER_FOR_SLEEP: Final = _sketch("put a barrier in the place of the sleep")
ONE_LOCK_NAME: Final = _sketch("give the lock a name that is the same in all processes")
LOCK_THEN_TRUNCATE: Final = _sketch('open it with "a" or "r+", lock it, then truncate it')
DELETE_AFTER_ALL: Final = _sketch("wait in a barrier until all have read it, then let rank 0 alone delete it")
WRITE_ON_FIRST: Final = _sketch("let rank 0 alone write it, where it is written")
REPLACE_AT_ONCE: Final = _sketch(
    "make the new one beside it and rename it there, and take nothing away before"
)
SAVE_WITH_ALL: Final = _sketch("let the collective save decide who writes, and call it on every rank")

CREATING: Final = (LINK_AND_REPLACE, PUBLISH_SYMLINK, EXCLUSIVE_OPEN, EXIST_OK, ATOMIC_WRITE)
WRITING: Final = (RANK_GUARD, LOCAL_GUARD, WRITE_ON_FIRST, SAVE_WITH_ALL)
DELETING: Final = (MISSING_OK, GUARD_AND_BARRIER, DELETE_AFTER_ALL)
ORDERING: Final = (BARRIER, BARRIER_BEFORE, WAIT_BETWEEN)
NAMING: Final = (OWN_FILE, MKSTEMP)


def for_creation(probe: ExistenceCheck | None, access: Access) -> Fix:
    """Offer what makes the creation of a file or a link whole, or tells the loser.

    A dangling link is there, but does not exist: only `lexists` answers as `symlink` and the mode `x` would.
    """
    asked = probe is not None and probe.asks == "lexists" and probe.is_implied and probe.path == access.path
    if access.op == "link":
        own = asked and access.call_site is access.leaf_call and access.operation.api == "os.symlink"
        return (LINK_AND_REPLACE if own else PUBLISH_SYMLINK).at(access)
    if access.op == "mkdir" or access.operation.tree:
        return EXIST_OK.at(access)
    is_opened = access.operation.api.rpartition(".")[2] == "open"
    if (
        is_opened
        and probe is not None
        and access.call_site is access.leaf_call
        and "FileExistsError" in access.caught
    ):
        safe = Applicability.SAFE if asked else Applicability.UNSAFE
        return msgspec.structs.replace(EXCLUSIVE_OPEN, applicability=safe).at(access)
    return ATOMIC_WRITE.at(access)


def for_one_writer(project: Project, access: Access) -> Fix:
    """Offer a guard for what every process does, where that may be guarded at all.

    A call that leads to it may do more, which all have to do, unless it is named after
    the writing: then the guard stands where it is done, if nobody else comes there.
    """
    if project.synchronizes_at(access):
        return SAVE_WITH_ALL.at(access)
    if access.reach is Reach.NODE:
        return LOCAL_GUARD.at(access)
    if access.call_site is access.leaf_call or _WRITING.match(access.callee.rpartition(".")[2]):
        return RANK_GUARD.at(access)
    return (GUARD_WHERE_DONE if project.is_only_way_to(access) else WRITE_ON_FIRST).at(access)


def for_delete(project: Project, access: Access) -> Fix:
    """Offer to accept that the path is gone, where it is deleted and not moved.

    Where all read it before, the slower ones would no longer find it. It needs a reader:
    nothing has asked for the path, so one process that misses it may be meant to fail.
    """
    if project.is_used_before(access):
        return DELETE_AFTER_ALL.at(access)
    if access.op != "delete" or access.call_site is not access.leaf_call:
        return GUARD_AND_BARRIER.at(access)
    return MISSING_OK.at(access)


def for_barrier(pair: UnorderedPair) -> Fix:
    """Offer a barrier between the act of the one and those of the others."""
    if pair.guard is None:
        return WAIT_BETWEEN.at(pair.alone)
    return (BARRIER if pair.alone is pair.before else BARRIER_BEFORE).at(pair.alone, pair.guard)
