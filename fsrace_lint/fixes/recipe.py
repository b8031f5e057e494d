"""The input and output of recipes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import libcst as cst
import msgspec

from fsrace_lint.catalog import Catalog, Effect
from fsrace_lint.files.spans import Span
from fsrace_lint.findings.finding import Fix, Idiom
from fsrace_lint.fixes.tree import Tree


class RefusalError(Exception):
    """The reason why a fix is refused, as shown to the user."""


class TreeEdit(msgspec.Struct, frozen=True):
    """One change to one node.

    `rewrite` receives the node after the edits inside it, and must build on that. An
    `additive` edit only adds to the node, so it can be applied after another edit. A
    `whole` edit discards what other fixes change inside the node. Of additive edits of one node with the
    same `adds`, one is enough. The lines that an edit with `joins` adds are joined with equal ones next to
    them.
    """

    node: cst.CSTNode
    rewrite: Callable[[Any], cst.CSTNode | cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel]
    additive: bool = False
    whole: bool = False
    adds: str = ""
    joins: bool = False


def put(node: cst.CSTNode, *instead: cst.CSTNode) -> TreeEdit:
    """Return the edit that replaces a node with one or more other nodes."""
    new = instead[0] if len(instead) == 1 else cst.FlattenSentinel(instead)
    return TreeEdit(node, lambda _: new, whole=True)


def drop(node: cst.CSTNode) -> TreeEdit:
    """Return the edit that removes a statement."""
    return TreeEdit(node, lambda _: cst.RemoveFromParent(), whole=True)


class Change(msgspec.Struct, frozen=True):
    """All changes of one fix to a file: its edits, and the import lines that it needs."""

    edits: tuple[TreeEdit, ...]
    imports: tuple[str, ...] = ()


class Surroundings(msgspec.Struct, frozen=True):
    """What a fix needs to know about the project.

    `idiom` returns how the file writes rank checks and barriers at a call, `collectives` the collective
    calls within a span, and `entries` the library models. `helpers` is the module of the helpers, and
    `has_helpers` tells whether the settings name it. `is_needed` tells whether other files may use a name
    that the file imports, and `mentioning` returns the path and the text of the other files with a word.
    """

    idiom: Callable[[Span], Idiom]
    collectives: Callable[[Span], tuple[str, ...]]
    entries: Callable[[], Catalog]
    helpers: str
    has_helpers: bool = False
    is_needed: Callable[[str], bool] = lambda _: False
    mentioning: Callable[[str], Iterable[tuple[str, str]]] = lambda _: ()


class Target(msgspec.Struct, frozen=True):
    """The input of a recipe: the file, the call, the requested fix, and its surroundings."""

    tree: Tree
    call: cst.Call
    fix: Fix
    surroundings: Surroundings

    @property
    def effect(self) -> Effect | None:
        """What the call does, according to the library models."""
        found: Effect | None = self.surroundings.entries().exact("effect", self.fix.api)
        return found
