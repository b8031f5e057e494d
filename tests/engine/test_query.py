"""Query memoization: which results are reused, and at which depth."""

from __future__ import annotations

import functools

import pytest
from support.queries import Budgeted, Cyclic

from fsrace_lint.engine.cycles import CombinedCycles, CycleDetector
from fsrace_lint.engine.depth_budget import DepthBudget
from fsrace_lint.engine.query import Query, joint_query, lazy, query

DEEPEST = 16


class Chain:
    """Queries that each depend on the next; a result shows how far the chain was followed."""

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


def test_complete_result_is_reused_if_enough_depth_is_left() -> None:
    chain = Chain(deepest=5)
    assert chain.ask(3) == "345"
    assert chain.looked == [(3, 0), (4, 1), (5, 2)]
    assert chain.ask(3, 3) == "345"
    assert chain.ask(2) == "2345"
    assert chain.looked == [(3, 0), (4, 1), (5, 2), (2, 0)]


def test_truncated_result_is_reused_at_the_same_depth() -> None:
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
def test_result_does_not_depend_on_earlier_queries(order: tuple[int, ...]) -> None:
    chain = Chain(deepest=4)
    for question in order:
        for depth in (3, 0, 2):
            assert chain.ask(question, depth) == Chain(deepest=4).ask(question, depth)


class InCycle:
    """A recursive query whose result depends on a query that is being computed."""

    def __init__(self, cycles: CycleDetector, budget: DepthBudget) -> None:
        self.around = Cyclic("so far", cycles=cycles)
        self.settled = Budgeted(budget, "")
        self.looked = 0

    def ask(self, depth: int = 0) -> str:
        return self.settled.get("inner", depth, self._find)

    def _find(self) -> str:
        self.looked += 1
        return self.around.get("outer", lambda: f"{self.ask()}, {self.ask()}, {self.ask(1)}")


@pytest.fixture(params=["one detector", "the first of two", "the second of two"])
def in_cycle(request: pytest.FixtureRequest) -> InCycle:
    """A query in a cycle, by the detector that notices the cycle."""
    cycles, other = CycleDetector(), CycleDetector()
    pair = (cycles, other) if request.param == "the first of two" else (other, cycles)
    used = cycles if request.param == "one detector" else CombinedCycles(*pair)
    return InCycle(cycles, DepthBudget(DEEPEST, used))


def test_provisional_result_is_reused_at_its_depth_while_the_cycle_is_open(in_cycle: InCycle) -> None:
    assert in_cycle.around.get("outer", lambda: f"{in_cycle.ask()}, {in_cycle.ask()}") == "so far, so far"
    assert in_cycle.looked == 1
    assert in_cycle.ask() == "so far, so far"
    assert in_cycle.looked == 2
    assert in_cycle.ask() == "so far, so far"
    assert in_cycle.looked == 2


def test_provisional_result_is_computed_again_at_another_depth(in_cycle: InCycle) -> None:
    assert in_cycle.around.get("outer", lambda: f"{in_cycle.ask()}, {in_cycle.ask(1)}") == "so far, so far"
    assert in_cycle.looked == 2


def test_depth_of_a_reused_provisional_result_counts() -> None:
    cycles = CycleDetector()
    budget = DepthBudget(4, cycles)
    cycle = InCycle(cycles, budget)

    def deep() -> str:
        budget.exhausted(3)
        return cycle.around.get("outer", str)

    def used() -> str:
        budget.used = 0
        cycle.settled.get("inner", 1, deep)
        return str(budget.used)

    assert cycle.around.get("outer", lambda: used() + used()) == "33"


def test_result_of_a_closed_cycle_is_kept() -> None:
    letters = Letters()
    assert letters.first("a") == "ab?"
    assert letters.first("a") == "ab?"
    assert letters.found == ["first", "second"]


class Letters:
    """A shared query without a provisional result, in front of a cycle."""

    def __init__(self) -> None:
        self.cycles = CycleDetector()
        self.found: list[str] = []

    @query(shared=True)
    def first(self, letter: str) -> str:
        self.found.append("first")
        return letter + self.second("b")

    @query(shared=True, provisional="?")
    def second(self, letter: str) -> str:
        self.found.append("second")
        return letter + self.second(letter)


class Nested:
    """A shared query without a provisional result, whose result is cut where too many others are nested."""

    def __init__(self) -> None:
        self.cycles = CycleDetector()
        self.asked = 0

    @query(shared=True)
    def first(self, number: int) -> str:
        self.asked += 1
        return self.second(number)

    @query(shared=True, provisional="?", limit=2)
    def second(self, number: int) -> str:
        return f"{number}{self.second(number - 1) if number else ''}"

    @query(shared=True, provisional="")
    def around(self, number: int) -> str:
        return self.first(number)


def test_result_cut_by_nesting_is_not_kept() -> None:
    nested = Nested()
    assert nested.around(1) == "1?"
    assert nested.asked == 1
    assert nested.first(0) == "0"
    assert nested.first(1) == "1?"
    assert nested.asked == 3


@pytest.mark.parametrize("usual", ["found", "something else"])
def test_usual_result_is_cached_with_its_depth(usual: str) -> None:
    budget, answer = DepthBudget(4, CycleDetector()), "found"
    settled = Budgeted(budget, usual)
    computed: list[int] = []

    def ask(depth: int) -> str:
        computed.append(depth)
        assert budget.exhausted(depth + 2) is (depth > 2)
        return answer

    for depth, reached in ((1, 3), (2, 4), (0, 2), (3, 5)):
        budget.used = 0
        assert settled.get("a", depth, functools.partial(ask, depth)) == answer
        assert budget.used == reached
    assert computed == [1, 3]


def test_failed_query_is_not_cached() -> None:
    budget = DepthBudget(DEEPEST, CycleDetector())
    settled = Budgeted(budget, "")
    with pytest.raises(RecursionError):
        settled.get("a", 0, _failing)
    assert budget.used == 0
    assert settled.get("a", 0, lambda: "found") == "found"


def test_fresh_budget_uses_no_depth_of_the_outer_query() -> None:
    budget = DepthBudget(2, CycleDetector())
    settled = Budgeted(budget, "")

    def aside() -> str:
        assert budget.with_fresh_budget(lambda: budget.exhausted(2)) is False
        return "found"

    assert settled.get("a", 0, aside) == "found"
    assert settled.get("a", 2, _failing) == "found"


class Ways:
    """Twelve queries that all depend on each other; at most one has a result of its own."""

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


def test_fully_connected_queries_are_visited_a_few_times() -> None:
    ways = Ways()
    assert ways.ask(0) is None
    assert len(ways.looked) <= 12 * 17
    assert Ways(answered=11).ask(0) == "found"


def test_visits_inside_a_cycle_are_forgotten_after_the_query() -> None:
    ways = Ways()
    assert ways.ask(0) is None
    ways.answered = 11
    assert ways.ask(0) == "found"


def test_acyclic_result_is_cached() -> None:
    ways = Ways(answered=0)
    assert ways.ask(0, 3) == "found"
    assert ways.ask(0, 9) == "found"
    assert ways.looked == [0]


def test_fresh_budget_ignores_active_visits() -> None:
    ways = Ways(answered=0)
    inner = ways.met.get(
        1, 0, lambda: ways.budget.with_fresh_budget(lambda: ways.met.get(1, 0, lambda: ways.ask(0)))
    )
    assert inner == "found"
    assert Ways().met.get(1, 0, lambda: ways.met.get(2, 0, lambda: None)) is None


def test_failed_query_is_not_marked_as_visited() -> None:
    ways = Ways(answered=0)
    for _ in range(2):
        with pytest.raises(RecursionError):
            ways.met.get(1, 0, lambda: ways.budget.with_fresh_budget(_failing))
    assert ways.ask(0) == "found"


def _failing() -> str:
    raise RecursionError


class JointQueries:
    """A joint query that computes the results of two numbers at once."""

    def __init__(self) -> None:
        self.computed: list[int] = []

    @joint_query
    def both(self, number: int) -> dict[int, str]:
        self.computed.append(number)
        return {number: f"{number}", number + 1: f"{number + 1}"}

    @lazy
    def first(self) -> str:
        return self.both(1)

    @query
    def last(self, number: int) -> str:
        return self.both(number)[-1]


def test_joint_query_caches_all_its_results() -> None:
    joint = JointQueries()
    assert joint.both.known(2) is None
    assert joint.first == "1"
    assert joint.both.known(2) == "2"
    assert [joint.both(2), joint.both(3), joint.both(1), joint.last(13)] == ["2", "3", "1", "3"]
    assert joint.computed == [1, 3, 13]


def test_class_attributes_are_query_objects() -> None:
    assert isinstance(JointQueries.both, lazy)
    assert isinstance(JointQueries.first, lazy)
    assert isinstance(JointQueries.last, Query)


def test_query_key_must_be_positional() -> None:
    def by_name(_self: object, *, number: int) -> int:
        return number

    with pytest.raises(TypeError, match="positional arguments"):
        query(by_name)
