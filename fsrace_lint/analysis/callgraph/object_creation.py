"""Classes whose objects only the main process creates, so that only it runs their methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from fsrace_lint.analysis.dataflow.process_set import BOTTOM, MAIN, TOP, ProcessSet
from fsrace_lint.analysis.values.call_arguments import arguments_of
from fsrace_lint.engine.query import query
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import is_super, last_name
from fsrace_lint.syntax.traversal import all_in, evaluated, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fsrace_lint.analysis.callgraph.call_edges import CallEdge
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.program.modules import LinkedClass, LinkedFunction
    from fsrace_lint.program.relevance import Relevance

_WITHOUT_OBJECT: Final = frozenset({"__init__", "__new__", "__init_subclass__", "__class_getitem__"})


class Calls(Protocol):
    """Finds the calls of functions, and the processes that reach them."""

    relevance: Relevance

    def callers_lazily(self, function: LinkedFunction, /) -> Iterator[CallEdge]:
        """Yield all call edges into a function, unordered."""

    def processes(self, call_site: CallSite, /) -> ProcessSet:
        """Return the processes that reach a call within its function."""

    @property
    def decorated(self) -> Callable[[LinkedFunction], ProcessSet]:
        """Returns the processes in which the decorators of a function run it."""


class ObjectCreation:
    """Finds the classes that only the main process calls, such as a logger on rank 0."""

    def __init__(self, calls: Calls) -> None:
        """Initialize for a project; nothing is computed yet."""
        self._calls = calls

    def processes(self, function: LinkedFunction) -> ProcessSet:
        """Return the processes that have an object on which a method can be called.

        Returns:
            The main process, if rank checks are around all calls of the class. All processes otherwise.
        """
        owner = function.owner
        if owner is None or not function.takes_object or function.facts.name in _WITHOUT_OBJECT:
            return TOP
        return TOP if m.Name("classmethod") in function.facts.decorators else self._creating(owner)

    @query
    def _creating(self, class_: LinkedClass) -> ProcessSet:
        """Return the processes that create objects of a class, or of its subclasses."""
        processes = BOTTOM
        for each in class_.descendants():
            processes |= self._calling(each)
            if processes & ~MAIN:
                return TOP
        return processes or TOP

    def _calling(self, class_: LinkedClass) -> ProcessSet:
        """Return the processes that call a class. A decorator or a table can keep the class for others."""
        constructor = class_.method("__init__")
        if constructor is None or class_.facts.decorators or self._is_kept(class_):
            return TOP
        processes, is_called = BOTTOM, False
        for edge in self._calls.callers_lazily(constructor):
            is_called = True
            processes |= BOTTOM if _is_of_subclass(edge) else self._reaching(edge)
            if processes & ~MAIN:
                break
        return processes if is_called else TOP

    def _is_kept(self, class_: LinkedClass) -> bool:
        """Return whether code keeps a class for later calls, as in a table of classes."""
        name = class_.facts.name
        return any(_keeps(function, name) for function in self._calls.relevance.using([name]))

    def _reaching(self, edge: CallEdge) -> ProcessSet:
        if edge.passed_as_callback:
            return TOP
        call_site = edge.call_site
        return self._calls.processes(call_site) & self._calls.decorated(call_site.function)


def _keeps(function: LinkedFunction, name: str) -> bool:
    """Return whether a function uses a name other than to call it or to pass it to a call."""
    uses = 0
    for statement in all_in(function.facts.body):
        for expr in (part for each in evaluated(statement) for part in within(each)):
            uses += _is_named(expr, name)
            if isinstance(expr, m.Call):
                given = (_class_of(expr.function), *(value for _, _, value in arguments_of(expr)))
                uses -= sum(_is_named(each, name) for each in given)
    return uses > 0


def _class_of(called: m.Expr) -> m.Expr:
    """Return the class whose constructor is called, as `Base` in `Base.__init__(self)`."""
    return called.value if isinstance(called, m.Attribute) and called.name == "__init__" else called


def _is_named(expr: m.Expr, name: str) -> bool:
    return isinstance(expr, (m.Name, m.Attribute)) and last_name(expr) == name


def _is_of_subclass(edge: CallEdge) -> bool:
    """Return whether a constructor calls the one of a base class, which creates no further object."""
    called = edge.call_site.call.function
    if edge.call_site.function.facts.name != "__init__" or not isinstance(called, m.Attribute):
        return False
    return is_super(called.value) or called.name == "__init__"
