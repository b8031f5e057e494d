"""What a recipe is given, what it gives back, and how it is found by its name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

import libcst as cst
import msgspec

from fsrace_lint.findings import Fix
from fsrace_lint.fixes.tree import Tree

RECIPES: Final = ("exist-ok", "missing-ok")


class RefusalError(Exception):
    """The reason why a fix is not made, in words for the user."""


class Edit(msgspec.Struct, frozen=True):
    """One change to one node.

    `rewrite` is given the node as the edits below it have left it, and must build
    on that. An `additive` edit only adds to the node, so it may follow another.
    """

    node: cst.CSTNode
    rewrite: Callable[[Any], cst.CSTNode]
    additive: bool = False


class Change(msgspec.Struct, frozen=True):
    """All that one fix does to a file: its edits, and the import lines it needs."""

    edits: tuple[Edit, ...]
    imports: tuple[str, ...] = ()


class Target(msgspec.Struct, frozen=True):
    """What a recipe works on: the file, the call, and the fix that was asked for."""

    tree: Tree
    call: cst.Call
    fix: Fix


class Recipe(Protocol):
    """A module of this room: turns a target into a change, or raises `RefusalError`."""

    def recipe(self, target: Target) -> Change:
        """Say how the target is to be changed."""


def load(name: str) -> Recipe:
    """Find a recipe by its name, which is its module's name with dashes."""
    if name not in RECIPES:
        raise RefusalError(f"there is no recipe named {name}")
    return cast("Recipe", importlib.import_module(f"fsrace_lint.fixes.{name.replace('-', '_')}"))
