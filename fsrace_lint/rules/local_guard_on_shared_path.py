"""One process on each node changes a path that all nodes share.

A *local rank* is the number of a process within its node (machine), so each node has a local rank 0. Under
a local-rank check, one process on each node writes, renames, or deletes the same path at once. A checkpoint
is a mix of two writes, or the second rename fails with `FileNotFoundError`. A test on one node does not
show it.

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

The confidence is low if all commands in the repository that launch the program use a single node.

Not reported when:
* each node has its own copy of the path: below `/tmp`, in `local-paths`, or with `filesystem = "local"`;
* the path contains the number of the node or the host name;
* the code accepts or handles the failure on the slower node, or holds a lock;
* a condition asks for one write per node (`save_on_each_node`, `node_rank`), or a framework calls the code
  once per node (`prepare_data()`);
* with the default profile: the name does not suggest a checkpoint, log, or result, so each node may have
  its own copy, as of a cache. It is still reported if `shared-paths` or `filesystem = "shared"` says that
  the nodes share the path;
* with the default profile: the file is appended to or replaced atomically;
* with the default profile: a setting can make it a check of the global rank (the number in the whole job);
* with the default profile: the check selects one process per filesystem (`FS_LOCAL_RANK`), and the call
  only writes or copies a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.rules.base import STORAGE, Promise, Rule, Witness, WitnessStep, code, done_at
from fsrace_lint.rules.remedies import GLOBAL_GUARD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.analysis.synchronization.per_node import PerNodeAccess
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR405",
    name="local-guard-on-shared-path",
    is_tentative=True,
    remedies=(GLOBAL_GUARD,),
    promises=(
        Promise.RENAME,
        Promise.UNLINK,
    ),
    settings=STORAGE,
)

_WHO: Final = {
    "test": "local rank 0 of every node",
    "path": "one local rank of every node",
    "filesystem": "local rank 0 of every node (unless a filesystem rank is set)",
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
    """Find operations of one process per node on a path that the nodes may share."""
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
        is_mild = access.operation.appends or access.operation.atomic or tolerant
        bearable = is_mild or not (error or claim.by != "filesystem")
        yield RULE.finding(
            access,
            f"{_WHO[claim.by]} {verb} {code(access.path_source)}, which the nodes {may}share",
            witness=_witness(claim, second, error),
            related=done_at(access),
            strict=bearable or not (claim.is_known_shared or claim.is_plain),
            at_most=claim.at_most,
        )


def _witness(claim: PerNodeAccess, second: str, error: str) -> Witness:
    access, who = claim.access, "has this local rank on" if claim.by == "path" else "is local rank 0 of"
    return Witness(
        (
            WitnessStep(0, f"{who} node 0"),
            WitnessStep(1, f"{who} node 1"),
            WitnessStep(0, access.display, "done" if error else "truncates the file and writes"),
            WitnessStep(1, access.display, second),
        ),
        f"the slower node fails with {code(error)}" if error else "the file can end up truncated or mixed",
    )
