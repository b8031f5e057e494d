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
    from collections.abc import Iterable, Iterator

    from fsrace_lint.fixes.recipe import Target

Spelled = tuple[cst.BaseExpression, tuple[str, ...]]

_BUILTIN: Final = frozenset({"int", "str", "bool", "len", "True", "False", "None"})


def helper(target: Target, name: str) -> Spelled:
    """Return an expression for a helper, and the import lines that it needs."""
    return named_helper(target, name) or _imported(target, target.surroundings.helpers, name)


def own_helper(target: Target, name: str) -> Spelled | None:
    """Return the function of the project for a helper, or None if fixes should write plain code.

    It is the one that the settings name, or the helper of the `helper-module` setting.
    """
    return named_helper(target, name) or (
        _imported(target, target.surroundings.helpers, name) if target.surroundings.has_helpers else None
    )


def named_helper(target: Target, name: str) -> Spelled | None:
    """Return the function that the `helpers` setting names for a helper, if the file can import it."""
    return next(_own(target, name, chosen=True), None)


def found_helper(target: Target, name: str) -> Spelled | None:
    """Return a function of the project that does the same as a helper with its required arguments."""
    return next(_own(target, name, chosen=False), None)


def present_helper(target: Target, name: str) -> Spelled | None:
    """Return the function that the settings name, or one of the project that the file already imports."""
    found = (spelled for spelled in _own(target, name, chosen=False) if not spelled[1])
    return named_helper(target, name) or next(found, None)


def rank_test(target: Target) -> Spelled:
    """Return the check for rank 0."""
    return _called(target, target.surroundings.idiom(target.fix.span).tests, "is_main_process")


def barrier_call(target: Target) -> Spelled:
    """Return the barrier call."""
    return _called(target, target.surroundings.idiom(target.fix.span).barriers, "barrier")


def _called(target: Target, texts: Iterable[str], name: str) -> Spelled:
    """Return the chosen function, what the file already uses, a function of the project, or a helper."""
    chosen = named_helper(target, name)
    present = _usable(target, texts) if chosen is None else None
    if present is not None:
        return present
    function, imports = chosen or found_helper(target, name) or helper(target, name)
    return cst.Call(function), imports


def _own(target: Target, name: str, *, chosen: bool) -> Iterator[Spelled]:
    """Yield the functions of the project for a helper that the file can import, best first."""
    for own in target.surroundings.own(name.replace("_", "-"), target.fix.span):
        if own.is_chosen is chosen:
            with contextlib.suppress(RefusalError):
                yield _imported(target, own.module, own.name)


def _imported(target: Target, module: str, name: str) -> Spelled:
    return spell(target, module, name, f"from {module} import {name}")


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
