"""Rank checks and barriers that fixes add: in the style of the file, or from the helpers."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.catalog.lexicon import may_save_with_all, meaning
from fsrace_lint.fixes.blocks import own_line, suite
from fsrace_lint.fixes.imports import spell
from fsrace_lint.fixes.recipe import RefusalError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.fixes.recipe import Target

Spelled = tuple[cst.BaseExpression, tuple[str, ...]]

_BUILTIN: Final = frozenset({"int", "str", "bool", "len", "True", "False", "None"})


def own_helper(target: Target, name: str) -> Spelled | None:
    """Return the function of the project for a helper, or None if fixes should write plain code.

    It is the one that the settings name, or the helper of the `helper-module` setting.
    """
    module = target.surroundings.helpers
    return named_helper(target, name) or (None if module is None else _imported(target, module, name))


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
    idiom = target.surroundings.idiom(target.fix.span)
    found, imports = _spelled(target, idiom.tests, idiom.framework_tests, "is_main_process")
    return cst.ensure_type(found, cst.Expr).value, imports


def barrier_line(target: Target) -> tuple[cst.BaseStatement, tuple[str, ...]]:
    """Return the barrier as a statement, which may first ask whether the process group exists."""
    idiom = target.surroundings.idiom(target.fix.span)
    found, imports = _spelled(target, idiom.barriers, idiom.framework_barriers, "barrier")
    if not isinstance(found, cst.If):
        return own_line(target, found), imports
    (small,) = found.body.body
    body = [own_line(target, cst.ensure_type(small, cst.Expr))]
    indent = target.tree.indent(target.call)
    return found.with_changes(body=suite(body, indent, target.tree.newline)), imports


def _spelled(
    target: Target, texts: Iterable[str], framework: Iterable[str], name: str
) -> tuple[cst.Expr | cst.If, tuple[str, ...]]:
    """Return the chosen function, what the file uses, a function of the project, a module's, or a helper.

    Raises:
        RefusalError: There is none, and the settings name no module with helpers.
    """
    called = named_helper(target, name)
    if called is None:
        found = _first_usable(target, texts)
        if found is not None:
            return found, ()
        called = found_helper(target, name)
    if called is None:
        found = _first_usable(target, framework)
        if found is not None:
            return found, ()
        called = own_helper(target, name)
    if called is None:
        raise RefusalError(f"nothing that is visible here does the same as `{name}()`")
    return cst.Expr(cst.Call(called[0])), called[1]


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


def _first_usable(target: Target, texts: Iterable[str]) -> cst.Expr | cst.If | None:
    """Return the first rank check or barrier whose names are visible, or None."""
    for text in texts:
        try:
            statement = cst.parse_statement(text)
        except cst.ParserSyntaxError:
            # The stored text was truncated.
            continue
        names = {node.value for node in _roots(statement)}
        if all(name in _BUILTIN or _is_visible(target, name) for name in names):
            found = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else statement
            if isinstance(found, cst.Expr | cst.If):
                return found
    return None


def _roots(code: cst.CSTNode) -> Iterable[cst.Name]:
    """Yield the names that a rank check or a barrier reads, without attributes and keywords."""
    match code:
        case cst.SimpleStatementLine(body=body) | cst.SimpleStatementSuite(body=body):
            yield from _roots(body[0])
        case cst.If(test=test, body=body):
            yield from (*_roots(test), *_roots(body))
        case cst.Expr(value=value):
            yield from _roots(value)
        case cst.BooleanOperation(left=left, right=right):
            yield from (*_roots(left), *_roots(right))
        case cst.Name():
            yield code
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
