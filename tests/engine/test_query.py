"""The steps from a question to its answer: what is remembered of them, and for whom."""

from __future__ import annotations

import functools

import pytest
from support.queries import Budgeted

from fsrace_lint.engine.cycles import CombinedCycles, CycleDetector
from fsrace_lint.engine.depth_budget import DepthBudget
from fsrace_lint.engine.query import Query, joint_query, lazy, query

DEEPEST = 16


class Chain:
    """Questions that lead to the next one, each in one step; the answer is how far they led."""

    def __init__(self, deepest: int) -> None:
        self.budget = DepthBudget(deepest, CycleDetector())
        self.settled = Budgeted(self.budget, "?")
        self.looked: list[tuple[int, int]] = []

    def ask(self, question: int, depth: int = 0) -> str:
        if self.budget.exhausted(depth):
            return "?"
        return self.settled.get(question, depth, lambda: self.find(question, depth))

    def find(self, question: int, depth: int) -> str:
        self.looked.append((question, depth))
        return f"{question}" if question == 5 else f"{question}{self.ask(question + 1, depth + 1)}"


def test_an_answer_is_remembered_for_who_has_as_many_steps_left() -> None:
    chain = Chain(deepest=5)
    assert chain.ask(3) == "345"
    assert chain.looked == [(3, 0), (4, 1), (5, 2)]
    assert chain.ask(3, 3) == "345"
    assert chain.ask(2) == "2345"
    assert chain.looked == [(3, 0), (4, 1), (5, 2), (2, 0)]


def test_what_was_cut_off_is_remembered_for_who_asks_at_that_step() -> None:
    chain = Chain(deepest=3)
    assert chain.ask(0) == "0123?"
    assert chain.looked == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert chain.ask(1, 1) == "123?"
    assert chain.ask(0) == "0123?"
    assert len(chain.looked) == 4
    assert chain.ask(1) == "1234?"
    assert chain.ask(2) == "2345"
    assert chain.ask(2, 2) == "23?"


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_an_answer_does_not_depend_on_what_was_asked_before(order: tuple[int, ...]) -> None:
    chain = Chain(deepest=4)
    for question in order:
        for depth in (3, 0, 2):
            assert chain.ask(question, depth) == Chain(deepest=4).ask(question, depth)


def test_what_is_not_final_is_not_remembered() -> None:
    cycles = CycleDetector()
    settled = Budgeted(DepthBudget(DEEPEST, cycles), "")

    def unfinished() -> str:
        cycles.incomplete += 1
        return "so far"

    assert settled.get("a", 0, unfinished) == "so far"
    assert settled.get("a", 0, lambda: "whole") == "whole"
    assert settled.get("a", 0, unfinished) == "whole"


@pytest.mark.parametrize("which", [0, 1])
def test_what_is_not_final_in_one_of_two_circles_is_not_remembered(which: int) -> None:
    circles = CycleDetector(), CycleDetector()
    settled = Budgeted(DepthBudget(DEEPEST, CombinedCycles(*circles)), "")

    def unfinished() -> str:
        circles[which].incomplete += 1
        return "so far"

    assert settled.get("a", 0, unfinished) == "so far"
    assert settled.get("a", 0, lambda: "whole") == "whole"
    assert settled.get("a", 0, unfinished) == "whole"


@pytest.mark.parametrize("usual", ["found", "something else"])
def test_the_usual_answer_is_remembered_with_its_steps_as_any_other(usual: str) -> None:
    budget, answer = DepthBudget(4, CycleDetector()), "found"
    settled = Budgeted(budget, usual)
    asked: list[int] = []

    def ask(depth: int) -> str:
        asked.append(depth)
        assert budget.exhausted(depth + 2) is (depth > 2)
        return answer

    for depth, reached in ((1, 3), (2, 4), (0, 2), (3, 5)):
        budget.used = 0
        assert settled.get("a", depth, functools.partial(ask, depth)) == answer
        assert budget.used == reached
    assert asked == [1, 3]


def test_what_fails_is_not_remembered() -> None:
    budget = DepthBudget(DEEPEST, CycleDetector())
    settled = Budgeted(budget, "")
    with pytest.raises(RecursionError):
        settled.get("a", 0, _failing)
    assert budget.used == 0
    assert settled.get("a", 0, lambda: "found") == "found"


def test_what_else_is_found_on_the_way_takes_no_steps() -> None:
    budget = DepthBudget(2, CycleDetector())
    settled = Budgeted(budget, "")

    def aside() -> str:
        assert budget.with_fresh_budget(lambda: budget.exhausted(2)) is False
        return "found"

    assert settled.get("a", 0, aside) == "found"
    assert settled.get("a", 2, _failing) == "found"


class Ways:
    """Twelve questions, each of which leads to all others; only one has an answer by itself."""

    def __init__(self, answered: int | None = None) -> None:
        self.budget = DepthBudget(DEEPEST, CycleDetector())
        self.met = Budgeted[str | None](self.budget, None, once=True)
        self.answered = answered
        self.looked: list[int] = []

    def ask(self, question: int, depth: int = 0) -> str | None:
        if self.budget.exhausted(depth):
            return None
        return self.met.get(question, depth, lambda: self._find(question, depth))

    def _find(self, question: int, depth: int) -> str | None:
        self.looked.append(question)
        if question == self.answered:
            return "found"
        answers = (self.ask(other, depth + 1) for other in range(12))
        return next((answer for answer in answers if answer is not None), None)


def test_what_leads_in_circles_by_many_ways_is_looked_at_a_few_times() -> None:
    ways = Ways()
    assert ways.ask(0) is None
    assert len(ways.looked) <= 12 * 17
    assert Ways(answered=11).ask(0) == "found"


def test_what_was_met_in_a_circle_does_not_outlast_the_question() -> None:
    ways = Ways()
    assert ways.ask(0) is None
    ways.answered = 11
    assert ways.ask(0) == "found"


def test_what_was_met_in_no_circle_is_remembered() -> None:
    ways = Ways(answered=0)
    assert ways.ask(0, 3) == "found"
    assert ways.ask(0, 9) == "found"
    assert ways.looked == [0]


def test_a_question_of_its_own_sees_nothing_of_what_is_under_way() -> None:
    ways = Ways(answered=0)
    inner = ways.met.get(
        1, 0, lambda: ways.budget.with_fresh_budget(lambda: ways.met.get(1, 0, lambda: ways.ask(0)))
    )
    assert inner == "found"
    assert Ways().met.get(1, 0, lambda: ways.met.get(2, 0, lambda: None)) is None


def test_what_fails_is_not_met() -> None:
    ways = Ways(answered=0)
    for _ in range(2):
        with pytest.raises(RecursionError):
            ways.met.get(1, 0, lambda: ways.budget.with_fresh_budget(_failing))
    assert ways.ask(0) == "found"


def _failing() -> str:
    raise RecursionError


class Told:
    """What is found of one number is found of the next one too."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    @joint_query
    def both(self, number: int) -> dict[int, str]:
        self.asked.append(number)
        return {number: f"{number}", number + 1: f"{number + 1}"}

    @lazy
    def first(self) -> str:
        return self.both(1)

    @query
    def last(self, number: int) -> str:
        return self.both(number)[-1]


def test_a_joint_query_keeps_all_that_it_finds() -> None:
    told = Told()
    assert told.both.known(2) is None
    assert told.first == "1"
    assert told.both.known(2) == "2"
    assert [told.both(2), told.both(3), told.both(1), told.last(13)] == ["2", "3", "1", "3"]
    assert told.asked == [1, 3, 13]


def test_queries_of_a_class_are_no_results() -> None:
    assert isinstance(Told.both, lazy)
    assert isinstance(Told.first, lazy)
    assert isinstance(Told.last, Query)


def test_the_key_of_a_query_is_positional() -> None:
    def by_name(_self: object, *, number: int) -> int:
        return number

    with pytest.raises(TypeError, match="positional arguments"):
        query(by_name)
