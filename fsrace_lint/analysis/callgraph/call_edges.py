"""Ways into a function: calls of it, and calls that are handed it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fsrace_lint.analysis.dataflow.process_set import TOP, ProcessSet
from fsrace_lint.analysis.values.abstract_values import Expression
from fsrace_lint.analysis.values.call_arguments import library_argument
from fsrace_lint.catalog import argument
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import is_super
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.catalog.entries import Spawn
    from fsrace_lint.program.modules import LinkedClass, LinkedFunction


class CallEdge(Record, frozen=True, eq=False):
    """A way into a function: a call of it, or a call that is handed it (`handed`).

    `only` is who the helper it is handed to lets run it, `position` the argument
    it is handed over in, None for a keyword; `spawn` says that it starts
    processes, which run it; `first` is the scope whose first process the helper
    lets run it before the others; `mutes` is the library whose collectives return at
    once in it.
    `receiver` is the class of the object whose method is called; `helper` is the
    project's function that is handed it, as `parameter`. `passing` is the call that
    hands over its arguments, where that is another: `delayed(f)(value)`.
    """

    call_site: CallSite
    passed_as_callback: bool
    only: ProcessSet = TOP
    position: int | None = None
    spawn: Spawn | None = None
    first: str | None = None
    mutes: str = ""
    receiver: LinkedClass | None = None
    helper: LinkedFunction | None = None
    parameter: str | None = None
    passing: m.Call | None = None

    @property
    def is_on_self(self) -> bool:
        """Whether the caller calls another method of its own object, or of one that its class makes."""
        called, caller = self.call_site.call.function, self.call_site.function
        if not isinstance(called, m.Attribute) or not caller.takes_object or not caller.facts.parameters:
            return False
        owner, own = called.value, m.Name(caller.facts.parameters[0].name)
        bound = self.call_site.state.scope.get(owner.id) if isinstance(owner, m.Name) else None
        made = bound.expr if isinstance(bound, Expression) else owner
        builds = m.Name("classmethod") in caller.facts.decorators
        return (
            is_super(owner) or owner == own or (builds and isinstance(made, m.Call) and made.function == own)
        )

    @property
    def starts_several(self) -> bool:
        """Whether it starts more than one process."""
        if self.spawn is None:
            return False
        return self.call_site.repeated or not (
            self.spawn.single or _starts_one(self.spawn, self.call_site.call)
        )


class Callers(Protocol):
    """Finds the ways into functions, in no order and as far as they are asked for."""

    def search(self, function: LinkedFunction, /) -> Iterable[CallEdge]:
        """Return the ways into a function."""

    def spawning(self, function: LinkedFunction, /) -> Iterable[CallEdge]:
        """Return those of them that are calls that start processes."""


def _starts_one(spawn: Spawn, call: m.Call) -> bool:
    """Tell whether the number of processes that a call asks for is one."""
    if not spawn.count:
        return False
    count = library_argument(call, spawn.count)
    return argument(spawn.count).default == "1" if count is None else count == m.Constant(1)
