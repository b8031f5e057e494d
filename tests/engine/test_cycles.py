"""Cyclic queries: what is recomputed, and that the result does not depend on the order."""

from __future__ import annotations

import pytest
from support.queries import Cyclic

from fsrace_lint.engine.cycles import CycleDetector


class LetterQueries:
    """Queries that depend on others; a result lists the letters that were visited."""

    def __init__(self, **leads: str) -> None:
        self.leads = leads
        self.cycles = CycleDetector()
        self.memo = Cyclic("", cycles=self.cycles)
        self.found: list[str] = []

    def ask(self, name: str) -> str:
        def find() -> str:
            self.found.append(name)
            return name + "".join(self.ask(other) for other in self.leads.get(name, ""))

        return self.memo.get(name, find)


def test_acyclic_result_is_computed_once() -> None:
    letters = LetterQueries(a="bc", b="c")
    assert [letters.ask("a"), letters.ask("b"), letters.ask("c")] == ["abcc", "bc", "c"]
    assert letters.found == ["a", "b", "c"]


def test_result_inside_a_cycle_is_recomputed() -> None:
    letters = LetterQueries(a="b", b="a")
    assert letters.ask("a") == "ab"
    assert letters.ask("b") == "bab"
    assert letters.found == ["a", "b", "b"]
    assert letters.ask("b") == "bab"
    assert letters.found == ["a", "b", "b"]


def test_provisional_result_is_kept_until_the_cycle_is_closed() -> None:
    letters = LetterQueries(a="bb", b="a")
    assert letters.ask("a") == "abb"
    assert letters.found == ["a", "b"]
    assert letters.ask("b") == "babb"


def test_provisional_result_is_recomputed_after_a_dependency_completes() -> None:
    letters = LetterQueries(a="bc", b="cx", c="ba")
    assert letters.ask("a") == "a" + "bcx" + "cbcx"
    assert letters.found == ["a", "b", "c", "x", "c"]


def test_reader_of_a_provisional_result_inherits_its_dependencies() -> None:
    letters = LetterQueries(a="bd", b="a", d="b")
    assert letters.ask("a") == "abdb"
    assert letters.ask("d") == "d" + "b" + "abdb"


def test_queries_outside_the_cycle_are_computed_once() -> None:
    letters = LetterQueries(o="a", a="bx", b="a")
    assert letters.ask("o") == "oabx"
    assert [letters.ask("a"), letters.ask("x"), letters.ask("o")] == ["abx", "x", "oabx"]
    assert letters.found == ["o", "a", "b", "x"]


def test_active_query_is_detected() -> None:
    letters = LetterQueries()
    assert letters.memo.get("a", lambda: str(letters.memo.is_active("a"))) == "True"
    assert not letters.memo.is_active("a")


def test_memos_can_share_a_cycle_detector() -> None:
    cycles = CycleDetector()
    one = Cyclic("?", cycles=cycles)
    two = Cyclic("?", cycles=cycles)
    assert one.get("a", lambda: "a" + two.get("b", lambda: "b" + one.get("a", str))) == "ab?"
    assert two.get("b", lambda: "found anew") == "found anew"
    assert one.get("a", lambda: "found anew") == "ab?"


def test_failed_query_leaves_no_state() -> None:
    letters = LetterQueries()

    def fail() -> str:
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        letters.memo.get("a", fail)
    assert letters.cycles.depth == 0
    assert not letters.memo.is_active("a")
    assert letters.ask("a") == "a"


LINKS = {"a": ("b",), "b": ("c", "a"), "c": ("b", "goal"), "d": ("a",), "e": ("e",)}


def reaches(memo: Cyclic[bool], node: str) -> bool:
    """Whether `goal` can be reached from a node; equal for all nodes of a cycle."""
    return memo.get(node, lambda: any(to == "goal" or reaches(memo, to) for to in LINKS[node]))


@pytest.mark.parametrize("order", ["abcde", "edcba", "bacde", "cabed", "dbcae"])
def test_cycle_has_one_result_in_any_order(order: str) -> None:
    memo = Cyclic(False)
    assert {node: reaches(memo, node) for node in order} == {
        "a": True,
        "b": True,
        "c": True,
        "d": True,
        "e": False,
    }


def test_known_result_is_not_recomputed() -> None:
    letters: list[str] = []

    def find() -> int:
        letters.append("once")
        return 7

    memo = Cyclic(0)
    assert [memo.get("key", find), memo.get("key", find)] == [7, 7]
    assert letters == ["once"]


def test_result_beyond_the_depth_limit_is_unknown() -> None:
    memo = Cyclic(-1, limit=5)

    def count(number: int) -> int:
        return memo.get(number, lambda: count(number + 1))

    assert count(0) == -1


def test_exception_leaves_no_active_query() -> None:
    memo = Cyclic(0)

    def fail() -> int:
        raise KeyError

    with pytest.raises(KeyError):
        memo.get("key", fail)
    assert memo.get("key", lambda: 3) == 3
