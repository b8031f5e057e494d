"""Open files: the calls that open them, and their uses until they are closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.accesses.model import OpenFile, Operation
from fsrace_lint.analysis.dataflow.abstract_state import mutually_exclusive
from fsrace_lint.analysis.values.abstract_values import (
    ContextResult,
    UnpackedPart,
)
from fsrace_lint.analysis.values.call_arguments import library_argument
from fsrace_lint.analysis.values.trace_back import sources
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.effects import Effects
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.values.abstract_values import Environment

_DEEPEST: Final = 6
_FILE: Final = "io.IOBase"
_EMPTYING: Final = frozenset({"flush", "close", "truncate"})
"""The methods after which nothing is left in the buffer of a file."""
_LOOKING: Final = frozenset({"fileno", "isatty", "seek", "tell", "read", "readline", "readlines", "readable"})
"""The methods that write nothing to a file."""
_BY_NUMBER: Final = frozenset({"os.fsync", "os.fdatasync", "os.fstat", "os.close", "os.chmod", "os.fchmod"})
"""The calls that take an open file and write nothing to it."""


class FileHandles:
    """Traces open files to the calls that open them."""

    def __init__(self, entry_states: EntryStates, effects: Effects) -> None:
        """Initialize for a project."""
        self.entry_states = entry_states
        self.flows = entry_states.flows
        self.effects = effects

    def opening(self, file: m.Expr, scope: Environment, depth: int = 0) -> OpenFile | None:
        """Return the call that opens a file, or None if it is unknown.

        Args:
            file: The file object, or its descriptor.
            scope: The environment in which to read the expression.
            depth: The number of names followed so far.
        """
        if depth > _DEEPEST:
            return None
        match file:
            case m.Call(function=m.Attribute(value=value, name="fileno")):
                return self.opening(value, scope, depth + 1)
            case m.Call():
                operation = self._act(file, scope)
                return None if operation is None else OpenFile(file, operation, scope)
            case m.Name() | m.Attribute():
                bound = self.entry_states.rank_tests.known(file, scope)
                traced = sources(bound, depth + 1, through=ContextResult)
                found = (self.opening(v.expr, v.scope, steps) for v, steps in traced if v is not None)
                return next(filter(None, found), None)
            case m.Conditional(body=body, orelse=orelse):
                return self.opening(body, scope, depth + 1) or self.opening(orelse, scope, depth + 1)
            case _:
                return None

    def _act(self, call: m.Call, scope: Environment) -> Operation | None:
        """Return the operation of a call that opens a file; a temporary file has no known path."""
        if last_name(call.function) == "open":
            return self.effects.operation(call, scope)
        resolver = self.flows.resolver
        if resolver.type_name(resolver.symbol(call, scope)) != _FILE:
            return None
        name = resolver.qualify(call.function, scope) or ""
        hidden = name == "os.fdopen" or self.flows.catalog.exact("private", name) is not None
        return Operation("create", call, name, tolerant=True) if hidden else None

    def is_path_of(self, path: m.Expr, scope: Environment, opening: OpenFile) -> bool:
        """Return whether an expression is the path of an open file: `file.name`, or a result of `mkstemp`."""
        if isinstance(path, m.Attribute) and path.name == "name":
            return self._is(path.value, scope, opening)
        number = library_argument(opening.call, "0:fd")
        if number is None or opening.operation.api != "os.fdopen":
            return False
        one = self.entry_states.rank_tests.known(number, opening.scope)
        two = self.entry_states.rank_tests.known(path, scope)
        return (
            isinstance(one, UnpackedPart)
            and isinstance(two, UnpackedPart)
            and one.source.expr is two.source.expr
        )

    def is_written(self, opening: OpenFile) -> bool:
        """Return whether the function that opens a file, or a method of its class, writes to it."""
        function = opening.scope.function
        around = (function,) if function.owner is None else tuple(function.owner.methods.values())
        call_sites = (call_site for each in around for call_site in self.flows.call_sites(each))
        return any(self._touched(call_site, opening) for call_site in call_sites)

    def unflushed(self, call_site: CallSite, opening: OpenFile) -> CallSite | None:
        """Return the last write to the buffer of a file before a call, unless it is flushed in between."""
        last: CallSite | None = None
        for earlier in self.flows.call_sites_before(call_site):
            if mutually_exclusive(earlier.state.conditions, call_site.state.conditions):
                continue
            if self._empties(earlier, opening):
                last = None
            elif self._touched(earlier, opening):
                last = earlier
        return last if opening.operation.op != "read" and is_buffered(opening) else None

    def open_at(self, call_site: CallSite) -> Iterator[OpenFile]:
        """Yield the files that are open for writing at a call, as far as its function shows."""
        within = [context.expr for context in call_site.contexts]
        entered = {
            context.expr for other in self.flows.call_sites(call_site.function) for context in other.contexts
        }
        for earlier in self.flows.call_sites_before(call_site):
            operation = self._act(earlier.call, earlier.state.scope)
            is_open = earlier.call in within or earlier.call not in entered
            if operation is not None and operation.op != "read" and is_open:
                yield OpenFile(earlier.call, operation, earlier.state.scope)

    def _is(self, file: m.Expr, scope: Environment, opening: OpenFile) -> bool:
        found = self.opening(file, scope)
        return found is not None and found.call is opening.call

    def _touched(self, call_site: CallSite, opening: OpenFile) -> bool:
        """Return whether a call writes to a file: it calls one of its methods, or is passed the file."""
        call, scope = call_site.call, call_site.state.scope
        if call is opening.call:
            return False
        if isinstance(call.function, m.Attribute) and self._is(call.function.value, scope, opening):
            return call.function.name not in _LOOKING | _EMPTYING
        handed = (*call.arguments, *(keyword.value for keyword in call.keywords))
        if not any(self._is(value, scope, opening) for value in handed):
            return False
        name = self.flows.resolver.qualify(call.function, scope)
        return name not in _BY_NUMBER and self.flows.catalog.find("lock", name) is None

    def _empties(self, call_site: CallSite, opening: OpenFile) -> bool:
        call, scope = call_site.call, call_site.state.scope
        if isinstance(call.function, m.Attribute) and call.function.name in _EMPTYING:
            return self._is(call.function.value, scope, opening)
        callee = self.flows.resolver.callee(call, scope)
        if callee is None or _EMPTYING.isdisjoint(callee.facts.referenced_names):
            return False
        return any(self._is(value, scope, opening) for value in call.arguments)


def is_buffered(opening: OpenFile) -> bool:
    """Return whether writes to a file go to a buffer of the process."""
    buffering = library_argument(opening.call, "2:buffering")
    unbuffered = isinstance(buffering, m.Constant) and buffering.value == 0
    return opening.operation.api != "os.open" and not unbuffered
