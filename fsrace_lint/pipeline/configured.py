"""The settings of a project, held against what they name: libraries, and a baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fsrace_lint import baseline, catalog, rules, settings

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.settings import Settings

MISTAKES: Final = (settings.SettingsError, catalog.CatalogError)
"""What is wrong with settings: mistakes of the user, told in one line."""


def read_settings(root: Path, **changes: Any) -> Settings:
    """Read the settings of a project, and make sure that what they name can be used.

    Args:
        root: The project root.
        **changes: What is laid over them, as for `settings.with_overrides`.

    Returns:
        The settings.

    Raises:
        SettingsError: They are wrong, or the baseline cannot be used.
        CatalogError: What they say of libraries is wrong.
    """
    chosen = settings.with_overrides(settings.load(root, rules.names()), **changes)
    catalog.extended(chosen.catalog, chosen.catalog_origin)
    baseline.of(chosen)
    return chosen
