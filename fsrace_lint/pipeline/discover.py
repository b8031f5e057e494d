"""Find the files to check: walk directories, and apply exclusion patterns and `.gitignore` files."""

from __future__ import annotations

import functools
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from fsrace_lint.config.roots import ROOT_MARKERS, SETTINGS_FILES, is_other
from fsrace_lint.config.tables import FILE
from fsrace_lint.files.bounded_read import read
from fsrace_lint.files.gitignore import Ignore, ignored, text_of
from fsrace_lint.files.globs import glob
from fsrace_lint.files.source import Unreadable, absolute_path, names_of, path_below, relative_path
from fsrace_lint.files.stat_signature import Status
from fsrace_lint.launches.kinds import is_launch_file
from fsrace_lint.pipeline import project_settings
from fsrace_lint.pipeline.exclusions import GITIGNORE, TEST, TEST_PATTERNS, Exclusions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fsrace_lint.config.settings import Settings

LeftOut: TypeAlias = "Callable[[str, str], None]"
"""Called with each path that is left out, and the reason."""

SUFFIXES: Final = (".py", ".pyw")

_COLLECTED: Final = (b"def test", b"class Test", b"TestCase", b"pytest", b"unittest")
"""Strings in files from which a test runner collects tests."""
_VENV: Final = "virtual environment"


class Found(NamedTuple):
    """A file to check.

    Attributes:
        path: The absolute path.
        relative: The path relative to the project root.
        is_link: Whether the file is a symbolic link.
        status: The result of `os.stat()`, which follows links. None if the file does not exist.
        is_launch: Whether it is not a Python file, but one that can contain launch commands.
        table: The settings in this file, if it is a settings file below the root.
    """

    path: str
    relative: str
    is_link: bool
    status: os.stat_result | None
    is_launch: bool = False
    table: Settings | None = None


class _Listing(NamedTuple):
    """What a walk remembers of a directory.

    Attributes:
        status: The status of the directory when it was listed.
        ignores: The `.gitignore` files of the parent directories that apply to it.
        own: The `.gitignore` file of the directory itself.
        settings: The settings that apply to its files.
        folders: The path and the relative prefix of each subdirectory to walk.
        files: For each file: its path, its relative path, whether it is a link, and whether it is named like
            a test.
        launches: For each file that can contain launch commands: its path and its relative path.
        has_table: Whether it contains a file that can be a settings file.
        is_other: Whether it belongs to another project. Then nothing in it is listed.
    """

    status: Status
    ignores: tuple[Ignore, ...]
    own: Ignore | None
    settings: Settings
    folders: list[tuple[str, str]]
    files: list[tuple[str, str, bool, bool]]
    launches: list[tuple[str, str]]
    has_table: bool = False
    is_other: bool = False


class FolderListings:
    """The directory listings of a walk. The next walk lists only directories that changed."""

    def __init__(self, before: FolderListings | None = None) -> None:
        """Start a walk.

        Args:
            before: The listings of the previous walk, with the same settings.
        """
        self.since = time.time_ns()
        self.folders: dict[str, _Listing] = {}
        self._known = {} if before is None else before.folders
        self._known_since = 0 if before is None else before.since

    def known(self, folder: str, status: Status, ignores: tuple[Ignore, ...]) -> _Listing | None:
        """Return the known listing of a directory, or None if it may be out of date."""
        listing = self._known.get(folder)
        if listing is None or listing.status != status or not status.settled(self._known_since):
            return None
        own = listing.own is None or listing.own.text == text_of(folder)
        return listing if own and listing.ignores == ignores else None


def _above(file: str, root: str) -> str:
    """Return the directory where a walk to a file starts: the root, or the common parent of both."""
    try:
        return os.path.commonpath((file, root))
    except ValueError:
        return root


class _Walk:
    """The state that one call of `look` shares between the directories it walks."""

    def __init__(
        self,
        settings: Settings,
        *,
        all_tests: bool = False,
        told: LeftOut | None = None,
        listings: FolderListings | None = None,
    ) -> None:
        self.root = absolute_path(settings.root)
        self.told = told
        self.tables: dict[str, Settings] = {}
        """The settings in directories below the root, by directory."""
        self.others: list[Path] = []
        """The directories that belong to other projects."""
        self._settings, self._all_tests = settings, all_tests
        self._listings = FolderListings() if listings is None else listings
        self._ignore = functools.cache(Ignore)
        self._exclusions = functools.cache(self._exclusions_of)
        self._nested = functools.cache(project_settings.read_nested)

    def _exclusions_of(self, settings: Settings) -> Exclusions:
        return Exclusions(settings, include_tests=settings.include_tests or self._all_tests)

    def _applying(self, folder: str, above: Settings) -> Settings:
        """Return the settings that apply in a directory, from its own table or from a directory above."""
        below = path_below(folder, self.root)
        own = None if below is None else self._nested(below, self._settings)
        if below is None or own is None:
            return above
        self.tables[below] = own
        return own

    def above(self, top: str) -> tuple[tuple[Ignore, ...], Settings]:
        """Read what applies to a directory or file from the root to its parent.

        Returns:
            The `.gitignore` files, and the settings. If the files ignore the path itself, they do not apply,
            because the user named the path.
        """
        settings, found, folder, base, is_ignored = self._settings, list[Ignore](), self.root, "", False
        for name in Path(path_below(top, self.root) or "").parts:
            settings = self._applying(folder, settings)
            if settings.respect_gitignore:
                found.append(self._ignore(folder, base))
            else:
                found.clear()
            is_ignored |= ignored(found, base + name, folder=True)
            folder, base = os.path.join(folder, name), f"{base}{name}/"
        return (() if is_ignored else tuple(found)), settings

    def leaves_out(self, file: str) -> str | None:
        """Return why a walk from the root skips a file or a directory, or None if it does not."""
        folder, base, ignores = _above(file, self.root), "", list[Ignore]()
        names, settings = Path(path_below(file, folder) or "").parts, self._settings
        for index, name in enumerate(names, 1):
            settings = self._applying(folder, settings)
            if settings.respect_gitignore:
                ignores.append(self._ignore(folder, base))
            else:
                ignores.clear()
            folder, path, rules = os.path.join(folder, name), base + name, self._exclusions(settings)
            is_folder = index < len(names) or os.path.isdir(folder)
            if rules.excludes(name, path, folder=is_folder) or ignored(ignores, path, folder=is_folder):
                return self._reason(rules, name, path, folder=is_folder)
            if not is_folder and rules.is_named_as_test(name) and _is_collected(folder):
                return TEST
            if is_folder and settings.exclude is None and Path(folder, "pyvenv.cfg").exists():
                return _VENV
            base = f"{path}/"
        return None

    def walk(self, top: str) -> Iterator[Found | Unreadable]:
        """Yield the files below a directory. The patterns do not apply to the directory itself."""
        below = path_below(top, self.root)
        is_below = below is not None or top == self.root
        prefix = f"{below}/" if below else ""
        pending = [(top, prefix, *self.above(top))]
        while pending:
            folder, prefix, ignores, settings = pending.pop()
            try:
                listing = self._listed(folder, prefix, ignores, settings, is_top=folder == top)
            except OSError as error:
                reason = f"cannot list the directory: {error.strerror or error}"
                yield Unreadable(*names_of(Path(folder), Path(self.root)), reason)
                continue
            self.others += [Path(folder)] * listing.is_other
            settings = listing.settings
            ignores = ignores if listing.own is None else (*ignores, listing.own)
            ignores = ignores if settings.respect_gitignore else ()
            pending += [(path, below, ignores, settings) for path, below in listing.folders]
            for path, below, is_link, is_named_as_test in listing.files:
                if is_named_as_test and _is_collected(path):
                    self._tell(path, TEST)
                    continue
                status = _status(path)
                if status is not None and stat.S_ISREG(status.st_mode):
                    relative = below if is_below else relative_path(path, self.root)
                    yield Found(path, relative, is_link, status)
            for path, below in listing.launches if is_below else ():
                yield Found(path, below, is_link=False, status=None, is_launch=True)

    def _listed(
        self, folder: str, prefix: str, ignores: tuple[Ignore, ...], settings: Settings, *, is_top: bool
    ) -> _Listing:
        """Return the listing of a directory, from the previous walk if it still holds.

        Raises:
            OSError: The directory cannot be listed.
        """
        status = Status.of(os.stat(folder))
        listing = self._listings.known(folder, status, ignores)
        if listing is not None:
            applying = self._applying(folder, settings) if listing.has_table else settings
            listing = listing if listing.settings == applying else None
        if listing is None:
            listing = _Listing(status, ignores, None, settings, [], [], [])
            listing = self._fill(listing, folder, prefix, is_top=is_top)
        self._listings.folders[folder] = listing
        return listing

    def _fill(self, listing: _Listing, folder: str, prefix: str, *, is_top: bool) -> _Listing:
        with os.scandir(folder) as entries:
            found = {entry.name: entry for entry in entries}
        if listing.settings.exclude is None and not is_top and "pyvenv.cfg" in found:
            self._tell(folder, _VENV)
            return listing
        is_marked = not is_top and not found.keys().isdisjoint(ROOT_MARKERS)
        if is_marked and is_other(Path(folder), found, Path(self.root)):
            return listing._replace(is_other=True)
        if not found.keys().isdisjoint(SETTINGS_FILES):
            listing = listing._replace(settings=self._applying(folder, listing.settings), has_table=True)
        settings, rules = listing.settings, self._exclusions(listing.settings)
        ignores = listing.ignores
        if settings.respect_gitignore and ".gitignore" in found:
            own = Ignore(folder, prefix)
            listing, ignores = listing._replace(own=own), (*ignores, own)
        for name, entry in found.items():
            path, is_folder = prefix + name, entry.is_dir(follow_symlinks=False)
            is_launch = not is_folder and not name.endswith(SUFFIXES)
            if is_launch and not (is_launch_file(path) and entry.is_file(follow_symlinks=False)):
                continue
            if rules.excludes(name, path, folder=is_folder) or ignored(ignores, path, folder=is_folder):
                self._tell(entry.path, self._reason(rules, name, path, folder=is_folder))
            elif is_launch:
                listing.launches.append((entry.path, path))
            elif is_folder:
                listing.folders.append((entry.path, f"{path}/"))
            else:
                listing.files.append((entry.path, path, entry.is_symlink(), rules.is_named_as_test(name)))
        return listing

    def _tell(self, path: str, reason: str) -> None:
        if self.told is not None:
            self.told(path, reason)

    def _reason(self, rules: Exclusions, name: str, path: str, *, folder: bool) -> str:
        """Return why an entry is left out. Only `told` needs the exact reason."""
        return GITIGNORE if self.told is None else rules.reason(name, path, folder=folder)


def _is_collected(file: str) -> bool:
    """Return whether a test runner may collect tests from a file. True if the file cannot be read."""
    try:
        data = read(Path(file))
    except (OSError, ValueError):
        return True
    return any(part in data for part in _COLLECTED)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


def is_test_path(relative: str) -> bool:
    """Return whether a file belongs to the tests or the documentation, or configures tests.

    Args:
        relative: The path relative to the project root, with forward slashes.

    Returns:
        True if the name of the file or of one of its directories matches `TEST_PATTERNS`.
    """
    return any(glob(text).covers(relative) for text in TEST_PATTERNS)


def leaves_out(file: Path, settings: Settings) -> bool:
    """Return whether a check of the whole project skips a file.

    Args:
        file: The file. It need not exist, and may have any suffix.
        settings: The settings of its project.

    Returns:
        True if a pattern or a `.gitignore` file excludes the file or one of its directories.
    """
    return _Walk(settings).leaves_out(absolute_path(file)) is not None


def applying(path: Path, settings: Settings) -> Settings:
    """Return the settings that apply to a file or directory.

    Args:
        path: The path.
        settings: The settings of its project.

    Raises:
        SettingsError: The settings in a directory are invalid.
    """
    top = absolute_path(path)
    return _Walk(settings).above(os.path.join(top, FILE) if os.path.isdir(top) else top)[1]


def find(
    paths: Sequence[Path], settings: Settings, *, force_exclude: bool = False, told: LeftOut | None = None
) -> Iterator[Path | Unreadable]:
    """Find the files to check.

    A path that the user named is always checked, whatever the patterns. Naming a test directory includes the
    tests in it.

    Args:
        paths: Files and directories as named on the command line.
        settings: The settings, whose patterns apply below the named directories.
        force_exclude: Whether the patterns also apply to `paths`.
        told: Called with each path that is left out, and the reason.

    Yields:
        Absolute paths, sorted and without duplicates, and the directories that cannot be listed.
    """
    found = look(paths, settings, force_exclude=force_exclude, told=told)
    files = (item for item in found if isinstance(item, Unreadable) or not item.is_launch)
    yield from (item if isinstance(item, Unreadable) else Path(item.path) for item in files)


def look(
    paths: Sequence[Path],
    settings: Settings,
    *,
    force_exclude: bool = False,
    told: LeftOut | None = None,
    listings: FolderListings | None = None,
    others: list[Path] | None = None,
) -> list[Found | Unreadable]:
    """Find the files to check like `find`, and return their status too.

    Args:
        paths: As for `find`.
        settings: As for `find`.
        force_exclude: As for `find`.
        told: As for `find`.
        listings: Known directory listings, updated by this walk. For one directory that is walked repeatedly.
        others: Receives the directories that belong to other projects, in which nothing is found.

    Returns:
        The files, those that can contain launch commands or settings, and the directories that cannot be
        listed, sorted by path.

    Raises:
        SettingsError: The settings in a directory are invalid.
    """
    found: dict[str, Found | Unreadable] = {}
    whole = _Walk(settings, told=told, listings=listings)
    tests = _Walk(settings, all_tests=True, told=told)
    for path in paths:
        top = absolute_path(path)
        reason = whole.leaves_out(top) if force_exclude else None
        if reason is not None:
            if told is not None:
                told(top, reason)
            continue
        if not os.path.isdir(top):
            whole.above(top)
            found[top] = known(path, settings.root)
            continue
        is_test = is_test_path(f"{relative_path(top, whole.root)}/-") and not force_exclude
        for item in (tests if is_test else whole).walk(top):
            found[str(item.file) if isinstance(item, Unreadable) else item.path] = item
    for table in (whole.tables | tests.tables).values():
        file = absolute_path(table.file)
        below = f"{table.folder}/{os.path.basename(file)}"
        found[file] = Found(file, below, is_link=False, status=None, is_launch=True, table=table)
    if others is not None:
        others += dict.fromkeys(whole.others + tests.others)
    return [found[name] for name in sorted(found)]


def known(file: Path, root: Path) -> Found:
    """Return a `Found` for one file of a project, which need not exist."""
    path = absolute_path(file)
    return Found(path, relative_path(path, absolute_path(root)), os.path.islink(path), _status(path))


def links_among(files: Sequence[Found], root: Path) -> dict[str, str]:
    """Return which files are symbolic links to other files in the list.

    Args:
        files: Files of the project.
        root: The project root.

    Returns:
        The relative path of each link, mapped to the relative path of its target.
    """
    led = {file.relative: os.path.realpath(file.path) for file in files if file.is_link}
    if not led:
        return {}
    whole = os.path.realpath(root)
    here = {f"{whole}{os.sep}{file.relative}": file.relative for file in files if not file.is_link}
    return {name: here[target] for name, target in led.items() if target in here}
