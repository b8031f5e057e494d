"""Queries that lead back to themselves: what is found anew, and that the order makes no difference."""

from __future__ import annotations

import pytest
from support.queries import Cyclic

from fsrace_lint.engine.cycles import CycleDetector


class Questions:
    """Questions that lead to others; an answer is the letters that it was found with."""

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


def test_an_answer_is_found_once() -> None:
    asked = Questions(a="bc", b="c")
    assert [asked.ask("a"), asked.ask("b"), asked.ask("c")] == ["abcc", "bc", "c"]
    assert asked.found == ["a", "b", "c"]
    assert asked.cycles.incomplete == 0


def test_an_answer_found_within_a_circle_is_found_anew() -> None:
    asked = Questions(a="b", b="a")
    assert asked.ask("a") == "ab"
    assert asked.cycles.incomplete == 1
    assert asked.ask("b") == "bab"
    assert asked.found == ["a", "b", "b"]
    assert asked.ask("b") == "bab"
    assert asked.found == ["a", "b", "b"]


def test_an_answer_found_within_a_circle_stands_until_the_circle_is_closed() -> None:
    asked = Questions(a="bb", b="a")
    assert asked.ask("a") == "abb"
    assert asked.found == ["a", "b"]
    assert asked.ask("b") == "babb"


def test_it_is_found_anew_once_anything_that_it_depends_on_is_answered() -> None:
    asked = Questions(a="bc", b="cx", c="ba")
    assert asked.ask("a") == "a" + "bcx" + "cbcx"
    assert asked.found == ["a", "b", "c", "x", "c"]


def test_what_an_answer_of_the_meantime_depends_on_its_reader_does_too() -> None:
    asked = Questions(a="bd", b="a", d="b")
    assert asked.ask("a") == "abdb"
    assert asked.ask("d") == "d" + "b" + "abdb"


def test_what_leads_into_a_circle_and_what_it_leads_to_are_found_once() -> None:
    asked = Questions(o="a", a="bx", b="a")
    assert asked.ask("o") == "oabx"
    assert [asked.ask("a"), asked.ask("x"), asked.ask("o")] == ["abx", "x", "oabx"]
    assert asked.found == ["o", "a", "b", "x"]


def test_a_question_leads_back_to_the_one_that_is_active() -> None:
    asked = Questions()
    assert asked.memo.get("a", lambda: str(asked.memo.is_active("a"))) == "True"
    assert asked.cycles.incomplete == 1
    assert not asked.memo.is_active("a")


def test_memos_that_share_a_circle_know_of_each_other() -> None:
    cycles = CycleDetector()
    one = Cyclic("?", cycles=cycles)
    two = Cyclic("?", cycles=cycles)
    assert one.get("a", lambda: "a" + two.get("b", lambda: "b" + one.get("a", str))) == "ab?"
    assert two.get("b", lambda: "found anew") == "found anew"
    assert one.get("a", lambda: "found anew") == "ab?"


def test_a_failure_leaves_nothing_behind() -> None:
    asked = Questions()

    def fail() -> str:
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        asked.memo.get("a", fail)
    assert asked.cycles.depth == 0
    assert not asked.memo.is_active("a")
    assert asked.ask("a") == "a"


LINKS = {"a": ("b",), "b": ("c", "a"), "c": ("b", "goal"), "d": ("a",), "e": ("e",)}


def reaches(memo: Cyclic[bool], node: str) -> bool:
    """Tell whether `goal` can be reached from a node: the same for all in one circle."""
    return memo.get(node, lambda: any(to == "goal" or reaches(memo, to) for to in LINKS[node]))


@pytest.mark.parametrize("order", ["abcde", "edcba", "bacde", "cabed", "dbcae"])
def test_a_circle_has_one_answer_whoever_asks_first(order: str) -> None:
    memo = Cyclic(False)
    assert {node: reaches(memo, node) for node in order} == {
        "a": True,
        "b": True,
        "c": True,
        "d": True,
        "e": False,
    }


def test_what_is_known_is_not_found_again() -> None:
    asked: list[str] = []

    def find() -> int:
        asked.append("once")
        return 7

    memo = Cyclic(0)
    assert [memo.get("key", find), memo.get("key", find)] == [7, 7]
    assert asked == ["once"]


def test_past_the_depth_the_answer_is_unknown() -> None:
    memo = Cyclic(-1, limit=5)

    def count(number: int) -> int:
        return memo.get(number, lambda: count(number + 1))

    assert count(0) == -1


def test_an_exception_leaves_no_question_open() -> None:
    memo = Cyclic(0)

    def fail() -> int:
        raise KeyError

    with pytest.raises(KeyError):
        memo.get("key", fail)
    assert memo.get("key", lambda: 3) == 3
