"""One project as the editor sees it: the files on the disk, replaced by open buffers."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import msgspec

from fsrace_lint import catalog, report, rules
from fsrace_lint.config import settings
from fsrace_lint.config.settings import Settings
from fsrace_lint.config.validation import SettingsError
from fsrace_lint.engine.parallel.progress import Observer
from fsrace_lint.files import source
from fsrace_lint.files.source import Source, Unreadable
from fsrace_lint.findings import baseline, suppressions
from fsrace_lint.findings.finding import Finding
from fsrace_lint.pipeline import discover, project_link, repair
from fsrace_lint.pipeline.reuse import Reuse
from fsrace_lint.pipeline.run import Checked, Run
from fsrace_lint.syntax.extract import SyntaxProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from fsrace_lint.fixes import Patch

_NOTHING: Final = ("*",)
_Stamp: TypeAlias = tuple[int, int, int]


class Where(NamedTuple):
    """The project of a document: its root, and whether the document is the only file."""

    root: Path
    alone: bool = False


class Analysis:
    """A linked project that is kept up to date; only one thread may use it."""

    def __init__(self, where: Where) -> None:
        """Initialize without reading the project."""
        self.baselines: list[Path] = []
        """The baseline files in the settings, even if they are unusable."""
        self._where = where
        self._chosen: Settings | None = None
        self._stamp: tuple[_Stamp | None, ...] = ()
        self._run: Run | None = None
        self._buffers: dict[Path, str] = {}
        self._broken: dict[str, tuple[Source | None, Unreadable]] = {}

    def reload(self) -> None:
        """Read the settings and the baseline again; if the settings have changed, discard the project.

        Raises:
            SettingsError: The settings are invalid; the project is unusable until they are valid.
            catalog.CatalogError: The library models in the settings are invalid.
        """
        old, self._chosen = self._chosen, None
        if self._where.alone:
            chosen = Settings(root=self._where.root)
        else:
            chosen = settings.load(self._where.root, rules.names())
            catalog.validate(chosen.catalog, chosen.catalog_origin)
        if old != chosen:
            self._run = None
        self._look_at_baselines(chosen if self._run is None else self._run.settings)
        if self._run is not None:
            self._run.baselines = baseline.of(self._run.settings)
        self._chosen = chosen

    def _look_at_baselines(self, chosen: Settings) -> None:
        self.baselines = [Path(one.baseline) for one in chosen.every if one.baseline]
        self._stamp = tuple(map(_stamp, self.baselines))

    def update(
        self, buffers: Mapping[Path, str], disk: Iterable[Path] | None, pulse: Callable[[], None]
    ) -> None:
        """Apply changes of buffers and files.

        Args:
            buffers: The text of every open document of the project.
            disk: The files that may have changed on the disk; None for all.
            pulse: Called for each file while the whole project is read; an exception from it ends the work.

        Raises:
            SettingsError: The settings are invalid.
            catalog.CatalogError: The library models in the settings are invalid.
        """
        if self._chosen is None or disk is None or self._stamp != tuple(map(_stamp, self.baselines)):
            self.reload()
        run, fresh = self._run, self._run is None
        before = None if fresh or disk is not None else run
        if before is not None:
            self._run = None  # if the settings below the root are invalid, it cannot be used
            run = self._rescanned(before)
            fresh = run.settings != before.settings
        if run is None or fresh:
            run = Run(self._reading, (), _Canceling(pulse))
            run.reuse = Reuse()
            self._buffers = {}
        if fresh or before is not None:
            self._broken = {}
            self._look_at_baselines(run.settings)
        closed = self._buffers.keys() - buffers.keys()
        for file in {*closed, *(() if fresh or disk is None else disk)} - buffers.keys():
            run = self._from_disk(run, file)
        for file, text in buffers.items():
            if fresh or disk is None or self._buffers.get(file) != text:
                run = self._with_buffer(run, file, text)
        self._run, self._buffers = run, dict(buffers)

    @property
    def _settings(self) -> Settings:
        if self._chosen is None:
            raise SettingsError("the settings are not loaded")
        return self._chosen

    @property
    def _reading(self) -> Settings:
        """The settings to read the project with; they exclude all files if the document is alone."""
        if self._where.alone:
            return msgspec.structs.replace(self._settings, exclude=_NOTHING)
        return self._settings

    def _relative(self, run: Run, file: Path) -> str:
        relative = source.names_of(file, self._settings.root)[2]
        return run.links.get(relative, relative)

    def _with_buffer(self, run: Run, file: Path, text: str) -> Run:
        """Replace a file with a buffer; until it parses, other files see the last valid version."""
        if self._is_left_out(file):
            return run
        relative, root = self._relative(run, file), self._settings.root
        self._broken.pop(relative, None)
        read = source.of_buffer(text, root / relative, root)
        if isinstance(read, Unreadable):
            self._broken[relative] = None, read
            return run
        changed = run.succeeded_by(read)
        facts = changed.files[relative].facts
        if isinstance(facts, SyntaxProblem):
            problem = Unreadable(read.path, read.file, relative, facts.reason, facts.line, facts.column)
            self._broken[relative] = read, problem
            return run
        return changed

    def _from_disk(self, run: Run, file: Path) -> Run:
        relative = self._relative(run, file)
        self._broken.pop(relative, None)
        wanted = not self._where.alone and file.suffix in discover.SUFFIXES and not self._is_left_out(file)
        read = source.read(self._settings.root / relative, self._settings.root) if wanted else None
        if not isinstance(read, Source):
            return run.succeeded_by(without=(relative,))
        return _replaced(run, read)

    def _rescanned(self, run: Run) -> Run:
        """Scan all files on the disk again; unchanged files are not read again."""
        return Run(self._reading, (), before=run)

    def _is_left_out(self, file: Path) -> bool:
        return discover.leaves_out(file, self._settings)

    def judge(self, file: Path, pulse: Callable[[], None]) -> list[Finding]:
        """Return the findings of one document.

        Args:
            file: The document, which is one of the buffers.
            pulse: Called repeatedly; an exception from it ends the work.

        Returns:
            The findings as `check` reports them; none for an excluded file.
        """
        run = self._run
        if run is None or self._is_left_out(file):
            return []
        run.observer = _Canceling(pulse)
        relative = self._relative(run, file)
        if relative in self._broken:
            return list(self._unparsed(run.settings, relative))
        if relative not in run.files:
            return []
        judged = run.check_file(relative, [])
        return sorted((*judged.kept, *judged.unused), key=Finding.sort_key)

    def _unparsed(self, chosen: Settings, relative: str) -> Iterator[Finding]:
        read, problem = self._broken[relative]
        found = project_link.unreadable([problem], chosen)
        if read is None:
            yield from found
        else:
            active = functools.partial(chosen.selects, path=relative)
            yield from suppressions.apply(read, found, active, rules.codes()).kept

    def sources(self) -> dict[str, Source]:
        """Return the sources of the project by the paths in findings."""
        files = {} if self._run is None else self._run.files
        return {file.source.path: file.source for file in files.values()}

    def holds(self, file: Path, text: str) -> bool:
        """Return whether the settings are loaded, and this is the analyzed text of a document."""
        return self._chosen is not None and self._buffers.get(file) == text

    def repair(
        self, file: Path, findings: Sequence[Finding], pulse: Callable[[], None], *, unsafe: bool
    ) -> Patch | None:
        """Apply the fixes of findings in one document.

        Args:
            file: The document.
            findings: Its findings to fix.
            pulse: Called repeatedly; an exception from it ends the work.
            unsafe: Whether to apply fixes that need review.

        Returns:
            The patch; None if there is nothing to fix.
        """
        run = self._run
        if run is None:
            return None
        run.observer = _Canceling(pulse)
        checked = Checked(report.Outcome(tuple(findings)), self.sources())
        relative = self._relative(run, file)
        patches = repair.repair(run.narrowed(relative), checked, unsafe=unsafe)
        return patches[0] if patches else None


def _stamp(file: Path) -> _Stamp | None:
    """Return a value that changes with the state of a baseline, without reading it; None if it is missing."""
    try:
        status = file.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class _Canceling(Observer):
    """Ends the work when `pulse` raises."""

    def __init__(self, pulse: Callable[[], None]) -> None:
        self._pulse = pulse

    def step(self) -> None:
        self._pulse()

    def checkpoint(self) -> None:
        self._pulse()


def _replaced(run: Run, read: Source) -> Run:
    old = run.files.get(read.relative)
    return run if old is not None and old.source.digest == read.digest else run.succeeded_by(read)
