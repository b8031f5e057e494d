"""Several processes download to one file.

Each truncates the file that another fills. Who finds it there reads half of it.

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
            part = os.path.join(tempfile.mkdtemp(dir=cache), "weights.bin")
            urllib.request.urlretrieve(url, part)
            os.replace(part, weights)
        return weights

Silent when: one process of the job or of each node runs it, or runs it before all others, and a
test finds the file; a lock is held, also by the call itself (`huggingface_hub`); the file belongs
to one process, or is renamed later. Only the strict profile reports what is one of many items of the
work, what appears whole (`torch.hub`) and is skipped or tested for where it is there, what a first
process goes ahead to do and a test of anything keeps from the others, and, without a test for it, what
several processes do not evidently run, or what appears whole, unless it is named or waited for here.

A download is a known call, a program (`wget`), or a file filled with what a server answered. One to a
path that is handed in is judged at the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import (
    Evidence,
    Promise,
    Rule,
    Witness,
    WitnessStep,
    done_at,
    one_per_call,
    tested,
)
from fsrace_lint.rules.remedies import DOWNLOAD_ONCE, LOCAL_GUARD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access, ExistenceCheck
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding, Fix

RULE = Rule(
    code="FSR302",
    name="shared-download",
    remedies=(DOWNLOAD_ONCE, LOCAL_GUARD),
    promises=(
        Promise.DOWNLOAD,
        Promise.RENAME,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find downloads that two processes can make to one file; one call is one finding."""
    yield from one_per_call(_all(project))


def _all(project: Project) -> Iterator[Finding]:
    for probe, download in project.cached("download"):
        in_vain = download.operation.atomic and not download.evidence
        harmless = download.operation.exclusive or in_vain or project.is_staged(download)
        seen_first = download.is_serialized and (probe is not None or download.operation.skips)
        if download.is_contended and not harmless and not seen_first:
            awaited = project.is_awaited(download)
            strict = project.is_skipped_by_followers(download) or _is_strict(download, probe, awaited=awaited)
            fix = (LOCAL_GUARD if awaited else DOWNLOAD_ONCE).at(download)
            yield _finding(download, probe, fix, strict=strict)


def _is_strict(download: Access, probe: ExistenceCheck | None, *, awaited: bool) -> bool:
    if download.path is None or download.path.has_work_item:
        return True
    if download.operation.atomic:
        named = not download.operation.skips and (download.certain or awaited)
        return probe is not None or not named or download.evidence is not Evidence.EVIDENT
    return probe is None and download.evidence is not Evidence.EVIDENT


def _finding(download: Access, probe: ExistenceCheck | None, fix: Fix, *, strict: bool) -> Finding:
    where, related = download.destination, done_at(download)
    steps = [
        WitnessStep(0, download.display, "has written half of it"),
        WitnessStep(1, download.display, "truncates it"),
    ]
    told = f"several processes can download to {where} at once"
    outcome = f"what process 0 reads from {where} is half of it"
    if download.operation.atomic:
        steps = [WitnessStep(process, download.display, "fetches all of it") for process in (0, 1)]
        told = f"every process downloads {where}, though one would do"
        outcome = "the server is asked as often as there are processes"
    elif probe is not None:
        steps[1] = WitnessStep(1, probe.path_source, str(probe.found_missing))
        told = f"another process can take {where} for complete while this one still downloads it"
        outcome = f"process 1 reads half of {where}"
    if probe is not None:
        related, steps = (
            (tested(probe, download), *related),
            [WitnessStep(0, probe.path_source, probe.answer), *steps],
        )
    witness = Witness(tuple(steps), outcome)
    return RULE.finding(download, told, witness=witness, related=related, fix=fix, strict=strict)
