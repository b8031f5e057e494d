"""Create a temporary file that no other process uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.fixes.arguments import OPEN, argument, calling, named
from fsrace_lint.fixes.blocks import fresh, own_line
from fsrace_lint.fixes.callee import api_of
from fsrace_lint.fixes.imports import spell
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit, put

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target

_NAMED: Final = ("suffix", "prefix", "dir")


def recipe(target: Target) -> Change:
    """Create the file instead of only a name."""
    if api_of(target) != "tempfile.mktemp":
        raise RefusalError("the call does not only name a file")
    parent = target.tree.parents[target.call]
    if isinstance(parent, cst.Arg):
        return _opened_at_once(target, parent)
    return _made(target, _assignment_around(target), list(target.call.args))


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
