"""Give a temporary file that has the same name in every process a name of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.files.spans import Span
from fsrace_lint.fixes.blocks import ASKING, beside, own_line, statement_of
from fsrace_lint.fixes.callee import api_of, is_path_method, receiver, written_path
from fsrace_lint.fixes.recipe import Change, RefusalError, put
from fsrace_lint.fixes.staging import TEMPORARY, is_literal, parsed, random_part, unused_name
from fsrace_lint.fixes.tree import SCOPES

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target
    from fsrace_lint.fixes.tree import Tree

_SIMPLE: Final = (cst.Name, cst.Attribute)
_SAID: Final = "the name is not spelled so that a random part could be added"


def recipe(target: Target) -> Change:
    """Add a random part to the name, where a variable gets it, or in a new variable before the call."""
    tree = target.tree
    path = _path(target)
    scope = next((node for node in tree.ancestors(target.call) if isinstance(node, SCOPES)), tree.module)
    unique, imports = random_part(target)
    _refuse_handed_over(target, scope, path)
    if isinstance(path, cst.Name):
        value = _assigned(scope, path.value)
        _refuse_elsewhere(tree, value, inside=value)
        return Change((put(value, parsed(target, _with(tree, value, unique))),), imports)
    _refuse_elsewhere(tree, path, inside=scope)
    statement = statement_of(target)
    same = _same(tree, path, scope)
    if len(same) == 1 or any(tree.begin(node) < tree.begin(statement) for node in same):
        raise RefusalError("the temporary path is used before the call, or not used again after it")
    name = cst.Name(unused_name(tree, statement, TEMPORARY))
    made = cst.Assign([cst.AssignTarget(name)], parsed(target, _with(tree, path, unique)))
    return Change(
        (*(put(node, name) for node in same), beside(target, statement, own_line(target, made), before=True)),
        imports,
    )


def _path(target: Target) -> cst.BaseExpression:
    if is_path_method(api_of(target), "open", "write_text", "write_bytes"):
        path = receiver(target)
        if path is not None:
            return path
    return written_path(target)


def _assigned(scope: cst.CSTNode, name: str) -> cst.BaseExpression:
    """Return what the function assigns to a variable.

    Raises:
        RefusalError: It is not assigned exactly once.
    """
    known = m.findall(scope, m.AssignTarget(m.Name(name)) | m.AugAssign(target=m.Name(name)))
    made = m.findall(scope, m.Assign(targets=[m.AssignTarget(m.Name(name))]))
    if len(known) != 1 or len(made) != 1:
        raise RefusalError(f"`{name}` is not assigned exactly once in the function")
    return cst.ensure_type(made[0], cst.Assign).value


def _same(tree: Tree, path: cst.BaseExpression, scope: cst.CSTNode) -> list[cst.CSTNode]:
    """List the expressions in a node that are spelled like a path."""
    code = tree.module.code_for_node
    spelled = code(path)
    alike = m.findall(scope, m.MatchIfTrue(lambda node: isinstance(node, type(path))))
    return [node for node in alike if code(node) == spelled]


def _refuse_elsewhere(tree: Tree, path: cst.BaseExpression, *, inside: cst.CSTNode) -> None:
    """Refuse a name that other code of the file spells too.

    Raises:
        RefusalError: The other code would look for the old name.
    """
    for node in _same(tree, path, tree.module):
        if node is not inside and inside not in tree.ancestors(node):
            raise RefusalError(f"line {tree.span(node).line} spells the temporary name too")


def _refuse_handed_over(target: Target, scope: cst.CSTNode, path: cst.BaseExpression) -> None:
    """Refuse a file that a process leaves for a later run, or for other processes.

    Raises:
        RefusalError: The code looks for it first, or waits for other processes once it is written.
    """
    tree = target.tree
    used = _same(tree, path, scope)
    for node in used:
        call = next((each for each in tree.ancestors(node) if isinstance(each, cst.Call)), None)
        asked = "" if call is None else tree.module.code_for_node(call.func).rpartition(".")[2]
        if asked in ASKING and tree.begin(node) < tree.begin(target.call):
            raise RefusalError("the code looks for the temporary file before it writes the file")
    first, last = tree.span(target.call), tree.span(max(used, key=tree.begin))
    between = Span(first.line, first.column, last.end_line, last.end_column)
    waiting = target.surroundings.collectives(between)
    if waiting:
        raise RefusalError(f"other ranks may use the temporary file after `{waiting[0]}()`")


def _with(tree: Tree, path: cst.BaseExpression, unique: str) -> str:
    """Return the code of a path with a random part in its last component, before the suffix.

    Raises:
        RefusalError: The name is not a literal, or not a literal after a variable.
    """
    code = tree.module.code_for_node
    match path:
        case cst.SimpleString() if is_literal(path):
            return f"f{path.quote}{_inserted(path.raw_value, unique, is_whole=True)}{path.quote}"
        case cst.FormattedString(parts=[*_, cst.FormattedStringText(value=text) as last]) if "\\" not in text:
            new = _inserted(text, unique, is_whole=len(path.parts) == 1)
            return code(path.with_deep_changes(last, value=new))
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=cst.SimpleString() as right):
            if isinstance(left, _SIMPLE) and is_literal(right):
                new = _inserted(right.raw_value, unique, is_whole=False)
                return f"f{right.quote}{{{code(left)}}}{new}{right.quote}"
        case cst.BinaryOperation(operator=cst.Divide(), right=right):
            return code(path.with_changes(right=cst.parse_expression(_with(tree, right, unique))))
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="with_suffix")), args=[argument]):
            suffix = argument.value
            if isinstance(owner, _SIMPLE) and isinstance(suffix, cst.SimpleString) and is_literal(suffix):
                ending = f"f{suffix.quote}{{{code(owner)}.stem}}.{unique}{suffix.raw_value}{suffix.quote}"
                return f"{code(owner)}.with_name({ending})"
        case cst.Call(args=[*_, argument]) if tree.names.meaning(path.func) == "os.path.join":
            component = cst.parse_expression(_with(tree, argument.value, unique))
            return code(path.with_deep_changes(argument, value=component))
    raise RefusalError(_SAID)


def _inserted(text: str, unique: str, *, is_whole: bool) -> str:
    """Insert a random part into the last component of a path: before its suffix, or before a mere suffix."""
    head, slash, name = text.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    if not (is_whole or slash or stem):
        return f".{unique}{name}"
    return f"{head}{slash}{stem}.{unique}.{suffix}" if dot and stem else f"{text}.{unique}"
