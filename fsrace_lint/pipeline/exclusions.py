"""The patterns of files and directories that a check leaves out."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from fsrace_lint.files.globs import glob, matcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.config.settings import Settings

DEFAULT_EXCLUDES: Final = tuple(
    ".git/ .hg/ .svn/ .tox/ .nox/ .venv/ venv/ __pycache__/ .eggs/ *.egg-info/ build/ dist/ "  # noqa: SIM905
    "_build/ node_modules/ site-packages/ .mypy_cache/ .pytest_cache/ .ruff_cache/ .fsrace_cache/".split()
)
TEST_PATTERNS: Final = ("test/", "tests/", "doc/", "docs/", "conftest.py")
TEST_NAMES: Final = ("test_*.py", "*_test.py")
"""Names of tests, and of programs that evaluate a model, such as `tools/test_net.py`."""
TEST: Final = "test or documentation (see `--include-tests`)"
GITIGNORE: Final = "excluded by `.gitignore`"


class Exclusions:
    """The patterns of one table, which are relative to its directory."""

    def __init__(self, settings: Settings, *, include_tests: bool) -> None:
        """Translate the patterns of the settings of a table."""
        self.settings = settings
        chosen = DEFAULT_EXCLUDES if settings.exclude is None else settings.exclude
        tests = () if include_tests else TEST_PATTERNS
        self._is_named_as_test = matcher([] if include_tests else [glob(text) for text in TEST_NAMES])
        self._kinds = {
            f"excluded by {'the default of ' * (settings.exclude is None)}`exclude`": chosen,
            "excluded by `extend-exclude`": settings.extend_exclude,
            TEST: tests,
        }
        given = dict(settings.overrides) if settings.folder else {}
        self._rooted = {
            f"excluded by `--{key.replace('_', '-')}`": given.get(key, ())
            for key in ("exclude", "extend_exclude")
        }
        self._excludes = _matchers(tuple(text for texts in self._kinds.values() for text in texts))
        self._excludes_from_root = _matchers(tuple(text for texts in self._rooted.values() for text in texts))

    def excludes(self, name: str, path: str, *, folder: bool) -> bool:
        """Return whether a pattern matches an entry itself, given by its path from the root."""
        own = self._excludes[folder](name, self.settings.inside(path))
        return own or self._excludes_from_root[folder](name, path)

    def is_named_as_test(self, name: str) -> bool:
        """Return whether a file is named like a test, and tests are excluded."""
        return self._is_named_as_test(name, name)

    def reason(self, name: str, path: str, *, folder: bool) -> str:
        """Return why an entry is left out."""
        for kinds, where in ((self._kinds, self.settings.inside(path)), (self._rooted, path)):
            for kind, texts in kinds.items():
                if _matchers(texts)[folder](name, where):
                    return kind
        return GITIGNORE


@functools.lru_cache
def _matchers(texts: tuple[str, ...]) -> dict[bool, Callable[[str, str], bool]]:
    """Return functions that match directories (True) and files (False) with patterns."""
    globs = [glob(text) for text in texts]
    return {True: matcher(globs), False: matcher([one for one in globs if not one.folders_only])}
