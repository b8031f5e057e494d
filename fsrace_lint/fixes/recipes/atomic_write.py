"""Write a file atomically: write to a temporary file, then rename it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import libcst as cst

from fsrace_lint.catalog.entries import ANY_SUFFIX
from fsrace_lint.catalog.lexicon import meaning
from fsrace_lint.fixes.arguments import OPEN, argument, calling, literal, named, needed, refuse_other
from fsrace_lint.fixes.blocks import fresh, suite
from fsrace_lint.fixes.callee import api_of, is_path_method, receiver, refuse_foreign, written_path
from fsrace_lint.fixes.coordination import found_helper, own_helper
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit, put
from fsrace_lint.fixes.staging import publish
from fsrace_lint.fixes.statements import own_statement, wrap
from fsrace_lint.fixes.text import ending_of, may_be_stream

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target

_TEXT: Final = ("data", "encoding", "errors", "newline")
_KEPT: Final = frozenset({"encoding", "errors", "newline"})


def recipe(target: Target) -> Change:
    """Write to a unique name and rename the file, or call the atomic writer of the project."""
    api = api_of(target)
    if api in {"open", "io.open"}:
        return _opened(target, None)
    if is_path_method(api, "open", "write_text", "write_bytes"):
        path = receiver(target)
        if path is None:
            raise RefusalError("the method is not called on a path object")
        refuse_foreign(target, path)
        return _opened(target, path) if api.endswith("open") else _written(target, path)
    return _handed(target)


def _opened(target: Target, path: cst.BaseExpression | None) -> Change:
    """Open another path in `with open(path, "w") as f`, or open the same one with `atomic_write()`."""
    tree, call = target.tree, target.call
    item = tree.parents[call]
    statement = tree.parents[item]
    line = None if isinstance(item, cst.WithItem) else _dumping_line(target)
    if line is None and not (isinstance(item, cst.WithItem) and isinstance(statement, cst.With)):
        raise RefusalError(
            "the file is not opened in a `with` statement, so it is unclear when its content is complete"
        )
    mode = argument(call, 0 if path is not None else 1, "mode")
    text = mode.value.evaluated_value if mode and isinstance(mode.value, cst.SimpleString) else None
    if text not in {"w", "wb", "wt"}:
        raise RefusalError("the file is not opened with a literal mode `w`, `wb`, or `wt`")
    place = path or needed(call, 0, "file")
    if line is not None:
        return publish(target, line, place, is_method=path is not None, held=_held(target, line))
    writer = own_helper(target, "atomic_write")
    if writer is None and path is None and len(call.args) == len(OPEN[:2]):
        writer = found_helper(target, "atomic_write")
    if writer is None:
        return publish(target, cst.ensure_type(statement, cst.With), place, is_method=path is not None)
    given = _by_name(call, OPEN if path is None else OPEN[1:])
    arguments = [cst.Arg(_bare(place)), cst.Arg(given["mode"])]
    arguments += [named(name, value) for name, value in given.items() if name in _KEPT]
    return Change((TreeEdit(call, calling(writer[0], arguments)),), writer[1])


def _dumping_line(target: Target) -> cst.SimpleStatementLine | None:
    """Return the line `dump(value, open(path, "w"))` or `open(path, "w").write(text)` around the call."""
    around, outer, expression, line, block = itertools.islice(
        itertools.chain(target.tree.ancestors(target.call), itertools.repeat(None)), 5
    )
    if (
        not isinstance(line, cst.SimpleStatementLine)
        or len(line.body) != 1
        or not isinstance(outer, cst.Call)
    ):
        return None
    if not isinstance(around, cst.Arg | cst.Attribute) or not isinstance(expression, cst.Expr):
        return None
    name = outer.func.attr if isinstance(outer.func, cst.Attribute) else outer.func
    is_dumping = isinstance(name, cst.Name) and name.value in meaning("dumping")
    return line if is_dumping and isinstance(block, cst.IndentedBlock | cst.Module) else None


def _held(target: Target, line: cst.SimpleStatementLine) -> cst.With:
    """Return a `with` that opens the file, with the line in it."""
    stream = cst.Name(fresh(target, "stream"))
    item = cst.WithItem(target.call, asname=cst.AsName(stream))
    inner = cst.ensure_type(line.deep_replace(target.call, stream), cst.SimpleStatementLine)
    body = suite([inner.with_changes(leading_lines=())], target.tree.indent(line), target.tree.newline)
    return cst.With(items=[item], body=body, leading_lines=line.leading_lines)


def _written(target: Target, path: cst.BaseExpression) -> Change:
    """Call `write_text()` on another path, or write in a `with atomic_write(path, "w") as stream`."""
    call, line = target.call, own_statement(target)
    if not isinstance(line, cst.SimpleStatementLine):
        raise RefusalError("the call is not a statement on its own line")
    writer = own_helper(target, "atomic_write")
    if writer is None:
        return publish(target, line, path, is_method=True)
    is_text = api_of(target).endswith("text")
    given = _by_name(call, _TEXT if is_text else _TEXT[:1])
    stream = fresh(target, "stream")
    arguments = [cst.Arg(_bare(path)), cst.Arg(cst.SimpleString('"w"' if is_text else '"wb"'))]
    arguments += [named(key, value) for key, value in given.items() if key in _KEPT]
    write = cst.Attribute(cst.Name(stream), cst.Name("write"))
    inner = TreeEdit(call, calling(write, [cst.Arg(given["data"])]))
    return Change((inner, wrap(target, cst.Call(writer[0], arguments), stream)), writer[1])


def _handed(target: Target) -> Change:
    """Pass another path to a writer, or one from `with atomic_path(path) as temporary`."""
    path, line, effect = written_path(target), own_statement(target), target.effect
    said = target.fix.api.removeprefix("*.")
    suffix = effect.suffix if effect is not None else ""
    ending = ending_of(target.tree, path)
    if suffix == ANY_SUFFIX and not ending:
        raise RefusalError(f"`{said}` appends a suffix to a path without one, and this path may have none")
    if suffix not in {"", ANY_SUFFIX, ending}:
        raise RefusalError(
            f"`{said}` appends `{suffix}` to a path that does not end in it, and this path may not"
        )
    if may_be_stream(target.tree, path):
        raise RefusalError(f"`{said}` may write to an open file or to memory here")
    if effect is not None and effect.mode and literal(target.call, effect.mode) not in {"w", "wb", "wt"}:
        raise RefusalError("the file is not opened with a literal mode `w`, `wb`, or `wt`")
    if not isinstance(line, cst.SimpleStatementLine):
        raise RefusalError("the call is not a statement on its own line")
    writer = own_helper(target, "atomic_path")
    if writer is None:
        keeps_suffix = effect is not None and (effect.by_suffix or bool(effect.suffix))
        return publish(target, line, path, keeps_suffix=keeps_suffix)
    temporary = fresh(target, "temporary")
    manager = cst.Call(writer[0], [cst.Arg(_bare(path))])
    return Change((put(path, cst.Name(temporary)), wrap(target, manager, temporary)), writer[1])


def _by_name(call: cst.Call, names: tuple[str, ...]) -> dict[str, cst.BaseExpression]:
    """Return the arguments of a call by parameter name, or refuse those that cannot be kept."""
    refuse_other(call, len(names), *names)
    given = {name: argument(call, index, name) for index, name in enumerate(names)}
    found = {name: each.value for name, each in given.items() if each is not None}
    if "buffering" in found:
        raise RefusalError("the replacement for the call does not accept `buffering`")
    if names[0] in {"file", "data"} and names[0] not in found:
        raise RefusalError(f"the call does not pass `{names[0]}`")
    return found


def _bare(path: cst.BaseExpression) -> cst.BaseExpression:
    return path.with_changes(lpar=[], rpar=[])
