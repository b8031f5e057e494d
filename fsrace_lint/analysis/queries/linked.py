"""The linked project, and the iteration that all queries use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from fsrace_lint.analysis.accesses.accesses import Accesses
from fsrace_lint.analysis.accesses.explanations import Explanations
from fsrace_lint.analysis.accesses.file_names import FileNames
from fsrace_lint.analysis.accesses.prepared_data import PreparedData
from fsrace_lint.analysis.accesses.vanishing_files import VanishingFiles
from fsrace_lint.analysis.callgraph.entry_states import EntryStates
from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
from fsrace_lint.analysis.callgraph.rank_starts import RankStarts
from fsrace_lint.analysis.paths.storage import Storage
from fsrace_lint.analysis.synchronization.agreed_attributes import AgreedAttributes
from fsrace_lint.analysis.synchronization.before_init import BeforeInit
from fsrace_lint.analysis.synchronization.event_sequences import EventSequences
from fsrace_lint.analysis.synchronization.idioms import Idioms
from fsrace_lint.analysis.synchronization.locks.broken_locks import BrokenLocks
from fsrace_lint.analysis.synchronization.locks.lock_files import LockFiles
from fsrace_lint.analysis.synchronization.locks.lock_misuses import LockMisuses
from fsrace_lint.analysis.synchronization.locks.locks import Locks
from fsrace_lint.analysis.synchronization.misused_helpers import MisusedHelpers
from fsrace_lint.analysis.synchronization.node_visibility import NodeVisibility
from fsrace_lint.analysis.synchronization.one_rank import OneRank
from fsrace_lint.analysis.synchronization.per_node import PerNode
from fsrace_lint.analysis.synchronization.polling import Polling
from fsrace_lint.analysis.synchronization.process_groups import ProcessGroups
from fsrace_lint.analysis.synchronization.project_idioms import ProjectIdioms
from fsrace_lint.analysis.synchronization.rank_divergence import Divergences
from fsrace_lint.analysis.synchronization.sleeps import Sleeps
from fsrace_lint.analysis.synchronization.taint import TaintAnalysis
from fsrace_lint.analysis.synchronization.unordered_pairs import UnorderedPairs
from fsrace_lint.engine.parallel.progress import SILENT
from fsrace_lint.engine.query import query
from fsrace_lint.program.programs import Programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from fsrace_lint.catalog import Catalog
    from fsrace_lint.engine.dependencies import Dependencies
    from fsrace_lint.engine.parallel.progress import Observer
    from fsrace_lint.launches.model import Launch
    from fsrace_lint.program.modules import LinkedFunction, Module
    from fsrace_lint.program.name_index import NameIndex

Found = TypeVar("Found")


class Linked:
    """All files of a project, linked.

    Queries compute their results on demand, and only for the files to report on.
    """

    def __init__(
        self,
        modules: Sequence[Module],
        catalog: Catalog,
        targets: Iterable[str] | None = None,
        also: Mapping[str, Module | None] | None = None,
        storage: Storage | None = None,
        observer: Observer = SILENT,
        *,
        launches: Sequence[Launch] = (),
        installed: Mapping[str, str] | None = None,
        targeted: bool = False,
        exhaustive: bool = False,
        heads: NameIndex | None = None,
        dependencies: Dependencies | None = None,
        helpers: Mapping[str, frozenset[str] | None] | None = None,
    ) -> None:
        """Link the modules of a project.

        Args:
            modules: The modules, from `link_module`.
            catalog: The library models.
            targets: The relative paths of the files to report on. If None, all files.
            also: Other relative paths under which modules can be imported.
            storage: The filesystem settings of the user.
            observer: Called before each function is interpreted. An exception that it raises ends the run.
            launches: The launch commands in the repository.
            installed: The commands that it installs, each with `module:function`.
            targeted: Whether only a few files are queried. It does not change the results.
            exhaustive: Whether to analyze all functions, not only those that can be relevant. It does not
                change the results.
            heads: The name index of the modules, in the same order, if already available.
            dependencies: If set, records the inputs of each result.
            helpers: The helpers that the settings name for a file, by its relative path; None for all.
        """
        self.storage = storage or Storage()
        self._helpers = helpers or {}
        how: dict[str, Any] = {
            "targeted": targeted,
            "exhaustive": exhaustive,
            "heads": heads,
            "dependencies": dependencies,
        }
        self.flows = FunctionFlows(modules, catalog, also or {}, observer, **how)
        self.entry_states = EntryStates(self.flows)
        self.programs = Programs(self.flows.table, launches, installed)
        self._accesses = Accesses(self.entry_states, self.storage, self.programs)
        self._rank_starts = RankStarts(self.flows)
        self._prepared_data = PreparedData(self.entry_states, self._accesses.effects)
        self._file_names = FileNames(self.entry_states)
        self._before_init = BeforeInit(self.entry_states)
        groups = ProcessGroups(self.entry_states, self._before_init)
        self._idioms = Idioms(self.entry_states, groups)
        self._project_idioms = ProjectIdioms(self.entry_states, groups, self._accesses.effects)
        self._misused_helpers = MisusedHelpers(self.entry_states, self._accesses)
        self._explanations = Explanations(self.entry_states)
        self.sequences = EventSequences(
            self._accesses, TaintAnalysis(self.entry_states, self._accesses.effects)
        )
        self._one_rank = OneRank(self.sequences)
        self._polling = Polling(self._accesses)
        self._divergences = Divergences(self.sequences)
        self._agreed_attributes = AgreedAttributes(self.sequences)
        self._unordered_pairs = UnorderedPairs(self.sequences, self._polling)
        self._node_visibility = NodeVisibility(self._accesses, self.sequences)
        self._per_node = PerNode(self._accesses)
        self._sleeps = Sleeps(self.sequences, self._polling.limits)
        self._locks = Locks(self.entry_states, self._accesses)
        self._lock_misuses = LockMisuses(self._locks, self._accesses.tests, self.sequences)
        self._accesses.contexts.broken_locks = BrokenLocks(self._lock_misuses)
        self._vanishings = VanishingFiles(self._accesses)
        self._lock_files = LockFiles(self._accesses)
        wanted = None if targets is None else frozenset(targets)
        self.targets = tuple(module for module in modules if wanted is None or module.relative in wanted)

    def each(self, find: Callable[[LinkedFunction], Iterable[Found]]) -> Iterator[Found]:
        """Yield the results of `find` for each function of the files to report on, in source order."""
        for module in self.targets:
            for function in module.functions:
                yield from find(function)

    def each_acting(self, find: Callable[[LinkedFunction], Iterable[Found]]) -> Iterator[Found]:
        """Yield the same as `each`, but only for functions that may reach an access or a sync point."""
        for module in self.targets:
            for function in self._acting(module):
                yield from find(function)

    @query
    def _acting(self, module: Module) -> tuple[LinkedFunction, ...]:
        found, sequences = self._accesses, self.sequences
        return tuple(
            each
            for each in module.functions
            if found.may_reach_access(each) or sequences.may_reach_sync_point(each)
        )
