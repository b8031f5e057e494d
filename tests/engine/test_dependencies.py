"""Dependencies of results: files, their interfaces, and names."""

from __future__ import annotations

import pytest

from fsrace_lint.engine.cycles import CycleDetector
from fsrace_lint.engine.dependencies import UNSETTLED, Dependencies, bit_of_name
from fsrace_lint.engine.depth_budget import DepthBudget
from fsrace_lint.engine.parallel.progress import CancelledError
from fsrace_lint.engine.query import query, recursive_query


class Letters:
    """Cyclic queries: each is a letter and depends on the file with its number."""

    def __init__(self, leads: dict[str, str], looks: dict[str, int]) -> None:
        self.leads, self.looks = leads, looks
        self.cycles, self.dependencies = CycleDetector(), Dependencies()

    @query(provisional="?", shared=True)
    def ask(self, letter: str) -> str:
        self.dependencies.file(f"{self.looks[letter]}.py")
        return letter + "".join(map(self.ask, self.leads.get(letter, "")))


def inputs_of(order: str, leads: dict[str, str], looks: dict[str, int]) -> dict[str, set[int]]:
    """Query letters in order; return the files that each known result depends on."""
    letters = Letters(leads, looks)
    for letter in order:
        letters.ask(letter)
    inputs = Letters.ask.table(letters).inputs
    assert not any(each & UNSETTLED for each in inputs.values())
    bits = {each: letters.dependencies.bits_of_file(f"{each}.py", interface=False) for each in looks.values()}
    return {key: {each for each, bit in bits.items() if found & bit} for (key,), found in inputs.items()}


class TestDependencies:
    def test_dependencies_are_transitive(self) -> None:
        assert inputs_of("a", {"a": "bc", "b": "c"}, {"a": 1, "b": 2, "c": 3}) == {
            "a": {1, 2, 3},
            "b": {2, 3},
            "c": {3},
        }

    def test_dependencies_of_cached_results_are_included(self) -> None:
        assert inputs_of("cba", {"a": "b", "b": "c"}, {"a": 1, "b": 2, "c": 3})["a"] == {1, 2, 3}

    def test_dependencies_of_a_cycle(self) -> None:
        leads = {"a": "b", "b": "ac"}
        assert inputs_of("ab", leads, {"a": 1, "b": 2, "c": 3}) == {
            "a": {1, 2, 3},
            "b": {1, 2, 3},
            "c": {3},
        }

    def test_dependencies_of_a_provisional_result(self) -> None:
        """After four computations it is kept, and depends on everything that was being computed."""
        leads = {"s": "rtuv", "r": "s", "t": "s", "u": "s", "v": "sx"}
        numbers = {"s": 1, "r": 2, "t": 3, "u": 4, "v": 5, "x": 6}
        assert inputs_of("rtuv", leads, numbers)["s"] == {1, 2, 3, 4, 5, 6}

    def test_result_dropped_while_unsettled(self) -> None:
        dependencies = Dependencies()
        inputs: dict[str, int] = {}

        def forgets() -> str:
            assert dependencies.record(inputs, "b", lambda: "b", lambda: False) == "b"
            assert inputs.pop("b") == UNSETTLED
            return "a"

        assert dependencies.record(inputs, "a", forgets, lambda: True) == "a"
        assert inputs == {"a": 0}

    def test_result_computed_without_inputs_is_recomputed(self) -> None:

        class Steps:
            def __init__(self) -> None:
                self.cycles, self.dependencies = CycleDetector(), Dependencies()
                self.budget = DepthBudget(2, self.cycles)

            @recursive_query(beyond="")
            def ask(self, number: int, depth: int) -> str:
                self.dependencies.file(f"{number}.py")
                return f"{number}{self.ask(number + 1, depth + 1)}" if number < 3 else f"{number}"

            @query(provisional="", shared=True)
            def first(self, number: int, depth: int) -> str:
                return self.ask(number, depth)

        steps = Steps()
        assert steps.first(1, 1) == "12"
        assert steps.ask(1, 0) == "123"
        assert steps.first(1, 0) == "123"
        inputs = Steps.first.table(steps).inputs[1, 0]
        assert inputs & steps.dependencies.bits_of_file("3.py", interface=False)

    def test_interface_dependency_does_not_include_the_body(self) -> None:
        dependencies = Dependencies()
        dependencies.interface_of(lambda: dependencies.file("a.py"))
        assert dependencies.inputs & dependencies.bits_of_file("a.py", interface=True)
        assert not dependencies.inputs & dependencies.bits_of_file("a.py", interface=False)

    def test_unread_file_has_no_bits(self) -> None:
        assert Dependencies().bits_of_file("a.py", interface=True) == 0

    def test_name_dependency_includes_its_kind(self) -> None:
        dependencies = Dependencies()
        dependencies.name("classes", "Base")
        assert dependencies.inputs & bit_of_name("classes", "Base")
        assert not dependencies.inputs & bit_of_name("bases", "Base")

    def test_failed_query_leaves_no_result(self, monkeypatch: pytest.MonkeyPatch) -> None:
        letters = Letters({"a": "b"}, {"a": 1, "b": 2})
        fails = [True]

        def file(_name: str) -> None:
            if fails[0] and _name == "2.py":
                raise CancelledError

        monkeypatch.setattr(letters.dependencies, "file", file)
        with pytest.raises(CancelledError):
            letters.ask("a")
        table = Letters.ask.table(letters)
        assert len(table) == 0
        fails.clear()
        fails.append(False)
        assert letters.ask("a") == "ab"
        assert not table.inputs["a",] & UNSETTLED
