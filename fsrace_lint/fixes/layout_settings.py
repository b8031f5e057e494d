"""Read the settings of black, ruff, isort, flake8, and editors for the files of a directory."""

from __future__ import annotations

import configparser
import re
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterator

    import isort

_STOPS: Final = (".git", ".hg")
_NEWEST: Final = 14
_AT_LEAST: Final = re.compile(r">=\s*3\.(\d+)")
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
    for place in _upwards(folder):
        found = _of_ruff_file(place) or _of_pyproject(place) or _of_ini(place)
        if found is not None:
            return found
    return LayoutSettings()


def _upwards(folder: Path) -> Iterator[Path]:
    for place in (folder, *folder.parents):
        yield place
        if any((place / stop).exists() for stop in _STOPS):
            return


def _of_ruff_file(place: Path) -> LayoutSettings | None:
    table = _toml(place / "ruff.toml") or _toml(place / ".ruff.toml")
    return _of_ruff(table, {}, place) if table else None


def _of_pyproject(place: Path) -> LayoutSettings | None:
    document = _toml(place / "pyproject.toml")
    tools, project = _table(document, "tool"), _table(document, "project")
    if tables := _table(tools, "black"):
        versions = frozenset(_numbers(tables.get("target-version"))) or _since(project)
        return LayoutSettings(
            limit=_number(tables.get("line-length")) or 88,
            normalizes_strings=not tables.get("skip-string-normalization"),
            has_magic_comma=not tables.get("skip-magic-trailing-comma"),
            targets=versions,
            sorted_by_ruff=_sorting(_table(tools, "ruff")),
            root=place,
        )
    ruff = _table(tools, "ruff")
    return _of_ruff(ruff, project, place) if ruff else None


def _of_ruff(table: Mapping[str, Any], project: Mapping[str, Any], place: Path) -> LayoutSettings:
    style = _table(table, "format")
    quotes = style.get("quote-style", "double")
    oldest = _numbers([table["target-version"]] if "target-version" in table else [])
    return LayoutSettings(
        limit=_number(table.get("line-length")) or 88,
        normalizes_strings=quotes == "double",
        has_magic_comma=not style.get("skip-magic-trailing-comma"),
        targets=frozenset(range(min(oldest), _NEWEST)) if oldest else _since(project),
        sorted_by_ruff=_sorting(table),
        root=place,
    )


def _sorting(ruff: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if not ruff:
        return None
    return _table(_table(ruff, "lint"), "isort") or _table(ruff, "isort")


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


def _toml(file: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}


def _table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = table.get(key)
    return found if isinstance(found, dict) else {}


def _number(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _numbers(versions: object) -> list[int]:
    """Return the minor versions that names like `py310` stand for."""
    listed = versions if isinstance(versions, list) else []
    return [int(each[3:]) for each in listed if isinstance(each, str) and re.fullmatch(r"py3\d+", each)]


def _since(project: Mapping[str, Any]) -> frozenset[int]:
    match = _AT_LEAST.search(str(project.get("requires-python", "")))
    return frozenset(range(int(match.group(1)), _NEWEST)) if match else frozenset()
