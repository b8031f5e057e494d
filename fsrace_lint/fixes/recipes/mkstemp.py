"""Let the system make a temporary file that nobody else has."""

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
    """Make the file where `mktemp` only gives a name, or where the name is the same for all processes."""
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
        raise RefusalError("the name is not opened where it is made up")
    arguments = []
    for index, name in enumerate(OPEN):
        found = argument(opening, index, name)
        if found is not None and found is not given:
            arguments.append(named(name, found.value))
    if not any(each.keyword and each.keyword.value == "mode" for each in arguments):
        raise RefusalError("the file is opened to be read, and there is none")
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
    raise RefusalError("the name is not assigned where it is made up")


def _renamed(target: Target) -> Change:
    """Give the scratch file of all processes a name of its own, where its one name is written or assigned."""
    tree, call = target.tree, target.call
    path = written_path(target)
    scope = next((node for node in tree.ancestors(call) if isinstance(node, cst.FunctionDef)), tree.module)
    if not isinstance(path, cst.Name):
        return _named(target, path, scope)
    lines = [line for line in m.findall(scope, m.SimpleStatementLine()) if _assigns(line, path.value)]
    if len(lines) != 1 or not isinstance(lines[0], cst.SimpleStatementLine):
        raise RefusalError(f"{path.value} is not assigned once in the function")
    folder, imports = _folder(target, cst.ensure_type(lines[0].body[0], cst.Assign).value)
    made = _made(target, lines[0], [named("dir", folder)])
    return Change(made.edits, (*made.imports, *imports))


def _named(target: Target, path: cst.BaseExpression, scope: cst.CSTNode) -> Change:
    """Put a variable in the place of a name that is spelled out each time."""
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
        raise RefusalError("the scratch name is not used behind the call alone")
    temporary = cst.Name(fresh(target, "temporary"))
    folder, imports = _folder(target, path)
    making, more = _making(target, temporary, [named("dir", folder)])
    edits = [put(node, temporary) for node in same]
    return Change((*edits, beside(target, statement, *making, before=True)), (*imports, *more))


def _folder(target: Target, name: cst.BaseExpression) -> Spelled:
    """Give the folder that a name lies in."""
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
        raise RefusalError("the name is not assigned in a line of its own")
    name = assign.targets[0].target
    if not isinstance(name, cst.Name):
        raise RefusalError("the name is not held by a variable")
    (made, close), imports = _making(target, name, arguments)
    return Change((put(line, line.with_changes(body=[made]), own_line(target, close)),), imports)


def _making(
    target: Target, name: cst.Name, arguments: list[cst.Arg]
) -> tuple[tuple[cst.Assign, cst.Expr], tuple[str, ...]]:
    """Give the statements that make a file, hold its name, and close it, and the imports they need."""
    function, imports = spell(target, "tempfile", "mkstemp", "import tempfile")
    closing, more = spell(target, "os", "close", "import os")
    descriptor = cst.Name(fresh(target, "descriptor"))
    pair = cst.Tuple([cst.Element(descriptor), cst.Element(name)], lpar=[], rpar=[])
    made = cst.Assign([cst.AssignTarget(pair)], cst.Call(function, arguments))
    return (made, cst.Expr(cst.Call(closing, [cst.Arg(descriptor)]))), (*imports, *more)
