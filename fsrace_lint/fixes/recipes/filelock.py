"""Replace a hand-written lock file with a lock of the operating system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.fixes.blocks import is_asked_in, suite
from fsrace_lint.fixes.coordination import named_helper
from fsrace_lint.fixes.imports import spell
from fsrace_lint.fixes.recipe import Change, RefusalError, drop, put

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsrace_lint.fixes.recipe import Target

_DELETING: Final = frozenset({"remove", "unlink"})


def recipe(target: Target) -> Change:
    """Wrap the code between the creation and the deletion of the lock file in `with FileLock(path):`."""
    tree = target.tree
    line = next((n for n in tree.ancestors(target.call) if isinstance(n, cst.BaseStatement)), None)
    block = None if line is None else tree.parents[line]
    if line is None or not isinstance(block, cst.IndentedBlock | cst.Module):
        raise RefusalError("the lock file is not created by a statement on its own line")
    body = list(block.body)
    index = body.index(line)
    waiting, below = body[index - 1] if index else None, body[index + 1 :]
    if not isinstance(waiting, cst.While) or not is_asked_in(target, waiting.test):
        raise RefusalError("no `while` loop directly before it waits for the lock file to disappear")
    path = _path(target, waiting)
    work, used = _work(below)
    if any(m.findall(node, m.Comment()) for node in (waiting, line)):
        raise RefusalError("a comment would be lost")
    lock, imports = named_helper(target, "lock") or spell(
        target, "filelock", "FileLock", "from filelock import FileLock"
    )
    manager = cst.WithItem(cst.Call(lock, [cst.Arg(path)]))
    inner = suite(work, tree.indent(line), tree.newline)
    held = cst.With(items=[manager], body=inner, leading_lines=waiting.leading_lines)
    return Change((drop(waiting), put(line, held), *map(drop, below[:used])), imports)


def _path(target: Target, loop: cst.While) -> cst.BaseExpression:
    check = cst.ensure_type(target.tree.calls[target.fix.check], cst.Call) if target.fix.check else None
    if check is None or loop.test is not check:
        raise RefusalError("the `while` loop tests more than the existence of the lock file")
    if check.args:
        return check.args[0].value
    return cst.ensure_type(check.func, cst.Attribute).value


def _work(below: Sequence[cst.CSTNode]) -> tuple[Sequence[cst.BaseStatement], int]:
    """Return the statements under the lock, and how many statements to replace in total."""
    first = below[0] if below else None
    if isinstance(first, cst.Try) and not first.handlers and first.finalbody is not None:
        final = first.finalbody.body.body
        if len(final) == 1 and _deletes(final[0]) and isinstance(first.body, cst.IndentedBlock):
            return first.body.body, 1
    for index, statement in enumerate(below):
        if index and _deletes(statement):
            return [s for s in below[:index] if isinstance(s, cst.BaseStatement)], index + 1
    raise RefusalError("no later statement of the block deletes the lock file")


def _deletes(statement: cst.CSTNode) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    expression = statement.body[0]
    call = expression.value if isinstance(expression, cst.Expr) else None
    return (
        isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value in _DELETING
    )
