"""Files whose mere presence the project's own code takes for a lock."""

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
    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.program.modules import LinkedFunction


class LockFileCheck(Record, frozen=True, eq=False):
    """A lock file that is created after a test whether it is there.

    `asked` is the call that tests it, or leads to that test. `is_released` says that
    the code deletes the file too, as one does with a lock.
    """

    access: Access
    asked: CallSite
    is_released: bool

    @property
    def place(self) -> Place:
        """Where the test stands, or the call that leads to it."""
        return Place(self.asked.function.module.path, self.asked.call.span)

    @property
    def asked_text(self) -> str:
        """The test as the source spells it."""
        return spell(self.asked.call)


class LockFiles:
    """Finds the lock files that functions create in good faith."""

    def __init__(self, linker: FunctionFlows, sites: Accesses) -> None:
        """Prepare for a project; nothing is looked at yet."""
        self.linker = linker
        self.sites = sites

    def claims(self, function: LinkedFunction) -> Iterator[LockFileCheck]:
        """Give the lock files that a function creates after it asked whether they are there."""
        for site in self.sites.direct(function):
            creates = site.operation.op in {"create", "write"} and not site.operation.exclusive
            if not creates or site.path is None or not site.path.names_a_lock:
                continue
            asked = self._asked(site, site.path)
            if asked is not None:
                yield LockFileCheck(site, asked, self._is_released(site))

    def _asked(self, site: Access, path: AbstractPath) -> CallSite | None:
        """Find the last call before an act that tests its path, itself or in a function that it calls."""
        last = None
        for event in self.linker.call_sites_before(site.call_site):
            if mutually_exclusive(event.state.conditions, site.call_site.state.conditions):
                continue
            callee = self.linker.resolver.callee(event.call, event.state.scope)
            if self._tests(event) == path:
                last = event
            elif callee is not None:
                inner = (self._tests(each) for each in self.linker.call_sites(callee))
                seen = (self.sites.substituted(each, event, callee) for each in inner if each is not None)
                if any(each == path for each in seen):
                    last = event
        return last

    def _tests(self, event: CallSite) -> AbstractPath | None:
        """Give the path whose presence a call tests."""
        scope = event.state.scope
        act = self.sites.effects.operation(event.call, scope)
        if act is None or act.op != "probe":
            return None
        return self.linker.paths.normalize(act.path, scope)

    def _is_released(self, site: Access) -> bool:
        """Tell whether the file of an act deletes a path of that name somewhere."""
        functions = site.call_site.function.module.functions
        acts = (each for function in functions for each in self.sites.direct(function))
        deleted = (each for each in acts if each.operation.op == "delete")
        return any(
            site.path is not None
            and each.path is not None
            and (each.path == site.path or each.path.components[-1:] == site.path.components[-1:])
            for each in deleted
        )
