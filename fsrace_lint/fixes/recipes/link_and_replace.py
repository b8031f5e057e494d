"""Create a link under a unique name, then rename it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from fsrace_lint.fixes.arguments import needed, refuse_other
from fsrace_lint.fixes.blocks import fresh, own_line
from fsrace_lint.fixes.callee import api_of
from fsrace_lint.fixes.imports import spell
from fsrace_lint.fixes.recipe import Change, RefusalError, put
from fsrace_lint.fixes.statements import own_statement
from fsrace_lint.fixes.text import is_text

if TYPE_CHECKING:
    from fsrace_lint.fixes.coordination import Spelled
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Create the link with `os.symlink()` under a unique name in the same directory, then `os.replace()` it.

    `os.fsdecode()` converts the path to text if it may be bytes or a path object.
    """
    call, line = target.call, own_statement(target)
    if api_of(target) != "os.symlink" or not isinstance(line, cst.SimpleStatementLine):
        raise RefusalError("the call is not an `os.symlink()` statement on its own line")
    refuse_other(call, 2, "src", "dst", "target_is_directory")
    link = needed(call, 1, "dst")
    if not isinstance(link, cst.Name | cst.Attribute):
        raise RefusalError("the link path is not simple enough to evaluate twice")
    replace, imports = spell(target, "os", "replace", "import os")
    chance, more = spell(target, "uuid", "uuid4", "import uuid")
    name = cst.Name(fresh(target, "temporary"))
    said = target.tree.module.code_for_node(link)
    spelled, needed_for_it = _as_text(target, cst.parse_expression(said), link)
    unique = cst.FormattedStringExpression(cst.Attribute(cst.Call(chance), cst.Name("hex")))
    text = cst.FormattedString([cst.FormattedStringExpression(spelled), cst.FormattedStringText("."), unique])
    naming = own_line(target, cst.Assign([cst.AssignTarget(name)], text))
    linking = cst.ensure_type(line.deep_replace(link, name), cst.SimpleStatementLine)
    renaming = own_line(
        target, cst.Expr(cst.Call(replace, [cst.Arg(name), cst.Arg(cst.parse_expression(said))]))
    )
    first = naming.with_changes(leading_lines=line.leading_lines)
    return Change(
        (put(line, first, linking.with_changes(leading_lines=()), renaming),),
        (*imports, *needed_for_it, *more),
    )


def _as_text(target: Target, link: cst.BaseExpression, node: cst.BaseExpression) -> Spelled:
    if is_text(target.tree, node):
        return link, ()
    decode, imports = spell(target, "os", "fsdecode", "import os")
    return cst.Call(decode, [cst.Arg(link)]), imports
