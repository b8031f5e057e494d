"""Refer to a name of another module, and say which import it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from fsrace_lint.fixes.recipe import RefusalError
from fsrace_lint.fixes.tree import SCOPES

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def spell(target: Target, module: str, name: str, line: str) -> tuple[cst.BaseExpression, tuple[str, ...]]:
    """Return an expression for `module.name` at the target, and the import line that it needs.

    `line` is the import to add if the file has none. Refuses if the name may have
    another meaning at the target.
    """
    full = f"{module}{'' if module.endswith('.') else '.'}{name}"
    for local, bindings in target.tree.names.imported.items():
        meaning = bindings[0].meaning
        is_there = _standing(target, local, meaning) == (True, None) or _is_imported_before(target, local)
        if meaning in (full, module) and is_there:
            return _reference(local, None if meaning == full else name), ()
    direct = line.startswith("from ")
    added = name if direct else module
    if direct and target.tree.names.starred:
        raise RefusalError(f"a star import may give `{name}` another meaning")
    _, trouble = _standing(target, added, full if direct else module)
    if trouble is not None:
        raise RefusalError(trouble)
    return _reference(added, None if direct else name), (line,)


def _standing(target: Target, local: str, meaning: str) -> tuple[bool, str | None]:
    """Check whether the module imports a name at its top level, and why the target cannot use it."""
    tree = target.tree
    bindings = tree.names.imported.get(local, ())
    if local in tree.names.bound or any(binding.meaning != meaning for binding in bindings):
        return False, f"the name `{local}` has another meaning in this file"
    scopes = {tree.begin(node) for node in tree.ancestors(target.call) if isinstance(node, SCOPES)}
    if any(not scopes.isdisjoint(binding.standing.scopes) for binding in bindings):
        return False, f"`{local}` is imported inside the same function, and may not be defined here yet"
    tops = [binding.standing.span for binding in bindings if binding.standing.is_top]
    if tops and min(tops) > tree.span(target.call):
        return True, f"`{local}` is imported only after this line"
    return bool(tops), None


def _is_imported_before(target: Target, local: str) -> bool:
    """Check whether an import always runs before the target, in the same function, and binds the name."""
    tree = target.tree
    bindings = tree.names.imported.get(local, ())
    if len({binding.meaning for binding in bindings}) != 1 or local in tree.names.bound:
        return False
    spans = {binding.standing.span for binding in bindings}
    inside: cst.CSTNode = target.call
    for block in tree.ancestors(target.call):
        if isinstance(block, cst.IndentedBlock):
            for line in block.body:
                if line is inside:
                    break
                smalls = line.body if isinstance(line, cst.SimpleStatementLine) else ()
                if any(tree.span(small) in spans for small in smalls):
                    return True
        if isinstance(block, SCOPES):
            return False
        inside = block
    return False


def _reference(local: str, attribute: str | None) -> cst.BaseExpression:
    if attribute is None:
        return cst.Name(local)
    return cst.Attribute(cst.Name(local), cst.Name(attribute))
