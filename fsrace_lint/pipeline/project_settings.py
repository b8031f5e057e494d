"""The settings of a project, held against what they name: libraries, and a baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from fsrace_lint.config import settings
from fsrace_lint.findings import baseline

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.config.settings import Settings


class _Names(Mapping[str, str]):
    """The names of the rules by their codes; the rules are loaded where somebody looks."""

    def __getitem__(self, code: str) -> str:
        return self._names()[code]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    @staticmethod
    def _names() -> dict[str, str]:
        from fsrace_lint import rules  # noqa: PLC0415  # most settings name none

        return rules.names()


NAMES: Final[Mapping[str, str]] = _Names()
"""The names of the rules by their codes."""


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
    chosen = settings.with_overrides(settings.load(root, NAMES), **changes)
    if chosen.catalog:
        from fsrace_lint import catalog  # noqa: PLC0415  # few projects have one of their own

        catalog.validate(chosen.catalog, chosen.catalog_origin)
    baseline.of(chosen)
    return chosen
