"""Files that are filled with HTTP responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.values.abstract_values import ContextResult, Expression
from fsrace_lint.analysis.values.call_arguments import library_argument
from fsrace_lint.analysis.values.trace_back import expressions_of
from fsrace_lint.engine.query import query
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name, parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.program.modules import LinkedFunction

_DEEPEST: Final = 10
_WHAT: Final = {
    "write": "0",
    "writelines": "0",
    "write_bytes": "0:data",
    "write_text": "0:data",
    "copyfileobj": "0:fsrc",
}
"""The calls that write to a file, and the argument with the content."""
_INTO_A_PATH: Final = frozenset({"write_bytes", "write_text"})
_COPIED_TO: Final = "1:fdst"


class HttpDownloads:
    """Finds the calls that open or write a file for the content of a response."""

    def __init__(self, entry_states: EntryStates) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.entry_states = entry_states
        self.flows = entry_states.flows
        self.catalog = self.flows.catalog

    def fills(self, call_site: CallSite) -> bool:
        """Return whether a call opens or writes a file for the content of a response."""
        function = call_site.function
        if not self.flows.relevance.may_use(function, _WHAT.keys()):
            return False
        return call_site.call in self._filled(function)

    @query
    def _filled(self, function: LinkedFunction) -> frozenset[m.Expr]:
        return frozenset(self._calls(function))

    def _calls(self, function: LinkedFunction) -> Iterator[m.Expr]:
        for call_site in self.flows.call_sites(function):
            call, scope = call_site.call, call_site.state.scope
            name = last_name(call.function)
            answer = library_argument(call, _WHAT.get(name, ""))
            if answer is None or not self._is_answer(answer, scope, 0):
                continue
            if name in _INTO_A_PATH:
                yield call
                continue
            file = library_argument(call, _COPIED_TO if name == "copyfileobj" else "self")
            if file is not None:
                yield from self._opened(file, scope)

    def _opened(self, file: m.Expr, scope: Environment) -> Iterator[m.Expr]:
        """Yield the call that a file object comes from."""
        bound = self.entry_states.rank_tests.known(file, scope)
        if isinstance(bound, ContextResult):
            bound = bound.source
        yield bound.expr if isinstance(bound, Expression) else file

    def _is_answer(self, expr: m.Expr, scope: Environment, depth: int) -> bool:
        """Return whether a value is a response, or is read from one."""
        if depth > _DEEPEST:
            return False
        match expr:
            case m.Name() | m.Attribute():
                bound = self.entry_states.rank_tests.known(expr, scope)
                if bound is not None:
                    return any(self._is_answer(v.expr, v.scope, depth + 1) for v in expressions_of(bound))
                return isinstance(expr, m.Attribute) and self._is_answer(expr.value, scope, depth + 1)
            case m.Call():
                return self._is_answered(expr, scope, depth + 1)
            case m.Constant() | m.Lambda():
                return False
            case _:
                return any(self._is_answer(part, scope, depth + 1) for part in parts(expr))

    def _is_answered(self, call: m.Call, scope: Environment, depth: int) -> bool:
        """Return whether the result of a call is a response, or is derived from one."""
        name = self.flows.resolver.qualify(call.function, scope) or f"*.{last_name(call.function)}"
        if self.catalog.find("response", name) is not None:
            return True
        callee = self.flows.resolver.callee(call, scope)
        if callee is not None:
            results = self.flows.return_values(callee)
            return any(self._is_answer(each.expr, each.scope, depth + 1) for each in results)
        return any(self._is_answer(part, scope, depth + 1) for part in parts(call))
