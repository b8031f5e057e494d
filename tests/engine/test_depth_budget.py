"""Queries with a depth limit: the result does not depend on the order of queries."""

from __future__ import annotations

import pytest
from support.queries import Budgeted

from fsrace_lint.engine.cycles import CycleDetector
from fsrace_lint.engine.depth_budget import DepthBudget

CALLS = {"a": "bc", "b": "d", "c": "ad", "d": "ef", "e": "gh", "f": "", "g": "h", "h": "i", "i": "f"}


def called(node: str, levels: int) -> str:
    """A function and its callees, down to `levels` levels."""
    return "" if levels < 0 else node + "".join(called(to, levels - 1) for to in CALLS[node])


@pytest.mark.parametrize("order", ["abcdefghi", "ihgfedcba", "deabchgfi", "aabbaad"])
def test_depth_limited_result_does_not_depend_on_the_order(order: str) -> None:
    followed = Budgeted(DepthBudget(3, CycleDetector()), "")

    def spelled(node: str, depth: int = 0) -> str:
        below = CALLS[node]
        return followed.get(node, depth, lambda: node + "".join(spelled(to, depth + 1) for to in below))

    for node in order:
        for depth in (0, 3, 1, 4, 2):
            assert spelled(node, depth) == called(node, 3 - depth)


def test_result_within_the_limit_is_computed_once() -> None:
    followed = Budgeted(DepthBudget(3, CycleDetector()), "")
    found: list[str] = []

    def spelled(node: str, depth: int) -> str:
        def find() -> str:
            found.append(node)
            return node + "".join(spelled(to, depth + 1) for to in CALLS[node])

        return followed.get(node, depth, find)

    assert [spelled("h", 0), spelled("h", 1), spelled("i", 2)] == ["hif", "hif", "if"]
    assert found == ["h", "i", "f"]
    assert spelled("h", 2) == "hi"
    assert found == ["h", "i", "f", "h", "i"]
