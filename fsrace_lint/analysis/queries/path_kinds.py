"""Queries for what the code of a function shows about a path: a directory, a file, an existing parent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.paths.abstract_path import AbstractPath
from fsrace_lint.analysis.queries.accesses import AccessQueries
from fsrace_lint.engine.query import query
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.builtin_exceptions import is_os_error
from fsrace_lint.syntax.traversal import all_in, evaluated, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access, ExistenceCheck, Operation
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.catalog import Op
    from fsrace_lint.files.spans import Span
    from fsrace_lint.program.modules import LinkedFunction

_FILLING: Final[frozenset[Op]] = frozenset({"write", "copy", "download", "link", "create"})
"""The operations that create a file, or a link, at their path."""
_DEEPEST: Final = 3
"""How many calls are followed to code that creates files."""
_OF_DIRECTORIES: Final[frozenset[Op]] = frozenset({"list", "mkdir"})
"""The operations that fail unless their path is a directory."""
_NEAR: Final = 100
"""The number of statements before and after an access that are searched for paths in its directory."""
_JOINING: Final = (m.Call, m.Binary, m.Format)
"""The expressions that can put a path together. A literal path counts where it is an argument."""


class PathKindQueries(AccessQueries):
    """Queries for the kind of a path, as the function of an access shows it."""

    def is_used_as_directory(self, access: Access) -> bool:
        """Return whether the function of an access uses its path as a directory.

        It does if it puts a path in the directory together, lists or creates the directory, or takes the path
        from the parent of another path.
        """
        path = access.path
        return path is not None and (
            path.is_some_parent
            or any(operation.op in _OF_DIRECTORIES for operation in self._other_operations(access, path))
            or self._is_joined(access, path)
        )

    def is_used_as_file(self, access: Access) -> bool:
        """Return whether the function of an access writes, links, or downloads a file at its path."""
        path = access.path
        return path is not None and any(
            operation.op in _FILLING and not operation.tree
            for operation in self._other_operations(access, path)
        )

    def is_filled_in_branch(self, access: Access) -> bool:
        """Return whether the branch that makes a directory goes on to fill it.

        It does if a later call of the branch writes a file, or runs code of the project that does.
        """
        tests = [each for each in access.call_site.state.conditions if each.branch is not None]
        return any(_is_in_branch(later, tests[-1]) for later in self._filling_after(access) if tests)

    def may_be_filled_after(self, access: Access) -> bool:
        """Return whether later code of the function may create files in the tree that an access deletes."""
        return any(True for _ in self._filling_after(access))

    def _filling_after(self, access: Access) -> Iterator[CallSite]:
        """Yield the calls after an access that create files, or run code of the project that does."""
        for call_site in self.flows.call_sites(access.call_site.function):
            if call_site.call.span > access.call_site.call.span and self._fills(call_site, 0):
                yield call_site

    def _fills(self, call_site: CallSite, depth: int) -> bool:
        operation = self._accesses.operation(call_site)
        if operation is not None:
            return operation.op in _FILLING or operation.op == "extract"
        callee = self.flows.resolver.callee(call_site.call, call_site.state.scope)
        return callee is not None and depth < _DEEPEST and self._is_filling(callee, depth + 1)

    @query
    def _is_filling(self, function: LinkedFunction, depth: int) -> bool:
        return any(self._fills(each, depth) for each in self.flows.call_sites(function))

    def excludes_only_missing(self, probe: ExistenceCheck, delete: Access, *, of_directory: bool) -> bool:
        """Return whether a check before a delete excludes nothing but a missing path.

        `isfile()` also excludes a link to a directory, and a slash at the end any file. A handler around the
        delete would see other errors without the check.

        Args:
            probe: The check.
            delete: The delete.
            of_directory: Whether it deletes a directory.
        """
        excludes_kind = not of_directory and (probe.asks_file or probe.has_trailing_slash)
        return not excludes_kind and not any(map(is_os_error, delete.caught))

    def has_parent(self, access: Access) -> bool:
        """Return whether the parent directory of the path of an access evidently exists.

        The parent is the current directory, or earlier code of the function or of its callers creates it.
        """
        components = () if access.path is None else access.path.components
        if len(components) == 1:
            return all(isinstance(piece, str) for piece in components[0])
        parent = AbstractPath(components[:-1])
        return bool(parent.components) and self._accesses.is_created_before(parent, access.call_site)

    def _other_operations(self, access: Access, path: AbstractPath) -> Iterator[Operation]:
        """Yield the other operations on a path in the function of an access."""
        for call_site, operation in self._operations(access.call_site.function).get(path, ()):
            if call_site is not access.call_site:
                yield operation

    @query
    def _operations(
        self, function: LinkedFunction
    ) -> dict[AbstractPath | None, list[tuple[CallSite, Operation]]]:
        """Return the operations in a function, by path."""
        found: dict[AbstractPath | None, list[tuple[CallSite, Operation]]] = {}
        for call_site in self.flows.call_sites(function):
            operation = self._accesses.operation(call_site)
            if operation is not None:
                path = self.entry_states.paths.normalize(operation.path, call_site.state.scope)
                found.setdefault(path, []).append((call_site, operation))
        return found

    def _is_joined(self, access: Access, path: AbstractPath) -> bool:
        normalize, scope = self.entry_states.paths.normalize, access.call_site.state.scope
        statements, places = self._joining(access.call_site.function)
        here = places.get(access.call_site.call.span, 0)
        near = statements[max(0, here - _NEAR) : here + _NEAR]
        joined = (normalize(each, scope) for found in near for each in found)
        return any(each is not None and each != path and each.is_within(path) for each in joined)

    @query
    def _joining(self, function: LinkedFunction) -> tuple[list[list[m.Expr]], dict[Span, int]]:
        """Return the expressions of each statement that can put a path together, and the places of calls."""
        statements = [list(_joined_in(statement)) for statement in all_in(function.facts.body)]
        calls = ((each, place) for place, found in enumerate(statements) for each in found)
        return statements, {each.span: place for each, place in calls if isinstance(each, m.Call)}


def _joined_in(statement: m.Statement) -> Iterator[m.Expr]:
    for whole in evaluated(statement):
        for each in within(whole):
            if isinstance(each, _JOINING):
                yield each
            if isinstance(each, m.Call):
                yield from (part for part in each.arguments if isinstance(part, m.Constant))


def _is_in_branch(call_site: CallSite, test: PathCondition) -> bool:
    """Return whether a call is in the branch in which a test has a known outcome."""
    return any(each.branch is test.branch and each.truth is test.truth for each in call_site.state.conditions)
