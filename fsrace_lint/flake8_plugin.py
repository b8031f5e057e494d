"""The flake8 plugin: converts its options to settings, and findings to flake8 results."""

from __future__ import annotations

import atexit
import contextlib
import functools
import multiprocessing
import os
from multiprocessing import util
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from flake8.exceptions import ExecutionError  # type: ignore[import-untyped,unused-ignore]
from flake8.violation import Violation  # type: ignore[import-untyped,unused-ignore]

from fsrace_lint import __version__
from fsrace_lint.config.roots import find_root, is_project
from fsrace_lint.config.validation import SettingsError
from fsrace_lint.engine.parallel import machine
from fsrace_lint.engine.parallel.progress import SILENT
from fsrace_lint.files import source
from fsrace_lint.findings.baseline import RULE_FAILURE
from fsrace_lint.pipeline import check, discover, internal_error, project_settings
from fsrace_lint.pipeline.files import ChangedError
from fsrace_lint.pipeline.project_cache import CacheUse, ProjectCache
from fsrace_lint.pipeline.run import Run
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    import argparse
    import ast
    from collections.abc import Callable, Iterator, Sequence

    from fsrace_lint.cli.daemon.findings import DaemonFinding
    from fsrace_lint.config.settings import Settings
    from fsrace_lint.findings.finding import Finding

Flake8Row: TypeAlias = "tuple[int, int, str, type[Plugin]]"

STDIN: Final = "-"
_READ: Final[list[Run]] = []
"""The runs whose findings are saved at exit."""


class Plugin:
    """The checker that flake8 creates for each file."""

    name: ClassVar[str] = "fsrace-lint"
    version: ClassVar[str] = __version__
    profile: ClassVar[str | None] = None
    noqa: ClassVar[bool] = True
    stdin: ClassVar[str | None] = None
    named: ClassVar[tuple[str, ...]] = ()
    daemon_findings: ClassVar[dict[str, tuple[str, list[tuple[DaemonFinding, bool]]]]] = {}
    """The text of each file, and the findings of a daemon in it."""

    def __init__(self, tree: ast.AST, filename: str, lines: Sequence[str]) -> None:  # noqa: ARG002  # flake8 calls this once for each file because of `tree`
        """Initialize with the reported name of a file, and its lines without a BOM."""
        self.filename = filename
        self.lines = lines

    @classmethod
    def add_options(cls, manager: Any) -> None:
        """Add the options to flake8."""
        manager.add_option(
            "--fsrace-profile",
            choices=("default", "strict"),
            default=None,
            parse_from_config=True,
            help="Report likely problems only (default), or every possible problem (strict). "
            "Overrides `profile` in [tool.fsrace-lint].",
        )
        manager.add_option(
            "--fsrace-daemon",
            action="store_true",
            default=False,
            parse_from_config=True,
            help="Use the fsrace-lint daemon when only a few files are passed.",
        )

    @classmethod
    def parse_options(cls, options: argparse.Namespace) -> None:
        """Read the options; flake8 calls this before it starts processes, or in each of them."""
        cls.profile = options.fsrace_profile
        cls.noqa = not options.disable_noqa
        cls.stdin = (options.stdin_display_name or "stdin") if STDIN in options.filenames else None
        cls.named = tuple(source.absolute_path(Path(name)) for name in options.filenames or ["."])
        cls.daemon_findings = {}
        if multiprocessing.parent_process() is None:
            if options.fsrace_daemon and cls.noqa and cls.stdin is None:
                cls._ask_a_daemon()
            if not cls.daemon_findings:
                cls._prepare()

    @classmethod
    def _ask_a_daemon(cls) -> None:
        """Let a daemon check the files if all arguments are files, or else load their projects at exit."""
        from fsrace_lint.cli.daemon import findings  # noqa: PLC0415  # few runs use it

        try:
            texts = {name: Path(name).read_text("utf-8-sig") for name in cls.named}
        except (OSError, ValueError):  # a directory, or a file that cannot be read as UTF-8
            return
        found = findings.found_in(cls.named, cls.profile)
        if found is None:
            atexit.register(findings.keep, cls.named, cls.profile)
            return
        cls.daemon_findings = {name: (text, found[name]) for name, text in texts.items()}

    @classmethod
    def _prepare(cls) -> None:
        """Read the settings, and link the projects if forked processes can share them.

        Raises:
            ExecutionError: This failed, and flake8 prints the reason. It must be raised here, because an
                exception in one of flake8's processes can leave the others, and flake8, waiting for a lock.
        """
        try:
            with machine.gc_disabled(), internal_error.guard(SettingsError):
                for root in dict.fromkeys(map(cls._root, cls.named)):
                    chosen = _settings(root, cls.profile)
                    if is_project(root) and cls.stdin is None and _forks():
                        _run(chosen)
        except (SettingsError, internal_error.InternalError) as error:
            raise ExecutionError(visible(f"fsrace-lint: {error}")) from error

    def run(self) -> Iterator[Flake8Row]:
        """Yield the findings; a failure is reported as a finding."""
        text, daemon_findings = self.daemon_findings.get(
            source.absolute_path(Path(self.filename)), (None, [])
        )
        if text == "".join(self.lines):
            for each, is_suppressed in daemon_findings:
                if not is_suppressed or self._flake8_drops(each.code, each.line):
                    yield self._row(each.line, each.column, each.code, each.message)
            return
        try:
            with machine.gc_disabled(), internal_error.guard(SettingsError):
                try:
                    found = list(self._found(_run))
                except ChangedError:
                    found = list(self._found(_run_anew))
        except (SettingsError, internal_error.InternalError) as error:
            yield 1, 0, visible(f"{RULE_FAILURE} {error}"), type(self)
            return
        for finding in found:
            span = finding.place.span
            yield self._row(span.line, span.column, finding.code, finding.message)

    def _row(self, line: int, column: int, code: str, message: str) -> Flake8Row:
        return line, column - 1, visible(f"{code} {message}"), type(self)

    def _found(self, run_of: Callable[[Settings], Run]) -> Iterator[Finding]:
        file = Path(self.filename)
        chosen = _settings(self._root(self.filename), self.profile)
        run = run_of(chosen)
        _, _, relative = source.names_of(file, chosen.root)
        if relative in run.links:
            return
        known = run.files.get(relative)
        if known is None and discover.leaves_out(file, chosen):
            return
        if known is None and self.filename != self.stdin:
            read = source.read(file, chosen.root)
            if isinstance(read, source.Unreadable):
                from fsrace_lint.pipeline import project_link  # noqa: PLC0415  # loads the names of all rules

                yield from project_link.unreadable([read], chosen)
                return
        text = "".join(self.lines)
        if known is None or known.source.text.replace("\r\n", "\n").replace("\r", "\n") != text:
            run = run.with_sources(source.of_text(text, file, chosen.root))
        result = run.check_file(relative, [])
        _remember_at_the_end(os.getpid())
        yield from result.kept
        if self.noqa:
            yield from result.unused
        for finding in result.suppressed:
            if not self.noqa or self._flake8_drops(finding.code, finding.place.span.line):
                yield finding

    @classmethod
    def _root(cls, file: str) -> Path:
        """Return the project of a file."""
        return find_root(Path(file), () if file == cls.stdin else map(Path, cls.named))

    def _flake8_drops(self, code: str, line: int) -> bool:
        """Return whether flake8 also treats the comment as a suppression.

        Such findings are left to flake8, so that its statistics, and plugins that report unused `noqa`
        comments, see that the comment is needed.
        """
        violation = Violation(code, self.filename, line, 1, "", "".join(self.lines[line - 1 : line]))
        return bool(violation.is_inline_ignored(disable_noqa=False))


def _forks() -> bool:
    """Return whether flake8 will fork its processes, without setting the start method."""
    method = multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
    return method == "fork"


@functools.cache
def _settings(root: Path, profile: str | None) -> Settings:
    return project_settings.read_settings(root, profile=profile)


@functools.cache
def _run(chosen: Settings) -> Run:
    """Read a project with its cache, and link it unless the cache has the findings of all files."""
    memory = ProjectCache.of(chosen, CacheUse.RESULTS)
    run = Run(chosen, (), memory=memory)
    _READ.append(run)
    if run.verdicts.know(run.files):
        return run
    try:
        run.link()
    except ChangedError:
        return _run_anew(chosen)
    if memory is not None:
        check.keep(memory, run, SILENT)
    return run


@functools.cache
def _remember_at_the_end(_process: int) -> None:
    """Save the findings of this process at its exit."""
    util.Finalize(None, _remember, exitpriority=1)


def _remember() -> None:
    for run in _READ:
        with contextlib.suppress(OSError):
            run.verdicts.save()


@functools.cache
def _run_anew(chosen: Settings) -> Run:
    """Read a project without its cache, because its files are changing."""
    run = Run(chosen, ())
    run.link()
    return run
