"""The files of a run, read and parsed only on demand."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fsrace_lint.engine import store
from fsrace_lint.files import source
from fsrace_lint.files.source import Source, Unreadable
from fsrace_lint.files.stat_signature import Status
from fsrace_lint.findings import suppressions

if TYPE_CHECKING:
    from fsrace_lint.config.settings import Settings
    from fsrace_lint.engine.store import PackedFacts
    from fsrace_lint.pipeline.discover import Found
    from fsrace_lint.syntax.extract import SyntaxProblem
    from fsrace_lint.syntax.model import FileFacts
    from fsrace_lint.syntax.name_index_entry import ComputedIndexEntry, PackedIndexEntry


class ChangedError(Exception):
    """A file changed during the run, so the facts known about it no longer hold."""


class ProjectFile:
    """A readable file with its facts, or with the reason why it has none.

    Facts belong to the content with this `digest`. If the source is read later and its digest differs,
    `ChangedError` is raised.
    """

    __slots__ = (
        "_facts",
        "_head",
        "_is_new",
        "_may_suppress",
        "_packed",
        "_place",
        "_root",
        "_source",
        "digest",
        "path",
        "relative",
        "status",
    )

    def __init__(
        self,
        path: str,
        place: str,
        relative: str,
        root: Path,
        digest: str,
        *,
        status: Status | None = None,
        read: Source | None = None,
        packed: PackedFacts | None = None,
    ) -> None:
        """Create a file.

        Args:
            path: The path to show in reports.
            place: The absolute path.
            relative: The path relative to the project root.
            root: The project root.
            digest: The digest of the content.
            status: The status of the file before it was read.
            read: The source, if it was read.
            packed: The cached facts of the project.
        """
        self.path, self._place, self.relative = path, place, relative
        self.digest, self.status = digest, status
        self._root, self._source, self._packed = root, read, packed
        self._facts: FileFacts | SyntaxProblem | None = None
        self._head: ComputedIndexEntry | None = None
        self._is_new = False
        self._may_suppress: bool | None = None

    @staticmethod
    def of(read: Source) -> ProjectFile:
        """Create a file from a source that may not exist on disk, or may differ from the file on disk."""
        return ProjectFile(read.path, str(read.file), read.relative, read.file.parent, read.digest, read=read)

    @property
    def file(self) -> Path:
        """The absolute path, created on demand because few callers need it."""
        return Path(self._place)

    @property
    def source(self) -> Source:
        """The source, read on demand.

        Raises:
            ChangedError: The file changed during the run.
        """
        if self._source is None:
            read = source.read(self.file, self._root)
            if isinstance(read, Unreadable) or read.digest != self.digest:
                raise ChangedError(f"{self.path} was changed during the run")
            self._source = read
        return self._source

    @property
    def is_loaded(self) -> bool:
        """Whether the source is in memory."""
        return self._source is not None

    def load_source(self) -> None:
        """Read the source now.

        Raises:
            ChangedError: The file changed during the run.
        """
        _ = self.source

    def drop_source(self) -> None:
        """Drop the source if it can be read again, but remember `may_suppress`."""
        if self._source is not None and self.status is not None:
            self._may_suppress = suppressions.may_suppress(self._source.data)
            self._source = None

    @property
    def may_suppress(self) -> bool:
        """Whether a comment in the file may suppress a finding.

        Raises:
            ChangedError: The file changed during the run.
        """
        if self._may_suppress is None:
            self._may_suppress = suppressions.may_suppress(self.source.data)
        return self._may_suppress

    @property
    def facts(self) -> FileFacts | SyntaxProblem:
        """The facts, or the reason why there are none.

        Raises:
            ChangedError: The facts are not cached, and the file changed during the run.
        """
        if self._facts is None:
            known = None if self._packed is None else self._packed.load(self.relative, self.digest)
            self._is_new = known is None
            self._facts = _extracted(self.source) if known is None else known
        return self._facts

    def meant_the_same(self) -> str | None:
        """Return the digest of the cached version if it has the same facts and parses, or None.

        Raises:
            ChangedError: The facts are not known, and the file changed during the run.
        """
        old = None if self._packed is None else self._packed.digest(self.relative)
        if self._packed is None or old is None or _is_problem(self.facts):
            return None
        with contextlib.suppress(RecursionError):
            return old if self._packed.load(self.relative, old) == self.facts else None
        return None

    def known_facts(self) -> FileFacts:
        """Return the facts of a file that parses.

        Raises:
            ChangedError: The file does not parse, contrary to the cache, or it changed during the run.
        """
        facts = self.facts
        if _is_problem(facts):
            raise ChangedError(f"{self.path} differs from its cached version")
        return cast("FileFacts", facts)

    @property
    def head(self) -> PackedIndexEntry | ComputedIndexEntry:
        """The name index entry of a file that parses, computed once.

        Raises:
            ChangedError: Neither the entry nor the facts are known, and the file changed during the run.
        """
        packed = None if self._packed is None else self._packed.head(self.relative, self.digest)
        if packed is not None:
            return packed
        if self._head is None:
            from fsrace_lint.syntax.name_index_entry import ComputedIndexEntry  # noqa: PLC0415  # not needed if all results are cached

            self._head = ComputedIndexEntry(self.known_facts())
        return self._head

    def stands(self, status: Status | None, since: int) -> bool:
        """Return whether the file is unchanged.

        Args:
            status: The current status of the file.
            since: The time of the previous walk, in nanoseconds.
        """
        return status is not None and status == self.status and status.settled(since)

    def detach_from_cache(self) -> None:
        """Load the cached facts of the file, and stop using the cache.

        Raises:
            ChangedError: The cache is damaged, and the file changed during the run.
        """
        _ = self.facts
        self._packed = None

    @property
    def is_known(self) -> bool:
        """Whether the facts of the file are known, from this run or from the cache."""
        known = self._packed is not None and self._packed.holds(self.relative, self.digest)
        return self._facts is not None or known

    def take(self, facts: FileFacts | SyntaxProblem) -> None:
        """Store the facts, or the reason why there are none."""
        self._facts, self._is_new = facts, True

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self.source.data) if self.status is None else self.status.size

    @property
    def parsed(self) -> bool:
        """Whether the file parses, so that it has facts."""
        known = None if self._packed is None else self._packed.parsed(self.relative, self.digest)
        return not _is_problem(self.facts) if known is None else known

    def row(self) -> store.Row:
        """Return the row to store in the cache."""
        if self._facts is None or not self._is_new:
            return store.Row(self.relative, self.status, self.digest)
        parsed = not _is_problem(self._facts)
        return store.Row(self.relative, self.status, self.digest, self._facts, parsed)


def _extracted(read: Source) -> FileFacts | SyntaxProblem:
    from fsrace_lint.syntax.extract import extract  # noqa: PLC0415  # not needed if all facts are cached

    return extract(read)


def _is_problem(facts: FileFacts | SyntaxProblem) -> bool:
    from fsrace_lint.syntax.extract import SyntaxProblem  # noqa: PLC0415  # not needed if all facts are cached

    return isinstance(facts, SyntaxProblem)


class Sources(Mapping[str, Source]):
    """The sources of files by `Place.path`, each read on demand."""

    def __init__(self, files: Iterable[ProjectFile]) -> None:
        """Create the mapping from files."""
        self.files = {file.path: file for file in files}

    def __getitem__(self, path: str) -> Source:
        """Return the source of a file.

        Raises:
            ChangedError: The file changed during the run.
        """
        return self.files[path].source

    def __contains__(self, path: object) -> bool:
        """Return whether there is a file with this path, without reading it."""
        return path in self.files

    def __iter__(self) -> Iterator[str]:
        """Iterate over the paths."""
        return iter(self.files)

    def load_sources(self, paths: Iterable[str]) -> None:
        """Read the sources of some paths now.

        Raises:
            ChangedError: A file changed during the run.
        """
        for path in paths:
            if path in self.files:
                self.files[path].load_source()

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self.files)


class Joined(Mapping[str, Source]):
    """A view of multiple mappings as one, without reading their values. Later mappings take precedence."""

    def __init__(self, parts: Sequence[Mapping[str, Source]]) -> None:
        """Create the view from mappings."""
        self._part_of = {path: part for part in parts for path in part}

    def __getitem__(self, path: str) -> Source:
        """Return the source of a file."""
        return self._part_of[path][path]

    def __contains__(self, path: object) -> bool:
        """Return whether there is a file with this path, without reading it."""
        return path in self._part_of

    def __iter__(self) -> Iterator[str]:
        """Iterate over the paths."""
        return iter(self._part_of)

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self._part_of)


class Reader:
    """Reads the files of a project, except those that are unchanged."""

    def __init__(
        self,
        settings: Settings,
        packed: PackedFacts | None = None,
        known: Mapping[str, ProjectFile] | None = None,
        since: int = 0,
    ) -> None:
        """Create a reader for a project.

        Args:
            settings: The settings of the project.
            packed: The cached facts of the project.
            known: The files of an earlier run with the same current directory, by relative path.
            since: When that run walked the directories, in nanoseconds.
        """
        self._root, self._packed = settings.root, packed
        self._known, self._since = known or {}, since
        try:
            self._here = str(Path.cwd())
        except OSError:
            self._here = ""

    def read(self, found: Found) -> ProjectFile | Unreadable:
        """Read a file, unless its content is known from an earlier run or the cache.

        Args:
            found: The file.

        Returns:
            The file, or the reason why it cannot be read.
        """
        status = None if found.status is None else Status.of(found.status)
        old = self._known.get(found.relative)
        if old is not None and old.stands(status, self._since):
            return old
        path = (self._here and source.path_below(found.path, self._here)) or Path(found.path).as_posix()
        names = path, found.path, found.relative
        if self._packed is None or status is None:
            read = source.read(Path(found.path), self._root)
            if isinstance(read, Unreadable):
                return read
            if old is not None and old.digest == read.digest:
                old.status = status
                return old
            return ProjectFile(*names, self._root, read.digest, status=status, read=read)
        digest = self._packed.unchanged(found.relative, status)
        if digest is None:
            data = source.read_bytes((path, Path(found.path), found.relative))
            if isinstance(data, Unreadable):
                return data
            digest = source.digest_of(data)
            if not self._packed.holds(found.relative, digest):
                decoded = source.decode(data, Path(found.path), self._root)
                if isinstance(decoded, Unreadable):
                    return decoded
                return ProjectFile(
                    *names, self._root, digest, status=status, read=decoded, packed=self._packed
                )
        return ProjectFile(*names, self._root, digest, status=status, packed=self._packed)
