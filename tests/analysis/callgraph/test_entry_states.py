"""Which callers are looked at for what they bring, and which are not."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

from support.linked import project

from fsrace_lint.analysis.callgraph.call_graph import CallGraph
from fsrace_lint.analysis.callgraph.entry_states import EntryStates
from fsrace_lint.analysis.dataflow.process_set import TOP

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
