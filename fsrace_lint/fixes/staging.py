"""Write under a unique name in the same directory, then rename: plain code, in the style of the file."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.fixes.blocks import own_line
from fsrace_lint.fixes.downloads import refuse_other_kind, refuse_resumed, verification
from fsrace_lint.fixes.imports import spell
from fsrace_lint.fixes.nodes import REPORT, within
from fsrace_lint.fixes.older_strings import without_f_strings
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit, put
from fsrace_lint.fixes.statements import leaving
from fsrace_lint.fixes.text import ending_of, is_path, is_text
from fsrace_lint.fixes.tree import SCOPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.fixes.blocks import Whole
    from fsrace_lint.fixes.recipe import Target
    from fsrace_lint.fixes.tree import Tree

TEMPORARY: Final = ("tmp_path", "temp_path", "temporary_path")
_DESTINATION: Final = ("path", "file_path", "target_path")
_OPENING: Final = m.Call(
    func=m.Name("open") | m.Attribute(attr=m.Name("open")),
    args=[
        m.ZeroOrMore(),
        m.Arg(m.SimpleString(m.MatchRegex(r"[\"']w[bt]?[\"']"))),
        m.ZeroOrMore(),
    ],
)
_DOING: Final = m.Await() | m.Yield() | m.NamedExpr()


def publish(
    target: Target,
    statement: Whole,
    path: cst.BaseExpression,
    *,
    is_method: bool = False,
    keeps_suffix: bool = False,
    is_exact: bool = False,
    held: cst.With | None = None,
) -> Change:
    """Pass a unique name to the code that writes a path, and rename the file after the statement.

    The name is unique on all nodes that share the filesystem, and a new file gets the usual permissions.

    Args:
        target: The call.
        statement: The statement that makes the call, or the `with` that opens the file.
        path: The path, as an argument of the call, or as the object whose method is called.
        is_method: Whether it is the object.
        keeps_suffix: Whether the written format depends on the suffix.
        is_exact: Whether a path in bytes must work too.
        held: The same statement as a `with` that opens the file and closes it.

    Raises:
        RefusalError: The file would not be renamed, or the code uses the path before that.
    """
    _refuse_uses(target, statement, path)
    _refuse_skipping(target, statement)
    refuse_resumed(target, path)
    target.refuse_before((3, 3), "`os.replace()`")
    place = _unwrapped(target.tree, _bare(path))
    lines: list[cst.BaseSmallStatement] = []
    if not (_is_simple(place) or (is_literal(place) and not is_method)):
        name = cst.Name(unused_name(target.tree, statement, _DESTINATION))
        lines.append(cst.Assign([cst.AssignTarget(name)], place))
        place = name
    is_pathlib = is_method or (is_path(target.tree, path) and not target.tree.names.is_module("os"))
    text, imports = _unique(
        target, place, path, is_pathlib=is_pathlib, keeps_suffix=keeps_suffix, is_exact=is_exact
    )
    temporary = cst.Name(unused_name(target.tree, statement, TEMPORARY))
    lines.append(cst.Assign([cst.AssignTarget(temporary)], parsed(target, text)))
    if is_pathlib:
        move: cst.BaseExpression = cst.Attribute(temporary, cst.Name("replace"))
        arguments = [cst.Arg(place)]
    else:
        move, more = spell(target, "os", "replace", "import os")
        arguments, imports = [cst.Arg(temporary), cst.Arg(place)], (*imports, *more)
    before = [own_line(target, line) for line in lines]
    after = [own_line(target, cst.Expr(cst.Call(move, arguments)))]
    checked = verification(target, statement, path)
    around = partial(_between, before=before, after=after if checked is None else ())
    if held is None:
        edits = [put(path, temporary), TreeEdit(statement, around)]
    else:
        written = cst.ensure_type(held.deep_replace(path, temporary), cst.With)
        edits = [TreeEdit(statement, lambda _: around(written), whole=True)]
    if checked is not None:
        refuse_other_kind(target, checked, path, is_pathlib=is_pathlib)
        edits += [put(each, temporary) for each in checked.paths]
        edits.append(TreeEdit(checked.last, partial(_between, before=(), after=after)))
    return Change(tuple(edits), imports)


def random_part(target: Target) -> tuple[str, tuple[str, ...]]:
    """Return what makes a name unique on all nodes, as code in an f-string, and the imports that it needs."""
    chance, imports = spell(target, "uuid", "uuid4", "import uuid")
    return f"{{{target.tree.module.code_for_node(chance)}().hex}}", imports


def parsed(target: Target, text: str) -> cst.BaseExpression:
    """Parse an expression, and write its f-strings as the oldest supported Python can read them."""
    expression = cst.parse_expression(text)
    return without_f_strings(expression, target.tree.text) if target.lacks((3, 6)) else expression


def _unique(
    target: Target,
    place: cst.BaseExpression,
    path: cst.BaseExpression,
    *,
    is_pathlib: bool,
    keeps_suffix: bool,
    is_exact: bool,
) -> tuple[str, tuple[str, ...]]:
    """Return the expression for the unique name, and the imports that it needs."""
    tree = target.tree
    said = tree.module.code_for_node(place)
    unique, imports = random_part(target)
    quote = "'" if tree.text.count("'") > 2 * tree.text.count('"') else '"'
    suffix = ".tmp"
    if keeps_suffix:
        suffix = ending_of(tree, path)
        if not suffix and is_pathlib:
            suffix = f"{{{said}.suffix}}"
        elif not suffix and not isinstance(place, cst.SimpleString):
            parts, more = spell(target, "os", "path", "import os")
            imports = (*imports, *more)
            suffix = f"{{{tree.module.code_for_node(parts)}.splitext({said})[1]}}"
    if is_pathlib:
        return f"{said}.with_name(f{quote}{{{said}.name}}.{unique}{suffix}{quote})", imports
    if isinstance(place, cst.SimpleString):
        return f"f{place.quote}{place.raw_value}.{unique}{suffix}{place.quote}", imports
    if is_exact and not is_text(tree, path):
        decode, more = spell(target, "os", "fsdecode", "import os")
        said, imports = f"{tree.module.code_for_node(decode)}({said})", (*imports, *more)
    return f"f{quote}{{{said}}}.{unique}{suffix}{quote}", imports


def _refuse_uses(target: Target, statement: Whole, path: cst.BaseExpression) -> None:
    """Refuse a path that the statement computes, or that the code around it uses for something else.

    Raises:
        RefusalError: The code would find the old file, or none.
    """
    tree = target.tree
    if m.findall(path, _DOING):
        raise RefusalError("the path cannot be computed before the statement")
    said = tree.module.code_for_node(_bare(path))
    for block in _handlers(tree, statement):
        if _uses(tree, block, path):
            raise RefusalError(f"the code that handles a failure uses `{said}`, which does not exist then")
    if not isinstance(statement, cst.With):
        return
    bound = {item.asname.name for item in statement.items if item.asname is not None}
    names = {name.value for each in bound for name in m.findall(each, m.Name()) if isinstance(name, cst.Name)}
    if any(isinstance(name, cst.Name) and name.value in names for name in m.findall(path, m.Name())):
        raise RefusalError("the path is known only inside the `with` statement")
    if _uses(tree, statement.body, path):
        raise RefusalError(f"the `with` statement uses `{said}` before the file is complete")
    for name in names:
        if m.findall(statement.body, m.Attribute(value=m.Name(name), attr=m.Name("name"))):
            raise RefusalError(f"the `with` statement uses `{name}.name`, which would be the temporary name")
    for call in m.findall(statement.body, m.Call()):
        called = tree.module.code_for_node(cst.ensure_type(call, cst.Call).func)
        if "lock" in called.rpartition(".")[2].lower():
            raise RefusalError(f"`{called}()` locks the file, and a lock does not survive the rename")


def _handlers(tree: Tree, statement: Whole) -> Iterator[cst.CSTNode]:
    """Yield the blocks of the function that run if the statement fails."""
    below: cst.CSTNode = statement
    for around in tree.ancestors(statement):
        if isinstance(around, SCOPES):
            return
        if isinstance(around, cst.Try) and below is around.body:
            yield from (*around.handlers, *([] if around.finalbody is None else [around.finalbody]))
        below = around


def _uses(tree: Tree, block: cst.CSTNode, path: cst.BaseExpression) -> bool:
    """Check whether code uses a path, and does not only report it."""
    said = tree.module.code_for_node(_bare(path))
    told = {node for call in m.findall(block, REPORT) for node in within(call)}
    same = m.findall(block, m.MatchIfTrue(lambda node: isinstance(node, type(path))))
    return any(node not in told and tree.module.code_for_node(_bare(node)) == said for node in same)


def _bare(path: Any) -> Any:  # an expression
    return path.with_changes(lpar=[], rpar=[])


def _refuse_skipping(target: Target, statement: Whole) -> None:
    """Refuse a block that can leave without an exception before the rename.

    Raises:
        RefusalError: The block contains `return`, or leaves a loop around it.
    """
    found = leaving(target.tree, statement) if isinstance(statement, cst.With) else None
    if found is not None:
        said = type(found).__name__.lower()
        raise RefusalError(f"the `with` statement contains `{said}`, which would skip the rename")


def unused_name(tree: Tree, statement: Whole, words: Sequence[str]) -> str:
    """Return a name for a variable of the function that a statement is in: the first free word.

    A nested statement takes the next word, because the outer one can get the same fix.
    """
    around = list(tree.ancestors(statement))
    scope = next((node for node in around if isinstance(node, SCOPES)), tree.module)
    taken = {name for node in m.findall(scope, m.Name()) for name in _variable(tree, node)}
    if not isinstance(scope, cst.FunctionDef):
        taken |= tree.names.bound
    inside = itertools.takewhile(lambda node: node is not scope, around)
    depth = sum(
        isinstance(node, cst.With) and any(m.matches(item.item, _OPENING) for item in node.items)
        for node in inside
    )
    numbered = (f"{word}_{number}" for number in itertools.count(2) for word in words)
    free = (name for name in itertools.chain(words, numbered) if name not in {*taken, *tree.names.imported})
    return next(itertools.islice(free, depth, None))


def _variable(tree: Tree, name: cst.CSTNode) -> Sequence[str]:
    """Return a name if it is a variable, and not an attribute or a keyword."""
    around = tree.parents[name]
    is_other = (isinstance(around, cst.Attribute) and around.attr is name) or (
        isinstance(around, cst.Arg) and around.keyword is name
    )
    return () if is_other or not isinstance(name, cst.Name) else (name.value,)


def _unwrapped(tree: Tree, path: cst.BaseExpression) -> cst.BaseExpression:
    """Return the variable in `str(variable)`, because an f-string converts it too."""
    match path:
        case cst.Call(func=cst.Name(value="str"), args=[cst.Arg(value=inner, keyword=None, star="")]):
            return inner if _is_simple(inner) and not tree.names.knows("str") else path
    return path


def _is_simple(path: cst.BaseExpression) -> bool:
    """Check whether a path is a variable or an attribute, which can be evaluated twice."""
    return isinstance(path, cst.Name) or (isinstance(path, cst.Attribute) and _is_simple(path.value))


def is_literal(path: cst.BaseExpression) -> bool:
    """Check whether a path is a literal that an f-string can contain unchanged."""
    return (
        isinstance(path, cst.SimpleString)
        and not path.prefix
        and len(path.quote) == 1
        and not set(path.raw_value) & set("{}\\")
    )


def _between(
    statement: Whole,
    before: Sequence[cst.SimpleStatementLine],
    after: Sequence[cst.SimpleStatementLine],
) -> cst.FlattenSentinel[cst.CSTNode]:
    if not before:
        return cst.FlattenSentinel([statement, *after])
    first, *rest = before
    leading = statement.leading_lines
    bare = statement.with_changes(leading_lines=())
    return cst.FlattenSentinel([first.with_changes(leading_lines=leading), *rest, bare, *after])
