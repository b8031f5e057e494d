"""What `analysis` may not know: when and how often anything is computed, and where to look closer."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from support.imports import MODULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ANALYSIS: Final = {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}
OURS: Final = {
    name: tree for name, tree in ANALYSIS.items() if not name.startswith(("explore", "instrument", "safe"))
}
MEANING: Final = {name: tree for name, tree in ANALYSIS.items() if name.startswith("analysis")}
SPEED: Final = re.compile(r"memo|cache|asks_few|mentions|targeted|exhaustive", re.IGNORECASE)
OF_JOBS: Final = {"CACHE", "cache_test_of", "cached", "is_cached", "is_for_a_cache"}
"""Names for the caches of jobs, which are files."""
ENTRANCE: Final = {"analysis.queries.linked", "analysis.callgraph.function_flows"}
"""Where a project is made: these hand on how it is to be looked at."""
UNDER_WAY: Final = {
    # what a function is interpreted with, gone when that is done
    "analysis.callgraph.function_flows": {"_interpreters"},
    "analysis.dataflow.interpreter": {"exits", "raises"},
    "analysis.dataflow.transfer": {
        "call_sites",
        "contexts",
        "exception_contexts",
        "interrupted",
        "loops",
        "rank_tests",
    },
    # the sync points of one function, sorted
    "analysis.synchronization.sync_points": {"_meetings"},
}
"""Collections that are no results kept for others who ask."""
LINKED: Final = {("analysis.values.module_members", "family"), ("analysis.queries.project", "targets")}
"""Attributes of other objects that are set: the relatives of classes are linked, and a copy is narrowed."""


def names(tree: ast.AST) -> Iterator[str]:
    """Every name that code gives or uses."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.alias(name=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.keyword(arg=str(name)):
                yield name


def found(of: Callable[[ast.AST], Iterator[str]], trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    every = {name: sorted(set(of(tree))) for name, tree in trees.items()}
    return {name: some for name, some in every.items() if some}


def of_speed(tree: ast.AST) -> Iterator[str]:
    return (name for name in names(tree) if SPEED.search(name) and name not in OF_JOBS)


def identities(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="id")) | ast.Call(args=[ast.Name(id="id"), *_]):
                yield f"line {node.lineno}"


def collections(tree: ast.AST) -> Iterator[str]:
    """Attributes that begin empty, or take items."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Assign(targets=[ast.Attribute(attr=name)], value=value)
                | ast.AnnAssign(target=ast.Attribute(attr=name), value=value)
            ) if is_empty(value):
                yield name
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Attribute(value=ast.Name(id="self"), attr=name))]
            ):
                yield name


def is_empty(value: ast.expr | None) -> bool:
    match value:
        case ast.Dict(keys=[]) | ast.List(elts=[]):
            return True
        case ast.Call(func=ast.Name(id="set" | "dict" | "list" | "defaultdict")):
            return True
        case _:
            return False


def callbacks(tree: ast.AST) -> Iterator[str]:
    """Functions that a class is made with: parameters of constructors, and fields of records."""
    for class_ in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for node in class_.body:
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                arguments = (*node.args.args, *node.args.kwonlyargs)
                annotated = [(each.arg, each.annotation) for each in arguments]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                annotated = [(node.target.id, node.annotation)]
            else:
                continue
            yield from (
                f"{class_.name}.{name}"
                for name, hint in annotated
                if hint and "Callable" in ast.unparse(hint)
            )


def foreign(tree: ast.AST) -> Iterator[str]:
    """Attributes of other objects that are set."""
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        each = [item for target in targets for item in getattr(target, "elts", [target])]
        yield from (
            item.attr
            for item in each
            if isinstance(item, ast.Attribute) and ast.unparse(item.value) not in {"self", "cls"}
        )


def test_no_name_is_about_speed() -> None:
    trees = {name: tree for name, tree in MEANING.items() if name not in ENTRANCE}
    assert found(of_speed, trees) == {}


def test_no_object_is_known_by_its_place_in_memory() -> None:
    assert found(identities, OURS) == {}


def test_results_are_kept_by_nobody() -> None:
    held = {
        name: set(some) - UNDER_WAY.get(name, set()) for name, some in found(collections, MEANING).items()
    }
    assert {name: some for name, some in held.items() if some} == {}


def test_nothing_is_made_with_a_function() -> None:
    assert found(callbacks, MEANING) == {}


def test_nobody_sets_what_is_another_objects() -> None:
    wrong = {(name, each) for name, some in found(foreign, MEANING).items() for each in some}
    assert wrong == LINKED


def test_each_is_seen() -> None:
    """What these tests look for, where it is."""
    bad = ast.parse(
        "class A:\n"
        "    def __init__(self, find: Callable[[], int]) -> None:\n"
        "        self._known: dict[int, int] = {}\n"
        "        find.place, self.cache = 1, {}\n"
        "    def ask(self, key):\n"
        "        self._other[id(key)] = set(map(id, key))\n"
    )
    assert set(of_speed(bad)) == {"cache"}
    assert [*identities(bad)] == ["line 6", "line 6"]
    assert {*collections(bad)} == {"_known", "_other"}
    assert [*callbacks(bad)] == ["A.find"]
    assert [*foreign(bad)] == ["place"]
