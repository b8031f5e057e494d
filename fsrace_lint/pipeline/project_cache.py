"""What a run takes from the cache of its project, and what it leaves there."""

from __future__ import annotations

import contextlib
import enum
import hashlib
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from fsrace_lint.config.settings import ROOT_MARKERS
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

_CODE: Final = re.compile(r"FSR[0-9]{3}")
_NAME: Final = re.compile(r"[a-z0-9-]*")
_STEERS: Final = re.compile(r"(?<!\\)(?:\\\\)*\\(x|u|U)")
"""What `repr` spells out: characters that steer a terminal, which no message has."""
_MARKS: Final = ("\\x", "\\u", "\\U")
"""What is looked for first: there is hardly ever one of these."""
_EVIDENCE: Final = frozenset({"evident", "plausible", "none"})
_ELSEWHERE: Final = frozenset({"root", "catalog_origin", "baseline", "cache_dir"})
"""Settings whose values say where something stands, and nothing of what is found."""
FEW: Final = 8
"""So many changed files, and no more, are compared with what is remembered of them."""
_OURS: Final = b"ours"
"""What our own entries of the catalog are remembered by."""
_SUFFIX: Final = f"-{sys.implementation.cache_tag or 'python'}.bin".lower()


def folder_of(settings: Settings) -> Path | None:
    """Give the folder of the cache of a project; a folder that is no project has none, unless it is named."""
    if settings.cache_dir:
        return Path(settings.cache_dir)
    root = settings.root
    return root / NAME if any(os.path.lexists(root / marker) for marker in ROOT_MARKERS) else None


class CacheUse(enum.Enum):
    """What is taken from a cache, and left there."""

    NOT = "nothing"
    FACTS = "facts"
    RESULTS = "results"


class Cacheable(Protocol):
    """A run, as its cache knows it."""

    settings: Settings
    baseline: Baseline
    files: dict[str, ProjectFile]
    links: dict[str, str]

    def judged_of(self, relative: str, found: Sequence[Finding]) -> JudgedFindings:
        """Judge what the rules have found in one file."""


class ProjectCache:
    """The cache of one project, open for one run."""

    def __init__(self, folder: Path, version: store.Version, *, results: bool) -> None:
        """Open a cache.

        Args:
            folder: Its folder, which need not be there.
            version: This program.
            results: Whether what the rules said is remembered, and not only the facts.
        """
        self.folder = folder
        self.packed = store.PackedFacts(store.Folder(folder), version, f"facts{_SUFFIX}")
        self.results = store.Results(store.Folder(folder), version, f"results{_SUFFIX}") if results else None
        self._catalog = store.Results(store.Folder(folder), version, f"catalog{_SUFFIX}")

    @staticmethod
    def of(settings: Settings, wanted: CacheUse) -> ProjectCache | None:
        """Open the cache of a project.

        Args:
            settings: The settings of the project.
            wanted: What is wanted of it.

        Returns:
            The cache, None where there can be none.
        """
        folder = None if wanted is CacheUse.NOT else folder_of(settings)
        version = None if folder is None else store.Version.of()
        if folder is None or version is None:
            return None
        return ProjectCache(folder, version, results=wanted is CacheUse.RESULTS)

    def entries(self, packed: Callable[[], bytes]) -> bytes:
        """Give our own entries of the catalog as they were packed, and keep them if none are there.

        Args:
            packed: Reads and packs them.

        Returns:
            What was kept; empty where they have just been read.
        """
        kept = self._catalog.get(_OURS)
        if kept is None:
            with contextlib.suppress(OSError):  # the facts are not written either, and that is told
                self._catalog.put(_OURS, packed())
        return kept or b""

    def save(self, root: Path, files: Iterable[ProjectFile], verdicts: CachedResults) -> None:
        """Write down what a run has found out, if it is new.

        Args:
            root: The root of the project.
            files: All its files.
            verdicts: What came of each.

        Raises:
            OSError: It cannot be written.
        """
        rows = [file.row() for file in files]
        try:
            self.packed.save(rows, lambda relative: (root / relative).is_file())
            verdicts.save()
        except ValueError as error:  # a name that no system takes
            raise OSError(str(error)) from error


class Stored(msgspec.Struct, frozen=True, array_like=True):
    """What the rules said, by the number of a file; `clean` are those of which they said nothing."""

    clean: list[int] = []
    judged: dict[int, msgspec.Raw] = {}


_stored_of: Final = msgspec.msgpack.Decoder(Stored).decode
_judged_of: Final = msgspec.msgpack.Decoder(JudgedFindings).decode
_CLEAN: Final = JudgedFindings((), (), ())


class CachedResults:
    """What came of each file of a project in this state and with these settings."""

    def __init__(self, run: Cacheable | None = None, results: store.Results | None = None) -> None:
        """Take a run, whose files are read; without one, nothing is remembered.

        Args:
            run: The run.
            results: What was remembered of others.
        """
        self.hits = 0
        """How many files were not judged, because it is known what comes of them."""
        self._results = results
        self._run, self.key, self.stored, self._news = run, b"", Stored(), dict[str, JudgedFindings]()
        self._is_new = False
        self._changed: dict[str, str] = {}
        """The files of which only comments and white space were changed, with the digests from before."""
        self._clean: frozenset[int] = frozenset()
        self._numbers: dict[str, int] = {}
        self._paths: dict[str, str] = {}
        if run is None or results is None:
            return
        self._numbers = {name: number for number, name in enumerate(sorted(run.files))}
        self._paths = {file.path: relative for relative, file in run.files.items()}
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
        """Give what came of a file, None where that is not known.

        Args:
            relative: Its path from the root of the project.

        Returns:
            The findings.
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
        """Judge what the rules have said of a file by the comments that stand in it now."""
        found = (*judged.kept, *judged.strict, *(held.finding for held in judged.held))
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
        """Tell whether something is remembered of all these files."""
        known = {*self._clean, *self.stored.judged}
        return all(self._numbers.get(relative) in known for relative in files)

    def put(self, relative: str, judged: JudgedFindings) -> None:
        """Remember what came of a file."""
        if relative in self._numbers:
            self._news[relative], self._is_new = judged, True

    def save(self) -> None:
        """Write down what is new.

        Raises:
            OSError: It cannot be written.
        """
        if self._results is None or not self._is_new:
            return
        now = self._read(self.key)  # another run may have written meanwhile
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
        """Tell whether a rule could have said this; what was written by somebody else may be anything."""
        places = [finding.place, *(related.place for related in finding.related)]
        fix = finding.fix
        words = finding.name, fix.recipe if fix else "", fix.otherwise if fix else ""
        return (
            self._paths.get(finding.place.path) == relative
            and all(place.path in self._paths and _is_span(place) for place in places)
            and _CODE.fullmatch(finding.code) is not None
            and all(_NAME.fullmatch(word) for word in words)
            and finding.evidence in _EVIDENCE
        )


def _steers(judged: JudgedFindings) -> bool:
    """Tell whether something in it steers a terminal."""
    text = repr(judged)
    return any(mark in text for mark in _MARKS) and _STEERS.search(text) is not None


def _every(judged: JudgedFindings) -> Iterator[Finding]:
    yield from (*judged.kept, *judged.unused, *judged.strict)
    yield from (held.finding for held in judged.held)


def _is_span(place: Place) -> bool:
    span = place.span
    return min(span.line, span.column, span.end_column) >= 1 and span.end_line >= span.line


def _changed(run: Cacheable) -> dict[str, str]:
    """Give the files that were changed, with the digests from before, if they all mean the same."""
    changed = [file for file in run.files.values() if not file.is_known]
    if len(changed) > FEW:
        return {}
    before = {file.relative: file.meant_the_same() for file in changed}
    known = {relative: digest for relative, digest in before.items() if digest is not None}
    return known if len(known) == len(before) else {}


def _key(run: Cacheable, before: Mapping[str, str]) -> bytes:
    """Give a digest of all that the findings of a project depend on, and how they are spelled.

    Args:
        run: The run.
        before: The digests of some of its files instead of those of now.
    """
    fields = msgspec.structs.asdict(run.settings)
    chosen = {name: value for name, value in fields.items() if name not in _ELSEWHERE}
    about = (
        _where(str(run.settings.root)),
        sorted(chosen.items()),
        run.baseline.read,
        sorted(run.links.items()),
    )
    digest = hashlib.blake2b(repr(about).encode("utf-8", "surrogatepass"), digest_size=32)
    for relative in sorted(run.files):
        content = before.get(relative) or run.files[relative].digest
        digest.update(f"{relative}\0{content}\0".encode("utf-8", "surrogatepass"))
    return digest.digest()


def _where(root: str) -> tuple[str, ...]:
    """Tell how the paths of a project begin where they are reported: that depends on the current folder."""
    try:
        here = str(Path.cwd())
    except OSError:
        return (root,)
    below = "." if root == here else path_below(root, here)
    return (root, here) if below is None else (below,)
