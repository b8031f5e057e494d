"""Multiple processes download to the same file.

Each process truncates the file that another process is still writing. A process that finds the file reads a
partial download. With a warm cache nothing is downloaded, so tests never show it.

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

A download is a known call, a program (`wget`), or code that saves a server's response. If a function
receives the path, its call is reported. A *local rank* numbers the processes of one machine.

Not reported when:
* only one process per job, or one per node, runs the call;
* one process runs the call before all others, and the other processes check for the file;
* a lock is held, by your code or by the library (`huggingface_hub`);
* each process downloads to a file of its own, or to a temporary file that is renamed later;
* with the default profile: the file is one of many items that are divided among the processes;
* with the default profile: one process goes first, and the other processes check for some path;
* with the default profile: no check comes first, and it is not clear that multiple processes run the call;
* with the default profile: the call is atomic (`torch.hub`), and does not clearly repeat a whole download.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import (
    Evidence,
    Promise,
    Rule,
    Witness,
    WitnessStep,
    destination,
    done_at,
    many,
    one,
    one_per_call,
    tested,
)
from fsrace_lint.rules.remedies import DOWNLOADING, LOCAL_GUARD, for_download

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access, ExistenceCheck
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR302",
    name="shared-download",
    remedies=DOWNLOADING,
    promises=(Promise.DOWNLOAD, Promise.RENAME),
)


def check(project: Project) -> Iterator[Finding]:
    """Find downloads that two processes can make to one file; each call is reported once."""
    yield from one_per_call(_all(project))


def _all(project: Project) -> Iterator[Finding]:
    for probe, download in project.cached("download"):
        in_vain = download.operation.atomic and not download.evidence
        harmless = download.operation.exclusive or in_vain or project.is_staged(download)
        seen_first = download.is_serialized and (probe is not None or download.operation.skips)
        if download.is_contended and not harmless and not seen_first:
            yield _finding(project, download, probe)


def _is_strict(download: Access, probe: ExistenceCheck | None, *, awaited: bool) -> bool:
    if download.path is None or download.path.has_work_item:
        return True
    if download.operation.atomic:
        named = not download.operation.skips and (download.certain or awaited)
        return probe is not None or not named or download.evidence < Evidence.LIKELY
    return probe is None and download.evidence < Evidence.LIKELY


def _finding(project: Project, access: Access, probe: ExistenceCheck | None) -> Finding:
    awaited = project.is_awaited(access)
    where, related, shown = destination(access), done_at(access), access.display
    steps = [WitnessStep(0, shown, "half written"), WitnessStep(1, shown, "truncates it")]
    told = f"{many(access)} download to {where} at the same time"
    outcome = "a process can read a partial file"
    if access.operation.atomic:
        steps = [WitnessStep(process, shown, "downloads all of it") for process in (0, 1)]
        told = f"every {one(access)} downloads {where}, although one download is enough"
        outcome = "the server gets one request from each process"
    elif probe is not None and project.is_verified(access):
        steps.insert(1, WitnessStep(1, "checks the file", "incomplete"))
    elif probe is not None:
        steps[1] = WitnessStep(1, probe.path_source, str(probe.found_missing))
        told = f"another {one(access)} can see {where} before the download finishes"
        outcome = f"that {one(access)} reads a partial file"
    if probe is not None:
        related = (tested(probe, access), *related)
        steps.insert(0, WitnessStep(0, probe.path_source, probe.answer))
    return RULE.finding(
        access,
        told,
        witness=Witness(tuple(steps), outcome),
        related=related,
        fix=(LOCAL_GUARD if awaited else for_download(project, access, probe)).at(access),
        strict=project.is_skipped_by_followers(access) or _is_strict(access, probe, awaited=awaited),
        at_most=project.highest_confidence(access),
    )
