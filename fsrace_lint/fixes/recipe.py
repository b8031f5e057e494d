"""What a recipe is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst
import msgspec

from fsrace_lint.catalog import Catalog, Effect
from fsrace_lint.files.spans import Span
from fsrace_lint.findings.finding import Fix, Idiom
from fsrace_lint.fixes.tree import Tree


class RefusalError(Exception):
    """The reason why a fix is not made, in words for the user."""


class TreeEdit(msgspec.Struct, frozen=True):
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


def put(node: cst.CSTNode, *instead: cst.CSTNode) -> TreeEdit:
    """Make the edit that puts one or more other nodes in the place of one."""
    new = instead[0] if len(instead) == 1 else cst.FlattenSentinel(instead)
    return TreeEdit(node, lambda _: new, whole=True)


def drop(node: cst.CSTNode) -> TreeEdit:
    """Make the edit that takes a statement out."""
    return TreeEdit(node, lambda _: cst.RemoveFromParent(), whole=True)


class Change(msgspec.Struct, frozen=True):
    """All that one fix does to a file: its edits, and the import lines it needs."""

    edits: tuple[TreeEdit, ...]
    imports: tuple[str, ...] = ()


class Surroundings(msgspec.Struct, frozen=True):
    """What the project says to a fix.

    `idiom` is how the file spells things at a call, `collectives` the calls within a span at which all
    processes meet, `entries` what library names mean, and `helpers` the module of the helpers.
    """

    idiom: Callable[[Span], Idiom]
    collectives: Callable[[Span], tuple[str, ...]]
    entries: Callable[[], Catalog]
    helpers: str


class Target(msgspec.Struct, frozen=True):
    """What a recipe works on: the file, the call, the fix that was asked for, and what is around it."""

    tree: Tree
    call: cst.Call
    fix: Fix
    surroundings: Surroundings

    @property
    def effect(self) -> Effect | None:
        """What the call does, as the catalog has it."""
        found: Effect | None = self.surroundings.entries().exact("effect", self.fix.api)
        return found
