"""What a recipe is given, what it gives back, and how it is found by its name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

import libcst as cst
import msgspec

from fsrace_lint.findings import Fix, Idiom
from fsrace_lint.fixes.tree import Tree
from fsrace_lint.spans import Span

RECIPES: Final = (
    "atomic-write",
    "barrier",
    "barrier-before",
    "drop-unlink",
    "download-once",
    "ensure-dir",
    "enter-the-context",
    "exclusive-open",
    "exist-ok",
    "extract-once",
    "filelock",
    "guard-and-barrier",
    "missing-ok",
    "mkstemp",
    "move-check-into-lock",
    "pass-the-function",
    "publish-symlink",
    "rank-guard",
    "timeout",
)


class RefusalError(Exception):
    """The reason why a fix is not made, in words for the user."""


class Edit(msgspec.Struct, frozen=True):
    """One change to one node.

    `rewrite` is given the node as the edits below it have left it, and must build
    on that. An `additive` edit only adds to the node, so it may follow another; one
    that puts something beside the node comes last. A `whole` one keeps nothing of what
    other fixes make of the node.
    """

    node: cst.CSTNode
    rewrite: Callable[[Any], cst.CSTNode | cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel]
    additive: bool = False
    whole: bool = False


def put(node: cst.CSTNode, *instead: cst.CSTNode) -> Edit:
    """Make the edit that puts one or more other nodes in the place of one."""
    new = instead[0] if len(instead) == 1 else cst.FlattenSentinel(instead)
    return Edit(node, lambda _: new, whole=True)


def drop(node: cst.CSTNode) -> Edit:
    """Make the edit that takes a statement out."""
    return Edit(node, lambda _: cst.RemoveFromParent(), whole=True)


class Change(msgspec.Struct, frozen=True):
    """All that one fix does to a file: its edits, and the import lines it needs."""

    edits: tuple[Edit, ...]
    imports: tuple[str, ...] = ()


class Surroundings(msgspec.Struct, frozen=True):
    """What the project says to a fix: how the file spells things at a call, and where helpers come from."""

    idiom: Callable[[Span], Idiom]
    helpers: str


class Target(msgspec.Struct, frozen=True):
    """What a recipe works on: the file, the call, the fix that was asked for, and what is around it."""

    tree: Tree
    call: cst.Call
    fix: Fix
    surroundings: Surroundings


class Recipe(Protocol):
    """A module of this room: turns a target into a change, or raises `RefusalError`."""

    def recipe(self, target: Target) -> Change:
        """Say how the target is to be changed."""


def load(name: str) -> Recipe:
    """Find a recipe by its name, which is its module's name with dashes."""
    if name not in RECIPES:
        raise RefusalError(f"there is no recipe named {name}")
    return cast("Recipe", importlib.import_module(f"fsrace_lint.fixes.{name.replace('-', '_')}"))
