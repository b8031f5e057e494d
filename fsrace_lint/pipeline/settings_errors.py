"""What may be wrong with settings; loaded where something is."""

from __future__ import annotations

from typing import Final

from fsrace_lint import catalog
from fsrace_lint.config import settings

MISTAKES: Final = (settings.SettingsError, catalog.CatalogError)
"""What is wrong with settings: mistakes of the user, told in one line."""
