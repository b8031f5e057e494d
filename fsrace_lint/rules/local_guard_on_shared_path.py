"""One process of every node writes a path that the nodes share.

The local rank counts the processes of one node, so that each node has a process with
local rank 0, and one of each name made of it. On several nodes they write, rename or
delete the same path at once: a checkpoint holds a mixture, the second rename fails.

Bad:
    import os

    import torch


    def save(model: torch.nn.Module, output_dir: str) -> None:
        if int(os.environ["LOCAL_RANK"]) == 0:
            torch.save(model.state_dict(), f"{output_dir}/model.pt")

Good:
    import os

    import torch


    def save(model: torch.nn.Module, output_dir: str) -> None:
        if int(os.environ["RANK"]) == 0:
            torch.save(model.state_dict(), f"{output_dir}/model.pt")

Silent when: each node has the path for itself, as below `/tmp`, under `local-paths` or with
`filesystem = "local"`; the path holds the number or name of the node; losing the race is handled; a lock
is held; a test wants it on each node (`save_on_each_node`, `node_rank`), or a framework calls it so
(`prepare_data`). By default checkpoints, logs and results are reported, and what `shared-paths` or
`filesystem = "shared"` says is shared; in the strict profile caches and data, which each node may have,
what is appended or replaced, what a setting may also leave to one of all nodes, and what is written by a
rank that counts once a filesystem.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.rules.base import STORAGE, Promise, Rule, Witness, WitnessStep, done_at
from fsrace_lint.rules.remedies import GLOBAL_GUARD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.analysis.synchronization.per_node import PerNodeAccess
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR405",
    name="local-guard-on-shared-path",
    remedies=(GLOBAL_GUARD,),
    promises=(
        Promise.RENAME,
        Promise.UNLINK,
    ),
    settings=STORAGE,
)

_WHO: Final = {
    "test": "the first process of every node",
    "path": "the process with this local rank of every node",
    "filesystem": "the first process of every node, unless a filesystem rank is set,",
}
_HARM: Final = {
    "mkdir": ("creates", "FileExistsError", "FileExistsError"),
    "link": ("links", "FileExistsError", "FileExistsError"),
    "create": ("creates", "FileExistsError", "FileExistsError"),
    "delete": ("deletes", "FileNotFoundError", "FileNotFoundError"),
    "rename": ("renames", "FileNotFoundError", "FileNotFoundError"),
    "copy": ("copies to", "", "truncates it again"),
    "write": ("writes", "", "truncates it again"),
}


def check(project: Project) -> Iterator[Finding]:
    """Find what the first process of each node does to a path that may be the same on all nodes."""
    seen = set()
    for claim in sorted(project.per_node(), key=lambda claim: claim.access.operation.appends):
        access = claim.access
        verb, error, second = _HARM.get(access.op, ("", "", ""))
        tolerant = access.tolerates(error) if error else access.operation.tolerant
        harmless = (tolerant and not claim.is_made_anew) or (
            access.operation.exclusive and access.op != "link"
        )
        if not verb or harmless or (access.file, access.span) in seen:
            continue
        seen.add((access.file, access.span))
        may = "" if claim.is_known_shared else "may "
        bearable = (
            access.operation.appends
            or access.operation.atomic
            or tolerant
            or not (error or claim.by != "filesystem")
        )
        yield RULE.finding(
            access,
            f"{_WHO[claim.by]} {verb} {access.path_source}, which the nodes {may}share",
            witness=_witness(claim, second, error),
            related=done_at(access),
            strict=bearable or not (claim.is_known_shared or claim.is_plain),
        )


def _witness(claim: PerNodeAccess, second: str, error: str) -> Witness:
    access, who = claim.access, "has this local rank on" if claim.by == "path" else "is the first process of"
    return Witness(
        (
            WitnessStep(0, f"{who} node 0"),
            WitnessStep(1, f"{who} node 1"),
            WitnessStep(0, access.display, "done" if error else "truncates the file and writes"),
            WitnessStep(1, access.display, second),
        ),
        f"process 1 dies with {error}"
        if error
        else f"{access.path_source} holds half of what process 0 wrote",
    )
