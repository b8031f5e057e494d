"""A linked project, and what all queries share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from fsrace_lint.analysis.accesses.accesses import Accesses
from fsrace_lint.analysis.accesses.explanations import Explanations
from fsrace_lint.analysis.accesses.file_names import FileNames
from fsrace_lint.analysis.accesses.vanishing_files import VanishingFiles
from fsrace_lint.analysis.callgraph.entry_states import EntryStates
from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
from fsrace_lint.analysis.paths.storage import Storage
from fsrace_lint.analysis.synchronization.before_init import BeforeInit
from fsrace_lint.analysis.synchronization.event_sequences import EventSequences
from fsrace_lint.analysis.synchronization.idioms import Idioms
from fsrace_lint.analysis.synchronization.locks.lock_files import LockFiles
from fsrace_lint.analysis.synchronization.locks.lock_misuses import LockMisuses
from fsrace_lint.analysis.synchronization.locks.locks import Locks
from fsrace_lint.analysis.synchronization.misused_helpers import MisusedHelpers
from fsrace_lint.analysis.synchronization.node_visibility import NodeVisibility
from fsrace_lint.analysis.synchronization.per_node import PerNode
from fsrace_lint.analysis.synchronization.polling import Polling
from fsrace_lint.analysis.synchronization.rank_divergence import Divergences
from fsrace_lint.analysis.synchronization.sleeps import Sleeps
from fsrace_lint.analysis.synchronization.taint import TaintAnalysis
from fsrace_lint.analysis.synchronization.unordered_pairs import UnorderedPairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.callgraph.retained import Retained
    from fsrace_lint.analysis.program.modules import LinkedFunction, Module
    from fsrace_lint.catalog import Catalog
    from fsrace_lint.engine.name_index import NameIndex

Found = TypeVar("Found")


class Linked:
    """All files of a project, linked; what is asked of them is found on demand, in the files asked for."""

    def __init__(
        self,
        modules: Sequence[Module],
        catalog: Catalog,
        targets: Iterable[str] | None = None,
        also: Mapping[str, Module | None] | None = None,
        storage: Storage | None = None,
        pulse: Callable[[], None] | None = None,
        *,
        asks_few: bool = False,
        heads: NameIndex | None = None,
        retained: Retained | None = None,
    ) -> None:
        """Link the modules of a project.

        Args:
            modules: The modules, as link_module makes them.
            catalog: What library names mean.
            targets: The relative paths of the files to report on; all where None.
            also: Further relative paths under which modules can be imported.
            storage: What the user says of the filesystems.
            pulse: Called before a function is followed; what it raises ends the work.
            asks_few: Whether few of the files will be asked about; the answers are the same.
            heads: The heads of the modules in the same order, if somebody has them already.
            retained: What is known of an earlier state of the project. Modules of files that have not
                changed are the same objects as there; then nothing else may be asked of that state.
        """
        self.storage = storage or Storage()
        how: dict[str, Any] = {"asks_few": asks_few, "heads": heads, "retained": retained}
        self.flows = FunctionFlows(modules, catalog, also or {}, pulse, **how)
        self.entry_states = EntryStates(self.flows)
        self._found = Accesses(self.entry_states, self.storage)
        self._names = FileNames(self.entry_states)
        self._groups = BeforeInit(self.entry_states)
        self._idioms = Idioms(self.entry_states, self._groups)
        self._misuses = MisusedHelpers(self.entry_states, self._found)
        self._renames: dict[LinkedFunction, tuple[Access, ...]] = {}
        self._silences = Explanations(self.entry_states)
        self.sequences = EventSequences(self._found, TaintAnalysis(self.entry_states, self._found.effects))
        self._divergences, self._orders = Divergences(self.sequences), UnorderedPairs(self.sequences)
        self._elsewhere = NodeVisibility(self._found, self.sequences)
        self._per_node = PerNode(self._found)
        self._polls = Polling(self._found)
        self._pauses = Sleeps(self.sequences, self._polls.limits)
        self._locks = Locks(self.entry_states, self._found)
        self._lock_misuses = LockMisuses(self._locks, self._found.tests, self.sequences)
        self._vanishings = VanishingFiles(self._found)
        self._markers = LockFiles(self._found)
        self._acting: dict[Module, tuple[LinkedFunction, ...]] = {}
        wanted = None if targets is None else frozenset(targets)
        self.targets = tuple(module for module in modules if wanted is None or module.relative in wanted)

    def each(self, find: Callable[[LinkedFunction], Iterable[Found]]) -> Iterator[Found]:
        """Give what is found in the functions of the files asked for, in the order of the code."""
        for module in self.targets:
            for function in module.functions:
                yield from find(function)

    def each_acting(self, find: Callable[[LinkedFunction], Iterable[Found]]) -> Iterator[Found]:
        """Give the same where it can only be found in functions that lead to an act or a meeting."""
        for module in self.targets:
            if module not in self._acting:
                found = (
                    f
                    for f in module.functions
                    if self._found.may_reach_access(f) or self.sequences.may_reach_sync_point(f)
                )
                self._acting[module] = tuple(found)
            for function in self._acting[module]:
                yield from find(function)
