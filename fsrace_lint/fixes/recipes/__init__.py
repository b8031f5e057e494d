"""The recipes, one per module. The name of a recipe is the module name with dashes."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Final, Protocol, cast

from fsrace_lint.fixes.recipe import RefusalError

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Change, Target

RECIPES: Final = tuple(sorted(info.name.replace("_", "-") for info in pkgutil.iter_modules(__path__)))


class Recipe(Protocol):
    """A module of this package: turns a target into a change, or raises `RefusalError`."""

    def recipe(self, target: Target) -> Change:
        """Return the change for a target."""


def load(name: str) -> Recipe:
    """Find a recipe by its name.

    Raises:
        RefusalError: There is no such recipe.
    """
    if name not in RECIPES:
        raise RefusalError(f"unknown recipe `{name}`")
    return cast("Recipe", importlib.import_module(f"{__name__}.{name.replace('-', '_')}"))
