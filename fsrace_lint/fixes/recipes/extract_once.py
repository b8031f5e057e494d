"""Extract an archive once, and publish the directory only when it is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.fixes.archives import refuse_shared_directory
from fsrace_lint.fixes.arguments import argument, calling, needed, refuse_other
from fsrace_lint.fixes.blocks import refuse_unasked
from fsrace_lint.fixes.callee import api_of
from fsrace_lint.fixes.coordination import own_helper
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit, put
from fsrace_lint.fixes.statements import own_statement

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target

_OPENING: Final = {"tarfile.open": "name", "tarfile.TarFile.open": "name", "zipfile.ZipFile": "file"}


def recipe(target: Target) -> Change:
    """Replace the extraction, and the `with` statement around it, with `extract_once()`.

    Plain code is too long: a slower process must notice that the directory exists, and delete its own.
    """
    call = target.call
    line = own_statement(target)
    if line is None:
        raise RefusalError("the call is not a statement on its own line")
    helper = own_helper(target, "extract_once")
    if helper is None:
        raise RefusalError(
            "to extract to a temporary directory and rename it, the fix needs the `helper-module` setting"
        )
    function, imports = helper
    if api_of(target) == "shutil.unpack_archive":
        refuse_other(call, 2, "filename", "extract_dir", "format", "filter")
        folder = needed(call, 1, "extract_dir")
        refuse_unasked(target, folder)
        archive = needed(call, 0, "filename")
        refuse_shared_directory(target, archive, folder)
        arguments = [cst.Arg(archive), cst.Arg(folder)]
        return Change((TreeEdit(call, calling(function, arguments)),), imports)
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "extractall":
        raise RefusalError("the call is not known to extract the whole archive into a directory")
    refuse_other(call, 1, "path", "filter")
    destination = needed(call, 0, "path")
    refuse_unasked(target, destination)
    opened = call.func.value
    if isinstance(opened, cst.Call):
        archive = _opened(target, opened)
        refuse_shared_directory(target, archive, destination)
        arguments = [cst.Arg(archive), cst.Arg(destination)]
        return Change((TreeEdit(call, calling(function, arguments)),), imports)
    return _without_opening(target, opened, function, destination, imports)


def _without_opening(
    target: Target,
    archive: cst.BaseExpression,
    function: cst.BaseExpression,
    destination: cst.BaseExpression,
    imports: tuple[str, ...],
) -> Change:
    """Replace `with tarfile.open(path) as archive:` and the one line in it."""
    tree = target.tree
    line = own_statement(target)
    block = None if line is None else tree.parents[line]
    around = None if block is None else tree.parents[block]
    if not isinstance(around, cst.With) or not isinstance(line, cst.SimpleStatementLine):
        raise RefusalError("the archive is not opened in a `with` statement around the call")
    if len(around.items) != 1 or len(around.body.body) != 1 or m.findall(around, m.Comment()):
        raise RefusalError("the `with` statement that opens the archive contains more than the call")
    item = around.items[0]
    name = item.asname.name if item.asname is not None else None
    if not isinstance(name, cst.Name) or not isinstance(archive, cst.Name) or name.value != archive.value:
        raise RefusalError("the `with` statement around the call does not open this archive")
    if not isinstance(item.item, cst.Call):
        raise RefusalError("the archive is opened outside of the `with` statement")
    path = _opened(target, item.item)
    refuse_shared_directory(target, path, destination)
    arguments = [cst.Arg(path), cst.Arg(destination)]
    plain = line.with_changes(
        body=[cst.Expr(cst.Call(function, arguments))], leading_lines=around.leading_lines
    )
    return Change((put(around, plain),), imports)


def _opened(target: Target, opening: cst.Call) -> cst.BaseExpression:
    """Return the path of the archive that a call opens for reading."""
    name = target.tree.names.meaning(opening.func)
    if name not in _OPENING:
        raise RefusalError("cannot tell which archive file is extracted")
    refuse_other(opening, 2, _OPENING[name], "mode")
    mode = argument(opening, 1, "mode")
    text = mode.value.evaluated_value if mode and isinstance(mode.value, cst.SimpleString) else "r"
    if not isinstance(text, str) or not text.startswith("r"):
        raise RefusalError("the archive is not opened for reading")
    return needed(opening, 0, _OPENING[name])
