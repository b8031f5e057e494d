"""What a daemon finds, for a program that shows it in a way of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from fsrace_lint.cli.daemon import client, wire

if TYPE_CHECKING:
    from collections.abc import Sequence


class DaemonFinding(msgspec.Struct, frozen=True):
    """A finding, as the JSON report tells it."""

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
    """Have a daemon check some files, but for those that are excluded.

    Args:
        files: Their absolute paths.
        profile: The profile, if it is not that of the settings.

    Returns:
        The findings in each of the files, with those that a comment suppresses, and whether one does; None
        where there is no daemon, or it cannot tell.
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
        if path not in found:  # a link leads there
            return None
        found[path].append((finding, is_suppressed))
    return None if report.errors else found


def keep(files: Sequence[str], profile: str | None) -> None:
    """Have a daemon know the projects of some files the next time.

    Args:
        files: As for `found_in`.
        profile: As for `found_in`.
    """
    client.keep(_arguments(files, profile))


def _arguments(files: Sequence[str], profile: str | None) -> list[str]:
    chosen = [] if profile is None else ["--profile", profile]
    return ["--daemon", "--quiet", "--force-exclude", "--show-suppressed", "--format=json", *chosen, *files]
