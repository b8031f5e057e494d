"""Several processes download to one file.

Each of them truncates the file that another is filling. A process that finds
the file there, because another has just begun it, trusts it and reads half. All
later runs are right, so that nobody looks again.

Bad:
    import os
    import urllib.request


    def fetch(url: str, cache: str) -> str:
        weights = os.path.join(cache, "weights.bin")
        if not os.path.exists(weights):
            urllib.request.urlretrieve(url, weights)
        return weights

Good:
    import os
    import tempfile
    import urllib.request


    def fetch(url: str, cache: str) -> str:
        weights = os.path.join(cache, "weights.bin")
        if not os.path.exists(weights):
            handle, part = tempfile.mkstemp(dir=cache)
            os.close(handle)
            urllib.request.urlretrieve(url, part)
            os.replace(part, weights)
        return weights

Silent when: one process of the job or of each node runs it, or runs it before
all others, and a test finds the file; a lock is held; the file belongs to one
process, or is renamed when it is complete; the call locks or renames by itself
(`huggingface_hub`, `torch.hub`). Only the strict profile reports it where no
test for the file comes before it and it is not evident that several processes
run it, or where the path could not be followed.

A download is a call known for it, a program (`wget`, `curl`), or a file filled with
what a server answered. One to a path that is handed in is judged at the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Rule, Step, Witness, done_at, one_per_call, tested

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.findings import Finding
    from fsrace_lint.project.model import Probe, Site
    from fsrace_lint.project.queries import Project

RULE = Rule(code="FSR302", name="shared-download")


def check(project: Project) -> Iterator[Finding]:
    """Find downloads that two processes can make to one file; one call is one finding."""
    yield from one_per_call(_all(project))


def _all(project: Project) -> Iterator[Finding]:
    for probe, download in project.cached("download"):
        harmless = download.act.exclusive or download.act.atomic or project.is_staged(download)
        seen_first = download.is_ordered and (probe is not None or download.act.skips)
        if download.is_contended and not harmless and not seen_first:
            yield _finding(download, probe)


def _is_strict(download: Site, probe: Probe | None) -> bool:
    path = download.path
    if path is None or path.varies:
        return True
    named = download.certain or (download.act.skips and path.certain)
    return probe is None and not (named and download.evidence is Evidence.EVIDENT)


def _finding(download: Site, probe: Probe | None) -> Finding:
    where = download.destination
    steps = [Step(0, download.told, "has written half of it"), Step(1, download.told, "truncates it")]
    outcome = f"what process 0 reads from {where} is half of it"
    if probe is not None:
        steps = [
            Step(0, probe.spelled, probe.answer),
            Step(0, download.told, "has written half of it"),
            Step(1, probe.spelled, str(probe.absent)),
        ]
        outcome = f"process 1 reads half of {where}"
    return RULE.finding(
        download,
        f"several processes can download to {where} at once"
        if probe is None
        else f"another process can take {where} for complete while this one still downloads it",
        witness=Witness(tuple(steps), outcome),
        related=(*(() if probe is None else (tested(probe, download),)), *done_at(download)),
        strict=_is_strict(download, probe),
    )
