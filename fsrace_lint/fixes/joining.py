"""Join the rank checks and barriers that fixes add with equal ones next to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from libcst import matchers as m

if TYPE_CHECKING:
    from collections.abc import Container, Sequence


def joined(body: Sequence[cst.CSTNode], added: Container[cst.CSTNode]) -> list[cst.CSTNode]:
    """Return the statements of a block, with adjacent `if` statements of one test as one.

    Args:
        body: The statements.
        added: The statements among them that fixes have added. Other neighbors are not joined.
    """
    done: list[cst.CSTNode] = []
    new: set[int] = {index for index, node in enumerate(body) if node in added}
    fresh: list[bool] = []
    for index, node in enumerate(body):
        is_new = index in new
        if len(done) > 1 and is_new and fresh[-1] and index + 1 < len(body):
            # A check and its barrier, then an equal check with an equal barrier: the last barrier is enough.
            after = body[index + 1]
            both = _both(done[-2], node) if fresh[-2] and _is_equal(done[-1], after) else None
            if both is not None and index + 1 in new and _both(node, after) is None:
                done[-2:], fresh[-2:] = [both], [True]
                continue
        both = _both(done[-1], node) if done and (is_new or fresh[-1]) else None
        if both is None:
            done.append(node)
            fresh.append(is_new)
        else:
            done[-1], fresh[-1] = both, True
    return done


def _is_equal(one: cst.CSTNode, other: cst.CSTNode) -> bool:
    return isinstance(one, cst.SimpleStatementLine | cst.If) and one.deep_equals(other)


def _both(one: cst.CSTNode, other: cst.CSTNode) -> cst.If | None:
    """Return two `if` statements as one, or None if they are not of one test or hold more than a body."""
    if not isinstance(one, cst.If) or not isinstance(other, cst.If):
        return None
    first, second = one.body, other.body
    plain = one.orelse is None and other.orelse is None and one.test.deep_equals(other.test)
    if not plain or not isinstance(first, cst.IndentedBlock) or not isinstance(second, cst.IndentedBlock):
        return None
    if first.footer or first.indent != second.indent or _binds(first, one.test):
        return None
    start, *rest = second.body
    leading = (*other.leading_lines, *getattr(start, "leading_lines", ()))
    body = (*first.body, start.with_changes(leading_lines=leading), *rest)
    return one.with_changes(body=second.with_changes(body=body, header=first.header))


def _binds(block: cst.IndentedBlock, test: cst.BaseExpression) -> bool:
    """Check whether a block may change the outcome of a test."""
    names = {name.value for name in m.findall(test, m.Name()) if isinstance(name, cst.Name)}
    targets = m.findall(block, m.AssignTarget() | m.AugAssign() | m.AnnAssign() | m.NamedExpr())
    return any(
        isinstance(name, cst.Name) and name.value in names
        for target in targets
        for name in m.findall(getattr(target, "target", target), m.Name())
    )
