"""Put a statement under a test, into a context, or another one beside it."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.fixes.recipe import RefusalError, TreeEdit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsrace_lint.fixes.recipe import Target
    from fsrace_lint.fixes.tree import Tree

Whole = cst.SimpleStatementLine | cst.With

_FUNCTIONS: Final = (cst.FunctionDef, cst.Lambda, cst.ClassDef)
_ASKING: Final = frozenset(
    {"exists", "isdir", "isfile", "is_dir", "is_file", "lexists", "listdir", "iterdir"}
)
_TOLD = m.Name("print") | m.Name("debug") | m.Name("info") | m.Name("warning") | m.Name("error")
_TELLING: Final = m.Call(func=_TOLD) | m.Call(func=m.Attribute(attr=_TOLD))
"""Calls that only tell of a path."""
_HANDED: Final = m.Arg() | m.FormattedStringExpression() | m.BinaryOperation()
_LEAVING: Final = m.Return() | m.Yield() | m.Break() | m.Continue() | m.Raise() | m.Await()
_BINDING: Final = (
    m.AssignTarget(target=m.Name()) | m.AnnAssign(target=m.Name()) | m.NamedExpr() | m.AsName(name=m.Name())
)


def statement_of(target: Target) -> Whole:
    """Give the whole statement that makes the call: a line of its own, or the `with` that opens by it.

    Raises:
        RefusalError: The call stands in a test, a loop or among other statements.
    """
    tree = target.tree
    child: cst.CSTNode = target.call
    for node in tree.ancestors(target.call):
        if isinstance(node, _FUNCTIONS):
            break
        if isinstance(node, cst.SimpleStatementLine):
            if len(node.body) != 1 or not isinstance(tree.parents[node], cst.IndentedBlock | cst.Module):
                break
            return node
        if isinstance(node, cst.With) and isinstance(child, cst.WithItem):
            return node
        child = node
    raise RefusalError("the call is not a statement of its own")


def refuse_leaving(target: Target, statement: Whole) -> None:
    """Refuse a statement that ends its function or its loop, or whose results are used behind it.

    Raises:
        RefusalError: It does: other processes, which skip it, would go another way.
    """
    body = statement.body if isinstance(statement, cst.With) else statement
    for found in m.findall(body, _LEAVING):
        if _function(target.tree, found) is _function(target.tree, statement):
            raise RefusalError("the statement also leaves its block, which the other processes would not")
    names = _bound(statement)
    inside = set(m.findall(statement, m.Name()))
    scope = _function(target.tree, statement)
    for name in m.findall(scope, m.Name()):
        if not isinstance(name, cst.Name) or name.value not in names or name in inside:
            continue
        if not _is_bound_anew(target.tree, name):
            raise RefusalError(f"{name.value} is used elsewhere, and would not be there on other processes")


def _is_bound_anew(tree: Tree, name: cst.Name) -> bool:
    """Tell whether a name stands in another `with` that binds it itself."""
    return any(
        isinstance(node, cst.With)
        and any(
            item.asname is not None and m.matches(item.asname.name, m.Name(name.value)) for item in node.items
        )
        for node in tree.ancestors(name)
    )


def is_used_below(target: Target) -> bool:
    """Tell whether the name that holds the path goes into a call or a text below the statement."""
    tree = target.tree
    statement = statement_of(target)
    end = tree.span(statement).end_line
    told = {name for call in m.findall(tree.module, _TELLING) for name in m.findall(call, m.Name())}
    used = (
        name
        for argument in m.findall(_function(tree, statement), _HANDED)
        for name in m.findall(argument, m.Name(target.fix.path))
        if name not in told
    )
    return target.fix.path.isidentifier() and any(tree.span(name).line > end for name in used)


def refuse_unasked(target: Target, path: cst.BaseExpression) -> None:
    """Refuse to take what is at a path for the result, where nothing asks whether it is there.

    Raises:
        RefusalError: No test of that very path stands before the call in its function.
    """
    tree = target.tree
    spelled = _said(tree, path)
    scope = _function(tree, target.call)
    for call in m.findall(scope, m.Call(func=m.Attribute() | m.Name())):
        if not isinstance(call, cst.Call) or tree.span(call) >= tree.span(target.call):
            continue
        function = call.func
        name = function.attr.value if isinstance(function, cst.Attribute) else getattr(function, "value", "")
        owner = [function.value] if isinstance(function, cst.Attribute) else []
        asked = [*owner, *(argument.value for argument in call.args[:1])]
        if name in _ASKING and any(_said(tree, each) == spelled for each in asked):
            return
    raise RefusalError("nothing asks whether it is there already, and what is there may be something else")


def _said(tree: Tree, expression: cst.BaseExpression) -> str:
    return tree.module.code_for_node(expression.with_changes(lpar=[], rpar=[]))


def refuse_scattered(target: Target, statement: cst.CSTNode) -> None:
    """Refuse a statement that leaves its block: what it would be put around is left by that too.

    Raises:
        RefusalError: It does, or it defines something.
    """
    if isinstance(statement, _FUNCTIONS):
        raise RefusalError("what stands below only defines something")
    for found in m.findall(statement, _LEAVING):
        if _function(target.tree, found) is _function(target.tree, statement):
            raise RefusalError("the statement below leaves its block")


def _bound(statement: cst.CSTNode) -> frozenset[str]:
    found = set()
    for node in m.findall(statement, _BINDING):
        target = node.name if isinstance(node, cst.AsName) else getattr(node, "target", None)
        if isinstance(target, cst.Name):
            found.add(target.value)
    return frozenset(found)


def _function(tree: Tree, node: cst.CSTNode) -> cst.CSTNode:
    around = (outer for outer in tree.ancestors(node) if isinstance(outer, _FUNCTIONS))
    return next(around, tree.module)


def under(target: Target, statement: Whole, test: cst.BaseExpression) -> TreeEdit:
    """Put a statement under `if test:`."""
    indent, newline = target.tree.indent(statement), target.tree.newline

    def wrapped(line: Whole) -> cst.If:
        block = suite([line.with_changes(leading_lines=())], indent, newline)
        return cst.If(test=test, body=block, leading_lines=line.leading_lines)

    return TreeEdit(statement, wrapped)


def beside(
    target: Target, statement: cst.BaseStatement, *added: cst.BaseSmallStatement, before: bool = False
) -> TreeEdit:
    """Put statements on lines of their own behind another one, or in front of it.

    Raises:
        RefusalError: The statement is no member of a block, as an `elif` is none.
    """
    tree = target.tree
    if not isinstance(tree.parents[statement], cst.IndentedBlock | cst.Module):
        raise RefusalError("nothing can be put beside an elif")
    lines = [own_line(target, small) for small in added]
    return TreeEdit(statement, partial(_with_lines, lines=lines, before=before), additive=True)


def own_line(target: Target, small: cst.BaseSmallStatement) -> cst.SimpleStatementLine:
    """Put a statement on a line, which ends as those of the file do."""
    end = cst.TrailingWhitespace(newline=target.tree.newline)
    return cst.SimpleStatementLine(body=[small], trailing_whitespace=end)


def _with_lines(
    statement: cst.BaseStatement, lines: Sequence[cst.SimpleStatementLine], *, before: bool
) -> cst.FlattenSentinel[cst.CSTNode]:
    if not before:
        return cst.FlattenSentinel([statement, *lines])
    first, *rest = lines
    leading: Sequence[cst.EmptyLine] = getattr(statement, "leading_lines", ())
    bare = statement.with_changes(leading_lines=())
    return cst.FlattenSentinel([first.with_changes(leading_lines=leading), *rest, bare])


def suite(body: Sequence[cst.BaseStatement], indent: str | None, newline: cst.Newline) -> cst.IndentedBlock:
    """Make the block of a compound statement."""
    return cst.IndentedBlock(body=body, header=cst.TrailingWhitespace(newline=newline), indent=indent)


def is_asked_in(target: Target, test: cst.BaseExpression) -> bool:
    """Tell whether the existence test that the fix is about stands in a condition."""
    check = target.tree.calls.get(target.fix.check) if target.fix.check is not None else None
    return check is not None and any(node is test for node in (check, *target.tree.ancestors(check)))


def refuse_looked_up(target: Target, statement: cst.CSTNode) -> None:
    """Refuse to put a barrier beside a statement that is reached, or not, as the filesystem answers.

    FSR403 says so of a repaired project; a fix that is only shown is not judged by it.

    Raises:
        RefusalError: Processes that get another answer would never come to it.
    """
    for around in target.tree.ancestors(statement):
        if isinstance(around, _FUNCTIONS):
            return
        test = around.test if isinstance(around, cst.If | cst.While) else None
        calls = [] if test is None else m.findall(test, m.Call())
        for call in calls:
            said = target.tree.module.code_for_node(cst.ensure_type(call, cst.Call).func)
            if said.rpartition(".")[2] in _ASKING:
                raise RefusalError(f"processes to which {said} says otherwise would not come to the barrier")


def enclosing_if(target: Target) -> cst.If:
    """Give the branch around the call whose test stands at the place that the fix names.

    Raises:
        RefusalError: There is none, it has another side, or it is left early.
    """
    for node in target.tree.ancestors(target.call):
        if isinstance(node, _FUNCTIONS):
            break
        if isinstance(node, cst.If) and target.tree.span(node.test) == target.fix.check:
            if node.orelse is not None:
                raise RefusalError("the rank test has an else, which the others take")
            if m.findall(node.body, _LEAVING):
                raise RefusalError("the branch of the rank test is left early, so not all would wait")
            return node
    raise RefusalError("the rank test is no plain branch around the call")


def fresh(target: Target, word: str) -> str:
    """Give a name that nothing in the file binds: the word, or the word with a number."""
    names = target.tree.names
    candidates = (word if number == 1 else f"{word}_{number}" for number in itertools.count(1))
    return next(name for name in candidates if not names.knows(name))
