"""Functions of the project that run a command which their callers pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.callgraph.reaching_functions import reaching_functions
from fsrace_lint.analysis.dataflow.infeasible_paths import is_infeasible
from fsrace_lint.analysis.paths.abstract_path import AbstractPath
from fsrace_lint.analysis.paths.callee_paths import instantiate_at_call
from fsrace_lint.analysis.values.abstract_values import Argument, Expression, Union
from fsrace_lint.engine.cycles import CycleDetector
from fsrace_lint.engine.depth_budget import DepthBudget
from fsrace_lint.engine.query import lazy, recursive_query
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.command_words import Calls, Part, Word
    from fsrace_lint.analysis.accesses.effects import Effects, Started
    from fsrace_lint.analysis.accesses.shell_commands import Touched
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.callgraph.reaching_functions import ReachingFunctions
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.program.modules import LinkedFunction

_DEEPEST: Final = 3


class Run(Record, frozen=True, eq=False):
    """A command that runs at the end of some calls.

    Attributes:
        started: The program call.
        chain: The calls, the program call first.
    """

    started: Started
    chain: tuple[CallSite, ...]

    @property
    def calls(self) -> Calls:
        """The calls that lead to the function of the program call, each with the function that it runs."""
        return tuple(
            (outer, inner.function) for inner, outer in zip(self.chain, self.chain[1:], strict=False)
        )


class CommandRunners:
    """Finds the commands that functions receive and run."""

    def __init__(self, entry_states: EntryStates, effects: Effects) -> None:
        """Initialize for a project; nothing is computed yet."""
        self._entry_states, self._effects = entry_states, effects
        self._flows, self._paths = entry_states.flows, entry_states.paths
        self.budget = DepthBudget(_DEEPEST, CycleDetector())

    @lazy
    def _leading(self) -> ReachingFunctions:
        return reaching_functions(self._entry_states, ("program",), _DEEPEST + 1)

    def passed(self, function: LinkedFunction) -> Iterator[tuple[Run, Touched]]:
        """Yield the commands that a function passes to functions that run them, and what they do."""
        for call_site in self._possible(function):
            for run in self._of_callee(call_site, 0):
                done = self._touched(run)
                if done is not None:
                    yield run, done

    @recursive_query(beyond=())
    def _received(self, function: LinkedFunction, depth: int) -> tuple[Run, ...]:
        """Return the commands that a function receives and runs."""
        found: list[Run] = []
        for call_site in self._possible(function):
            started = self._effects.program(call_site.call, call_site.state.scope)
            here = () if started is None else (Run(started, (call_site,)),)
            found += (run for run in here or self._of_callee(call_site, depth) if self._is_open(run))
        return tuple(found)

    def _possible(self, function: LinkedFunction) -> Iterator[CallSite]:
        """Yield the calls in a function that may lead to a program call."""
        if function in self._leading.functions:
            for call_site in self._flows.call_sites(function):
                if last_name(call_site.call.function) in self._leading.names:
                    yield call_site

    def _of_callee(self, call_site: CallSite, depth: int) -> Iterator[Run]:
        """Yield the commands that the function which a call runs receives, with that call."""
        named = self._flows.resolver.callee(call_site.call, call_site.state.scope)
        for callee in () if named is None or named is call_site.function else named.implementations:
            for run in self._received(callee, depth + 1):
                if not is_infeasible(call_site, callee, run.chain[-1].state):
                    yield Run(run.started, (*run.chain, call_site))

    def _touched(self, run: Run) -> Touched | None:
        return self._effects.touched(run.started, run.chain[0].state.scope, run.calls)

    def _is_open(self, run: Run) -> bool:
        """Return whether the callers of the first function of a chain decide which command runs."""
        commands = self._effects.commands(run.started, run.chain[0].state.scope, run.calls)
        plain = self._effects.shell.plain(commands)
        is_open = any(self._is_passed(command.words[0][0]) for command in plain if command.words)
        return is_open and self._touched(run) is None

    def _is_passed(self, part: Part) -> bool:
        """Return whether a part of a word is a parameter, or the elements of one."""
        if not isinstance(part, Expression):
            return False
        expr = part.expr.value if isinstance(part.expr, m.Starred) else part.expr
        bound = self._flows.resolver.binding(expr.id, part.scope) if isinstance(expr, m.Name) else None
        options = bound.options if isinstance(bound, Union) else (bound,)
        return any(isinstance(option, Argument) for option in options)

    def path(self, word: Word, run: Run) -> AbstractPath | None:
        """Return the path that a word of a command is, as seen from the first call of its chain."""
        seen = [AbstractPath.of([part]) if isinstance(part, str) else self._seen(part, run) for part in word]
        known = [path for path in seen if path is not None]
        pieces = (piece for path in known for piece in path.pieces())
        return AbstractPath.of(pieces) if len(known) == len(seen) else None

    def _seen(self, part: Expression, run: Run) -> AbstractPath | None:
        """Return the path of an expression in a function of a chain, as seen from its first call."""
        path, function = self._paths.normalize(part.expr, part.scope), part.scope.function
        for call_site, callee in run.calls:
            if callee is function:
                scope = call_site.state.scope
                path = instantiate_at_call(self._paths, path, call_site.call, scope, callee)
                function = call_site.function
        return path
