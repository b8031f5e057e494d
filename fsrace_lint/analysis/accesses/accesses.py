"""Find the filesystem acts of functions, also those a call leads to."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.access_context import AccessContexts, LazyAccessContext
from fsrace_lint.analysis.accesses.effects import Effects
from fsrace_lint.analysis.accesses.exclusive_claims import ExclusiveClaims
from fsrace_lint.analysis.accesses.existence_checks import ExistenceChecks
from fsrace_lint.analysis.accesses.http_downloads import HttpDownloads
from fsrace_lint.analysis.accesses.model import ASKING, Access
from fsrace_lint.analysis.callgraph.concurrency_evidence import ConcurrencyEvidence
from fsrace_lint.analysis.callgraph.reaching_functions import reaching_functions
from fsrace_lint.analysis.dataflow.infeasible_paths import is_infeasible
from fsrace_lint.analysis.dataflow.process_set import TOP, runs
from fsrace_lint.analysis.paths.callee_paths import instantiate_at_call, is_parameterized
from fsrace_lint.analysis.paths.storage import Storage
from fsrace_lint.engine.depth_budget import Followed
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Operation
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.analysis.callgraph.reaching_functions import ReachingFunctions
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.dataflow.process_set import ProcessSet
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.program.modules import LinkedFunction
    from fsrace_lint.analysis.values.abstract_values import Environment

_CALLERS_DEPTH: Final = 4
_UNKNOWN_STORAGE: Final = Storage()
_NOT_DONE: Final = frozenset({"NotImplementedError", "type", "self", "__class__", "__name__", "str"})
"""What is mentioned in methods that are there to be overridden."""
_OF_THE_KERNEL: Final = re.compile(r"/(proc|sys|dev(?!/shm))/")
"""Where each process sees itself, its machine or its container, or nothing is kept."""
_NONE: Final = spell(m.Constant(None))


class Accesses:
    """The sites of a project's functions, each function's found once.

    A site is *open* where its path depends on a parameter and the callers are
    known: what path it is, and who writes it, is decided where they call.
    """

    def __init__(
        self, linker: FunctionFlows, propagation: EntryStates, storage: Storage = _UNKNOWN_STORAGE
    ) -> None:
        """Prepare for a project; nothing is followed yet."""
        self.linker = linker
        self.propagation = propagation
        self.storage = storage
        self.evidences = ConcurrencyEvidence(linker, propagation)
        self.effects = Effects(linker.resolver, linker.catalog, linker.mentions)
        self.tests = ExistenceChecks(linker, self.effects)
        self._responses = HttpDownloads(linker)
        self._direct: dict[LinkedFunction, tuple[Access, ...]] = {}
        self._seen: dict[LinkedFunction, tuple[Access, ...]] = {}
        self._exposed: dict[LinkedFunction, tuple[Access, ...]] = {}
        self.surroundings = AccessContexts(propagation, linker.paths, storage)
        self._claims = ExclusiveClaims(linker.paths)
        self._open: Followed[LinkedFunction, tuple[Access, ...]] = Followed((), _CALLERS_DEPTH + 1)

    def direct(self, function: LinkedFunction) -> tuple[Access, ...]:
        """Give the sites that stand in a function, with what all its callers bring."""
        if function not in self._direct:
            self._direct[function] = tuple(self._find(function))
        return self._direct[function]

    def all_accesses(self, function: LinkedFunction) -> tuple[Access, ...]:
        """Give the sites of a function and the open ones that its calls lead to, in the order of the code."""
        if function not in self._seen:
            found = (*self.direct(function), *self._led_to(function, 0))
            self._seen[function] = tuple(sorted(found, key=lambda site: site.span))
        return self._seen[function]

    def instantiated(self, function: LinkedFunction) -> tuple[Access, ...]:
        """Give the sites whose path is decided in a function: its own, and those that its calls lead to."""
        if function not in self._exposed:
            decided = (site for site in self.all_accesses(function) if not self.is_parametric(site))
            self._exposed[function] = tuple(site for site in decided if not self._is_no_file(site.path))
        return self._exposed[function]

    def rank_selected(self, function: LinkedFunction) -> Iterator[Access]:
        """Give the sites of a function where it chooses their processes, the others as `exposed` does."""
        for site in self.direct(function):
            if self.is_parametric(site) and runs(site.own) is site.runs:
                yield site
        acting = self.surroundings.acting
        for site in self.instantiated(function):
            if (
                site.call_site is site.leaf_call
                or runs(acting(site.operation, site.leaf_call)) is not site.runs
            ):
                yield site

    def arrival(self, rename: Access) -> Access | None:
        """Give a rename as it looks from the path that it makes."""
        target, scope = rename.operation.target, rename.leaf_call.state.scope
        if target is None:
            return None
        act = replace(rename.operation, path=target)
        path = self._brought_up(self.linker.paths.normalize(target, scope), rename)
        around, event = self.surroundings, rename.call_site
        return self._site_of(LazyAccessContext(around, act, event, rename.leaf_call, path, spell(target)))

    def _brought_up(self, path: AbstractPath | None, site: Access) -> AbstractPath | None:
        """Give a path of the function that does it as it looks from where a site is seen."""
        if site.callee_access is None:
            return path
        return self.substituted(
            self._brought_up(path, site.callee_access), site.call_site, site.callee_access.call_site.function
        )

    def _is_no_file(self, path: AbstractPath | None) -> bool:
        """Tell whether callers hand over something that is no file: None, or a null device, say."""
        texts = () if path is None else [symbol.text for symbol in path.variables()]
        return any(text == _NONE or self.linker.catalog.exact("sink", text) is not None for text in texts)

    def may_reach_access(self, function: LinkedFunction) -> bool:
        """Tell whether there can be sites in a function, or at its calls."""
        if function in self._leading.functions:
            return True
        return not self.effects.names.isdisjoint(function.facts.mentions)

    def _find(self, function: LinkedFunction) -> Iterator[Access]:
        if self.effects.names.isdisjoint(function.facts.mentions):
            return
        found = (self._site(event) for event in self.linker.call_sites(function))
        for site in self._claims.of(site for site in found if site is not None):
            yield self._settled(site)

    def _site(self, event: CallSite) -> Access | None:
        act = self.operation(event)
        return None if act is None or act.op in ASKING else self.access_at(act, event, event.state.scope)

    def operation(self, event: CallSite) -> Operation | None:
        """Give what a call does to the filesystem; None where that is nothing, or nothing that stays."""
        act = self.effects.operation(event.call, event.state.scope)
        if act is None or self._is_sink(act.path, event.state.scope):
            return None
        return replace(act, op="download") if act.op == "write" and self._responses.fills(event) else act

    def access_at(self, act: Operation, event: CallSite, scope: Environment) -> Access:
        """Give what is known of an act.

        Args:
            act: The act.
            event: The call that does it.
            scope: The names with which its path is read.
        """
        path = self.linker.paths.normalize(act.path, scope)
        return self._site_of(LazyAccessContext(self.surroundings, act, event, event, path, spell(act.path)))

    def access_with_processes(self, event: CallSite, act: Operation, scope: Environment) -> Access:
        """Give the site of an act whose path is read in `scope`, as it looks from a call."""
        path = self.linker.paths.normalize(act.path, scope)
        around, processes = self.surroundings, self.propagation.processes(event)
        seen = LazyAccessContext(around, act, event, event, path, spell(act.path), processes=processes)
        return self._site_of(seen)

    def access_with_path(
        self,
        act: Operation,
        event: CallSite,
        origin: CallSite,
        path: AbstractPath | None,
        processes: ProcessSet,
    ) -> Access:
        """Give the site of an act as it looks from a call, with the path that it has there."""
        spelled = spell(act.path) if event is origin or path is None else path.text
        around = self.surroundings
        return self._site_of(
            LazyAccessContext(around, act, event, origin, path, spelled, processes=processes)
        )

    def is_settled_before(self, event: CallSite) -> bool:
        """Tell whether all processes have met before a call, and none has changed anything since."""
        settled = False
        for earlier in self.linker.call_sites_before(event):
            if self.evidences.meets(earlier):
                settled = True
            elif earlier.state.processes != TOP:
                act = self.effects.operation(earlier.call, earlier.state.scope)
                settled = settled and (act is None or act.op in ASKING)
        return settled

    def _site_of(self, standing: LazyAccessContext) -> Access:
        """Give the site of an act as it looks from a call; what callers bring is found later."""
        act, event = standing.act, standing.event
        trace = functools.partial(self.evidences.trace, event)
        site = Access(
            act,
            event,
            standing.origin,
            standing.path,
            standing.spelled,
            standing,
            trace,
            callee_access=standing.below,
        )
        cached = act.op == "download" and self.tests.wanting(site) is not None
        return replace(site, settled=True) if cached else site

    def _is_sink(self, path: m.Expr, scope: Environment) -> bool:
        """Tell whether what is written to is no path: a device, a buffer, a file opened before."""
        first = path.parts[0] if isinstance(path, m.Format) and path.parts else path
        text = first.value if isinstance(first, m.Constant) and isinstance(first.value, str) else ""
        if _OF_THE_KERNEL.match(text) is not None:
            return True
        resolver = self.linker.resolver
        name = resolver.type_name(resolver.symbol(path, scope))
        return name is not None and self.linker.catalog.exact("sink", name) is not None

    def is_parametric(self, site: Access) -> bool:
        """Tell whether the callers of its function decide the path of a site, and who writes it."""
        return not site.fixed_here and self._depends_on_callers(site)

    @functools.cached_property
    def _leading(self) -> ReachingFunctions:
        return reaching_functions(self.propagation, ("effect", "program"), _CALLERS_DEPTH + 1)

    def _settled(self, site: Access) -> Access:
        """Judge a site where it stands if it is what it is whoever calls.

        Its file is named right there, and every caller brings several processes and a path
        that they share; or its processes are tested there, and no caller brings a path of
        its own. Not so a download: its caller may test whether it is there.
        """
        function = site.call_site.function
        names_the_file = site.path is not None and site.path.spells_its_last_part
        tells_processes = site.call_site.state.processes != TOP
        if site.operation.op == "download" or not (names_the_file or tells_processes):
            return site
        if not self._depends_on_callers(site) or not site.is_contended:
            return site
        edges = self.propagation.callers(function)
        if self.propagation.ways_in(function) != edges:
            return site
        certain = False
        for edge in edges:
            path = self.substituted(site.path, edge.event, function)
            private, sure = self.surroundings.ownership.of(path, edge.event.function)
            unknown = (path is None or path.is_part) and not tells_processes
            if unknown or private or self.propagation.protection.locked(edge.event):
                return site
            certain = certain or sure
        return replace(site, settled=True, callers=tuple(edge.event for edge in edges), sure=certain)

    def _depends_on_callers(self, site: Access) -> bool:
        function = site.call_site.function
        if site.path is None or self._saves_for_all(function):
            return False
        if not is_parameterized(self.linker.paths, site.path, function):
            return False
        return self.propagation.is_only_called(function)

    def _opened(self, function: LinkedFunction, depth: int) -> tuple[Access, ...]:
        """The open sites of a function, its own and those that its calls lead to."""
        return self._open.get(function, depth, lambda: tuple(self._find_opened(function, depth)))

    def _find_opened(self, function: LinkedFunction, depth: int) -> Iterator[Access]:
        found = (*self.direct(function), *self._led_to(function, depth))
        return (site for site in found if self.is_parametric(site))

    def _led_to(self, function: LinkedFunction, depth: int) -> Iterator[Access]:
        """Give the open sites of the functions that a function calls, as they look from the call."""
        if function not in self._leading.functions:
            return
        for event in self.linker.call_sites(function):
            if last_name(event.call.function) not in self._leading.names:
                continue
            named = self.linker.resolver.callee(event.call, event.state.scope)
            if named is None or named is function or self._saves_for_all(named):
                continue
            for callee in self._meant(named):
                for site in self._opened(callee, depth + 1):
                    if not is_infeasible(event, callee, site.call_site.state):
                        yield self.instantiate_at(event, callee, site)

    def _saves_for_all(self, function: LinkedFunction) -> bool:
        """Tell whether every process must call a function, which decides by itself who writes."""
        return self.linker.catalog.exact("collective-saver", function.qualified) is not None

    def _meant(self, named: LinkedFunction) -> tuple[LinkedFunction, ...]:
        """Give the function that a call names, and for a method that does nothing what stands in for it."""
        if named.owner is None or not _NOT_DONE.issuperset(named.facts.mentions):
            return (named,)
        found = (class_.methods.get(named.facts.name) for class_ in named.owner.descendants())
        others = {method for method in found if method is not None and method is not named}
        return (named, *others) if len(others) == 1 else (named,)

    def instantiate_at(self, event: CallSite, callee: LinkedFunction, site: Access) -> Access:
        """Give a site of a function as it looks from a call of it."""
        path = self.substituted(site.path, event, callee)
        spelled = site.path_source if path is None else path.text
        around, act = self.surroundings, site.operation
        judged = self._site_of(
            LazyAccessContext(around, act, event, site.leaf_call, path, spelled, below=site)
        )
        return judged if site.claimed_by is None else replace(judged, after=site.claimed_by)

    def substituted(
        self, path: AbstractPath | None, event: CallSite, callee: LinkedFunction
    ) -> AbstractPath | None:
        """Give a path of a function as it looks from a call of it: with what is passed for its parameters."""
        return instantiate_at_call(self.linker.paths, path, event.call, event.state.scope, callee)
