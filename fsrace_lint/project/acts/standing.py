"""How an act stands among the processes: who comes to it, what holds them apart, and who shares its path."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Final

from fsrace_lint.facts import model as m
from fsrace_lint.facts.names import last_name, unnegated
from fsrace_lint.project.acts.ownership import Ownership
from fsrace_lint.project.flow.processes import ALL, FIRST, runs
from fsrace_lint.project.model import Reach

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.project.callers.propagate import Propagation
    from fsrace_lint.project.flow.processes import Processes, Runs
    from fsrace_lint.project.flow.states import Event
    from fsrace_lint.project.model import Site
    from fsrace_lint.project.paths.forms import Path
    from fsrace_lint.project.paths.normalize import Paths
    from fsrace_lint.project.paths.storage import Storage

_ONE: Final = frozenset(FIRST.values()) - {ALL}
_ALL: Final = frozenset({"all", "each", "every"})


class Surroundings:
    """Tells of calls and paths what all callers bring, for every act that is seen there."""

    def __init__(self, propagation: Propagation, paths: Paths, storage: Storage) -> None:
        """Prepare for a project; nothing is followed yet."""
        self.propagation = propagation
        self.ownership = Ownership(paths, propagation)
        self._guards = propagation.linker.guards
        self._paths, self._storage = paths, storage

    def first_let_in(self, event: Event) -> str | None:
        """Give the scope whose first process comes to a call before the others; None where none does."""
        function = event.function
        return self.propagation.protection.first(event) or self.propagation.context(function).first

    def who_runs(self, event: Event, processes: Processes) -> Runs:
        """Tell who does what some processes do at a call, with what all callers bring."""
        function = event.function
        entering = self.propagation.decorated(function) & self.propagation.context(function).processes
        return runs(processes & entering)

    def shared_by(self, path: Path | None, spelled: str) -> Reach:
        """Tell who shares a path that is no process's own."""
        named = self._storage.named(path, spelled)
        if named is not None:
            return Reach.SHARED if named else Reach.NODE
        local = self._paths.node_local.holds(path) or self._storage.filesystem == "local"
        return Reach.NODE if local else Reach.SHARED

    def is_opened(self, event: Event) -> bool:
        """Tell whether a setting says that all come to a call, else one does: `on_each_node or rank == 0`."""
        for literal in event.state.literals:
            test, truth = unnegated(literal.test, truth=literal.truth)
            if isinstance(test, m.Boolean) and (test.operator == "or") == truth:
                splits = [self._guards.split(side, literal.scope) for side in test.values]
                who = {split[0 if truth else 1] for split in splits}
                sides = (unnegated(side, truth=truth) for side in test.values)
                if not who.isdisjoint(_ONE) and any(holds and _says_all(side) for side, holds in sides):
                    return True
        return False


class SeenFromCall:
    """How an act stands among the processes as it is seen from a call.

    Each part is found when somebody asks for it: most acts are put aside by what they are and where they
    stand, and to know what all callers bring takes longer than all else.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        event: Event,
        origin: Event,
        path: Path | None,
        spelled: str,
        coming: Callable[[], Processes],
        below: Site | None,
    ) -> None:
        """Take what is known without a look at the callers.

        Args:
            surroundings: Tells of calls and paths what all callers bring.
            event: The call.
            origin: The call that does it.
            path: Its path.
            spelled: How the source spells that.
            coming: Tells which processes do it, of those that come to the function.
            below: The same act as the function that `event` calls has it, where it calls one.
        """
        self._surroundings = surroundings
        self._event, self._origin = event, origin
        self._path, self._spelled = path, spelled
        self._coming = coming
        self._below = below

    @functools.cached_property
    def own(self) -> Processes:
        """Who gets from the call to the act, before what the callers bring."""
        return self._processes & self._surroundings.propagation.decorated(self._event.function)

    @functools.cached_property
    def runs(self) -> Runs:
        """The answer with what the callers bring."""
        return self._surroundings.who_runs(self._event, self._processes)

    @functools.cached_property
    def caught(self) -> frozenset[str]:
        """The exceptions that are handled around it."""
        propagation = self._surroundings.propagation
        below = frozenset[str]() if self._below is None else self._below.caught
        here = propagation.protection.caught(self._event)
        return below | here | propagation.context(self._event.function).caught

    @functools.cached_property
    def locked(self) -> bool:
        """Whether a lock between processes is held."""
        propagation = self._surroundings.propagation
        below = self._below is not None and self._below.locked
        here = below or propagation.protection.locked(self._event)
        return here or propagation.context(self._event.function).locked

    @functools.cached_property
    def first(self) -> str | None:
        """The scope whose first process is let through before the others."""
        below = None if self._below is None else self._below.first
        return self._surroundings.first_let_in(self._event) or below

    @functools.cached_property
    def reach(self) -> Reach:
        """Who shares its path."""
        private, _ = self._owned
        if private:
            return Reach.PRIVATE
        return self._surroundings.shared_by(self.path, self._spelled)

    @functools.cached_property
    def certain(self) -> bool:
        """Whether neither what its path holds nor a setting can keep processes apart."""
        _, certain = self._owned
        return certain and not any(map(self._surroundings.is_opened, {self._event, self._origin}))

    @functools.cached_property
    def path(self) -> Path | None:
        """Its path; None where that is a part of one, and the part is no process's own."""
        path = self._path
        return None if path is not None and path.is_part and not self._owned[0] else path

    def made_certain(self, *, certain: bool) -> SeenFromCall:
        """Give the same where it is known otherwise whether something can keep processes apart."""
        other = copy.copy(self)
        other.certain = certain
        return other

    @functools.cached_property
    def _processes(self) -> Processes:
        return self._coming()

    @functools.cached_property
    def _owned(self) -> tuple[bool, bool]:
        return self._surroundings.ownership.of(self._path, self._event.function)


def _says_all(expr: m.Expr) -> bool:
    """Tell whether a setting is named after all that do something."""
    named = isinstance(expr, (m.Name, m.Attribute))
    return named and not _ALL.isdisjoint(last_name(expr).lower().split("_"))
