"""Path contains a timestamp that differs between ranks.

Each rank reads the clock by itself to name the directory of the run. Ranks that start a second
apart use different directories. Checkpoints are scattered, and the other ranks do not find what
rank 0 created. Conversely, two jobs that start in the same second share one directory.

Bad:
    import os
    import time

    import torch.distributed as dist


    def start() -> str:
        dist.init_process_group("gloo")
        folder = time.strftime("runs/%Y%m%d-%H%M%S")
        os.makedirs(folder, exist_ok=True)
        return folder

Good:
    import os
    import time

    import torch.distributed as dist


    def start() -> str:
        dist.init_process_group("gloo")
        names = [time.strftime("runs/%Y%m%d-%H%M%S")]
        dist.broadcast_object_list(names, src=0)
        os.makedirs(names[0], exist_ok=True)
        return names[0]

Not reported when:
* only one process per job, or one per node, runs the call;
* a lock is held;
* the same function broadcasts a value from one rank to all ranks, such as the name;
* the path also contains the rank or the PID, so each process is meant to have its own path;
* the name says that the file is temporary, or the file is renamed afterwards;
* the name contains only a date, or a random value (`uuid4()`) is only in the name of the file;
* with the default profile: it is unclear that ranks are started and read the clock;
* with the default profile: the timestamp is in the name of a file, or the directory name is random;
* with the default profile: another part of the path is unknown.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from fsrace_lint.analysis.accesses.confidence import Confidence
from fsrace_lint.rules.base import Evidence, Promise, Related, Rule, Witness, WitnessStep, code, done_at
from fsrace_lint.rules.remedies import AGREE_ON_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR206",
    name="per-rank-timestamp-in-path",
    is_tentative=True,
    default_from=Evidence.LIKELY,
    remedies=(AGREE_ON_NAME,),
    promises=(Promise.CLOCK,),
)


def check(project: Project) -> Iterator[Finding]:
    """Find files and directories that every process names by its own clock or random value."""
    made = project.instantiated("mkdir", "write", "copy")
    told: set[object] = set()
    for _, group in itertools.groupby(made, key=lambda access: access.call_site):
        found = next((access for access in group if _differs(project, access)), None)
        if found is not None and not told.issuperset(_made_up(found)):
            told |= _made_up(found)
            yield _finding(project, found)


def _differs(project: Project, access: Access) -> bool:
    path = access.path
    if path is None or path.rank_dependence not in ({"clock"}, {"chance"}) or not access.runs_several:
        return False
    if path.rank_dependence == {"chance"} and not access.differs_in_folder:
        return False
    meant = project.is_scratch(access) or (
        path.rank_dependence == {"chance"} and project.name_of(access).is_temporary
    )
    return not (meant or access.locked or project.agrees(access))


def _is_shared_by_ranks(access: Access) -> bool:
    """Return whether ranks of one job are started, which have one name in common, unlike other processes."""
    is_rank = access.marker is not None and access.marker.role == "rank"
    return is_rank and access.evidence is Evidence.EVIDENT


def _made_up(access: Access) -> set[object]:
    """Return the parts of a path that differ between processes; each part is reported once."""
    symbols = () if access.path is None else access.path.variables()
    return {symbol for symbol in symbols if symbol.rank_dependent}


def _finding(project: Project, access: Access) -> Finding:
    path, source = access.path, project.source_of_difference(access)
    by_clock = path is not None and path.rank_dependence == {"clock"}
    value = "timestamp" if by_clock else "random value"
    read = () if source is None else (Related(source, f"the {value} is read here"),)
    is_clear = path is not None and access.differs_in_folder and path.certain_of_the_rest
    is_on_chain = project.evidence_of_difference(access) >= Evidence.LIKELY
    at_most = Confidence.HIGH if _is_shared_by_ranks(access) else Confidence.LOW
    return RULE.finding(
        access,
        f"{code(access.path_source)} contains a {value} that differs between processes",
        witness=Witness(
            (WitnessStep(0, access.display, "one path"), WitnessStep(1, access.display, "another path")),
            "each process uses a path unknown to the other processes",
        ),
        related=(*read, *done_at(access)),
        at_most=at_most,
        strict=not (by_clock and is_clear and is_on_chain),
    )
