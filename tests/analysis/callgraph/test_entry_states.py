"""What no finding shows: which callers are looked at, and how far names and their bindings are followed."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

from support.linked import project

from fsrace_lint.analysis.callgraph.call_graph import CallGraph
from fsrace_lint.analysis.callgraph.entry_states import EntryStates
from fsrace_lint.analysis.dataflow.process_set import TOP
from fsrace_lint.analysis.values.abstract_values import ConditionalValue, Expression, Unknown, merge
from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from fsrace_lint.analysis.callgraph.call_edges import CallEdge
    from fsrace_lint.program.modules import LinkedFunction

CALLED = """\
    import torch.distributed as dist

    def store():
        pass

    def known():
        store()

    def guarded():
        if dist.get_rank() == 0:
            store()

    def calls_guarded():
        guarded()
    """


def test_where_one_caller_brings_nothing_the_others_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    each = CallGraph.callers_lazily

    def counted(self: CallGraph, function: LinkedFunction) -> Iterator[CallEdge]:
        asked.append(function.facts.qualname)
        return each(self, function)

    flows = project({"main.py": dedent(CALLED)}).flows
    by_name = {function.facts.qualname: function for function in flows.table.modules[0].functions}
    entry_states = EntryStates(flows)
    monkeypatch.setattr(CallGraph, "callers_lazily", counted)
    entry_states.entry_state(by_name["store"])
    assert {"guarded", "calls_guarded"}.isdisjoint(asked)
    assert {"store", "known"} <= set(asked)


FREE = """\
def save():
    pass

def short():
    save()

def top():
    short()

def other():
    save()

def above():
    other()
"""


def test_callers_beside_a_free_way_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    linked = project({"main.py": FREE})
    entry_states = linked.entry_states
    by_name = {function.facts.qualname: function for function in linked.flows.table.modules[0].functions}
    each, asked = CallGraph.callers_lazily, list[str]()

    def noted(self: CallGraph, function: LinkedFunction) -> Iterator[CallEdge]:
        asked.append(function.facts.qualname)
        return each(self, function)

    monkeypatch.setattr(CallGraph, "callers_lazily", noted)
    assert entry_states.entry_state(by_name["save"]).processes == TOP
    assert asked == ["save", "short", "top"]


def test_nothing_is_known_of_a_name_that_is_bound_in_too_many_branches() -> None:
    flows = project({"main.py": "def main():\n    pass\n"}).flows
    _, function = flows.table.modules[0].functions
    scope = flows.final_environment(function)
    assert scope is not None
    here = scope.bind({"path": Expression(m.Constant("first"), scope)})
    test = Expression(m.Name("chosen"), scope)
    for number in range(100):
        here = merge(here.bind({"path": Expression(m.Constant(str(number)), here)}), here, ["path"], test)
    assert isinstance(here.get("path"), ConditionalValue)
    here = merge(here.bind({"path": Expression(m.Constant("last"), here)}), here, ["path"], test)
    assert isinstance(here.get("path"), Unknown)


def test_a_name_is_found_that_six_modules_hand_on() -> None:
    handing_on = {f"m{number}.py": f"from m{number + 1} import store\n" for number in range(6)}
    using = {"m6.py": "def store():\n    pass\n", "main.py": "from m0 import store\n"}
    flows = project({**handing_on, **using}).flows
    modules = {module.name: module for module in flows.table.modules}
    (store,) = modules["m6"].functions[1:]
    scope = flows.final_environment(modules["main"].functions[0])
    assert scope is not None
    assert flows.resolver.symbol(m.Name("store"), scope) is store
