"""The fixes that rules offer, each with the recipe that applies it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.analysis.accesses.model import Access, Reach
from fsrace_lint.findings.finding import BY_HAND, Applicability, Fix, Tier

if TYPE_CHECKING:
    from fsrace_lint.analysis.accesses.model import AtCall, ExistenceCheck
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.analysis.synchronization.unordered_pairs import UnorderedPair
    from fsrace_lint.files.spans import Span

_WRITING: Final = re.compile(
    r"_?(save|dump|write|store|export|record|log|persist|plot|serialize)(?=_|$|[A-Z])"
)
"""Matches the beginning of the name of a function whose purpose is to write."""

SKETCH: Final = "sketch"
"""The recipe of a manual fix, which is never applied automatically."""

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
"""The recipes that can call a helper, and so depend on the `helper-module` setting."""
NAMED: Final = HELPED | {"exist-ok", "filelock"}
"""The recipes that can call a function that the `helpers` setting names."""


_OF_LIBRARY: Final = frozenset(
    {"atomic-write", "download-once", "ensure-dir", "extract-once", "mkstemp", "publish-symlink"}
)
"""The recipes that change a call of a library function, not of a function that calls it."""


class FixTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A fix without a place in the source.

    Attributes:
        recipe: The recipe that applies the fix.
        description: What the fix does, in the imperative.
        tier: How far the change reaches. The same for all fixes of a recipe; None for a manual fix.
        applicability: Whether the fix is safe, unsafe, or manual.
        otherwise: The recipe to try if the first one refuses, of the coordination tier.
        where_done: Whether to change the call that runs the operation instead of the reported call, if
            both are in the same file.
        by_api: The description for calls of these APIs, because the fix differs. A method of a path is
            written `Path.unlink`.
    """

    recipe: str
    description: str
    tier: Tier | None
    applicability: Applicability = Applicability.UNSAFE
    otherwise: str = ""
    where_done: bool = False
    by_api: tuple[tuple[str, str], ...] = ()

    @property
    def told(self) -> str:
        """The text of the fix on the page of a rule."""
        if self.applicability is Applicability.SKETCH:
            return f"{self.description} (manual; never applied automatically)"
        names = " or ".join(f"`{name}`" for name in (self.recipe, self.otherwise) if name)
        tier = f": {self.tier.value}" if self.tier and self.applicability is Applicability.UNSAFE else ""
        return f"{names} ({self.applicability.value}{tier}): {self.description}"

    def at(self, place: AtCall, check: Span | None = None) -> Fix:
        """Return the fix for a call.

        Args:
            place: The reported call.
            check: The existence check that the fix changes too.
        """
        call_site, path, api = place.call_site, "", ""
        if isinstance(place, Access):
            call_site, path = self.changed(place)[-1], place.path_source
            if call_site is place.leaf_call:
                api = place.operation.api
            elif self.recipe in _OF_LIBRARY:
                called = place.callee.rpartition(".")[2]
                return _by_hand(self, f"the operation is inside `{called}()`").at(place)
        span = call_site.call.span
        owner, _, method = api.rpartition(".")
        known = f"Path.{method}" if owner in {"*", "pathlib.Path"} else api
        description = dict(self.by_api).get(known, self.description)
        how = self.applicability
        return Fix(self.recipe, span, how, description, check, self.otherwise, path, api, self.tier)

    def changed(self, access: Access) -> tuple[CallSite, ...]:
        """Return the call that the fix changes, after the calls that lead there if it is in a callee."""
        if self.where_done and access.leaf_call.function.module.path == access.file:
            return access.inlined_chain
        return (access.call_site,)


def _sketch(description: str, *by_api: tuple[str, str]) -> FixTemplate:
    return FixTemplate(
        recipe=SKETCH,
        description=description,
        tier=None,
        applicability=Applicability.SKETCH,
        by_api=by_api,
    )


ATOMIC_WRITE: Final = FixTemplate(
    recipe="atomic-write",
    tier=Tier.ATOMIC,
    description="write to a temporary file in the same directory, then `os.replace()` it",
    where_done=True,
)
EXCLUSIVE_OPEN: Final = FixTemplate(
    recipe="exclusive-open",
    tier=Tier.LOCAL,
    description="open it with mode `x`, which fails if the file exists",
)
PUBLISH_SYMLINK: Final = FixTemplate(
    recipe="publish-symlink",
    tier=Tier.ATOMIC,
    description="create the link under a temporary name, then `os.replace()` it",
    where_done=True,
)
LINK_AND_REPLACE: Final = FixTemplate(
    recipe="link-and-replace",
    tier=Tier.ATOMIC,
    description="create the link under a temporary name, then `os.replace()` it",
    applicability=Applicability.SAFE,
)
_MAKEDIRS: Final = "use `os.makedirs(exist_ok=True)`, which also creates parents"
EXIST_OK: Final = FixTemplate(
    recipe="exist-ok",
    tier=Tier.LOCAL,
    description="accept an existing directory, as `exist_ok=True` does",
    by_api=(
        ("os.makedirs", "pass `exist_ok=True`"),
        ("Path.mkdir", "pass `exist_ok=True`"),
        ("os.mkdir", _MAKEDIRS),
        ("shutil.copytree", "pass `dirs_exist_ok=True`"),
    ),
)
EXIST_OK_UNCHECKED: Final = FixTemplate(
    recipe="exist-ok",
    tier=Tier.LOCAL,
    description="accept an existing directory, as `exist_ok=True` does, and remove the check",
    by_api=(
        ("os.makedirs", "pass `exist_ok=True`, and remove the check"),
        ("Path.mkdir", "pass `exist_ok=True`, and remove the check"),
        ("os.mkdir", f"{_MAKEDIRS}, and remove the check"),
    ),
)
ENSURE_DIR: Final = FixTemplate(
    recipe="ensure-dir",
    tier=Tier.LOCAL,
    description="call `ensure_dir()`, which retries on stale NFS answers, if `helper-module` is set",
    where_done=True,
)
RANK_GUARD: Final = FixTemplate(
    recipe="rank-guard", tier=Tier.COORDINATION, description="write on rank 0 only"
)
GUARD_OR_WAIT: Final = FixTemplate(
    recipe="rank-guard",
    tier=Tier.COORDINATION,
    description="write on rank 0 only, with a barrier if other ranks read the file",
    otherwise="guard-and-barrier",
)
GUARD_AND_BARRIER: Final = FixTemplate(
    recipe="guard-and-barrier",
    tier=Tier.COORDINATION,
    description="run it on rank 0 only, with a barrier after it",
)
_SUPPRESSED: Final = "wrap the call in `contextlib.suppress(FileNotFoundError)`"
_SUPPRESSING: Final = ("os.remove", "os.unlink", "os.rmdir", "Path.rmdir", "shutil.rmtree")
MISSING_OK: Final = FixTemplate(
    recipe="missing-ok",
    tier=Tier.LOCAL,
    description="accept a path that is already deleted, as `missing_ok=True` does",
    by_api=(("Path.unlink", "pass `missing_ok=True`"), *((api, _SUPPRESSED) for api in _SUPPRESSING)),
)
MISSING_OK_UNCHECKED: Final = FixTemplate(
    recipe="missing-ok",
    tier=Tier.LOCAL,
    description="accept a path that is already deleted, as `missing_ok=True` does, and remove the check",
    by_api=(
        ("Path.unlink", "pass `missing_ok=True`, and remove the check"),
        *((api, "replace the check with `contextlib.suppress(FileNotFoundError)`") for api in _SUPPRESSING),
    ),
)
STAGE_BESIDE: Final = FixTemplate(
    recipe="stage-beside",
    tier=Tier.ATOMIC,
    description="create the temporary file in the directory of the target",
)
MKSTEMP: Final = FixTemplate(
    recipe="mkstemp", tier=Tier.ATOMIC, description="create the file with `tempfile.mkstemp()`"
)
UNIQUE_NAME: Final = FixTemplate(
    recipe="unique-name",
    tier=Tier.ATOMIC,
    description="add a random part to the temporary name",
    where_done=True,
)
OWN_FILE: Final = FixTemplate(
    recipe="mkstemp",
    tier=Tier.ATOMIC,
    description="create and open the file with `tempfile.NamedTemporaryFile()`",
)
EXTRACT_ONCE: Final = FixTemplate(
    recipe="extract-once",
    tier=Tier.ATOMIC,
    description="extract to a temporary directory and rename it, with `extract_once()`",
    where_done=True,
)
DOWNLOAD_ONCE: Final = FixTemplate(
    recipe="download-once",
    tier=Tier.ATOMIC,
    description="download to a temporary name, then rename it",
    where_done=True,
)
EXTRACT_ON_FIRST: Final = FixTemplate(
    recipe="guard-and-barrier",
    tier=Tier.COORDINATION,
    description="extract on rank 0 only, with a barrier after it",
    where_done=True,
)
DOWNLOAD_ON_FIRST: Final = FixTemplate(
    recipe="guard-and-barrier",
    tier=Tier.COORDINATION,
    description="download on rank 0 only, with a barrier after it",
    where_done=True,
)
BARRIER: Final = FixTemplate(
    recipe="barrier", tier=Tier.COORDINATION, description="add a barrier after the guarded code"
)
BARRIER_BEFORE: Final = FixTemplate(
    recipe="barrier-before", tier=Tier.COORDINATION, description="add a barrier before the guarded code"
)
PASS_THE_FUNCTION: Final = FixTemplate(
    recipe="pass-the-function", tier=Tier.LOCAL, description="pass the function, not its result"
)
ENTER_THE_CONTEXT: Final = FixTemplate(
    recipe="enter-the-context", tier=Tier.LOCAL, description="enter the context manager with `with`"
)
FILELOCK: Final = FixTemplate(
    recipe="filelock", tier=Tier.LOCAL, description="replace the lock file with `filelock.FileLock`"
)
DROP_UNLINK: Final = FixTemplate(
    recipe="drop-unlink", tier=Tier.LOCAL, description="do not delete the lock file"
)
TIMEOUT: Final = FixTemplate(recipe="timeout", tier=Tier.LOCAL, description="pass `timeout=600`")
CHECK_IN_LOCK: Final = FixTemplate(
    recipe="move-check-into-lock", tier=Tier.LOCAL, description="move the check inside the lock"
)

READ_AND_HANDLE: Final = _sketch("handle `FileNotFoundError` where the file is read")
RESET_ON_FIRST: Final = _sketch("delete and recreate it on rank 0 only, between two barriers")
AGREE_ON_NAME: Final = _sketch("create the name on rank 0 and broadcast it")
FLUSH_FIRST: Final = _sketch("flush or close the file first")
WAIT_FOR_SAVE: Final = _sketch("wait until the save has finished, then write the file that points to it")
TEMPORARY_FOLDER: Final = _sketch("create the directory with `tempfile.mkdtemp()`")
ALL_CALL_IT: Final = _sketch("call the collective where every rank reaches it")
DECIDE_ON_MAIN: Final = _sketch("evaluate the check on rank 0 only, and broadcast the result")
FILL_ONCE: Final = _sketch("fill a temporary directory and rename it, or let one process fill it")
CHOOSE_ON_MAIN: Final = _sketch("choose the path on rank 0 only, and broadcast it")
COUNT_ON_MAIN: Final = _sketch("determine the iterations on rank 0 only, and broadcast them")
GUARD_LATER: Final = _sketch("check the rank after the process group is initialized")
GLOBAL_GUARD: Final = _sketch("run it on rank 0 of the job, or on one process per filesystem")
LOCAL_GUARD: Final = _sketch(
    "if the path is local to each node: let local rank 0 of each node do the work, or use a shared path"
)
WAIT_IN_BARRIER: Final = _sketch("use a barrier; between jobs, use `fsrace_lint.safe.wait_for_path()`")
WAIT_BETWEEN: Final = _sketch("add a barrier between the two operations where all ranks reach it")
BARRIER_FOR_SLEEP: Final = _sketch("replace the sleep with a barrier that every rank reaches")
ONE_LOCK_NAME: Final = _sketch("use the same lock file name in all processes")
LOCK_THEN_TRUNCATE: Final = _sketch(
    'open it with a mode that does not truncate, such as `"a"`, lock it, then call `truncate(0)`',
    ("os.open", "open it without `O_TRUNC`, lock it, then call `os.ftruncate()`"),
)
LIMIT_THE_WAIT: Final = _sketch(
    "use a lock with a timeout, such as `filelock.FileLock`",
    ("fcntl.flock", "pass `LOCK_NB`, and try again until a time limit"),
    ("fcntl.lockf", "pass `LOCK_NB`, and try again until a time limit"),
    ("os.lockf", "use `F_TLOCK`, and try again until a time limit"),
)
DELETE_AFTER_ALL: Final = _sketch("add a barrier after the last use, then delete it on rank 0 only")
WRITE_ON_FIRST: Final = _sketch(
    "if the write is in a called function: add the rank check there, around the write"
)
REPLACE_AT_ONCE: Final = _sketch(
    "do not delete the old link or file first: create the new one under a temporary name, then"
    " `os.replace()` it"
)
SAVE_WITH_ALL: Final = _sketch(
    "if the save function is a collective: call it on every rank, and let the library choose the writer"
)

EXTRACT_ASIDE: Final = _sketch("extract to a temporary directory next to the target, then `os.rename()` it")
COPY_ASIDE: Final = _sketch("create it as a temporary directory next to it, then rename that directory")
CREATING: Final = (LINK_AND_REPLACE, PUBLISH_SYMLINK, EXCLUSIVE_OPEN, EXIST_OK, COPY_ASIDE, ATOMIC_WRITE)
WRITING: Final = (GUARD_OR_WAIT, LOCAL_GUARD, WRITE_ON_FIRST, SAVE_WITH_ALL)
DELETING: Final = (MISSING_OK, GUARD_AND_BARRIER, DELETE_AFTER_ALL)
ORDERING: Final = (BARRIER, BARRIER_BEFORE, WAIT_BETWEEN)
NAMING: Final = (OWN_FILE, MKSTEMP)
EXTRACTING: Final = (EXTRACT_ONCE, EXTRACT_ON_FIRST, EXTRACT_ASIDE)
DOWNLOADING: Final = (DOWNLOAD_ONCE, DOWNLOAD_ON_FIRST, LOCAL_GUARD)


def for_creation(probe: ExistenceCheck | None, access: Access) -> Fix:
    """Return a fix that creates a file or a link atomically, or fails if it exists.

    For a dangling link, only `lexists()` agrees with `symlink()` and mode `"x"`: `exists()` is false.
    """
    asked = probe is not None and probe.asks == "lexists" and probe.is_implied and probe.path == access.path
    if access.op == "link":
        own = asked and access.call_site is access.leaf_call and access.operation.api == "os.symlink"
        return (LINK_AND_REPLACE if own else PUBLISH_SYMLINK).at(access)
    if access.op == "mkdir":
        return EXIST_OK.at(access)
    if access.operation.tree:
        return COPY_ASIDE.at(access)
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


def _by_hand(template: FixTemplate, reason: str) -> FixTemplate:
    """Return a fix that is left to the user, with the reason; the same fix if there is none."""
    if not reason:
        return template
    left = _sketch(f"{template.description}{BY_HAND}{reason}")
    return msgspec.structs.replace(left, where_done=template.where_done)


def for_one_writer(project: Project, access: Access) -> Fix:
    """Return a fix that lets one rank run an operation that every rank runs.

    A call that leads to the operation can do other work that every rank needs, unless its name says
    that it writes. The rank check then goes to the operation itself, if no other call leads there.
    """
    if project.synchronizes_at(access) or project.may_save_with_all(access):
        return SAVE_WITH_ALL.at(access)
    if access.reach is Reach.NODE:
        return LOCAL_GUARD.at(access)
    is_writer = access.call_site is access.leaf_call or _WRITING.match(access.callee.rpartition(".")[2])
    if not is_writer and not project.is_only_way_to(access):
        return WRITE_ON_FIRST.at(access)
    guard, guard_or_wait, both = (
        msgspec.structs.replace(each, where_done=not is_writer)
        for each in (RANK_GUARD, GUARD_OR_WAIT, GUARD_AND_BARRIER)
    )
    changed = guard.changed(access)
    reason, waits = project.why_not_on_one_rank(access, changed[-1]), project.why_no_barrier(*changed)
    if project.is_read_later(access):
        return _by_hand(both, reason or waits).at(access)
    return _by_hand(guard if waits else guard_or_wait, reason).at(access)


def _on_one_rank(project: Project, access: Access, template: FixTemplate) -> FixTemplate:
    """Return a fix with a rank check and a barrier, by hand if one of them would be wrong."""
    changed = template.changed(access)
    reason = project.why_not_on_one_rank(access, changed[-1]) or project.why_no_barrier(*changed)
    return _by_hand(template, reason)


def for_late_delete(project: Project, access: Access, safe: Applicability = Applicability.UNSAFE) -> Fix:
    """Return a fix for a path that another process can delete first, where the check for it stays.

    If the code reads the path before, the failure keeps a second process from using the content too.
    """
    if project.is_used_before(access):
        return _by_hand(MISSING_OK, "the failure stops a second process that read it too").at(access)
    if access.operation.tree and project.may_be_filled_after(access):
        return _by_hand(MISSING_OK, "later code may refill the tree while another process deletes it").at(
            access
        )
    return msgspec.structs.replace(MISSING_OK.at(access), applicability=safe)


def for_delete(project: Project, access: Access) -> Fix:
    """Return a fix for a path that every rank deletes or moves.

    A deletion can accept that the path is missing. This is unsafe, because no check comes first, so the
    failure can be intentional. If all ranks read the path before, the slower ranks would not find it.
    """
    if project.is_used_before(access):
        return DELETE_AFTER_ALL.at(access)
    if access.op != "delete" or access.call_site is not access.leaf_call:
        return _on_one_rank(project, access, GUARD_AND_BARRIER).at(access)
    return MISSING_OK.at(access)


def for_download(project: Project, access: Access, probe: ExistenceCheck | None) -> FixTemplate:
    """Return a fix for a download by every rank. An atomic one is only made too often."""
    if project.is_result_used(access):
        return _by_hand(DOWNLOAD_ONCE, "the result of the call is used")
    on_first = _on_one_rank(project, access, DOWNLOAD_ON_FIRST)
    if probe is None and on_first is DOWNLOAD_ON_FIRST:
        return on_first
    return on_first if access.operation.atomic else DOWNLOAD_ONCE


def for_extraction(project: Project, access: Access) -> Fix:
    """Return a fix for an archive that every rank extracts."""
    on_first = _on_one_rank(project, access, EXTRACT_ON_FIRST)
    if on_first is EXTRACT_ON_FIRST and project.cache_test_of(access) is None:
        return on_first.at(access)
    has_helper = project.has_helper(EXTRACT_ONCE.changed(access)[-1], "extract_once")
    return _by_hand(EXTRACT_ONCE, "" if has_helper else "`helper-module` is not set").at(access)


def for_barrier(project: Project, pair: UnorderedPair) -> Fix:
    """Return a fix that adds a barrier between the operation of one rank and those of the others."""
    if pair.guard is None:
        return WAIT_BETWEEN.at(pair.alone)
    template = BARRIER if pair.alone is pair.before else BARRIER_BEFORE
    reason = "" if pair.is_of_one_path else "the other ranks may only use other files in the same directory"
    reason = reason or project.why_no_barrier(pair.alone.call_site, check=pair.guard)
    return _by_hand(template, reason).at(pair.alone, pair.guard)
