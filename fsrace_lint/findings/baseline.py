"""The baseline: known findings, identified independently of their line numbers."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec

from fsrace_lint.config.roots import find_root, is_project
from fsrace_lint.config.validation import SettingsError
from fsrace_lint.files import bounded_read
from fsrace_lint.files.atomic_write import ObstacleError, exchange, within
from fsrace_lint.findings.fingerprints import Key, spelled

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from fsrace_lint.config.settings import Settings
    from fsrace_lint.findings.finding import Finding

FORMAT: Final = "fsrace-lint baseline"
VERSION: Final = 1
UNREADABLE: Final = "FSR001"
RULE_FAILURE: Final = "FSR002"
ABOUT_THE_TOOL: Final = frozenset({UNREADABLE, RULE_FAILURE, "FSR003"})
"""Rules that no baseline holds: about unreadable files, failing rules, and unused suppressions."""

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
_Word: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_Digest: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]


_FOREIGN: Final = "not an fsrace-lint baseline; the file was not changed"


class BaselineError(SettingsError):
    """A baseline cannot be used. The message is for the user and names the file."""


class Baseline(msgspec.Struct, frozen=True):
    """The number of known findings of each key."""

    counts: dict[Key, int] = {}
    read: bytes | None = None
    """The content of the file when it was read. None if it did not exist."""

    def __len__(self) -> int:
        """Return the number of findings in the baseline."""
        return sum(self.counts.values())

    def part(
        self, findings: Sequence[tuple[Finding, Key]], suppressed: Container[Finding] = ()
    ) -> tuple[list[Finding], list[Finding]]:
        """Split findings into new and known ones. Of equal findings, the first are known.

        Args:
            findings: Findings with their keys, in report order.
            suppressed: Findings that a comment suppresses. They are in neither list, but they count.

        Returns:
            The new findings, and the known ones.
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
    """What a run saw, which determines the baseline entries that it can remove.

    Attributes:
        reported: The keys that the run reports without a baseline. Equal findings before them count too if
            comments suppress them.
        occurring: The same, including findings that only the strict profile reports.
        files: The files that were checked.
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


def of(settings: Settings) -> dict[str, Baseline]:
    """Return the baselines that the settings of a project name, by their absolute path.

    Raises:
        BaselineError: A file does not exist, or is not a baseline of this project.
    """
    named = dict.fromkeys(one.baseline for one in settings.every if one.baseline)
    return {name: load(Path(name), settings.root) for name in named}


def existing(file: Path, root: Path) -> Baseline:
    """Read a baseline like `load`, or return an empty one if the file does not exist."""
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
        root: The root of the project that the baseline must belong to. None for any project.

    Raises:
        BaselineError: The file does not exist, cannot be read, is not a baseline that this version supports,
            or belongs to another project.
    """
    data = _read(file)
    document = _decoded(file, data)
    if root is not None:
        _refuse_foreign(file, document.root, root)
    counts: dict[Key, int] = {}
    for entry in document.findings:
        known_by = Key(entry.path, entry.code, entry.function, entry.text)
        # A merge can duplicate an entry.
        counts[known_by] = max(entry.count, counts.get(known_by, 0))
    return Baseline(counts, data)


def _decoded(file: Path, data: bytes) -> _Document:
    try:
        head = msgspec.json.decode(data, type=_Head)
    except msgspec.ValidationError:
        raise BaselineError(f"{file}: {_FOREIGN}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        marks = "; the file contains unresolved merge conflicts" if b"<<<<<<<" in data else ""
        raise BaselineError(f"{file}: not a valid fsrace-lint baseline: {error}{marks}") from None
    if head.format != FORMAT:
        raise BaselineError(f"{file}: {_FOREIGN}")
    if head.version != VERSION:
        what = f"baseline format {head.version} is not supported (supported: {VERSION})"
        raise BaselineError(f"{file}: {what}; upgrade fsrace-lint, or write a new baseline to another file")
    try:
        return msgspec.json.decode(data, type=_Document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BaselineError(f"{file}: not a valid fsrace-lint baseline: {error}") from None


def _refuse_foreign(file: Path, word: str, root: Path) -> None:
    """Refuse a baseline whose paths are relative to another root."""
    expected = _root_word(file, root)
    if expected is not None and word != expected:
        other = os.path.normpath(os.path.join(_owner(file) or "", word))  # noqa: PTH118  # may not be a valid path
        raise BaselineError(
            f"{file}: baseline of another project: its paths are relative to {other}, not to {root}"
        )


def _owner(file: Path) -> str | None:
    """Return the directory of the project that contains a file, or None if there is no project."""
    folder = find_root(Path(os.path.realpath(file.parent)))
    return str(folder) if is_project(folder) else None


def _root_word(file: Path, root: Path) -> str | None:
    """Return a root as a baseline stores it, relative to the project that contains the file, or None."""
    owner, root = _owner(file), Path(os.path.realpath(root))
    if owner is None:
        return None
    try:
        return spelled(Path(os.path.relpath(root, owner)).as_posix())
    except ValueError:  # A different drive.
        return spelled(root.as_posix())


def _read(file: Path) -> bytes:
    try:
        return bounded_read.read(file)
    except FileNotFoundError:
        hint = f"to create it, run `fsrace-lint check --write-baseline {file}`"
        raise BaselineError(f"{file}: baseline not found; {hint}") from None
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> BaselineError:
    return BaselineError(f"{file}: cannot read the baseline: {getattr(error, 'strerror', None) or error}")


def write(file: Path, baseline: Baseline, root: Path | None = None) -> None:
    """Write a baseline, one entry per line, so that people can read it and git can merge it.

    Args:
        file: The file. Its content must still be `baseline.read`.
        baseline: The baseline.
        root: The root of its project. None for the project of the file's directory.

    Raises:
        BaselineError: Another process changed the file, or it cannot be written.
    """
    rows = ",\n".join(f"    {_row(known_by, count)}" for known_by, count in sorted(baseline.counts.items()))
    listed = f"[\n{rows}\n  ]" if rows else "[]"
    word = (root and _root_word(file, root)) or "."
    about = "" if word == "." else f'  "root": {_json(word)},\n'
    head = f'  "format": {_json(FORMAT)},\n  "version": {VERSION},\n{about}'
    data = f'{{\n{head}  "findings": {listed}\n}}\n'.encode()
    if len(data) > bounded_read.LARGEST:
        size, limit = len(data) / 1e6, bounded_read.LARGEST / 1e6
        raise BaselineError(f"{file}: the baseline would be {size:.1f} MB; the limit is {limit:.1f} MB")
    try:
        exchange(within(file), baseline.read, data)
    except ObstacleError as obstacle:
        raise BaselineError(f"{file}: {obstacle}; the baseline was not written") from None
    except OSError as error:
        raise BaselineError(f"{file}: cannot write the baseline: {error.strerror or error}") from error


def _row(known_by: Key, count: int) -> str:
    row: dict[str, str | int] = dict(known_by._asdict())
    if count > 1:
        row["count"] = count
    return _json(row)


def _json(value: object) -> str:
    import json  # noqa: PLC0415  # most runs write no baseline

    return json.dumps(value, ensure_ascii=False)


def pruned(baseline: Baseline, seen: Seen, was_checked: Callable[[Key], bool]) -> Baseline:
    """Return a baseline without entries that no longer occur.

    Args:
        baseline: The baseline.
        seen: What a run saw.
        was_checked: Returns whether the run would have seen the finding of an entry.

    Returns:
        The entries that still occur, and those that the run could not see.
    """
    left = {}
    for known_by, count in baseline.counts.items():
        still = min(count, seen.occurring[known_by]) if was_checked(known_by) else count
        if still:
            left[known_by] = still
    return Baseline(left, baseline.read)


def extended(baseline: Baseline, seen: Seen) -> Baseline:
    """Return a baseline with everything that a run reports added."""
    counts = dict(baseline.counts)
    for known_by, count in seen.reported.items():
        counts[known_by] = max(count, counts.get(known_by, 0))
    return Baseline(counts, baseline.read)


def gone(before: Baseline, after: Baseline) -> Baseline:
    """Return the entries of one baseline that are not in another."""
    less = {known_by: count - after.counts.get(known_by, 0) for known_by, count in before.counts.items()}
    return Baseline({known_by: count for known_by, count in less.items() if count > 0})
