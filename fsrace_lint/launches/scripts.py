"""Shell scripts that a launcher starts: the programs in them run in multiple processes."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.launches.commands import SCRIPT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.launches.model import Launch

_DEEPEST: Final = 3
"""How many scripts can start each other."""
_SUFFIXES: Final = (".sh", ".bash", ".slurm", ".sbatch")


def follow_scripts(launches: Sequence[Launch]) -> list[Launch]:
    """Return the launches with those that a launcher of a shell script makes.

    `srun bash run.sh` starts what `run.sh` starts, once for each process. A launch of a script that contains
    other launches is replaced by them. A plain start of a script is left out: its launches are found in it.

    Args:
        launches: The launches of all files.

    Returns:
        The launches, in no particular order.
    """
    found = list(launches)
    for _ in range(_DEEPEST):
        paths = {launch.path for launch in found}
        outer = [(launch, path) for launch in found for path in _scripts(launch, paths)]
        if not outer:
            break
        targets = {path for _, path in outer}
        # a script that others start is followed after them
        outer = [(launch, path) for launch, path in outer if launch.path not in targets] or outer
        replaced = {launch for launch, _ in outer}
        starting: dict[str, list[Launch]] = {}
        for launch, path in outer:
            starting.setdefault(path, []).append(launch)
        found = [_started(each, starting.get(each.path, ())) for each in found if each not in replaced]
    return [launch for launch in found if launch.launcher != SCRIPT or launch.several]


def _scripts(launch: Launch, paths: set[str]) -> Iterator[str]:
    """Yield the script that a launch starts, if it contains launches itself."""
    name = launch.target.name
    if not launch.several or launch.target.kind != "file" or not name.endswith(_SUFFIXES):
        return
    for base in (launch.folder, posixpath.dirname(launch.path), ""):
        path = posixpath.normpath(posixpath.join(base, name))
        if path in paths and path != launch.path:
            yield path
            return


def _started(launch: Launch, outer: Sequence[Launch]) -> Launch:
    """Return a launch in a script that these launches start."""
    if not outer:
        return launch
    counts = {each.processes for each in outer}
    count = counts.pop() if len(counts) == 1 else None
    if launch.several:
        # the number in the script is that of one node, or of one of multiple jobs
        is_job = all(each.role == "rank" for each in outer)
        return msgspec.structs.replace(launch, processes=None) if is_job else launch
    first = min(outer, key=lambda each: each.position)
    return msgspec.structs.replace(
        launch,
        launcher=first.launcher,
        processes=count,
        several=True,
        role=first.role,
        varies=all(each.varies for each in outer) and any(map(_is_open, launch.arguments)),
    )


def _is_open(argument: str) -> bool:
    """Return whether the value of an argument is not known, so that it can be one of the script."""
    return not argument or argument.endswith("=")
