"""Find the files to check: folders are walked, and patterns and `.gitignore` files count below them."""

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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fsrace_lint.config.settings import Settings

LeftOut: TypeAlias = "Callable[[str, str], None]"
"""Is told of a path that is left out, and why."""

DEFAULT_EXCLUDES: Final = tuple(
    ".git/ .hg/ .svn/ .tox/ .nox/ .venv/ venv/ __pycache__/ .eggs/ *.egg-info/ build/ dist/ "  # noqa: SIM905
    "_build/ node_modules/ site-packages/ .mypy_cache/ .pytest_cache/ .ruff_cache/ .fsrace_cache/".split()
)
TEST_PATTERNS: Final = ("test/", "tests/", "doc/", "docs/", "conftest.py")
TEST_NAMES: Final = ("test_*.py", "*_test.py")
"""Names of tests, and of programs that evaluate a model: `tools/test_net.py`."""
SUFFIXES: Final = (".py", ".pyw")

_COLLECTED: Final = (b"def test", b"class Test", b"TestCase", b"pytest", b"unittest")
"""What stands in a file that runners of tests collect something from."""
_TEST: Final = "a test or documentation"


class Found(NamedTuple):
    """A file to check.

    `path` is absolute, `relative` counts from the project root. `status` is what the system said of
    the file, or of what the link that it is leads to; None if it is not there.
    """

    path: str
    relative: str
    is_link: bool
    status: os.stat_result | None


class _Listing(NamedTuple):
    """What a walk takes of a folder: where it stands, and what it has to look at there.

    `ignores` are the `.gitignore` files that count in it, `own` is its own one if there is one. Of
    a file there is its path, the relative one, and whether it is a link or named as tests are.
    """

    status: Status
    ignores: tuple[Ignore, ...]
    own: Ignore | None
    folders: list[tuple[str, str]]
    files: list[tuple[str, str, bool, bool]]


class FolderListings:
    """The folders below a root, as a walk found them: the next one lists those that have changed."""

    def __init__(self, before: FolderListings | None = None) -> None:
        """Begin a walk.

        Args:
            before: What the walk before this one has found, with the same settings.
        """
        self.since = time.time_ns()
        self.folders: dict[str, _Listing] = {}
        self._known = {} if before is None else before.folders
        self._known_since = 0 if before is None else before.since

    def known(self, folder: str, status: Status, ignores: tuple[Ignore, ...]) -> _Listing | None:
        """Give what is known of a folder, if it still holds."""
        listing = self._known.get(folder)
        if listing is None or listing.status != status or not status.settled(self._known_since):
            return None
        own = listing.own is None or listing.own.text == text_of(folder)
        return listing if own and listing.ignores == ignores else None


def _above(file: str, root: str) -> str:
    """Give the folder from which a walk comes to a file: the root, or one above both."""
    try:
        return os.path.commonpath((file, root))
    except ValueError:
        return root


class _Walk:
    """What one call of `find` shares between the folders it walks."""

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
            "excluded by default" if settings.exclude is None else "exclude": chosen,
            "extend-exclude": settings.extend_exclude,
            _TEST: tests,
        }
        globs = [glob(text) for texts in self._kinds.values() for text in texts]
        self.excludes_folder = matcher(globs)
        self.excludes_file = matcher([g for g in globs if not g.folders_only])
        self._ignore = functools.cache(Ignore)

    def ignores_above(self, top: str) -> tuple[Ignore, ...]:
        """Read the `.gitignore` files from the root to just above a folder.

        Where they ignore the folder itself, naming it has overruled them.
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

    def leaves_out(self, file: str) -> bool:
        """Tell whether a walk from the root does not come to a file or a folder."""
        folder, base, ignores = _above(file, self.root), "", list[Ignore]()
        names = Path(path_below(file, folder) or "").parts
        for index, name in enumerate(names, 1):
            if self.settings.respect_gitignore:
                ignores.append(self._ignore(folder, base))
            folder, path = os.path.join(folder, name), base + name
            is_folder = index < len(names) or os.path.isdir(folder)
            excludes = self.excludes_folder if is_folder else self.excludes_file
            if excludes(name, path) or ignored(ignores, path, folder=is_folder):
                return True
            if not is_folder and self._is_named_as_test(name, path) and _is_collected(folder):
                return True
            if is_folder and self.settings.exclude is None and Path(folder, "pyvenv.cfg").exists():
                return True
            base = f"{path}/"
        return False

    def walk(self, top: str) -> Iterator[Found | Unreadable]:
        """Yield the files below a folder, which is not itself subject to the patterns."""
        below = path_below(top, self.root)
        is_below = below is not None or top == self.root
        prefix = f"{below}/" if below else ""
        pending = [(top, prefix, self.ignores_above(top))]
        while pending:
            folder, prefix, ignores = pending.pop()
            try:
                listing = self._listed(folder, prefix, ignores, is_top=folder == top)
            except OSError as error:
                reason = f"cannot be listed: {error.strerror or error}"
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

    def _listed(self, folder: str, prefix: str, ignores: tuple[Ignore, ...], *, is_top: bool) -> _Listing:
        """List a folder, unless that is known.

        Raises:
            OSError: It cannot be listed.
        """
        status = Status.of(os.stat(folder))
        listing = self._listings.known(folder, status, ignores)
        if listing is None:
            listing = _Listing(status, ignores, None, [], [])
            listing = self._fill(listing, folder, prefix, is_top=is_top)
        self._listings.folders[folder] = listing
        return listing

    def _fill(self, listing: _Listing, folder: str, prefix: str, *, is_top: bool) -> _Listing:
        with os.scandir(folder) as entries:
            found = {entry.name: entry for entry in entries}
        if self.settings.exclude is None and not is_top and "pyvenv.cfg" in found:
            self._tell(folder, "a virtual environment")
            return listing
        ignores = listing.ignores
        if self.settings.respect_gitignore and ".gitignore" in found:
            own = Ignore(folder, prefix)
            listing, ignores = listing._replace(own=own), (*ignores, own)
        for name, entry in found.items():
            path, is_folder = prefix + name, entry.is_dir(follow_symlinks=False)
            if not is_folder and not name.endswith(SUFFIXES):
                continue
            excludes = self.excludes_folder if is_folder else self.excludes_file
            if excludes(name, path) or ignored(ignores, path, folder=is_folder):
                self._tell(entry.path, self._reason(name, path, folder=is_folder))
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
        """Say why an entry is left out."""
        kinds = self._matchers.items() if self.told is not None else ()
        return next((kind for kind, is_for in kinds if is_for[folder](name, path)), ".gitignore")

    @functools.cached_property
    def _matchers(self) -> dict[str, tuple[Callable[[str, str], bool], Callable[[str, str], bool]]]:
        """What leaves out files, and what leaves out folders, by the reason."""
        found = {}
        for kind, texts in self._kinds.items():
            globs = [glob(text) for text in texts]
            found[kind] = matcher([one for one in globs if not one.folders_only]), matcher(globs)
        return found


def _is_collected(file: str) -> bool:
    """Tell whether runners of tests find something in a file of such a name, or it cannot be read."""
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
    """Tell whether a file lies among the tests or the documentation, or configures tests.

    Args:
        relative: The file's path from the project root, with forward slashes.

    Returns:
        True if its name or one of its folders says so.
    """
    return any(glob(text).covers(relative) for text in TEST_PATTERNS)


def leaves_out(file: Path, settings: Settings) -> bool:
    """Tell whether a file is none of those to check where its project is named.

    Args:
        file: The file; it need not exist, and its name may end in anything.
        settings: The settings of its project.

    Returns:
        True if a pattern or a `.gitignore` file excludes it or a folder it lies in.
    """
    return _Walk(settings, include_tests=settings.include_tests).leaves_out(absolute_path(file))


def find(
    paths: Sequence[Path], settings: Settings, *, force_exclude: bool = False, told: LeftOut | None = None
) -> Iterator[Path | Unreadable]:
    """Find the files to check.

    What is named is always checked, whatever the patterns say of it; naming a
    folder of tests asks for the tests in it.

    Args:
        paths: Files and folders as named on the command line.
        settings: The settings, whose patterns count below the folders named.
        force_exclude: Whether they count for what is named too.
        told: Is told what is left out, and why.

    Yields:
        Absolute paths in sorted order and without repeats, and the folders that
        cannot be listed.
    """
    found = look(paths, settings, force_exclude=force_exclude, told=told)
    yield from (item if isinstance(item, Unreadable) else Path(item.path) for item in found)


def look(
    paths: Sequence[Path],
    settings: Settings,
    *,
    force_exclude: bool = False,
    told: LeftOut | None = None,
    listings: FolderListings | None = None,
) -> list[Found | Unreadable]:
    """Find the files to check as `find` does, with what the walk has seen of them.

    Args:
        paths: As for `find`.
        settings: As for `find`.
        force_exclude: As for `find`.
        told: As for `find`.
        listings: Takes what is found of folders, and gives what is known of them; for one folder that is
            walked again and again.

    Returns:
        The files and the folders that cannot be listed, sorted.
    """
    found: dict[str, Found | Unreadable] = {}
    whole = _Walk(settings, include_tests=settings.include_tests, told=told, listings=listings)
    for path in paths:
        top = absolute_path(path)
        if force_exclude and whole.leaves_out(top):
            if told is not None:
                told(top, "--force-exclude")
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
    """Look at one file that need not be there, in a project."""
    path = absolute_path(file)
    return Found(path, relative_path(path, absolute_path(root)), os.path.islink(path), _status(path))


def links_among(files: Sequence[Found], root: Path) -> dict[str, str]:
    """Tell which files are symbolic links to others of them: one file that has several names.

    Args:
        files: Files of the project.
        root: The project root.

    Returns:
        The path from the root of the file that each link leads to, by that of the link.
    """
    led = {file.relative: os.path.realpath(file.path) for file in files if file.is_link}
    if not led:
        return {}
    whole = os.path.realpath(root)
    here = {f"{whole}{os.sep}{file.relative}": file.relative for file in files if not file.is_link}
    return {name: here[target] for name, target in led.items() if target in here}
