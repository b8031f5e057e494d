"""Wrap statements in blocks, add statements next to them, and refuse where that is unsafe."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.fixes.nodes import REPORT, last_name
from fsrace_lint.fixes.recipe import RefusalError, TreeEdit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsrace_lint.fixes.recipe import Target
    from fsrace_lint.fixes.tree import Tree

Whole = cst.SimpleStatementLine | cst.With

_FUNCTIONS: Final = (cst.FunctionDef, cst.Lambda, cst.ClassDef)
ASKING: Final = frozenset({"exists", "isdir", "isfile", "is_dir", "is_file", "lexists", "listdir", "iterdir"})
_HANDED: Final = m.Arg() | m.FormattedStringExpression() | m.BinaryOperation()
_LEAVING: Final = m.Return() | m.Yield() | m.Break() | m.Continue() | m.Raise() | m.Await()
_BINDING: Final = (
    m.AssignTarget(target=m.Name()) | m.AnnAssign(target=m.Name()) | m.NamedExpr() | m.AsName(name=m.Name())
)
_CHANGING: Final = (
    m.Name("append") | m.Name("add") | m.Name("update") | m.Name("extend") | m.Name("insert")
    | m.Name("pop") | m.Name("popitem") | m.Name("remove") | m.Name("discard") | m.Name("clear")
    | m.Name("setdefault")
)  # fmt: skip
_STORING: Final = (
    m.AssignTarget(target=m.Attribute() | m.Subscript())
    | m.AugAssign()
    | m.Call(func=m.Attribute(attr=_CHANGING))
)
_MOST_LINES: Final = 12
"""The number of lines from which on a block is not indented for one call."""


def statement_of(target: Target) -> Whole:
    """Return the statement that makes the call: a line of its own, or the `with` that it opens.

    Raises:
        RefusalError: The call is in a condition, in a loop header, or on a line with other statements.
    """
    tree = target.tree
    child: cst.CSTNode = target.call
    for node in tree.ancestors(target.call):
        if isinstance(node, _FUNCTIONS):
            break
        if isinstance(node, cst.SimpleStatementLine):
            if len(node.body) != 1 or not isinstance(tree.parents[node], cst.IndentedBlock | cst.Module):
                break
            return _opening(tree, node)
        if isinstance(node, cst.With) and isinstance(child, cst.WithItem):
            return node
        child = node
    raise RefusalError("the call is not a statement on its own line")


def _opening(tree: Tree, line: cst.SimpleStatementLine) -> Whole:
    """Return the `with` block that opens what the one line in it uses, or the line."""
    block = tree.parents[line]
    around = tree.parents.get(block)
    if not isinstance(around, cst.With) or len(around.body.body) != 1:
        return line
    names = [item.asname.name for item in around.items if item.asname is not None]
    used = {name.value for name in m.findall(line, m.Name()) if isinstance(name, cst.Name)}
    opened = [name.value for name in names if isinstance(name, cst.Name)]
    return around if len(opened) == len(around.items) and used.issuperset(opened) else line


def refuse_long(target: Target, statement: Whole) -> None:
    """Refuse to indent a long block.

    Raises:
        RefusalError: The block has more lines than a reviewer wants to see indented for one call.
    """
    span = target.tree.span(statement)
    lines = span.end_line - span.line + 1
    if isinstance(statement, cst.With) and lines > _MOST_LINES:
        raise RefusalError(f"the block has {lines} lines, and all of them would run on rank 0 only")


def refuse_leaving(target: Target, statement: Whole) -> None:
    """Refuse a statement that exits its function or loop, or that changes what is used elsewhere.

    Raises:
        RefusalError: Ranks that skip the statement would take another path, or miss a value.
    """
    _refuse_stored(target, statement)
    body = statement.body if isinstance(statement, cst.With) else statement
    for found in m.findall(body, _LEAVING):
        if _function(target.tree, found) is _function(target.tree, statement):
            raise RefusalError(f"the statement contains `{_word(found)}`, which the other ranks would skip")
    names = _bound(statement)
    inside = set(m.findall(statement, m.Name()))
    scope = _function(target.tree, statement)
    for name in m.findall(scope, m.Name()):
        if not isinstance(name, cst.Name) or name.value not in names or name in inside:
            continue
        if not _is_bound_anew(target.tree, name):
            raise RefusalError(f"`{name.value}` is used elsewhere and would be undefined on the other ranks")


def _refuse_stored(target: Target, statement: Whole) -> None:
    """Refuse a statement that stores something in an object or a collection that exists outside of it."""
    own = _bound(statement)
    code = target.tree.module.code_for_node
    for node in m.findall(statement, _STORING):
        stored = node.target if isinstance(node, cst.AssignTarget | cst.AugAssign) else None
        changed = (
            node.func.value if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else stored
        )
        root = changed
        while isinstance(root, cst.Attribute | cst.Subscript):
            root = root.value
        if changed is not None and not (isinstance(root, cst.Name) and root.value in own):
            raise RefusalError(f"the statement changes `{code(changed)}`, which the other ranks may need")


def _is_bound_anew(tree: Tree, name: cst.Name) -> bool:
    """Check whether the name is inside another `with` that binds it again."""
    return any(
        isinstance(node, cst.With)
        and any(
            item.asname is not None and m.matches(item.asname.name, m.Name(name.value)) for item in node.items
        )
        for node in tree.ancestors(name)
    )


def is_used_below(target: Target) -> bool:
    """Check whether a call or an f-string after the statement uses the variable with the path."""
    tree = target.tree
    statement = statement_of(target)
    end = tree.span(statement).end_line
    told = {name for call in m.findall(tree.module, REPORT) for name in m.findall(call, m.Name())}
    used = (
        name
        for argument in m.findall(_function(tree, statement), _HANDED)
        for name in m.findall(argument, m.Name(target.fix.path))
        if name not in told
    )
    return target.fix.path.isidentifier() and any(tree.span(name).line > end for name in used)


def refuse_unasked(target: Target, path: cst.BaseExpression) -> None:
    """Refuse to treat an existing path as the result if the code never checks for it.

    Raises:
        RefusalError: The function has no existence check of the same path before the call.
    """
    tree = target.tree
    spelled = _said(tree, path)
    scope = _function(tree, target.call)
    for call in m.findall(scope, m.Call(func=m.Attribute() | m.Name())):
        if not isinstance(call, cst.Call) or tree.span(call) >= tree.span(target.call):
            continue
        function = call.func
        owner = [function.value] if isinstance(function, cst.Attribute) else []
        asked = [*owner, *(argument.value for argument in call.args[:1])]
        if last_name(function) in ASKING and any(_said(tree, each) == spelled for each in asked):
            return
    raise RefusalError(
        "no existence check of this path precedes the call, so an existing one may be outdated"
    )


def _said(tree: Tree, expression: cst.BaseExpression) -> str:
    return tree.module.code_for_node(expression.with_changes(lpar=[], rpar=[]))


def refuse_scattered(target: Target, statement: cst.CSTNode) -> None:
    """Refuse to wrap a statement that exits its block, or that is a definition.

    Raises:
        RefusalError: The statement contains `return` or similar, or defines a function or class.
    """
    if isinstance(statement, _FUNCTIONS):
        raise RefusalError("the next statement only defines a function or class")
    for found in m.findall(statement, _LEAVING):
        if _function(target.tree, found) is _function(target.tree, statement):
            raise RefusalError(
                f"the next statement contains `{_word(found)}`, which could leave the context early"
            )


def _word(leaving: cst.CSTNode) -> str:
    """Return the keyword of a node that exits its block."""
    return type(leaving).__name__.lower()


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
    """Wrap a statement in `if test:`."""
    indent, newline = target.tree.indent(statement), target.tree.newline

    def wrapped(line: Whole) -> cst.If:
        block = suite([line.with_changes(leading_lines=())], indent, newline)
        return cst.If(test=test, body=block, leading_lines=line.leading_lines)

    return TreeEdit(statement, wrapped, joins=True)


def beside(
    target: Target, statement: cst.BaseStatement, *lines: cst.BaseStatement, before: bool = False
) -> TreeEdit:
    """Add statements after or before another statement.

    Raises:
        RefusalError: The statement is not directly in a block, such as an `elif`.
    """
    tree = target.tree
    if not isinstance(tree.parents[statement], cst.IndentedBlock | cst.Module):
        raise RefusalError("code cannot be added before or after an `elif` branch")
    adds = f"{before} {''.join(tree.module.code_for_node(line) for line in lines)}"
    rewrite = partial(_with_lines, lines=lines, before=before)
    return TreeEdit(statement, rewrite, additive=True, adds=adds, joins=True)


def own_line(target: Target, small: cst.BaseSmallStatement) -> cst.SimpleStatementLine:
    """Put a statement on its own line, with the line ending of the file."""
    end = cst.TrailingWhitespace(newline=target.tree.newline)
    return cst.SimpleStatementLine(body=[small], trailing_whitespace=end)


def _with_lines(
    statement: cst.BaseStatement, lines: Sequence[cst.BaseStatement], *, before: bool
) -> cst.FlattenSentinel[cst.CSTNode]:
    if not before:
        return cst.FlattenSentinel([statement, *lines])
    first, *rest = lines
    leading: Sequence[cst.EmptyLine] = getattr(statement, "leading_lines", ())
    bare = statement.with_changes(leading_lines=())
    return cst.FlattenSentinel([first.with_changes(leading_lines=leading), *rest, bare])


def suite(body: Sequence[cst.BaseStatement], indent: str | None, newline: cst.Newline) -> cst.IndentedBlock:
    """Create the block of a compound statement."""
    return cst.IndentedBlock(body=body, header=cst.TrailingWhitespace(newline=newline), indent=indent)


def is_asked_in(target: Target, test: cst.BaseExpression) -> bool:
    """Check whether a condition contains the existence check that the fix is about."""
    check = target.tree.calls.get(target.fix.check) if target.fix.check is not None else None
    return check is not None and any(node is test for node in (check, *target.tree.ancestors(check)))


def refuse_looked_up(target: Target, statement: cst.CSTNode) -> None:
    """Refuse to add a barrier where a filesystem check decides whether a rank gets there.

    FSR403 reports this in a fixed project, but a fix that is only shown is not checked again.

    Raises:
        RefusalError: Ranks for which the check differs would never reach the barrier.
    """
    for around in target.tree.ancestors(statement):
        if isinstance(around, _FUNCTIONS):
            return
        test = around.test if isinstance(around, cst.If | cst.While) else None
        calls = [] if test is None else m.findall(test, m.Call())
        for call in calls:
            said = target.tree.module.code_for_node(cst.ensure_type(call, cst.Call).func)
            if said.rpartition(".")[2] in ASKING:
                raise RefusalError(
                    f"ranks can disagree on `{said}()`, and the added barrier hangs if some ranks skip it"
                )


def enclosing_if(target: Target) -> cst.If:
    """Return the `if` around the call whose test is at the position that the fix names.

    Raises:
        RefusalError: There is none, it has an `else` branch, or its body exits early.
    """
    for node in target.tree.ancestors(target.call):
        if isinstance(node, _FUNCTIONS):
            break
        if isinstance(node, cst.If) and target.tree.span(node.test) == target.fix.check:
            if node.orelse is not None:
                raise RefusalError("the rank check has an `else` branch, which the other ranks run")
            leaving = m.findall(node.body, _LEAVING)
            if leaving:
                said = _word(leaving[0])
                raise RefusalError(
                    f"the branch of the rank check contains `{said}`, which could skip the barrier"
                )
            return node
    raise RefusalError("the rank check is not a plain `if` statement around the call")


def fresh(target: Target, word: str) -> str:
    """Return a name that the file does not use: the word, or the word with a number."""
    names = target.tree.names
    candidates = (word if number == 1 else f"{word}_{number}" for number in itertools.count(1))
    return next(name for name in candidates if not names.knows(name))
