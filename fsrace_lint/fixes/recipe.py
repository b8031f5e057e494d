"""The input and output of recipes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import libcst as cst
import msgspec

from fsrace_lint.catalog import Catalog, Effect
from fsrace_lint.files.spans import Span
from fsrace_lint.findings.finding import Fix, Idiom, OwnHelper
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
    calls within a span, and `entries` the library models. `own` returns how a call can use a helper of the
    project, by its key in the settings. `helpers` is the module with the helpers, if the settings name one.
    `is_needed` returns whether other files may use a name that the file imports, and `mentioning` the path
    and the text of the other files with a word.
    """

    idiom: Callable[[Span], Idiom]
    collectives: Callable[[Span], tuple[str, ...]]
    entries: Callable[[], Catalog]
    helpers: str | None = None
    own: Callable[[str, Span], tuple[OwnHelper, ...]] = lambda _kind, _span: ()
    is_needed: Callable[[str], bool] = lambda _: False
    mentioning: Callable[[str], Iterable[tuple[str, str]]] = lambda _: ()


class Target(msgspec.Struct, frozen=True):
    """The input of a recipe: the file, the call, the requested fix, and its surroundings.

    `oldest` returns the oldest Python version that the file must run on, or None if nothing shows it.
    """

    tree: Tree
    call: cst.Call
    fix: Fix
    surroundings: Surroundings
    oldest: Callable[[], tuple[int, int] | None] = lambda: None

    def lacks(self, version: tuple[int, int]) -> bool:
        """Check whether the file must run on an older Python version than this one."""
        oldest = self.oldest()
        return oldest is not None and oldest < version

    def refuse_before(self, version: tuple[int, int], what: str) -> None:
        """Refuse to write what only newer versions of Python have.

        Raises:
            RefusalError: The file must run on an older version.
        """
        oldest = self.oldest()
        if oldest is not None and oldest < version:
            needs, has = (".".join(map(str, each)) for each in (version, oldest))
            raise RefusalError(f"{what} needs Python {needs}, and this code supports Python {has}")

    @property
    def effect(self) -> Effect | None:
        """What the call does, according to the library models."""
        found: Effect | None = self.surroundings.entries().exact("effect", self.fix.api)
        return found
