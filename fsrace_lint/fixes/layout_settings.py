"""Read the settings of black, ruff, isort, flake8, and editors for the files of a directory."""

from __future__ import annotations

import configparser
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from fsrace_lint.fixes.python_versions import lower_bound
from fsrace_lint.fixes.settings_files import minors, table, toml, upwards

if TYPE_CHECKING:
    import isort

_NEWEST: Final = 14
_LISTED: Final = (("setup.cfg", "flake8"), ("tox.ini", "flake8"), (".flake8", "flake8"))
_CODE_STYLE: Final = (("setup.cfg", "pycodestyle"), ("tox.ini", "pycodestyle"))
_EDITOR: Final = (".editorconfig", "*.py")
_OF_ISORT: Final = frozenset({
    "case_sensitive", "combine_as_imports", "extra_standard_library", "force_single_line",
    "force_sort_within_sections", "from_first", "known_first_party", "known_local_folder",
    "known_third_party", "length_sort", "lines_after_imports", "lines_between_types", "no_sections",
    "order_by_type", "single_line_exclusions", "force_to_top",
})  # fmt: skip
"""Settings that ruff takes over from isort."""


class LayoutSettings(msgspec.Struct, frozen=True):
    """What the settings say; what they leave open is empty or None."""

    limit: int = 0
    normalizes_strings: bool | None = None
    has_magic_comma: bool = True
    targets: frozenset[int] = frozenset()
    sorted_by_ruff: Mapping[str, Any] | None = None
    root: Path | None = None

    def sorting(self, length: int) -> isort.Config | None:
        """Return how ruff sorts imports, as settings of isort."""
        import isort  # noqa: PLC0415  # loaded only if a fix adds an import

        if self.sorted_by_ruff is None:
            return None
        named = {key.replace("-", "_"): value for key, value in self.sorted_by_ruff.items()}
        known = {key: value for key, value in named.items() if key in _OF_ISORT}
        try:
            return isort.Config(profile="black", line_length=length, directory=str(self.root), **known)
        except Exception:  # noqa: BLE001  # settings that isort refuses are not followed
            return None


def of_isort(folder: Path) -> isort.Config | None:
    """Return the settings of isort for the files of a directory, if there are any that isort accepts."""
    import isort  # noqa: PLC0415  # loaded only if a fix adds an import

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config = isort.Config(settings_path=str(folder))
            # isort 4 added what was listed to the standard library, and settings still rely on it
            standard = config.known_standard_library | isort.Config().known_standard_library
            config = isort.Config(config=config, known_standard_library=standard)
    except Exception:  # noqa: BLE001  # settings that isort refuses are not followed
        return None
    is_set = any(source["source"] not in {"defaults", "runtime"} for source in config.sources)
    return config if is_set else None


def find(folder: Path) -> LayoutSettings:
    """Read the nearest settings of the directory and those above it, up to the root of its repository."""
    for place in upwards(folder):
        found = _of_ruff_file(place) or _of_pyproject(place) or _of_ini(place)
        if found is not None:
            return found
    return LayoutSettings()


def _of_ruff_file(place: Path) -> LayoutSettings | None:
    settings = toml(place / "ruff.toml") or toml(place / ".ruff.toml")
    return _of_ruff(settings, {}, place) if settings else None


def _of_pyproject(place: Path) -> LayoutSettings | None:
    document = toml(place / "pyproject.toml")
    project, ruff = table(document, "project"), table(document, "tool", "ruff")
    if black := table(document, "tool", "black"):
        versions = frozenset(minors(black.get("target-version"))) or _since(project)
        return LayoutSettings(
            limit=_number(black.get("line-length")) or 88,
            normalizes_strings=not black.get("skip-string-normalization"),
            has_magic_comma=not black.get("skip-magic-trailing-comma"),
            targets=versions,
            sorted_by_ruff=_sorting(ruff),
            root=place,
        )
    return _of_ruff(ruff, project, place) if ruff else None


def _of_ruff(ruff: Mapping[str, Any], project: Mapping[str, Any], place: Path) -> LayoutSettings:
    style = table(ruff, "format")
    quotes = style.get("quote-style", "double")
    oldest = minors(ruff.get("target-version"))
    return LayoutSettings(
        limit=_number(ruff.get("line-length")) or 88,
        normalizes_strings=quotes == "double",
        has_magic_comma=not style.get("skip-magic-trailing-comma"),
        targets=frozenset(range(min(oldest), _NEWEST)) if oldest else _since(project),
        sorted_by_ruff=_sorting(ruff),
        root=place,
    )


def _sorting(ruff: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if not ruff:
        return None
    return table(ruff, "lint", "isort") or table(ruff, "isort")


def _of_ini(place: Path) -> LayoutSettings | None:
    for name, section, option in (
        *((name, section, "max-line-length") for name, section in (*_LISTED, *_CODE_STYLE)),
        (*_EDITOR, "max_line_length"),
    ):
        parser = configparser.RawConfigParser(strict=False)
        try:
            text = (place / name).read_text("utf-8")
            parser.read_string(text if section != _EDITOR[1] else f"[top]\n{text}")
            values = (parser.get(section, each, fallback="") for each in (option, option.replace("-", "_")))
            length = next((int(value.split()[0]) for value in values if value[:1].isdigit()), 0)
        except (OSError, ValueError, configparser.Error):
            continue
        if length:
            return LayoutSettings(limit=length)
    return None


def _number(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _since(project: Mapping[str, Any]) -> frozenset[int]:
    oldest = lower_bound(str(project.get("requires-python", "")))
    return frozenset() if oldest is None else frozenset(range(oldest[1], _NEWEST))
