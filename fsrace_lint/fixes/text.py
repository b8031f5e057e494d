"""Find out whether an expression is clearly text or a path object, which `Path()` accepts, and not bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.catalog.lexicon import meaning
from fsrace_lint.fixes.names import count_bindings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsrace_lint.fixes.tree import Tree

_PATHS: Final = frozenset(("pathlib.Path", "pathlib.PosixPath", "pathlib.PurePath", "pathlib.PurePosixPath"))
_LONGEST: Final = 8
"""Maximum number of variables to follow, because each one searches the code around it."""
_TYPES: Final = _PATHS | {"str", "None", "os.PathLike"}
_GENERICS: Final = frozenset(("os.PathLike", "typing.Optional", "typing.Union"))
_SUFFIX: Final = re.compile(r"\.[A-Za-z0-9]+$")
_BUILTINS: Final = frozenset(("str", "None"))
_SCOPES: Final = (cst.FunctionDef, cst.ClassDef, cst.Module)
_ASSIGNMENTS: Final = m.Assign() | m.AnnAssign()


def is_text(tree: Tree, expression: cst.BaseExpression, seen: frozenset[str] = frozenset()) -> bool:
    """Check whether an expression is text or a path object. `seen` are the variables already followed."""
    match expression:
        case cst.FormattedString():
            return True
        case cst.SimpleString():
            return isinstance(expression.evaluated_value, str)
        case cst.ConcatenatedString(left=first):
            return is_text(tree, first, seen)
        case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Divide(), right=right):
            return is_text(tree, left, seen) or is_text(tree, right, seen)
        case cst.BinaryOperation(left=left, operator=cst.Modulo()):
            return is_text(tree, left, seen)
        case cst.Call(func=cst.Attribute(value=template, attr=cst.Name(value="format"))):
            return is_text(tree, template, seen)
        case cst.Call():
            return _makes_text(tree, expression, seen)
        case cst.Name():
            return _names_text(tree, expression, seen)
    return False


def is_path(tree: Tree, expression: cst.BaseExpression, seen: frozenset[str] = frozenset()) -> bool:
    """Check whether an expression is clearly a path object."""
    match expression:
        case cst.BinaryOperation(left=left, operator=cst.Divide()):
            return is_path(tree, left, seen)
        case cst.Call(func=function):
            return _meaning(tree, function) in _PATHS
        case cst.Name(value=word) if word not in seen and len(seen) < _LONGEST:
            bound = _bound_by(tree, expression)
            if isinstance(bound, cst.Annotation):
                return _meaning(tree, bound.annotation) in _PATHS
            return bound is not None and is_path(tree, bound, seen | {word})
    return False


def _makes_text(tree: Tree, call: cst.Call, seen: frozenset[str]) -> bool:
    name = _meaning(tree, call.func)
    if name == "os.path.join":
        return any(is_text(tree, part.value, seen) for part in call.args if not part.star)
    return name == "str" or name in _PATHS


def _names_text(tree: Tree, name: cst.Name, seen: frozenset[str]) -> bool:
    if name.value in seen or len(seen) >= _LONGEST:
        return False
    match _bound_by(tree, name):
        case cst.Annotation(annotation=kind):
            return _is_text_type(tree, kind)
        case cst.BaseExpression() as value:
            return is_text(tree, value, seen | {name.value})
    return False


def _bound_by(tree: Tree, name: cst.Name) -> cst.Annotation | cst.BaseExpression | None:
    """Return the type or the value of a name that is bound exactly once, in the enclosing function."""
    scope = _scope(tree, name)
    word = name.value
    if _is_from_outside(scope, word) or count_bindings(scope, word) != 1:
        return None
    for parameter in _parameters(scope):
        if parameter.name.value == word:
            return parameter.annotation
    for found in m.findall(scope, _ASSIGNMENTS):
        if _scope(tree, found) is not scope:
            continue
        match found:
            case cst.AnnAssign(target=cst.Name(value=target), annotation=annotation) if target == word:
                return annotation
            case cst.Assign(targets=targets, value=value):
                if any(m.matches(each.target, m.Name(word)) for each in targets):
                    return value
    return None


def ending_of(tree: Tree, expression: cst.BaseExpression, seen: frozenset[str] = frozenset()) -> str:
    """Return the suffix of a path, such as `.npy`, or an empty text if it is unclear or none."""
    match expression:
        case cst.SimpleString():
            return _suffix(str(expression.evaluated_value))
        case cst.FormattedString(parts=[*_, cst.FormattedStringText(value=last)]):
            return _suffix(last)
        case cst.BinaryOperation(operator=cst.Add() | cst.Divide(), right=right):
            return ending_of(tree, right, seen)
        case cst.BinaryOperation(left=template, operator=cst.Modulo()):
            return ending_of(tree, template, seen)
        case cst.Call(func=cst.Attribute(value=template, attr=cst.Name(value="format"))):
            return ending_of(tree, template, seen)
        case cst.Call(args=[*_, last_part]) if _meaning(tree, expression.func) == "os.path.join":
            return ending_of(tree, last_part.value, seen)
        case cst.Name(value=word) if word not in seen:
            bound = _bound_by(tree, expression) or _appended(tree, expression)
            if isinstance(bound, cst.BaseExpression):
                return ending_of(tree, bound, seen | {word})
    return ""


def _appended(tree: Tree, name: cst.Name) -> cst.BaseExpression | None:
    """Return what the last statement that changes a name appends to it, if it always runs."""
    scope = _scope(tree, name)
    word = m.Name(name.value)
    known = m.findall(scope, m.AssignTarget(word) | m.AugAssign(target=word))
    if not isinstance(scope, cst.FunctionDef) or len(known) != count_bindings(scope, name.value):
        return None
    last = max(known, key=tree.begin, default=None)
    line = None if last is None else tree.parents[last]
    is_always_run = line is not None and tree.parents[line] is scope.body
    if isinstance(last, cst.AugAssign) and is_always_run and tree.begin(last) < tree.begin(name):
        return last.value if isinstance(last.operator, cst.AddAssign) else None
    return None


def _suffix(text: str) -> str:
    found = _SUFFIX.search(text)
    return found[0] if found is not None else ""


def is_parameter(tree: Tree, expression: cst.BaseExpression) -> bool:
    """Check whether an expression is a parameter of the function around it."""
    names = {parameter.name.value for parameter in _parameters(_scope(tree, expression))}
    return isinstance(expression, cst.Name) and expression.value in names


def may_be_stream(tree: Tree, expression: cst.BaseExpression) -> bool:
    """Check whether a path may be an open file, or a file in memory."""
    if is_text(tree, expression):
        return False
    match expression:
        case cst.Name(value=word):
            bound = _bound_by(tree, expression)
            if isinstance(bound, cst.Annotation):
                return "IO" in tree.module.code_for_node(bound)
            opened = m.findall(_scope(tree, expression), m.AsName(name=m.Name(word)))
            return bool(opened) or word.lower() in meaning("stream") or _opens(bound)
        case cst.Attribute(attr=attr):
            return attr.value.lower().lstrip("_") in meaning("stream")
    return _opens(expression)


def _opens(value: cst.BaseExpression | None) -> bool:
    if not isinstance(value, cst.Call):
        return False
    last = value.func.attr if isinstance(value.func, cst.Attribute) else value.func
    return isinstance(last, cst.Name) and last.value.lower() in meaning("stream")


def _is_text_type(tree: Tree, annotation: cst.BaseExpression) -> bool:
    match annotation:
        case cst.SimpleString():
            try:
                return _is_text_type(tree, cst.parse_expression(annotation.raw_value))
            except cst.ParserSyntaxError:
                return False
        case cst.BinaryOperation(left=left, operator=cst.BitOr(), right=right):
            return _is_text_type(tree, left) and _is_text_type(tree, right)
        case cst.Subscript(value=generic, slice=elements):
            kinds = [element.slice.value for element in elements if isinstance(element.slice, cst.Index)]
            known = _meaning(tree, generic) in _GENERICS and len(kinds) == len(elements)
            return known and all(_is_text_type(tree, kind) for kind in kinds)
    return _meaning(tree, annotation) in _TYPES


def _meaning(tree: Tree, expression: cst.BaseExpression) -> str | None:
    if isinstance(expression, cst.Name) and expression.value in _BUILTINS:
        return None if tree.names.knows(expression.value) else expression.value
    return tree.names.meaning(expression)


def _scope(tree: Tree, node: cst.CSTNode) -> cst.CSTNode:
    return next((around for around in tree.ancestors(node) if isinstance(around, _SCOPES)), tree.module)


def _is_from_outside(scope: cst.CSTNode, name: str) -> bool:
    """Check whether a `global` or `nonlocal` statement names it."""
    return bool(m.findall(scope, m.NameItem(name=m.Name(name))))


def _parameters(scope: cst.CSTNode) -> Sequence[cst.Param]:
    if not isinstance(scope, cst.FunctionDef):
        return ()
    given = scope.params
    return (*given.posonly_params, *given.params, *given.kwonly_params)
