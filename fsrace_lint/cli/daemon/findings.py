"""The findings of a daemon as data, for integrations such as the flake8 plugin."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from fsrace_lint.cli.daemon import client, wire

if TYPE_CHECKING:
    from collections.abc import Sequence


class DaemonFinding(msgspec.Struct, frozen=True):
    """A finding, as in the JSON report."""

    code: str
    message: str
    path: str
    line: int
    column: int


class _Suppressed(msgspec.Struct, frozen=True):
    finding: DaemonFinding
    by: str


class _Report(msgspec.Struct, frozen=True):
    findings: tuple[DaemonFinding, ...]
    errors: tuple[Any, ...]
    suppressed: tuple[_Suppressed, ...]


def found_in(files: Sequence[str], profile: str | None) -> dict[str, list[tuple[DaemonFinding, bool]]] | None:
    """Let the daemon check files, except those that are excluded.

    Args:
        files: The absolute paths of the files.
        profile: The profile, or None for that of the settings.

    Returns:
        For each file, its findings, each with whether a comment suppresses it. None if there is no daemon, or
        it cannot answer.
    """
    answer = client.call("check", _arguments(files, profile))
    if answer is None or answer[-1][1] == wire.NONE:
        return None
    try:
        report = msgspec.json.decode(b"".join(data for stream, data in answer if stream == 1), type=_Report)
    except msgspec.DecodeError:
        return None
    found: dict[str, list[tuple[DaemonFinding, bool]]] = {file: [] for file in files}
    by_comment = (one.finding for one in report.suppressed if one.by == "comment")
    told = [*((finding, False) for finding in report.findings), *((finding, True) for finding in by_comment)]
    for finding, is_suppressed in told:
        path = os.path.abspath(finding.path)
        if path not in found:  # the path is a link
            return None
        found[path].append((finding, is_suppressed))
    return None if report.errors else found


def keep(files: Sequence[str], profile: str | None) -> None:
    """Let a daemon load the projects of some files for the next check.

    Args:
        files: As for `found_in`.
        profile: As for `found_in`.
    """
    client.keep(_arguments(files, profile))


def _arguments(files: Sequence[str], profile: str | None) -> list[str]:
    chosen = [] if profile is None else ["--profile", profile]
    return ["--daemon", "--quiet", "--force-exclude", "--show-suppressed", "--format=json", *chosen, *files]
