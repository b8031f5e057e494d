"""A linked project, and what all queries share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from fsrace_lint.project.acts.filenames import FileNames
from fsrace_lint.project.acts.silence import Silences
from fsrace_lint.project.acts.sites import Sites
from fsrace_lint.project.acts.vanishing import Vanishings
from fsrace_lint.project.callers.linker import Linker
from fsrace_lint.project.callers.propagate import Propagation
from fsrace_lint.project.locks.locks import Locks
from fsrace_lint.project.locks.markers import Markers
from fsrace_lint.project.locks.misuses import LockMisuses
from fsrace_lint.project.order.differences import Differences
from fsrace_lint.project.order.divergence import Divergences
from fsrace_lint.project.order.elsewhere import Elsewhere
from fsrace_lint.project.order.groups import Groups
from fsrace_lint.project.order.idioms import Idioms
from fsrace_lint.project.order.misuses import Misuses
from fsrace_lint.project.order.pauses import Pauses
from fsrace_lint.project.order.per_node import PerNode
from fsrace_lint.project.order.polls import Polls
from fsrace_lint.project.order.sequences import Sequences
from fsrace_lint.project.order.unordered import Orders
from fsrace_lint.project.paths.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from fsrace_lint.catalog import Catalog
    from fsrace_lint.project.callers.retained import Retained
    from fsrace_lint.project.model import Site
    from fsrace_lint.project.names.heads import Heads
    from fsrace_lint.project.names.modules import LinkedFunction, Module

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
        heads: Heads | None = None,
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
        self.linker = Linker(modules, catalog, also or {}, pulse, **how)
        self.propagation = Propagation(self.linker)
        self._found = Sites(self.linker, self.propagation, self.storage)
        self._names = FileNames(self.linker)
        self._groups = Groups(self.propagation)
        self._idioms = Idioms(self.propagation, self._groups)
        self._misuses = Misuses(self.propagation, self._found)
        self._renames: dict[LinkedFunction, tuple[Site, ...]] = {}
        self._silences = Silences(self.propagation)
        self.sequences = Sequences(self._found, Differences(self.linker, self._found.effects))
        self._divergences, self._orders = Divergences(self.sequences), Orders(self.sequences)
        self._elsewhere = Elsewhere(self._found, self.sequences)
        self._per_node = PerNode(self._found)
        self._polls = Polls(self.linker, self._found)
        self._pauses = Pauses(self.sequences, self._polls.limits)
        self._locks = Locks(self.propagation, self._found)
        self._lock_misuses = LockMisuses(self._locks, self._found.tests, self.sequences)
        self._vanishings = Vanishings(self._found)
        self._markers = Markers(self.linker, self._found)
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
                found = (f for f in module.functions if self._found.may_act(f) or self.sequences.may_lead(f))
                self._acting[module] = tuple(found)
            for function in self._acting[module]:
                yield from find(function)
