"""The baseline: findings that were there already, known by what they are and not by their lines."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec

from fsrace_lint.config.settings import ROOT_MARKERS, Settings, SettingsError, find_root
from fsrace_lint.files import bounded_read
from fsrace_lint.files.atomic_write import ObstacleError, exchange, within
from fsrace_lint.findings.fingerprints import Key, spelled

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from fsrace_lint.findings.finding import Finding

FORMAT: Final = "fsrace-lint baseline"
VERSION: Final = 1
UNREADABLE: Final = "FSR001"
RULE_FAILURE: Final = "FSR002"
ABOUT_THE_TOOL: Final = frozenset({UNREADABLE, RULE_FAILURE, "FSR003"})
"""What no baseline holds: a file that was not checked, and a comment that does nothing."""

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
_Word: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_Digest: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]


class BaselineError(SettingsError):
    """A baseline cannot be used; the message is for the user and names the file."""


class Baseline(msgspec.Struct, frozen=True):
    """How many findings of each key are known."""

    counts: dict[Key, int] = {}
    read: bytes | None = None
    """What the file held when it was read, None if it was not there."""

    def __len__(self) -> int:
        """Give the number of findings that it holds."""
        return sum(self.counts.values())

    def part(
        self, findings: Sequence[tuple[Finding, Key]], suppressed: Container[Finding] = ()
    ) -> tuple[list[Finding], list[Finding]]:
        """Part findings into what is new and what is known.

        Args:
            findings: Findings with their keys, in the order in which they are reported.
            suppressed: Those of them that a comment suppresses: they are neither, but count.

        Returns:
            What is new, and what is known. Of equal findings the first are known.
        """
        used: Counter[Key] = Counter()
        new: list[Finding] = []
        known: list[Finding] = []
        for finding, known_by in findings:
            used[known_by] += 1
            if finding not in suppressed:
                (known if used[known_by] <= self.counts.get(known_by, 0) else new).append(finding)
        return new, known


NONE: Final = Baseline()


class Seen(msgspec.Struct, frozen=True):
    """What a run saw of what a baseline may hold: only of this can be said that it is gone.

    `reported` counts what the run reports without a baseline, `occurring` also what only
    the strict profile reports; equal findings before them that comments suppress count, too.
    `files` are those that were checked.
    """

    reported: Counter[Key]
    occurring: Counter[Key]
    files: frozenset[str]


NOTHING_SEEN: Final = Seen(Counter(), Counter(), frozenset())


class _BaselineEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: _Word
    code: _Word
    function: _Word
    text: _Digest
    count: _Count = 1


class _Head(msgspec.Struct, frozen=True):
    format: str
    version: int


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    version: int
    findings: tuple[_BaselineEntry, ...]
    root: str = "."


def of(settings: Settings) -> Baseline:
    """Give the baseline that the settings name, or an empty one.

    Raises:
        BaselineError: It is not there, or is none of this project.
    """
    return load(Path(settings.baseline), settings.root) if settings.baseline else NONE


def existing(file: Path, root: Path) -> Baseline:
    """Read a baseline as `load` does, or give an empty one where there is no file."""
    try:
        file.stat()
    except FileNotFoundError:
        return NONE
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from error
    return load(file, root)


def load(file: Path, root: Path | None = None) -> Baseline:
    """Read a baseline.

    Args:
        file: The file.
        root: The root of the project that it must be about; None for any.

    Returns:
        What it holds.

    Raises:
        BaselineError: It is not there, cannot be read, is no baseline that this version can use,
            or is about another project.
    """
    data = _read(file)
    document = _decoded(file, data)
    if root is not None:
        _refuse_foreign(file, document.root, root)
    counts: dict[Key, int] = {}
    for entry in document.findings:
        known_by = Key(entry.path, entry.code, entry.function, entry.text)
        # A merge can leave an entry twice.
        counts[known_by] = max(entry.count, counts.get(known_by, 0))
    return Baseline(counts, data)


def _decoded(file: Path, data: bytes) -> _Document:
    try:
        head = msgspec.json.decode(data, type=_Head)
    except msgspec.ValidationError:
        raise BaselineError(f"{file}: is no baseline of fsrace-lint, and is left alone") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        marks = "; it holds the marks of a merge that was not finished" if b"<<<<<<<" in data else ""
        raise BaselineError(
            f"{file}: is no baseline of fsrace-lint, or a damaged one: {error}{marks}"
        ) from None
    if head.format != FORMAT:
        raise BaselineError(f"{file}: is no baseline of fsrace-lint, and is left alone")
    if head.version != VERSION:
        what = f"is a baseline of version {head.version}, and this fsrace-lint knows version {VERSION}"
        raise BaselineError(f"{file}: {what}; upgrade fsrace-lint, or write the baseline anew elsewhere")
    try:
        return msgspec.json.decode(data, type=_Document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BaselineError(f"{file}: is a damaged baseline: {error}") from None


def _refuse_foreign(file: Path, word: str, root: Path) -> None:
    """Refuse a baseline whose paths count from another root."""
    expected = _root_word(file, root)
    if expected is not None and word != expected:
        other = os.path.normpath(os.path.join(_owner(file) or "", word))  # noqa: PTH118  # may be anything
        raise BaselineError(
            f"{file}: is the baseline of another project: its paths count from {other}, and here from {root}"
        )


def _owner(file: Path) -> str | None:
    """Give the folder of the project that a file lies in, None where there is no project."""
    folder = find_root(Path(os.path.realpath(file.parent)))
    return str(folder) if any(os.path.lexists(folder / marker) for marker in ROOT_MARKERS) else None


def _root_word(file: Path, root: Path) -> str | None:
    """Spell a root as a baseline does, from the project that the file lies in; None where there is none."""
    owner, root = _owner(file), Path(os.path.realpath(root))
    if owner is None:
        return None
    try:
        return spelled(Path(os.path.relpath(root, owner)).as_posix())
    except ValueError:  # Another drive.
        return spelled(root.as_posix())


def _read(file: Path) -> bytes:
    try:
        return bounded_read.read(file)
    except FileNotFoundError:
        hint = f"`fsrace-lint check --write-baseline {file}` writes one"
        raise BaselineError(f"{file}: there is no such baseline; {hint}") from None
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> BaselineError:
    return BaselineError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}")


def write(file: Path, baseline: Baseline, root: Path | None = None) -> None:
    """Write a baseline, one entry a line, so that it can be read and merged.

    Args:
        file: Where to; it must be as `baseline.read` says.
        baseline: What it is to hold.
        root: The root of the project that it is about; None for that of the folder it is in.

    Raises:
        BaselineError: Somebody changed the file since, or it cannot be written.
    """
    rows = ",\n".join(f"    {_row(known_by, count)}" for known_by, count in sorted(baseline.counts.items()))
    listed = f"[\n{rows}\n  ]" if rows else "[]"
    word = (root and _root_word(file, root)) or "."
    about = "" if word == "." else f'  "root": {_json(word)},\n'
    head = f'  "format": {_json(FORMAT)},\n  "version": {VERSION},\n{about}'
    data = f'{{\n{head}  "findings": {listed}\n}}\n'.encode()
    if len(data) > bounded_read.LARGEST:
        raise BaselineError(f"{file}: would be larger than a baseline may be ({bounded_read.LARGEST} bytes)")
    try:
        exchange(within(file), baseline.read, data)
    except ObstacleError as obstacle:
        raise BaselineError(f"{file}: {obstacle}, so it is left alone") from None
    except OSError as error:
        raise BaselineError(f"{file}: cannot be written: {error.strerror or error}") from error


def _row(known_by: Key, count: int) -> str:
    row: dict[str, str | int] = dict(known_by._asdict())
    if count > 1:
        row["count"] = count
    return _json(row)


def _json(value: object) -> str:
    import json  # noqa: PLC0415  # most runs write no baseline

    return json.dumps(value, ensure_ascii=False)


def pruned(baseline: Baseline, seen: Seen, was_checked: Callable[[Key], bool]) -> Baseline:
    """Take out what has gone.

    Args:
        baseline: What was known.
        seen: What a run saw.
        was_checked: Tells whether the run would have seen what an entry is about.

    Returns:
        What still occurs, and what the run could not see.
    """
    left = {}
    for known_by, count in baseline.counts.items():
        still = min(count, seen.occurring[known_by]) if was_checked(known_by) else count
        if still:
            left[known_by] = still
    return Baseline(left, baseline.read)


def extended(baseline: Baseline, seen: Seen) -> Baseline:
    """Add all that a run reports."""
    counts = dict(baseline.counts)
    for known_by, count in seen.reported.items():
        counts[known_by] = max(count, counts.get(known_by, 0))
    return Baseline(counts, baseline.read)


def gone(before: Baseline, after: Baseline) -> Baseline:
    """Give what one baseline holds beyond another."""
    less = {known_by: count - after.counts.get(known_by, 0) for known_by, count in before.counts.items()}
    return Baseline({known_by: count for known_by, count in less.items() if count > 0})
