"""The files of a run: read, and taken apart, only where something asks for it."""

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
    """A file is not what it was when the run began: what is known of it is of no use any more."""


class ProjectFile:
    """One file that can be read, with its facts, or the reason why there are none.

    What is known of it is bound to `digest`: the source is read later, but it is that one or none.
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
        """Name a file.

        Args:
            path: What it is called in reports.
            place: Its absolute path.
            relative: Its path from the project root.
            root: The project root.
            digest: The digest of its content.
            status: What the system said of it before it was read.
            read: Its source, where that is read.
            packed: What is remembered of the project.
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
        """Make one of a source that is not, or not only, on the disk."""
        return ProjectFile(read.path, str(read.file), read.relative, read.file.parent, read.digest, read=read)

    @property
    def file(self) -> Path:
        """The absolute path; few files of a run are asked for it."""
        return Path(self._place)

    @property
    def source(self) -> Source:
        """The source.

        Raises:
            ChangedError: The file is not what it was.
        """
        if self._source is None:
            read = source.read(self.file, self._root)
            if isinstance(read, Unreadable) or read.digest != self.digest:
                raise ChangedError(f"{self.path} was changed in the meantime")
            self._source = read
        return self._source

    @property
    def is_loaded(self) -> bool:
        """Whether the source is in memory."""
        return self._source is not None

    def load_source(self) -> None:
        """Read the source now.

        Raises:
            ChangedError: The file is not what it was.
        """
        _ = self.source

    def drop_source(self) -> None:
        """Forget the source, where it can be read again, but for what is asked of every file."""
        if self._source is not None and self.status is not None:
            self._may_suppress = suppressions.may_suppress(self._source.data)
            self._source = None

    @property
    def may_suppress(self) -> bool:
        """Whether a comment in it may suppress something.

        Raises:
            ChangedError: The file is not what it was.
        """
        if self._may_suppress is None:
            self._may_suppress = suppressions.may_suppress(self.source.data)
        return self._may_suppress

    @property
    def facts(self) -> FileFacts | SyntaxProblem:
        """The facts, or why there are none.

        Raises:
            ChangedError: They are not remembered, and the file is not what it was.
        """
        if self._facts is None:
            known = None if self._packed is None else self._packed.load(self.relative, self.digest)
            self._is_new = known is None
            self._facts = _extracted(self.source) if known is None else known
        return self._facts

    def meant_the_same(self) -> str | None:
        """Give the digest of what is remembered of the file, if its facts are the same, and it can be parsed.

        Raises:
            ChangedError: The facts are not known, and it is not what it was.
        """
        old = None if self._packed is None else self._packed.digest(self.relative)
        if self._packed is None or old is None or _is_problem(self.facts):
            return None
        with contextlib.suppress(RecursionError):
            return old if self._packed.load(self.relative, old) == self.facts else None
        return None

    def known_facts(self) -> FileFacts:
        """Give the facts of a file that can be parsed.

        Raises:
            ChangedError: It cannot, whatever was remembered, or it is not what it was.
        """
        facts = self.facts
        if _is_problem(facts):
            raise ChangedError(f"{self.path} is not what is remembered of it")
        return cast("FileFacts", facts)

    @property
    def head(self) -> PackedIndexEntry | ComputedIndexEntry:
        """The names in it, of a file that can be parsed; they are gathered once, whoever links it.

        Raises:
            ChangedError: Neither they nor the facts are known, and it is not what it was.
        """
        packed = None if self._packed is None else self._packed.head(self.relative, self.digest)
        if packed is not None:
            return packed
        if self._head is None:
            from fsrace_lint.syntax.name_index_entry import ComputedIndexEntry  # noqa: PLC0415  # not needed where all is known

            self._head = ComputedIndexEntry(self.known_facts())
        return self._head

    def stands(self, status: Status | None, since: int) -> bool:
        """Tell whether the file is as it was.

        Args:
            status: What the system says of it now.
            since: When it was looked at before, in nanoseconds.
        """
        return status is not None and status == self.status and status.settled(since)

    def detach_from_cache(self) -> None:
        """Read from the cache what it holds of the file, and be independent of it.

        Raises:
            ChangedError: That is damaged, and the file is not what it was.
        """
        _ = self.facts
        self._packed = None

    @property
    def is_known(self) -> bool:
        """Whether it has been taken apart, now or in an earlier run."""
        known = self._packed is not None and self._packed.holds(self.relative, self.digest)
        return self._facts is not None or known

    def take(self, facts: FileFacts | SyntaxProblem) -> None:
        """Be told the facts, or why there are none."""
        self._facts, self._is_new = facts, True

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.source.data) if self.status is None else self.status.size

    @property
    def parsed(self) -> bool:
        """Whether there are facts."""
        known = None if self._packed is None else self._packed.parsed(self.relative, self.digest)
        return not _is_problem(self.facts) if known is None else known

    def row(self) -> store.Row:
        """Give what is to be remembered."""
        if self._facts is None or not self._is_new:
            return store.Row(self.relative, self.status, self.digest)
        parsed = not _is_problem(self._facts)
        return store.Row(self.relative, self.status, self.digest, self._facts, parsed)


def _extracted(read: Source) -> FileFacts | SyntaxProblem:
    from fsrace_lint.syntax.extract import extract  # noqa: PLC0415  # not needed where all is remembered

    return extract(read)


def _is_problem(facts: FileFacts | SyntaxProblem) -> bool:
    from fsrace_lint.syntax.extract import SyntaxProblem  # noqa: PLC0415  # not needed where all is remembered

    return isinstance(facts, SyntaxProblem)


class Sources(Mapping[str, Source]):
    """The sources of files by `Place.path`, each read where it is asked for."""

    def __init__(self, files: Iterable[ProjectFile]) -> None:
        """Take the files."""
        self.files = {file.path: file for file in files}

    def __getitem__(self, path: str) -> Source:
        """Give the source of a file.

        Raises:
            ChangedError: The file is not what it was.
        """
        return self.files[path].source

    def __contains__(self, path: object) -> bool:
        """Tell whether a file of that name is there, without reading it."""
        return path in self.files

    def __iter__(self) -> Iterator[str]:
        """Give the paths."""
        return iter(self.files)

    def load_sources(self, paths: Iterable[str]) -> None:
        """Read those of some paths now.

        Raises:
            ChangedError: A file is not what it was.
        """
        for path in paths:
            if path in self.files:
                self.files[path].load_source()

    def __len__(self) -> int:
        """Count the files."""
        return len(self.files)


class Joined(Mapping[str, Source]):
    """Several mappings as one, without a look at their values; the last one that has a key counts."""

    def __init__(self, parts: Sequence[Mapping[str, Source]]) -> None:
        """Take the parts."""
        self._part_of = {path: part for part in parts for path in part}

    def __getitem__(self, path: str) -> Source:
        """Give the source of a file."""
        return self._part_of[path][path]

    def __contains__(self, path: object) -> bool:
        """Tell whether a file of that name is there, without reading it."""
        return path in self._part_of

    def __iter__(self) -> Iterator[str]:
        """Give the paths."""
        return iter(self._part_of)

    def __len__(self) -> int:
        """Count the files."""
        return len(self._part_of)


class Reader:
    """Reads the files of a project, and leaves unread what is as it was."""

    def __init__(
        self,
        settings: Settings,
        packed: PackedFacts | None = None,
        known: Mapping[str, ProjectFile] | None = None,
        since: int = 0,
    ) -> None:
        """Prepare for a project.

        Args:
            settings: Its settings.
            packed: What is remembered of it.
            known: The files that an earlier run in the same folder has read, by relative path.
            since: When that run looked at the folders, in nanoseconds.
        """
        self._root, self._packed = settings.root, packed
        self._known, self._since = known or {}, since
        try:
            self._here = str(Path.cwd())
        except OSError:
            self._here = ""

    def read(self, found: Found) -> ProjectFile | Unreadable:
        """Read a file, if it must be.

        Args:
            found: The file.

        Returns:
            The file, or why it cannot be read.
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
