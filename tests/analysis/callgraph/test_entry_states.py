"""Which callers are analyzed to compute the entry state of a function."""

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


def test_unconstrained_caller_ends_the_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    analyzed: list[str] = []
    each = CallGraph.callers_lazily

    def counted(self: CallGraph, function: LinkedFunction) -> Iterator[CallEdge]:
        analyzed.append(function.facts.qualname)
        return each(self, function)

    flows = project({"main.py": dedent(CALLED)}).flows
    by_name = {function.facts.qualname: function for function in flows.table.modules[0].functions}
    entry_states = EntryStates(flows)
    monkeypatch.setattr(CallGraph, "callers_lazily", counted)
    entry_states.entry_state(by_name["store"])
    assert {"guarded", "calls_guarded"}.isdisjoint(analyzed)
    assert {"store", "known"} <= set(analyzed)


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


def test_callers_off_an_unconstrained_path_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    linked = project({"main.py": FREE})
    entry_states = linked.entry_states
    by_name = {function.facts.qualname: function for function in linked.flows.table.modules[0].functions}
    each, analyzed = CallGraph.callers_lazily, list[str]()

    def noted(self: CallGraph, function: LinkedFunction) -> Iterator[CallEdge]:
        analyzed.append(function.facts.qualname)
        return each(self, function)

    monkeypatch.setattr(CallGraph, "callers_lazily", noted)
    assert entry_states.entry_state(by_name["save"]).processes == TOP
    assert analyzed == ["save", "short", "top"]


CLASSES = """\
    class Mixin:
        pass

    class Base:
        def save(self):
            pass

    class Heir(Mixin, Base):
        def __init__(self):
            Mixin.__init__(self)

        def save(self):
            Base.save(self)

    class Further(Heir):
        def __init__(self):
            pass

        def save(self):
            self.write()

    def by_class(any):
        Base.save(any)
        Mixin.__init__(any)

    def by_object(any: Base):
        any.save()
    """


def test_call_on_a_class_by_name_runs_no_override() -> None:
    linked = project({"main.py": dedent(CLASSES)})
    functions = {each.facts.qualname: each for each in linked.flows.table.modules[0].functions}

    def callers(name: str) -> list[str]:
        edges = linked.entry_states.callers(functions[name])
        return [edge.call_site.function.facts.qualname for edge in edges]

    assert callers("Base.save") == ["Heir.save", "by_class", "by_object"]
    assert callers("Heir.save") == callers("Further.save") == ["by_object"]
    assert callers("Heir.__init__") == callers("Further.__init__") == []
