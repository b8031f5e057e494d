"""Accesses of the first process of each node to paths that nodes may share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from fsrace_lint.analysis.accesses.confidence import Confidence
from fsrace_lint.analysis.accesses.model import Reach
from fsrace_lint.analysis.dataflow.loops import calls_of
from fsrace_lint.analysis.dataflow.process_set import MAIN, TOP, Runs, runs
from fsrace_lint.analysis.paths.purpose import Purpose, purpose
from fsrace_lint.analysis.synchronization.single_node import SingleNode
from fsrace_lint.analysis.values.abstract_values import ConditionalValue, Expression
from fsrace_lint.analysis.values.trace_back import expressions_of, sides_of
from fsrace_lint.catalog.lexicon import says, words
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.traversal import within
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.accesses import Accesses
    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.dataflow.abstract_state import PathCondition as Tested
    from fsrace_lint.analysis.paths.abstract_path import PathVariable
    from fsrace_lint.launches.model import Launch
    from fsrace_lint.program.modules import LinkedFunction

By = Literal["test", "path", "filesystem"]

_COUNT: Final = re.compile(r"(?:gpu|proc|device|rank|worker|task|size)(?:es|s)?_?per_?node", re.IGNORECASE)
# Nodes that start a job together read the same second from their clocks.
_BY_CLOCK: Final = frozenset({"clock"})
_NODE: Final = re.compile(r"(?<![a-z])(?:node|host)(?![a-z])", re.IGNORECASE)


class PerNodeAccess(Record, frozen=True, eq=False):
    """An access that one process of each node runs on one path.

    Attributes:
        access: The access.
        is_known_shared: Whether the settings declare the path as shared.
        is_plain: Whether the path is a result of the run by its name, and nothing suggests one per node.
        by: What selects the processes: the local rank in a check (`test`), the local rank in the path
            (`path`), or a rank that counts the processes of each filesystem (`filesystem`).
        is_made_anew: Whether the access deletes a directory that the function then recreates.
        at_most: The highest confidence, as far as it is known on how many nodes the program runs.
    """

    access: Access
    is_known_shared: bool
    is_plain: bool
    by: By
    is_made_anew: bool
    at_most: Confidence


class PerNode:
    """Finds the accesses that one process of each node runs."""

    def __init__(self, accesses: Accesses) -> None:
        """Initialize for a project."""
        self.accesses = accesses
        self.flows = accesses.flows
        self.storage = accesses.storage
        self.entry_states = accesses.entry_states
        self.evidence = accesses.evidence
        self._single_node = SingleNode(self.entry_states)

    def of(self, function: LinkedFunction) -> Iterator[PerNodeAccess]:
        """Yield the accesses of a function that one process of each node runs.

        An access is yielded in the function that selects its processes, by a check or by the file name, or
        else in the function that determines its path.

        Accesses in hooks that a framework calls once per node are skipped, and those with a check that
        intends one access per node, such as `save_on_each_node` or `node_rank == 0`.
        """
        chosen = dict.fromkeys(self.accesses.rank_selected(function))
        every = dict.fromkeys((*self.accesses.all_accesses(function), *chosen))
        for access in sorted(every, key=lambda access: access.span):
            by = self._chosen_by(access)
            stands_here = _is_named_here(access) if by == "path" else access in chosen
            if by is not None and stands_here and not access.locked and not self._is_meant(access):
                known, plain = self._is_known_shared(access), self._is_plain(access, by)
                is_alone = not known and self._is_on_one_node(access)
                at_most = Confidence.LOW if is_alone else Confidence.HIGH
                yield PerNodeAccess(access, known, plain, by, self._is_made_anew(access), at_most)

    def _is_on_one_node(self, access: Access) -> bool:
        """Return whether the programs that reach an access run on one node only.

        Their process groups have no other node, or the repository starts them on one. A script that it does
        not start counts too, if it starts other programs. Code outside of the repository can call a library.
        """
        programs, callers = self.evidence.programs, self.entry_states.callers
        above = self.entry_states.upward(access.leaf_call.function, callers)
        launches = {function: programs.launches_of(function) for function in above}
        roots = [function for function in above if not callers(function)]
        if self.evidence.is_library(access.leaf_call.function, roots):
            return False
        if self._single_node.holds(roots):
            return True
        are_known = all(launches[root] or (root.index == 0 and root.module.facts.is_script) for root in roots)
        every = (launch for found in launches.values() for launch in found)
        return programs.is_told and are_known and all(map(_stays_on_node, every))

    def _is_made_anew(self, access: Access) -> bool:
        """Return whether an access deletes a directory and its function creates something there later."""
        if not (access.op == "delete" and access.operation.tree) or access.path is None:
            return False
        later = (
            other
            for other in self.accesses.all_accesses(access.call_site.function)
            if other.comes_after(access)
        )
        made = (other.path for other in later if other.op != "delete")
        return any(path is not None and path.is_within(access.path) for path in made)

    def _chosen_by(self, access: Access) -> By | None:
        """Return what selects one process of each node, or None if more run it or the path is not shared."""
        path = access.path
        private = [] if path is None else [symbol for symbol in path.variables() if symbol.rank_dependent]
        if access.reach is Reach.PRIVATE:
            if path is None or self.accesses.contexts.shared_by(path, access.path_source) is not Reach.SHARED:
                return None
            if private and all(symbol.is_local_rank for symbol in private):
                return "path" if access.runs_several else None
            if not private or path.rank_dependence != _BY_CLOCK or any(map(self._is_fine, private)):
                return None
        elif access.reach is not Reach.SHARED:
            return None
        if access.runs is Runs.PER_NODE:
            return "test"
        is_one = access.runs is Runs.ONE and any(map(self._counts_filesystem, _tests(access)))
        return "filesystem" if is_one else None

    def _is_fine(self, symbol: PathVariable) -> bool:
        """Return whether a text is a time with small fractions of a second, not one that is cut off."""
        made = symbol.definition
        if not isinstance(made, Expression) or not isinstance(made.expr, m.Call):
            return False
        name = self.flows.resolver.qualify(made.expr.function, made.scope)
        entry = self.flows.catalog.find("private", name)
        return entry is not None and entry.is_fine

    def _counts_filesystem(self, literal: Tested) -> bool:
        """Return whether a condition compares a rank that may count the processes of each filesystem."""
        if not isinstance(literal.test, m.Compare):
            return False
        return self.entry_states.rank_tests.rank_scope(literal.test.left, literal.scope) == "filesystem"

    def _is_meant(self, access: Access) -> bool:
        """Return whether the program intends one access per node."""
        names = {name for literal in _tests(access) for name in _identifiers(literal.test)}
        if _names_node(*(name for name in names if _COUNT.search(name) is None)):
            return True
        above = self.entry_states.upward(access.call_site.function, self.entry_states.callers)
        hooks = (self.entry_states.hooks.of(function) for function in above)
        return any(hook is not None and hook.runs == "local" for hook in hooks)

    def _is_known_shared(self, access: Access) -> bool:
        """Return whether the settings declare the path as shared by all nodes."""
        named = self.storage.named(access.path, access.path_source)
        return self.storage.filesystem == "shared" if named is None else named

    def _is_plain(self, access: Access, by: By) -> bool:
        names = (access.function, access.leaf_call.function.facts.name)
        made = (access.path_source, "" if access.path is None else access.path.text, access.callee)
        texts = made if access.operation.target is None else (spell(access.operation.target),)
        is_result = purpose(texts, names) is Purpose.RESULT
        doubtful = by != "filesystem" and (
            self._is_joined(access) or any(map(self._is_also_global, _tests(access)))
        )
        return is_result and not doubtful and not _names_node(access.callee, *names)

    def _is_joined(self, access: Access) -> bool:
        """Return whether branches for different ranks join before an access.

        A setting can then choose between one process of each node and one process of the job.
        """
        state = access.call_site.state
        return state.processes != TOP and all(
            self.entry_states.deciding(each) == TOP for each in state.conditions
        )

    def _is_also_global(self, literal: Tested) -> bool:
        """Return whether a condition checks the local rank only in some cases, and else the global rank.

        An example is an `is_main_process` that reads the environment before the process group is
        initialized, and the rank of the process group after that.
        """
        by_node = runs(self.entry_states.deciding(literal)) is Runs.PER_NODE
        if by_node and any(map(self._is_global, self._chosen_in(literal))):
            return True
        results = (self.flows.call_results(call, literal.scope) for call in calls_of(literal.test))
        return any(any(map(self._is_for_main, each)) for each in results)

    def _chosen_in(self, literal: Tested) -> Iterator[Expression]:
        """Yield the values of the names in a condition that another condition chooses."""
        named = (part for part in within(literal.test) if isinstance(part, (m.Name, m.Attribute)))
        for binding in (self.entry_states.rank_tests.known(name, literal.scope) for name in named):
            if isinstance(binding, ConditionalValue):
                yield from expressions_of(binding)
            elif isinstance(binding, Expression):
                yield from sides_of(binding)

    def _is_global(self, value: Expression) -> bool:
        is_rank = self.entry_states.rank_tests.rank_scope(value.expr, value.scope) == "global"
        return is_rank or self._is_for_main(value)

    def _is_for_main(self, test: Expression) -> bool:
        return self.entry_states.rank_tests.partition(test.expr, test.scope)[0] == MAIN


def _stays_on_node(launch: Launch) -> bool:
    """Return whether a command starts all processes on one node, also by the options of the program."""
    options = [word for word in launch.arguments if word.startswith("-") and "per" not in words(word)]
    return launch.on_one_node and not any(says(option.partition("=")[0], "nodes") for option in options)


def _is_named_here(access: Access) -> bool:
    """Return whether the local rank becomes a part of the path here, not in a callee."""
    path = None if access.callee_access is None else access.callee_access.path
    return path is None or not any(symbol.is_local_rank for symbol in path.variables())


def _identifiers(expr: m.Expr) -> Iterator[str]:
    """Yield the identifiers in an expression."""
    names = (part for part in within(expr) if isinstance(part, (m.Name, m.Attribute)))
    yield from (part.id if isinstance(part, m.Name) else part.name for part in names)


def _tests(access: Access) -> tuple[Tested, ...]:
    return (*access.call_site.state.conditions, *access.leaf_call.state.conditions)


def _names_node(*texts: str) -> bool:
    return any(_NODE.search(text) is not None for text in texts)
