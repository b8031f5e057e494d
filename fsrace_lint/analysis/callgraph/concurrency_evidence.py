"""Finds evidence that multiple processes run a call, in the functions that lead to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from fsrace_lint.analysis.callgraph.chain_steps import ChainDoubts, Step, above, place_of
from fsrace_lint.analysis.callgraph.concurrency import ConcurrencyTrace, Doubt, Entry, Evidence
from fsrace_lint.analysis.callgraph.concurrency_markers import ConcurrencyMarkers, asks_for_main
from fsrace_lint.analysis.callgraph.hook_programs import HookPrograms
from fsrace_lint.analysis.callgraph.unused_files import UnusedFiles
from fsrace_lint.analysis.dataflow.abstract_state import mutually_exclusive
from fsrace_lint.analysis.values.trace_back import expressions_of
from fsrace_lint.catalog.lexicon import says, words
from fsrace_lint.engine.query import query
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import decorator_names
from fsrace_lint.syntax.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fsrace_lint.analysis.callgraph.call_edges import CallEdge
    from fsrace_lint.analysis.callgraph.concurrency import ConcurrencyMarker
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.program.modules import LinkedClass, LinkedFunction, Module
    from fsrace_lint.program.programs import Programs

_CLASSES_DEPTH: Final = 1
_MOST_CHAINS: Final = 64
"""The number of calls from which on a search no longer follows the constants of each chain to them."""
_DEMONSTRATIONS: Final = frozenset({"demo", "demos", "example", "examples"})
_RUN_BY_HAND: Final = _DEMONSTRATIONS | {"projects", "recipes", "scripts", "tools"}
_BUILD: Final = "setup.py"

_Caller: TypeAlias = "tuple[LinkedFunction, LinkedClass | None]"
"""A function in the call chain, and the class of the object whose method it is."""


class _AfterSameTests:
    """A call, equal to all calls in its function with the same conditions."""

    __slots__ = ("_key", "call_site")

    def __init__(self, call_site: CallSite) -> None:
        self.call_site = call_site
        tests = ((Identity(each.test), each.truth) for each in call_site.state.conditions)
        self._key = call_site.function, tuple(tests)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _AfterSameTests) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class _Searched(NamedTuple):
    """The result of a search that found no proof.

    Attributes:
        callers: The functions of the call chains, each with the nearest call chain to it.
        roots: The functions without callers.
        likely: The chains to markers.
        alone: A call chain on which one process runs the call.
        is_ordered: Whether some callers serialize their processes, and no marker was nearer.
    """

    callers: Mapping[LinkedFunction, tuple[CallSite, ...]]
    roots: Sequence[LinkedFunction]
    likely: Sequence[ConcurrencyTrace]
    alone: tuple[CallSite, ...] | None
    is_ordered: bool


class ConcurrencyEvidence:
    """Searches the functions that lead to a call for markers of multiple processes."""

    def __init__(self, entry_states: EntryStates, programs: Programs) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.flows = entry_states.flows
        self.entry_states = entry_states
        self.programs = programs
        self.markers = ConcurrencyMarkers(entry_states, programs)
        self.arguments = self.markers.constants.arguments
        self.hooks = HookPrograms(self.markers, programs)
        self.doubts = ChainDoubts(entry_states)
        self.unused = UnusedFiles(entry_states, programs)

    def trace(self, call_site: CallSite, *, by_one: bool = False) -> ConcurrencyTrace:
        """Return the evidence that multiple processes reach a call.

        Args:
            call_site: The call.
            by_one: Whether one of multiple processes is enough, as for operations that only a crash can harm.

        Returns:
            The evidence, the call chain, and the marker at its end.
        """
        found = self._trace(_AfterSameTests(call_site), by_one)
        first = (call_site, *found.call_chain)[-1].function
        return replace(found, doubt=max(found.doubt, self.unused.doubt(first)))

    @query
    def _trace(self, after: _AfterSameTests, by_one: bool) -> ConcurrencyTrace:  # noqa: FBT001  # a part of the key
        """Find the shortest call chain from a function with an `EVIDENT` marker, or else the best one.

        A command that starts processes with different arguments counts only if no other marker is `EVIDENT`.

        A method is followed only to calls on compatible classes. A marker counts only if one process can pass
        both it and the call. There is no evidence if every call passes a constant that rules the call out, if
        some edges serialize their processes and the other edges have no marker, or if every chain leads
        through a driver.
        """
        call_site = after.call_site
        constants = self.markers.constants
        undecided = constants.undecided(call_site)
        if undecided is None or self._is_declared_single(call_site.function):
            return ConcurrencyTrace(Evidence.NONE, (), None)
        start = Step(
            call_site,
            call_site.function.owner,
            doubt=Doubt.PROCESS if not by_one and self.doubts.may_select(call_site) else Doubt.NONE,
            undecided=undecided,
        )
        ways: dict[Step, tuple[CallSite, ...]] = {start: ()}
        waiting = [start]
        callers: dict[LinkedFunction, tuple[CallSite, ...]] = {}
        complete: set[tuple[_Caller, bool, Doubt]] = set()
        roots: dict[LinkedFunction, None] = {}
        likely: list[ConcurrencyTrace] = []
        alone: tuple[CallSite, ...] | None = None
        is_ordered = False
        while waiting:
            step = waiting.pop(0)
            here, class_, way = step.call_site, step.owner, ways[step]
            if self.markers.runs_alone(here.function):
                alone = way
                continue
            likely += self._traces(step, (call_site, *way), by_one=by_one)
            if likely and likely[-1].is_proof:
                return likely[-1]
            caller = here.function, class_
            if any((caller, *each) in complete for each in step.at_most):
                continue
            ways_in, edges, some_ordered = self._ways_to(here, by_one)
            is_ordered = is_ordered or (some_ordered and not likely)
            chains = constants.extended(edges, step.undecided if len(ways) < _MOST_CHAINS else ())
            if len(chains) == len(ways_in):
                complete |= set() if step.undecided else {(caller, step.driven, step.doubt)}
            elif not chains:
                alone = way
                continue
            driven = step.driven or (not by_one and self.markers.drivers.is_driver(here.function))
            if driven and not ways_in:
                alone = way
                continue
            callers.setdefault(here.function, way)
            roots |= {} if ways_in else {here.function: None}
            doubts = self.doubts.of(step, [edge for edge, _ in chains], by_one=by_one)
            before = {
                each._replace(driven=driven, undecided=undecided, doubt=doubt): (*way, edge.call_site)
                for (edge, undecided), doubt in zip(chains, doubts, strict=True)
                for each in above(edge, class_)
            }
            new = {each: calls for each, calls in before.items() if each not in ways}
            ways |= new
            waiting += new
        return self._best(call_site, _Searched(callers, tuple(roots), likely, alone, is_ordered))

    def _traces(self, step: Step, way: tuple[CallSite, ...], *, by_one: bool) -> Iterator[ConcurrencyTrace]:
        """Yield the chains to the markers in the function of a call, until one is a proof.

        Args:
            step: The call.
            way: The call at which the search began, and the call chain from it.
            by_one: As for `trace`.
        """
        here = step.call_site
        for marker in (*self._markers_at(step), *self._markers_around(here, len(way) - 1)):
            trace: ConcurrencyTrace | None = ConcurrencyTrace(
                marker.evidence, way[1:], marker, doubt=step.doubt
            )
            if marker.is_launch and marker == self.markers.launched(here.function):
                launched = self._launched(way, here.function, by_one=by_one)
                trace = None if launched is None else replace(launched, doubt=step.doubt)
            elif marker == self.markers.hooked(here.function) and self.hooks.is_in_one(here.function):
                trace = None
            if trace is not None:
                yield trace
                if trace.is_proof:
                    return

    def _launched(
        self, way: tuple[CallSite, ...], program: LinkedFunction, *, by_one: bool
    ) -> ConcurrencyTrace | None:
        """Return the chain to a command that starts multiple processes which reach a call, or None."""
        for launch in self.programs.launches_of(program):
            chain = self._chain(way, program, launch.arguments, by_one=by_one) if launch.several else None
            if chain is not None:
                marker = self.markers.launched(program, launch.arguments)
                return ConcurrencyTrace(Evidence.EVIDENT, chain, marker)
        return None

    def _chain(
        self, way: tuple[CallSite, ...], program: LinkedFunction, words: tuple[str, ...], *, by_one: bool
    ) -> tuple[CallSite, ...] | None:
        """Return a call chain to a call that a program can take if it is started with some arguments.

        Args:
            way: The call, and a call chain from it to the program, which is returned if it is possible.
            program: The function that the program runs.
            words: The arguments. A word that is not known is empty.
            by_one: As for `trace`.
        """
        arguments = self.arguments
        if all(arguments.may_reach(call_site, words) for call_site in way):
            return way[1:]
        ways: dict[CallSite, tuple[CallSite, ...]] = {way[0]: ()}
        waiting = [way[0]]
        while waiting:
            here = waiting.pop(0)
            if not arguments.may_reach(here, words):
                continue
            if here.function is program:
                return ways[here]
            _, edges, _ = self._ways_to(here, by_one)
            above = (edge.call_site for edge in edges if edge.call_site not in ways)
            new = {call_site: (*ways[here], call_site) for call_site in above}
            ways |= new
            waiting += new
        return None

    def _best(self, call_site: CallSite, search: _Searched) -> ConcurrencyTrace:
        """Return the best evidence of a search that found no proof.

        In a program that one process runs, a file that is also used elsewhere can check ranks. This shows
        nothing about the program. A program that converts results can call functions that synchronize ranks.
        """
        evident = [trace for trace in search.likely if trace.evidence is Evidence.EVIDENT]
        if evident:
            return min(evident, key=lambda trace: (trace.varies, trace.doubt))
        may_start_more = any(map(self.markers.may_launch, search.callers)) if search.roots else False
        single = [
            root
            for root in search.roots
            if not may_start_more and self._is_one_process(root, (call_site, *search.callers[root]))
        ]
        is_open = len(single) < len(search.roots) or (not search.roots and search.alone is None)
        is_library = bool(search.roots) and self.is_library(call_site.function, search.roots)
        entered = [self._entered(root, call_site, search) for root in search.roots]
        for trace in search.likely:
            if is_open or is_library or (trace.marker is not None and self._counts(trace.marker, single)):
                entries = (each.entry for each in entered if not is_library and each.entry is not Entry.CALL)
                return replace(trace, entry=next(entries, Entry.CALL))
        if not search.roots:
            evidence = Evidence.PLAUSIBLE if is_open else Evidence.NONE
            return ConcurrencyTrace(evidence, search.alone or (), None)
        plausible = (is_open or is_library) and not search.is_ordered
        evidence = Evidence.PLAUSIBLE if plausible else Evidence.NONE
        other = (each for each in entered if each.entry in {Entry.CALL, Entry.IMPORT})
        found = next(other, entered[0]) if entered[0].entry is Entry.COMMAND else entered[0]
        return replace(found, evidence=evidence, entry=found.entry if is_open else Entry.CALL)

    def _entered(self, root: LinkedFunction, call_site: CallSite, search: _Searched) -> ConcurrencyTrace:
        """Return the nearest call chain from a function without callers, and how the function is entered."""
        way = search.callers[root]
        return ConcurrencyTrace(Evidence.PLAUSIBLE, way, None, self._entry(root, (call_site, *way)[-1]))

    def _counts(self, marker: ConcurrencyMarker, roots: Sequence[LinkedFunction]) -> bool:
        """Return whether a marker shows multiple processes of a program with one of some roots.

        A check of an option for the rank does not, if nothing in the program joins a job or gets a rank.
        """
        if marker.needs_job and not any(self.markers.jobs.may_join(root.module) for root in roots):
            return False
        for root in roots:
            paths = {module.path for module in (root.module, *self.hooks.importers(root.module))}
            names = (root.module.name.rpartition(".")[2], root.facts.name)
            is_converter = any(says(name, "converter") for name in names)
            if marker.place.path in paths and (marker.direct or not is_converter):
                return True
        return marker.starts

    def _entry(self, root: LinkedFunction, call_site: CallSite) -> Entry:
        """Return how a function without callers is entered.

        Args:
            root: The function.
            call_site: The call in it that is on the call chain.
        """
        if root.index == 0:
            is_main = any(map(asks_for_main, call_site.state.conditions))
            if not is_main:
                return Entry.SCRIPT if self.unused.is_unused(root.module) else Entry.IMPORT
            return Entry.COMMAND if self._is_packaged(root) else Entry.SCRIPT
        names = (root.facts.name, *decorator_names(root.facts))
        is_command = any(says(name, "command") for name in names) or self.programs.is_command(root)
        if is_command and not self.programs.is_composed(root):
            return Entry.COMMAND
        importers = self.flows.resolver.importers(root.module)
        return Entry.NEVER if self.flows.table.is_unused(root, importers) else Entry.CALL

    def _is_one_process(self, root: LinkedFunction, way: tuple[CallSite, ...]) -> bool:
        """Return whether one process runs the program with a root, as far as the repository shows.

        Args:
            root: A function without callers.
            way: The call at which the search began, and the call chain from it to the root.
        """
        if self.markers.hooked(root) is not None:
            return self.hooks.is_in_one(root)
        launches = self.programs.launches_of(root)
        plain = [launch for launch in launches if not launch.several]
        if len(plain) == len(launches):
            return bool(plain) or self._is_one_shot(root)
        return any(self._chain(way, root, each.arguments, by_one=True) is not None for each in plain)

    def _is_declared_single(self, function: LinkedFunction) -> bool:
        """Return whether all programs that run a function run it in one process, according to the settings.

        Processes that a program starts itself are not meant.
        """
        single = self.programs.single
        if not single:
            return False

        def ways(each: LinkedFunction) -> tuple[CallEdge, ...]:
            edges = () if each in single else self.entry_states.callers(each)
            return tuple(edge for edge in edges if not edge.starts_several)

        above = self.entry_states.upward(function, ways)
        return single.issuperset(each for each in above if each in single or not ways(each))

    def is_library(self, function: LinkedFunction, roots: Sequence[LinkedFunction]) -> bool:
        """Return whether a function belongs to a package that only demonstrations call."""
        demonstrations = all(root.module.relative.split("/")[0] in _DEMONSTRATIONS for root in roots)
        return demonstrations and function.module.relative.split("/")[0] not in _RUN_BY_HAND

    @query
    def _ways_to(
        self,
        call_site: CallSite,
        by_one: bool,  # noqa: FBT001  # a part of the key
    ) -> tuple[tuple[CallEdge, ...], tuple[CallEdge, ...], bool]:
        """Return the call edges, those that count as evidence, and whether others serialize processes."""
        entry_states = self.entry_states
        if by_one:
            edges = entry_states.callers(call_site.function)
            return edges, entry_states.feasible_callers(call_site, edges), False
        ways_in = entry_states.ways_in(call_site.function)
        loose = entry_states.unordered_callers(call_site.function, ways_in)
        showing = entry_states.feasible_callers(
            call_site, entry_states.equally_wide_callers(call_site, loose)
        )
        return ways_in, showing, len(loose) < len(ways_in)

    def _is_one_shot(self, root: LinkedFunction) -> bool:
        """Return whether a root function belongs to code that is run once by hand.

        Such code is a script or a build file, or is in a top-level directory for examples and the like. The
        main code of a file in a package is an installed command, which can run twice at once.
        It counts as run by hand only if the package name contains such a directory and no other file imports
        it.
        """
        *folders, file = root.module.relative.split("/")
        if file == _BUILD or not _RUN_BY_HAND.isdisjoint(words("".join(folders[:1]))):
            return True
        if not root.module.facts.is_script:
            return False
        if not self._is_packaged(root):
            return True
        by_hand = not _RUN_BY_HAND.isdisjoint(root.module.name.split("."))
        return by_hand and root.index == 0 and not self.flows.resolver.importers(root.module)

    def _is_packaged(self, function: LinkedFunction) -> bool:
        """Return whether a file belongs to a package, so that other code can import it."""
        package = function.module.name.rpartition(".")[0]
        return bool(package) and self.flows.table.exact(package) is not None

    def _markers_at(self, step: Step) -> Iterator[ConcurrencyMarker]:
        """Yield the markers in the function of a call that a process can pass together with the call.

        A marker in a callee counts only if the call chain does not enter that callee.
        """
        call_site = step.call_site
        entered = (
            place_of(call_site.function, call_site.call.span)
            if step.enters and not self.markers.is_marker(call_site)
            else None
        )
        for marker, before in self.markers.of(call_site.function):
            passed = marker.place != entered and not mutually_exclusive(before, call_site.state.conditions)
            if passed and not self._makes_another(marker, step):
                yield marker

    def _makes_another(self, marker: ConcurrencyMarker, step: Step) -> bool:
        """Return whether a marker is the creation of the receiver of a call, but as an unrelated class."""
        called, scope = step.call_site.call.function, step.call_site.state.scope
        on = called.value if step.called is not None and isinstance(called, m.Attribute) else None
        for made in expressions_of(scope.get(on.id) if isinstance(on, m.Name) else None):
            if (
                isinstance(made.expr, m.Call)
                and place_of(step.call_site.function, made.expr.span) == marker.place
            ):
                class_ = self.flows.resolver.class_of(self.flows.resolver.of_binding(made))
                return class_ is not None and step.called not in class_.relatives
        return False

    def _markers_around(self, call_site: CallSite, depth: int) -> Iterator[ConcurrencyMarker]:
        """Yield the markers in the importers of a module, or in other methods of the class.

        Other methods count only for a method without callers, and only their rank checks and coordination.
        """
        function = call_site.function
        if function.index == 0:
            if not any(map(asks_for_main, call_site.state.conditions)):
                yield from self._markers_of_importers(function.module)
        elif (
            function.owner is not None and depth <= _CLASSES_DEPTH and not self.entry_states.ways_in(function)
        ):
            for method in function.owner.methods.values():
                markers = self.markers.ordered(method)
                if method is not function and markers and self._run_in_same(method, function):
                    yield markers[0][0]

    def _run_in_same(self, method: LinkedFunction, function: LinkedFunction) -> bool:
        """Return whether a method runs in the same processes as another one, not only in started ones."""
        return self._is_started(function) or not self._is_started(method)

    def _is_started(self, function: LinkedFunction) -> bool:
        """Return whether every call chain to a function leads through a call that starts processes."""
        callers = self.entry_states.callers

        def plain(each: LinkedFunction) -> tuple[CallEdge, ...]:
            return tuple(edge for edge in callers(each) if edge.spawn is None)

        return all(map(callers, self.entry_states.upward(function, plain)))

    @query
    def _markers_of_importers(self, module: Module) -> tuple[ConcurrencyMarker, ...]:
        """Return the markers in the files that import a module, directly or indirectly."""
        importers = self.hooks.importers(module)
        return tuple(marker for each in importers for marker, _ in self.markers.of(each.functions[0]))
