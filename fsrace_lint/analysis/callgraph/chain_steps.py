"""The steps of call chains, and why a chain might not be what runs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from fsrace_lint.analysis.callgraph.concurrency import Doubt
from fsrace_lint.analysis.dataflow.rank_partition import UNPARTITIONED
from fsrace_lint.analysis.values.call_arguments import arguments_of
from fsrace_lint.catalog.lexicon import identifies_process
from fsrace_lint.files.spans import Place
from fsrace_lint.program.modules import LinkedClass, LinkedFunction
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import implied, last_name, setting_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.analysis.callgraph.call_edges import CallEdge
    from fsrace_lint.analysis.callgraph.chain_constants import Undecided
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.files.spans import Span


class Step(NamedTuple):
    """A call in the call chain.

    Attributes:
        call_site: The call.
        owner: The class of the object whose method contains the call.
        enters: Whether the chain continues in the called function.
        called: The class of the object whose method is called.
        driven: Whether a function before it in the chain is a driver.
        doubt: Why the chain is not certain.
        undecided: The points of the chain whose conditions depend on what the function of the call receives.
    """

    call_site: CallSite
    owner: LinkedClass | None
    enters: bool = False
    called: LinkedClass | None = None
    driven: bool = False
    doubt: Doubt = Doubt.NONE
    undecided: Undecided = ()

    @property
    def at_most(self) -> Iterator[tuple[bool, Doubt]]:
        """The values of `driven` and `doubt` with which a chain shows at least as much."""
        doubts = (each for each in Doubt if each <= self.doubt)
        return itertools.product({False, self.driven}, doubts)


class ChainDoubts:
    """Finds out why a call might not continue a chain."""

    def __init__(self, entry_states: EntryStates) -> None:
        """Initialize for a project."""
        self._resolver = entry_states.flows.resolver
        self._rank_tests = entry_states.rank_tests

    def of(self, step: Step, edges: Sequence[CallEdge], *, by_one: bool) -> list[Doubt]:
        """Return the doubts about the chains that some calls start earlier.

        If one call in a function depends on the process, the others are for other settings of the job.

        Args:
            step: The first call of the chain so far.
            edges: The calls of its function.
            by_one: Whether it does not matter which process runs the call.
        """
        sites = () if by_one else (edge.call_site for edge in edges)
        selecting = {each.function for each in sites if self.may_select(each)}
        doubts = (
            Doubt.PROCESS
            if edge.call_site.function in selecting
            else Doubt.CLASS
            if self._needs_class(edge, step)
            else Doubt.NONE
            for edge in edges
        )
        return [max(step.doubt, doubt) for doubt in doubts]

    def may_select(self, call_site: CallSite) -> bool:
        """Return whether a call depends on a test of the process that is not understood as a rank check."""
        for literal in call_site.state.conditions:
            for test, truth in implied(literal.test, truth=literal.truth):
                compared = _compared(test, truth=truth) if literal.attempt is None else ()
                if any(identifies_process(setting_of(each) or last_name(each)) for each in compared):
                    return self._rank_tests.partition(test, literal.scope) == UNPARTITIONED
        return False

    def _needs_class(self, edge: CallEdge, step: Step) -> bool:
        """Return whether a call runs a method only if the object is of a class that the call does not name.

        A call that makes the object, or passes on a class of objects to make, names the class. The class of
        an unknown object is a guess from the name of the object.
        """
        class_, is_creation = step.owner, step.call_site.function.facts.name == "__init__"
        if class_ is None or edge.is_on_self or (edge.passed_as_callback and not is_creation):
            return False
        call, scope = edge.call_site.call, edge.call_site.state.scope
        object_ = call.function.value if isinstance(call.function, m.Attribute) else None
        is_called = not edge.passed_as_callback and edge.spawn is None and edge.receiver is None
        if object_ is not None and is_called and self._resolver.symbol(object_, scope) is None:
            return True
        values = [value for _, _, value in arguments_of(call)] if edge.passed_as_callback else [call.function]
        symbols = [self._resolver.symbol(value, scope) for value in values]
        owners = [each.owner if isinstance(each, LinkedFunction) else each for each in symbols]
        named = [each for each in (edge.receiver, *owners) if isinstance(each, LinkedClass)]
        return bool(named) and all(class_ not in each.ancestors() for each in named)


def above(edge: CallEdge, class_: LinkedClass | None) -> Iterator[Step]:
    """Yield the step for a call edge, or nothing if the edge is a call on an unrelated class."""
    function = edge.call_site.function
    receiver = edge.receiver or (function.owner if edge.is_on_self else None)
    if receiver is not None and class_ is not None and not edge.passed_as_callback:
        is_heir = not edge.is_exact and receiver in class_.ancestors()
        if class_ not in receiver.ancestors() and not is_heir:
            return
        class_ = class_ if receiver in class_.ancestors() else receiver
    if edge.is_on_self and not edge.passed_as_callback:
        yield Step(edge.call_site, class_, enters=True)
        return
    called = class_ if edge.receiver is not None else None
    yield Step(edge.call_site, function.owner, not edge.passed_as_callback, called)


def place_of(function: LinkedFunction, span: Span) -> Place:
    """Return the place of some code of a function."""
    return Place(function.module.path, span)


def _compared(test: m.Expr, *, truth: bool) -> tuple[m.Expr, ...]:
    """Return the sides of a comparison that holds: both if they are equal, the left one for `in`."""
    match test:
        case m.Compare(left=left, operators=("==" | "in" | "is" as operator,), rights=(right,)) if truth:
            return (left,) if operator == "in" else (left, right)
        case m.Compare(left=left, operators=("!=" | "not in" | "is not" as operator,), rights=(right,)):
            return () if truth else (left,) if operator == "not in" else (left, right)
        case _:
            return ()
