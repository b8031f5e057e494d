"""Every process makes up a name of its own from the clock.

The name of a run's folder holds the time, and each process asks for the time by
itself. They begin a second apart and work in different folders: checkpoints are
scattered, and what the main process has made is not where the others look. Or two
jobs begin in the same second, and share one.

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

Silent when: one process of the job or of each node runs it; the name is sent to all
processes, or something else is in this function; the path holds a rank or a process
id too, and is meant to be a process's own; the file is renamed afterwards. Only the
strict profile reports it where it is not evident that several processes run it, where
the time is in the name of a file and not of a folder, and where chance (`uuid4`)
makes the name of the folder.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, done_at
from fsrace_lint.rules.remedies import AGREE_ON_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR206",
    name="timestamp-in-path",
    default_from=Evidence.EVIDENT,
    remedies=(AGREE_ON_NAME,),
    promises=(Promise.CLOCK,),
)


def check(project: Project) -> Iterator[Finding]:
    """Find files and folders whose names all processes make up from the clock."""
    made = project.instantiated("mkdir", "write", "copy")
    told: set[object] = set()
    for _, group in itertools.groupby(made, key=lambda access: access.call_site):
        found = next((access for access in group if _differs(project, access)), None)
        if found is not None and not told.issuperset(_made_up(found)):
            told |= _made_up(found)
            yield _finding(found)


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


def _made_up(access: Access) -> set[object]:
    """Give the parts of a path that differ: what is made up once is told once."""
    return (
        {symbol for symbol in access.path.variables() if symbol.rank_dependent}
        if access.path is not None
        else set()
    )


def _finding(access: Access) -> Finding:
    path = access.path
    by_clock = path is not None and path.rank_dependence == {"clock"}
    return RULE.finding(
        access,
        f"every process makes up its own {access.path_source} from {'the clock' if by_clock else 'chance'}",
        witness=Witness(
            (WitnessStep(0, access.display, "one name"), WitnessStep(1, access.display, "another name")),
            "each process works under a name that the others do not know",
        ),
        related=done_at(access),
        strict=not (by_clock and access.differs_in_folder and path is not None and path.certain_of_the_rest),
    )
