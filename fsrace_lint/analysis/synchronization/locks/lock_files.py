"""Lock files whose existence is the lock, in the code of the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.dataflow.abstract_state import mutually_exclusive
from fsrace_lint.files.spans import Place
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.accesses import Accesses
    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.program.modules import LinkedFunction


class LockFileCheck(Record, frozen=True, eq=False):
    """A lock file that is created after a separate existence check.

    Attributes:
        access: The access that creates it.
        asked: The call that checks it, or that reaches the check.
        is_released: Whether the code also deletes the file, as it does with a lock.
    """

    access: Access
    asked: CallSite
    is_released: bool

    @property
    def place(self) -> Place:
        """The place of the check, or of the call that reaches it."""
        return Place(self.asked.function.module.path, self.asked.call.span)

    @property
    def asked_text(self) -> str:
        """The check, as in the source."""
        return spell(self.asked.call)


class LockFiles:
    """Finds the lock files that functions create after an existence check."""

    def __init__(self, accesses: Accesses) -> None:
        """Initialize for a project."""
        self.entry_states = accesses.entry_states
        self.flows = accesses.flows
        self.accesses = accesses

    def claims(self, function: LinkedFunction) -> Iterator[LockFileCheck]:
        """Yield the lock files that a function creates after an existence check."""
        for access in self.accesses.direct(function):
            creates = access.op in {"create", "write"} and not access.operation.exclusive
            if not creates or access.path is None or not access.path.names_a_lock:
                continue
            asked = self._asked(access, access.path)
            if asked is not None:
                yield LockFileCheck(access, asked, self._is_released(access))

    def _asked(self, access: Access, path: AbstractPath) -> CallSite | None:
        """Return the last call before an access that checks its path, directly or in a callee."""
        last = None
        for call_site in self.flows.call_sites_before(access.call_site):
            if mutually_exclusive(call_site.state.conditions, access.call_site.state.conditions):
                continue
            callee = self.flows.resolver.callee(call_site.call, call_site.state.scope)
            if self._tests(call_site) == path:
                last = call_site
            elif callee is not None:
                inner = (self._tests(each) for each in self.flows.call_sites(callee))
                seen = (
                    self.accesses.substituted(each, call_site, callee) for each in inner if each is not None
                )
                if any(each == path for each in seen):
                    last = call_site
        return last

    def _tests(self, call_site: CallSite) -> AbstractPath | None:
        """Return the path whose existence a call checks, or None."""
        scope = call_site.state.scope
        operation = self.accesses.effects.operation(call_site.call, scope)
        if operation is None or operation.op != "probe":
            return None
        return self.entry_states.paths.normalize(operation.path, scope)

    def _is_released(self, access: Access) -> bool:
        """Return whether the module of an access deletes a path with the same file name."""
        functions = access.call_site.function.module.functions
        operations = (each for function in functions for each in self.accesses.direct(function))
        deleted = (each for each in operations if each.op == "delete")
        return any(
            access.path is not None
            and each.path is not None
            and (each.path == access.path or each.path.components[-1:] == access.path.components[-1:])
            for each in deleted
        )
