"""Create a temporary file that no other process uses."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.fixes.arguments import OPEN, argument, calling, named
from fsrace_lint.fixes.blocks import beside, fresh, own_line, statement_of
from fsrace_lint.fixes.callee import api_of, written_path
from fsrace_lint.fixes.imports import spell
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit, put

if TYPE_CHECKING:
    from fsrace_lint.fixes.coordination import Spelled
    from fsrace_lint.fixes.recipe import Target

_NAMED: Final = ("suffix", "prefix", "dir")


def recipe(target: Target) -> Change:
    """Create the file instead of only a name, or instead of a name that is the same on every rank."""
    if api_of(target) == "tempfile.mktemp":
        parent = target.tree.parents[target.call]
        if isinstance(parent, cst.Arg):
            return _opened_at_once(target, parent)
        line = _assignment_around(target)
        arguments = list(target.call.args)
        return _made(target, line, arguments)
    return _renamed(target)


def _opened_at_once(target: Target, given: cst.Arg) -> Change:
    """Turn `open(tempfile.mktemp(), "w")` into `tempfile.NamedTemporaryFile("w", delete=False)`."""
    tree = target.tree
    opening = tree.parents[given]
    hidden = tree.names.knows("open") or tree.names.starred
    if hidden or not isinstance(opening, cst.Call) or not m.matches(opening.func, m.Name("open")):
        raise RefusalError("the result of `mktemp()` is not passed directly to `open()`")
    arguments = []
    for index, name in enumerate(OPEN):
        found = argument(opening, index, name)
        if found is not None and found is not given:
            arguments.append(named(name, found.value))
    if not any(each.keyword and each.keyword.value == "mode" for each in arguments):
        raise RefusalError("`open()` has no mode here, so it would read a file that does not exist")
    for index, name in enumerate(_NAMED):
        found = argument(target.call, index, name)
        if found is not None:
            arguments.append(named(name, found.value))
    function, imports = spell(target, "tempfile", "NamedTemporaryFile", "import tempfile")
    arguments.append(named("delete", cst.Name("False")))
    return Change((TreeEdit(opening, calling(function, arguments)),), imports)


def _assignment_around(target: Target) -> cst.SimpleStatementLine:
    parents = target.tree.parents
    assign = parents[target.call]
    line = parents[assign]
    if isinstance(assign, cst.Assign) and isinstance(line, cst.SimpleStatementLine):
        return line
    raise RefusalError("the result of `mktemp()` is not assigned directly to a variable")


def _renamed(target: Target) -> Change:
    """Give the temporary file a unique name where its fixed name is used or assigned."""
    tree, call = target.tree, target.call
    path = written_path(target)
    scope = next((node for node in tree.ancestors(call) if isinstance(node, cst.FunctionDef)), tree.module)
    if not isinstance(path, cst.Name):
        return _named(target, path, scope)
    lines = [line for line in m.findall(scope, m.SimpleStatementLine()) if _assigns(line, path.value)]
    if len(lines) != 1 or not isinstance(lines[0], cst.SimpleStatementLine):
        raise RefusalError(f"`{path.value}` is not assigned exactly once in the function")
    folder, imports = _folder(target, cst.ensure_type(lines[0].body[0], cst.Assign).value)
    made = _made(target, lines[0], [named("dir", folder)])
    return Change(made.edits, (*made.imports, *imports))


def _named(target: Target, path: cst.BaseExpression, scope: cst.CSTNode) -> Change:
    """Introduce a variable for a path that is repeated as an expression."""
    tree = target.tree
    spelled = tree.module.code_for_node(path)
    same = [
        node
        for node in m.findall(scope, m.MatchIfTrue(lambda node: isinstance(node, type(path))))
        if tree.module.code_for_node(node) == spelled
    ]
    statement = statement_of(target)
    early = [node for node in same if tree.span(node) < tree.span(statement)]
    if early or len(same) == 1:
        raise RefusalError("the temporary path is used before the call, or not used again after it")
    temporary = cst.Name(fresh(target, "temporary"))
    folder, imports = _folder(target, path)
    making, more = _making(target, temporary, [named("dir", folder)])
    edits = [put(node, temporary) for node in same]
    lines = [own_line(target, each) for each in making]
    return Change((*edits, beside(target, statement, *lines, before=True)), (*imports, *more))


def _folder(target: Target, name: cst.BaseExpression) -> Spelled:
    """Return the directory of a path."""
    bare = name.with_changes(lpar=[], rpar=[])
    if isinstance(bare, cst.SimpleString) and isinstance(bare.evaluated_value, str):
        return cst.SimpleString(repr(posixpath.dirname(bare.evaluated_value) or ".")), ()
    path, imports = spell(target, "os", "path", "import os")
    named = cst.Call(cst.Attribute(path, cst.Name("dirname")), [cst.Arg(bare)])
    return cst.BooleanOperation(named, cst.Or(), cst.SimpleString('"."')), imports


def _assigns(line: cst.CSTNode, name: str) -> bool:
    pattern = m.SimpleStatementLine(body=[m.Assign(targets=[m.AssignTarget(target=m.Name(name))])])
    return m.matches(line, pattern)


def _made(target: Target, line: cst.SimpleStatementLine, arguments: list[cst.Arg]) -> Change:
    """Turn `name = …` into `descriptor, name = tempfile.mkstemp(…)`, and close the descriptor."""
    assign = line.body[0]
    if len(line.body) != 1 or not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        raise RefusalError("the temporary path is not assigned to one variable on its own line")
    name = assign.targets[0].target
    if not isinstance(name, cst.Name):
        raise RefusalError("the temporary path is not assigned to a plain variable")
    (made, close), imports = _making(target, name, arguments)
    return Change((put(line, line.with_changes(body=[made]), own_line(target, close)),), imports)


def _making(
    target: Target, name: cst.Name, arguments: list[cst.Arg]
) -> tuple[tuple[cst.Assign, cst.Expr], tuple[str, ...]]:
    """Return the statements that create and close a file, and the import lines that they need."""
    function, imports = spell(target, "tempfile", "mkstemp", "import tempfile")
    closing, more = spell(target, "os", "close", "import os")
    descriptor = cst.Name(fresh(target, "descriptor"))
    pair = cst.Tuple([cst.Element(descriptor), cst.Element(name)], lpar=[], rpar=[])
    made = cst.Assign([cst.AssignTarget(pair)], cst.Call(function, arguments))
    return (made, cst.Expr(cst.Call(closing, [cst.Arg(descriptor)]))), (*imports, *more)
