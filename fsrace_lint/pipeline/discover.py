"""Find the files to check: walk directories, and apply exclusion patterns and `.gitignore` files."""

from __future__ import annotations

import functools
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from fsrace_lint.files.bounded_read import read
from fsrace_lint.files.gitignore import Ignore, ignored, text_of
from fsrace_lint.files.globs import glob, matcher
from fsrace_lint.files.source import Unreadable, absolute_path, names_of, path_below, relative_path
from fsrace_lint.files.stat_signature import Status
from fsrace_lint.launches import is_launch_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fsrace_lint.config.settings import Settings

LeftOut: TypeAlias = "Callable[[str, str], None]"
"""Called with each path that is left out, and the reason."""

DEFAULT_EXCLUDES: Final = tuple(
    ".git/ .hg/ .svn/ .tox/ .nox/ .venv/ venv/ __pycache__/ .eggs/ *.egg-info/ build/ dist/ "  # noqa: SIM905
    "_build/ node_modules/ site-packages/ .mypy_cache/ .pytest_cache/ .ruff_cache/ .fsrace_cache/".split()
)
TEST_PATTERNS: Final = ("test/", "tests/", "doc/", "docs/", "conftest.py")
TEST_NAMES: Final = ("test_*.py", "*_test.py")
"""Names of tests, and of programs that evaluate a model, such as `tools/test_net.py`."""
SUFFIXES: Final = (".py", ".pyw")

_COLLECTED: Final = (b"def test", b"class Test", b"TestCase", b"pytest", b"unittest")
"""Strings in files from which a test runner collects tests."""
_TEST: Final = "test or documentation (see `--include-tests`)"
_VENV: Final = "virtual environment"
_GITIGNORE: Final = "excluded by `.gitignore`"


class Found(NamedTuple):
    """A file to check.

    Attributes:
        path: The absolute path.
        relative: The path relative to the project root.
        is_link: Whether the file is a symbolic link.
        status: The result of `os.stat()`, which follows links. None if the file does not exist.
        is_launch: Whether it is not a Python file, but one that can contain launch commands.
    """

    path: str
    relative: str
    is_link: bool
    status: os.stat_result | None
    is_launch: bool = False


class _Listing(NamedTuple):
    """What a walk remembers of a directory.

    Attributes:
        status: The status of the directory when it was listed.
        ignores: The `.gitignore` files of the parent directories that apply to it.
        own: The `.gitignore` file of the directory itself.
        folders: The path and the relative prefix of each subdirectory to walk.
        files: For each file: its path, its relative path, whether it is a link, and whether it is named like
            a test.
        launches: For each file that can contain launch commands: its path and its relative path.
    """

    status: Status
    ignores: tuple[Ignore, ...]
    own: Ignore | None
    folders: list[tuple[str, str]]
    files: list[tuple[str, str, bool, bool]]
    launches: list[tuple[str, str]]


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
        include_tests: bool,
        told: LeftOut | None = None,
        listings: FolderListings | None = None,
    ) -> None:
        self.root = absolute_path(settings.root)
        self.settings = settings
        self.told = told
        self._listings = FolderListings() if listings is None else listings
        chosen = DEFAULT_EXCLUDES if settings.exclude is None else settings.exclude
        tests = () if include_tests else TEST_PATTERNS
        self._is_named_as_test = matcher([] if include_tests else [glob(text) for text in TEST_NAMES])
        self._kinds = {
            f"excluded by {'the default of ' * (settings.exclude is None)}`exclude`": chosen,
            "excluded by `extend-exclude`": settings.extend_exclude,
            _TEST: tests,
        }
        globs = [glob(text) for texts in self._kinds.values() for text in texts]
        self.excludes_folder = matcher(globs)
        self.excludes_file = matcher([g for g in globs if not g.folders_only])
        self._ignore = functools.cache(Ignore)

    def ignores_above(self, top: str) -> tuple[Ignore, ...]:
        """Read the `.gitignore` files from the root to the parent of a directory.

        If they ignore the directory itself, they do not apply, because the user named the directory.
        """
        below = path_below(top, self.root)
        if not below or not self.settings.respect_gitignore:
            return ()
        found, folder, base = list[Ignore](), self.root, ""
        for name in Path(below).parts:
            found.append(Ignore(folder, base))
            if ignored(found, base + name, folder=True):
                return ()
            folder, base = os.path.join(folder, name), f"{base}{name}/"
        return tuple(found)

    def leaves_out(self, file: str) -> str | None:
        """Return why a walk from the root skips a file or a directory, or None if it does not."""
        folder, base, ignores = _above(file, self.root), "", list[Ignore]()
        names = Path(path_below(file, folder) or "").parts
        for index, name in enumerate(names, 1):
            if self.settings.respect_gitignore:
                ignores.append(self._ignore(folder, base))
            folder, path = os.path.join(folder, name), base + name
            is_folder = index < len(names) or os.path.isdir(folder)
            excludes = self.excludes_folder if is_folder else self.excludes_file
            if excludes(name, path) or ignored(ignores, path, folder=is_folder):
                return self._reason(name, path, folder=is_folder)
            if not is_folder and self._is_named_as_test(name, path) and _is_collected(folder):
                return _TEST
            if is_folder and self.settings.exclude is None and Path(folder, "pyvenv.cfg").exists():
                return _VENV
            base = f"{path}/"
        return None

    def walk(self, top: str) -> Iterator[Found | Unreadable]:
        """Yield the files below a directory. The patterns do not apply to the directory itself."""
        below = path_below(top, self.root)
        is_below = below is not None or top == self.root
        prefix = f"{below}/" if below else ""
        pending = [(top, prefix, self.ignores_above(top))]
        while pending:
            folder, prefix, ignores = pending.pop()
            try:
                listing = self._listed(folder, prefix, ignores, is_top=folder == top)
            except OSError as error:
                reason = f"cannot list the directory: {error.strerror or error}"
                yield Unreadable(*names_of(Path(folder), Path(self.root)), reason)
                continue
            ignores = ignores if listing.own is None else (*ignores, listing.own)
            pending += [(path, below, ignores) for path, below in listing.folders]
            for path, below, is_link, is_named_as_test in listing.files:
                if is_named_as_test and _is_collected(path):
                    self._tell(path, _TEST)
                    continue
                status = _status(path)
                if status is not None and stat.S_ISREG(status.st_mode):
                    relative = below if is_below else relative_path(path, self.root)
                    yield Found(path, relative, is_link, status)
            for path, below in listing.launches if is_below else ():
                yield Found(path, below, is_link=False, status=None, is_launch=True)

    def _listed(self, folder: str, prefix: str, ignores: tuple[Ignore, ...], *, is_top: bool) -> _Listing:
        """Return the listing of a directory, from the previous walk if it still holds.

        Raises:
            OSError: The directory cannot be listed.
        """
        status = Status.of(os.stat(folder))
        listing = self._listings.known(folder, status, ignores)
        if listing is None:
            listing = _Listing(status, ignores, None, [], [], [])
            listing = self._fill(listing, folder, prefix, is_top=is_top)
        self._listings.folders[folder] = listing
        return listing

    def _fill(self, listing: _Listing, folder: str, prefix: str, *, is_top: bool) -> _Listing:
        with os.scandir(folder) as entries:
            found = {entry.name: entry for entry in entries}
        if self.settings.exclude is None and not is_top and "pyvenv.cfg" in found:
            self._tell(folder, _VENV)
            return listing
        ignores = listing.ignores
        if self.settings.respect_gitignore and ".gitignore" in found:
            own = Ignore(folder, prefix)
            listing, ignores = listing._replace(own=own), (*ignores, own)
        for name, entry in found.items():
            path, is_folder = prefix + name, entry.is_dir(follow_symlinks=False)
            is_launch = not is_folder and not name.endswith(SUFFIXES)
            if is_launch and not (is_launch_file(path) and entry.is_file(follow_symlinks=False)):
                continue
            excludes = self.excludes_folder if is_folder else self.excludes_file
            if excludes(name, path) or ignored(ignores, path, folder=is_folder):
                self._tell(entry.path, self._reason(name, path, folder=is_folder))
            elif is_launch:
                listing.launches.append((entry.path, path))
            elif is_folder:
                listing.folders.append((entry.path, f"{path}/"))
            else:
                is_named_as_test = self._is_named_as_test(name, path)
                listing.files.append((entry.path, path, entry.is_symlink(), is_named_as_test))
        return listing

    def _tell(self, path: str, reason: str) -> None:
        if self.told is not None:
            self.told(path, reason)

    def _reason(self, name: str, path: str, *, folder: bool) -> str:
        """Return why an entry is left out."""
        kinds = self._matchers.items() if self.told is not None else ()
        return next((kind for kind, is_for in kinds if is_for[folder](name, path)), _GITIGNORE)

    @functools.cached_property
    def _matchers(self) -> dict[str, tuple[Callable[[str, str], bool], Callable[[str, str], bool]]]:
        """Matchers for files and for directories, by reason."""
        found = {}
        for kind, texts in self._kinds.items():
            globs = [glob(text) for text in texts]
            found[kind] = matcher([one for one in globs if not one.folders_only]), matcher(globs)
        return found


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
    return _Walk(settings, include_tests=settings.include_tests).leaves_out(absolute_path(file)) is not None


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
) -> list[Found | Unreadable]:
    """Find the files to check like `find`, and return their status too.

    Args:
        paths: As for `find`.
        settings: As for `find`.
        force_exclude: As for `find`.
        told: As for `find`.
        listings: Known directory listings, updated by this walk. For one directory that is walked repeatedly.

    Returns:
        The files, those that can contain launch commands, and the directories that cannot be listed, sorted
        by path.
    """
    found: dict[str, Found | Unreadable] = {}
    whole = _Walk(settings, include_tests=settings.include_tests, told=told, listings=listings)
    for path in paths:
        top = absolute_path(path)
        reason = whole.leaves_out(top) if force_exclude else None
        if reason is not None:
            if told is not None:
                told(top, reason)
            continue
        if not os.path.isdir(top):
            found[top] = known(path, settings.root)
            continue
        is_test = is_test_path(f"{relative_path(top, whole.root)}/-") and not force_exclude
        walk = _Walk(settings, include_tests=True, told=told) if is_test else whole
        for item in walk.walk(top):
            found[str(item.file) if isinstance(item, Unreadable) else item.path] = item
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
