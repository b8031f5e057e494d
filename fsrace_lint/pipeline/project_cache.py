"""What a run reads from the cache of its project, and what it writes there."""

from __future__ import annotations

import contextlib
import enum
import hashlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from fsrace_lint.config.roots import is_project
from fsrace_lint.engine import store
from fsrace_lint.engine.store.folder import NAME
from fsrace_lint.files.source import path_below
from fsrace_lint.pipeline.judging import JudgedFindings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from fsrace_lint.config.settings import Settings
    from fsrace_lint.files.spans import Place
    from fsrace_lint.findings.baseline import Baseline
    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.pipeline.files import ProjectFile
    from fsrace_lint.pipeline.launch_files import LaunchFiles

_CODE: Final = re.compile(r"FSR[0-9]{3}")
_NAME: Final = re.compile(r"[a-z0-9-]*")
_STEERS: Final = re.compile(r"(?<!\\)(?:\\\\)*\\(x|u|U)")
"""Escapes in a `repr` of characters that control a terminal. Messages never contain such characters."""
_MARKS: Final = ("\\x", "\\u", "\\U")
"""Substrings to search before `_STEERS`, because they are rare."""
_EVIDENCE: Final = frozenset({"evident", "likely", "plausible", "none"})
_CONFIDENCE: Final = frozenset({"high", "medium", "low"})
_ELSEWHERE: Final = frozenset(
    {
        *("root", "catalog_origin", "programs_file", "baseline", "cache_dir", "nested", "overrides"),
        *("config_file", "is_isolated"),
    }
)
"""Settings whose values are locations, which do not affect the findings, or are part of the key elsewhere."""
FEW: Final = 8
"""The maximum number of changed files that are compared with their cached versions."""
_OURS: Final = b"ours"
"""The cache key of the built-in library models."""
_SUFFIX: Final = f"-{sys.implementation.cache_tag or 'python'}.bin".lower()


def folder_of(settings: Settings) -> Path | None:
    """Return the cache directory of a project.

    A directory without a project marker has none, unless the settings name one.
    """
    if settings.cache_dir:
        return Path(settings.cache_dir)
    return settings.root / NAME if is_project(settings.root) else None


class CacheUse(enum.Enum):
    """What to read from and write to a cache."""

    NOT = "nothing"
    FACTS = "facts"
    RESULTS = "results"


class Cacheable(Protocol):
    """A run, as its cache sees it."""

    settings: Settings
    baselines: dict[str, Baseline]
    files: dict[str, ProjectFile]
    links: dict[str, str]
    launch_files: LaunchFiles

    def judged_of(self, relative: str, found: Sequence[Finding]) -> JudgedFindings:
        """Apply the profile, comments, and the baseline to the findings of the rules in one file."""


class ProjectCache:
    """The cache of one project, open for one run."""

    def __init__(self, folder: Path, version: store.Version, *, results: bool) -> None:
        """Open a cache.

        Args:
            folder: The cache directory, which need not exist.
            version: The version of this program.
            results: Whether to cache the results of rules, and not only facts.
        """
        self.folder = folder
        self.packed = store.PackedFacts(store.Folder(folder), version, f"facts{_SUFFIX}")
        self.results = store.Results(store.Folder(folder), version, f"results{_SUFFIX}") if results else None
        self.launches = store.Results(store.Folder(folder), version, f"launches{_SUFFIX}")
        self._catalog = store.Results(store.Folder(folder), version, f"catalog{_SUFFIX}")

    @staticmethod
    def of(settings: Settings, wanted: CacheUse) -> ProjectCache | None:
        """Open the cache of a project.

        Args:
            settings: The settings of the project.
            wanted: What to read from and write to the cache.

        Returns:
            The cache, or None if it is not wanted or the project cannot have one.
        """
        folder = None if wanted is CacheUse.NOT else folder_of(settings)
        version = None if folder is None else store.Version.of()
        if folder is None or version is None:
            return None
        return ProjectCache(folder, version, results=wanted is CacheUse.RESULTS)

    def entries(self, packed: Callable[[], bytes]) -> bytes:
        """Return the cached library models, or cache them if there are none.

        Args:
            packed: Reads and packs the library models.

        Returns:
            The cached models. Empty if they were just read.
        """
        kept = self._catalog.get(_OURS)
        if kept is None:
            with contextlib.suppress(OSError):  # saving the facts fails too, and that failure is noted
                self._catalog.put(_OURS, packed())
        return kept or b""

    def save(self, root: Path, files: Iterable[ProjectFile], verdicts: CachedResults) -> None:
        """Write the results of a run to the cache, if they are new.

        Args:
            root: The root of the project.
            files: All files of the project.
            verdicts: The results of all files.

        Raises:
            OSError: The cache cannot be written.
        """
        rows = [file.row() for file in files]
        try:
            self.packed.save(rows, lambda relative: (root / relative).is_file())
            verdicts.save()
        except ValueError as error:  # a file name that no system accepts
            raise OSError(str(error)) from error


class Stored(msgspec.Struct, frozen=True, array_like=True):
    """The results of rules by file number. `clean` lists the files without findings."""

    clean: list[int] = []
    judged: dict[int, msgspec.Raw] = {}


_stored_of: Final = msgspec.msgpack.Decoder(Stored).decode
_judged_of: Final = msgspec.msgpack.Decoder(JudgedFindings).decode
_CLEAN: Final = JudgedFindings((), (), ())


class CachedResults:
    """The results of each file, for this state of the project and these settings."""

    def __init__(self, run: Cacheable | None = None, results: store.Results | None = None) -> None:
        """Read the cached results of a run whose files were read. Without a run, nothing is cached.

        Args:
            run: The run.
            results: The cached results of other runs.
        """
        self.hits = 0
        """The number of files whose results were cached."""
        self._results = results
        self._run, self.key, self.stored, self._news = run, b"", Stored(), dict[str, JudgedFindings]()
        self._is_new = False
        self._changed: dict[str, str] = {}
        """The files in which only comments or white space changed, with their old digests."""
        self._clean: frozenset[int] = frozenset()
        self._numbers: dict[str, int] = {}
        self._launch_paths: frozenset[str] = frozenset()
        self._paths: dict[str, str] = {}
        if run is None or results is None:
            return
        self._numbers = {name: number for number, name in enumerate(sorted(run.files))}
        self._paths = {file.path: relative for relative, file in run.files.items()}
        self._launch_paths = run.launch_files.paths
        self.key = _key(run, {})
        self.stored = self._read(self.key)
        if self.stored == Stored():
            self._changed = _changed(run)
            self.stored = self._read(_key(run, self._changed)) if self._changed else self.stored
            self._is_new = bool(self._changed)
        self._clean = frozenset(self.stored.clean)

    def _read(self, key: bytes) -> Stored:
        data = None if self._results is None else self._results.get(key)
        try:
            return Stored() if data is None else _stored_of(data)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return Stored()

    def get(self, relative: str) -> JudgedFindings | None:
        """Return the results of a file, or None if they are not known.

        Args:
            relative: The path relative to the project root.
        """
        number = self._numbers.get(relative)
        if number is None:
            return None
        if relative in self._news:
            return self._news[relative]
        judged = self._known(relative, number)
        if judged is not None and relative in self._changed:
            judged = self._news[relative] = self._judged_anew(relative, judged)
        return judged

    def _judged_anew(self, relative: str, judged: JudgedFindings) -> JudgedFindings:
        """Apply the current comments of a file to the cached findings of the rules."""
        found = (*judged.kept, *judged.withheld, *(held.finding for held in judged.held))
        if self._run is None or not (found or self._run.files[relative].may_suppress):
            return _CLEAN
        return self._run.judged_of(relative, found)

    def _known(self, relative: str, number: int) -> JudgedFindings | None:
        if number in self._clean:
            self.hits += 1
            return _CLEAN
        raw = self.stored.judged.get(number)
        if raw is None:
            return None
        try:
            judged = _judged_of(raw)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None
        if _steers(judged) or not all(self._is_sound(one, relative) for one in _every(judged)):
            return None
        self.hits += 1
        return judged

    def know(self, files: Iterable[str]) -> bool:
        """Return whether results of all these files are cached."""
        known = {*self._clean, *self.stored.judged}
        return all(self._numbers.get(relative) in known for relative in files)

    def put(self, relative: str, judged: JudgedFindings) -> None:
        """Store the results of a file."""
        if relative in self._numbers:
            self._news[relative], self._is_new = judged, True

    def save(self) -> None:
        """Write new results to the cache.

        Raises:
            OSError: The cache cannot be written.
        """
        if self._results is None or not self._is_new:
            return
        now = self._read(self.key)  # another run may have written in the meantime
        others = {self._numbers[relative] for relative in self._changed}
        clean = {*now.clean, *(number for number in self.stored.clean if number not in others)}
        kept = {number: raw for number, raw in self.stored.judged.items() if number not in others}
        judged = {**now.judged, **kept}
        for relative, one in self._news.items():
            number = self._numbers[relative]
            if one == _CLEAN:
                clean.add(number)
                continue
            try:
                judged[number] = msgspec.Raw(msgspec.msgpack.encode(one))
            except ValueError:  # a name with bytes that do not decode
                judged.pop(number, None)
        self._is_new = False
        self._results.put(self.key, msgspec.msgpack.encode(Stored(sorted(clean), judged)))

    def _is_sound(self, finding: Finding, relative: str) -> bool:
        """Return whether a rule could have reported this finding. A foreign cache may contain anything."""
        places = [finding.place, *(related.place for related in finding.related)]
        fix = finding.fix
        words = finding.name, fix.recipe if fix else "", fix.otherwise if fix else ""
        return (
            self._paths.get(finding.place.path) == relative
            and all(self._is_known(place.path) and _is_span(place) for place in places)
            and _CODE.fullmatch(finding.code) is not None
            and all(_NAME.fullmatch(word) for word in words)
            and finding.evidence in _EVIDENCE
            and finding.confidence in _CONFIDENCE
        )

    def _is_known(self, path: str) -> bool:
        return path in self._paths or path in self._launch_paths


def _steers(judged: JudgedFindings) -> bool:
    """Return whether a text in the findings contains characters that control a terminal."""
    text = repr(judged)
    return any(mark in text for mark in _MARKS) and _STEERS.search(text) is not None


def _every(judged: JudgedFindings) -> Iterator[Finding]:
    yield from (*judged.kept, *judged.unused, *judged.withheld)
    yield from (held.finding for held in judged.held)


def _is_span(place: Place) -> bool:
    span = place.span
    return min(span.line, span.column, span.end_column) >= 1 and span.end_line >= span.line


def _changed(run: Cacheable) -> dict[str, str]:
    """Return the changed files and their old digests if all facts are unchanged, or an empty dict."""
    changed = [file for file in run.files.values() if not file.is_known]
    if len(changed) > FEW:
        return {}
    before = {file.relative: file.meant_the_same() for file in changed}
    known = {relative: digest for relative, digest in before.items() if digest is not None}
    return known if len(known) == len(before) else {}


def _key(run: Cacheable, before: Mapping[str, str]) -> bytes:
    """Return a digest of everything that the findings of a project depend on, and of how paths are spelled.

    Args:
        run: The run.
        before: Old digests of some files, to use instead of the current ones.
    """
    applying = [
        (run.baselines[one.baseline].read if one.baseline else None, sorted(_chosen(one)))
        for one in run.settings.every
    ]
    about = (
        _where(str(run.settings.root)),
        applying,
        sorted(run.links.items()),
        run.launch_files.digest,
    )
    digest = hashlib.blake2b(repr(about).encode("utf-8", "surrogatepass"), digest_size=32)
    for relative in sorted(run.files):
        content = before.get(relative) or run.files[relative].digest
        digest.update(f"{relative}\0{content}\0".encode("utf-8", "surrogatepass"))
    return digest.digest()


def _chosen(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Yield the settings of one table that affect the findings."""
    fields = msgspec.structs.asdict(settings).items()
    return ((name, value) for name, value in fields if name not in _ELSEWHERE)


def _where(root: str) -> tuple[str, ...]:
    """Return how reported paths begin, which depends on the current directory."""
    try:
        here = str(Path.cwd())
    except OSError:
        return (root,)
    below = "." if root == here else path_below(root, here)
    return (root, here) if below is None else (below,)
