"""Read the settings of a project, and validate the library models and the baseline that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from fsrace_lint.config import settings
from fsrace_lint.findings import baseline

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.config.settings import Settings


class _Names(Mapping[str, str]):
    """The names of the rules by code, loaded on first access."""

    def __getitem__(self, code: str) -> str:
        return self._names()[code]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    @staticmethod
    def _names() -> dict[str, str]:
        from fsrace_lint import rules  # noqa: PLC0415  # most settings name no rules

        return rules.names()


NAMES: Final[Mapping[str, str]] = _Names()
"""The names of the rules by code."""


def read_settings(root: Path, **changes: Any) -> Settings:
    """Read the settings of a project, and check that what they name can be used.

    Args:
        root: The project root.
        **changes: Overrides, as for `settings.with_overrides`.

    Raises:
        SettingsError: The settings are invalid, or the baseline cannot be used.
        CatalogError: The library models in the settings are invalid.
    """
    file, is_isolated = changes.get("config_file"), bool(changes.get("is_isolated"))
    loaded = settings.load(root, NAMES, config_file=file, is_isolated=is_isolated)
    chosen = settings.with_overrides(loaded, **changes)
    _validate_catalog(chosen)
    baseline.of(chosen)
    return chosen


def read_nested(folder: str, above: Settings) -> Settings | None:
    """Read the settings in another directory of a project, with the overrides of the project.

    Args:
        folder: The directory, relative to the project root.
        above: The settings of the project.

    Returns:
        The settings, or None if the directory has none.

    Raises:
        SettingsError: The settings are invalid.
        CatalogError: The library models in the settings are invalid.
    """
    chosen = settings.load_nested(folder, above, NAMES)
    if chosen is not None:
        _validate_catalog(chosen)
    return chosen


def _validate_catalog(chosen: Settings) -> None:
    if chosen.catalog:
        from fsrace_lint import catalog  # noqa: PLC0415  # few projects have library models of their own

        catalog.validate(chosen.catalog, chosen.catalog_origin)
