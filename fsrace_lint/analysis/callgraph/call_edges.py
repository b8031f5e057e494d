"""Call edges: calls of a function, and calls to which it is passed."""

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
    """A call of a function, or a call to which the function is passed as a callback.

    Attributes:
        call_site: The call.
        passed_as_callback: Whether the function is passed to the call.
        only: The processes in which the helper runs the callback.
        position: The position of the argument with the callback; None for a keyword.
        spawn: The catalog entry, if the call starts processes that run the callback.
        first: The scope whose rank 0 runs the callback before the other ranks.
        mutes: The library whose collectives return immediately in the callback.
        receiver: The class of the object whose method is called.
        is_exact: Whether the object is of no subclass of `receiver`, because the caller makes it.
        helper: The function of the project to which the callback is passed.
        parameter: The parameter of `helper` that receives the callback.
        passing: The call that passes the arguments, if it is another one: `delayed(f)(value)`.
    """

    call_site: CallSite
    passed_as_callback: bool
    only: ProcessSet = TOP
    position: int | None = None
    spawn: Spawn | None = None
    first: str | None = None
    mutes: str = ""
    receiver: LinkedClass | None = None
    is_exact: bool = False
    helper: LinkedFunction | None = None
    parameter: str | None = None
    passing: m.Call | None = None

    @property
    def is_on_self(self) -> bool:
        """Whether the caller calls a method of its own object, or of one that its class method creates."""
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
        """Whether the call starts more than one process."""
        if self.spawn is None:
            return False
        return self.call_site.repeated or not (
            self.spawn.single or _starts_one(self.spawn, self.call_site.call)
        )


class Callers(Protocol):
    """Finds the call edges into functions, unordered and on demand."""

    def search(self, function: LinkedFunction, /) -> Iterable[CallEdge]:
        """Return the call edges into a function."""

    def spawning(self, function: LinkedFunction, /) -> Iterable[CallEdge]:
        """Return the call edges into a function by calls that start processes."""


def _starts_one(spawn: Spawn, call: m.Call) -> bool:
    """Return whether a call starts exactly one process."""
    if not spawn.count:
        return False
    count = library_argument(call, spawn.count)
    return argument(spawn.count).default == "1" if count is None else count == m.Constant(1)
