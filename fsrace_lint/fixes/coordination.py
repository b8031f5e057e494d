"""Rank checks and barriers that fixes add: in the style of the file, or from the helpers."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.catalog.lexicon import may_save_with_all, meaning
from fsrace_lint.fixes.imports import spell
from fsrace_lint.fixes.recipe import RefusalError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.fixes.recipe import Target

Spelled = tuple[cst.BaseExpression, tuple[str, ...]]

_BUILTIN: Final = frozenset({"int", "str", "bool", "len"})


def helper(target: Target, name: str) -> Spelled:
    """Return an expression for a helper, and the import lines that it needs."""
    module = target.surroundings.helpers
    return spell(target, module, name, f"from {module} import {name}")


def own_helper(target: Target, name: str) -> Spelled | None:
    """Return the function of the project for a helper, or None if fixes should write plain code.

    It is the helper of the `helper-module` setting.
    """
    return helper(target, name) if target.surroundings.has_helpers else None


def rank_test(target: Target) -> Spelled:
    """Return the check for rank 0."""
    idiom = target.surroundings.idiom(target.fix.span)
    return _spelled(target, idiom.tests, idiom.own_tests, "is_main_process")


def barrier_call(target: Target) -> Spelled:
    """Return the barrier call."""
    idiom = target.surroundings.idiom(target.fix.span)
    return _spelled(target, idiom.barriers, idiom.own_barriers, "barrier")


def _spelled(target: Target, texts: Iterable[str], own: Iterable[tuple[str, str]], otherwise: str) -> Spelled:
    """Return what the file already uses, else a function of the project, else a helper."""
    found = _usable(target, texts)
    if found is not None:
        return found
    for module, name in own:
        with contextlib.suppress(RefusalError):
            return _called(target, module, name)
    return _called(target, target.surroundings.helpers, otherwise)


def _called(target: Target, module: str, name: str) -> Spelled:
    function, imports = spell(target, module, name, f"from {module} import {name}")
    return cst.Call(function), imports


def refuse_collectives(target: Target, node: cst.CSTNode) -> None:
    """Refuse to run code on some ranks only if every rank may have to run it.

    Raises:
        RefusalError: The code calls a collective, calls an unknown method of an object that
            coordinates ranks, or gathers the state of a model that may be sharded.
    """
    tree = target.tree
    for said in target.surroundings.collectives(tree.span(node)):
        raise RefusalError(
            f"`{said}` may wait for every rank, and the fix would keep some ranks from calling it"
        )
    for call in m.findall(node, m.Call()):
        if not isinstance(call, cst.Call):
            continue
        said = tree.module.code_for_node(call.func)
        last = said.rpartition(".")[2]
        if last.lstrip("_").startswith(tuple(meaning("collective"))):
            raise RefusalError(
                f"`{said}` may wait for every rank, and the fix would keep some ranks from calling it"
            )
        if may_save_with_all(said):
            raise RefusalError(f"`{said}` may be a save that every rank must call")
        if last == "state_dict" and any(name in tree.text for name in meaning("sharding")):
            raise RefusalError(f"`{said}` may gather the state of a model that is sharded across ranks")


def _usable(target: Target, spelled: Iterable[str]) -> Spelled | None:
    for text in spelled:
        try:
            expression = cst.parse_expression(text)
        except cst.ParserSyntaxError:
            # The stored text was truncated.
            continue
        names = {node.value for node in _roots(expression)}
        if all(name in _BUILTIN or _is_visible(target, name) for name in names):
            return expression, ()
    return None


def _roots(expression: cst.BaseExpression) -> Iterable[cst.Name]:
    """Yield the names that an expression reads, without attributes and keywords."""
    match expression:
        case cst.Name():
            yield expression
        case cst.Attribute(value=value) | cst.UnaryOperation(expression=value):
            yield from _roots(value)
        case cst.Call(func=func, args=args):
            yield from _roots(func)
            for argument in args:
                yield from _roots(argument.value)
        case cst.Comparison(left=left, comparisons=comparisons):
            yield from _roots(left)
            for comparison in comparisons:
                yield from _roots(comparison.comparator)
        case cst.Subscript(value=value):
            yield from _roots(value)


def _is_visible(target: Target, name: str) -> bool:
    """Check whether a name is bound in an enclosing function or at the top level of the file."""
    tree = target.tree
    around = [tree.begin(node) for node in tree.ancestors(target.call) if isinstance(node, cst.FunctionDef)]
    for binding in tree.names.imported.get(name, ()):
        if binding.standing.scopes and binding.standing.scopes[0] not in around:
            return False
    return tree.names.knows(name)
