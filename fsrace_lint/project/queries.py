"""The linked project, as rules ask about it."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fsrace_lint.project.differences import Differences
from fsrace_lint.project.divergence import Divergences
from fsrace_lint.project.elsewhere import Elsewhere
from fsrace_lint.project.filenames import FileName, FileNames
from fsrace_lint.project.forms import Path
from fsrace_lint.project.groups import Groups
from fsrace_lint.project.linker import Linker
from fsrace_lint.project.lock_misuses import LockMisuses
from fsrace_lint.project.locks import Locks
from fsrace_lint.project.markers import Markers
from fsrace_lint.project.misuses import Misuses
from fsrace_lint.project.model import Evidence, Reach
from fsrace_lint.project.modules import link_module
from fsrace_lint.project.order import Orders
from fsrace_lint.project.pauses import Pauses
from fsrace_lint.project.per_node import PerNode
from fsrace_lint.project.polls import Polls
from fsrace_lint.project.probes import related
from fsrace_lint.project.propagate import Propagation
from fsrace_lint.project.sequences import Sequences
from fsrace_lint.project.silence import Reason, Silences
from fsrace_lint.project.sites import Sites
from fsrace_lint.project.states import are_apart
from fsrace_lint.project.storage import Storage
from fsrace_lint.project.vanishing import Vanishings
from fsrace_lint.spans import Place

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from fsrace_lint.catalog import Catalog, Op
    from fsrace_lint.project.divergence import Divergence
    from fsrace_lint.project.elsewhere import Absence
    from fsrace_lint.project.forms import Origins
    from fsrace_lint.project.markers import Claim
    from fsrace_lint.project.model import Lock, Misuse, Probe, Site, VainTest
    from fsrace_lint.project.modules import LinkedFunction, Module
    from fsrace_lint.project.order import Unordered
    from fsrace_lint.project.pauses import Pause
    from fsrace_lint.project.per_node import PerNodeAct
    from fsrace_lint.project.polls import Poll
    from fsrace_lint.project.states import Event
    from fsrace_lint.project.vanishing import Vanishing
    from fsrace_lint.spans import Span

JUDGED_AT_CALLS: Final[frozenset[Op]] = frozenset({"write", "copy", "delete", "rename", "download"})
"""The operations that rules ask for with `exposed`, and not where they stand."""


class Project:
    """All files of a project, linked; sites are found on demand and only in the files asked for."""

    def __init__(
        self,
        modules: Sequence[Module],
        catalog: Catalog,
        targets: Iterable[str] | None = None,
        also: Mapping[str, Module | None] | None = None,
        storage: Storage | None = None,
    ) -> None:
        """Link the modules of a project.

        Args:
            modules: The modules, as link_module makes them.
            catalog: What library names mean.
            targets: The relative paths of the files to report on; all where None.
            also: Further relative paths under which modules can be imported.
            storage: What the user says of the filesystems.
        """
        self.storage = storage or Storage()
        self.catalog = catalog
        self.linker = Linker(modules, catalog, also or {})
        self.linker.follow_all()
        self.propagation = Propagation(self.linker)
        self._found = Sites(self.linker, self.propagation, self.storage)
        self._tests = self._found.tests
        self._names = FileNames(self.linker)
        self._groups = Groups(self.propagation)
        self._misuses = Misuses(self.propagation, self._found)
        self._renames: dict[LinkedFunction, tuple[Site, ...]] = {}
        self._silences = Silences(self.propagation)
        self._sequences = Sequences(self._found, Differences(self.linker, self._found.effects))
        self._divergences = Divergences(self._sequences)
        self._orders = Orders(self._sequences)
        self._elsewhere = Elsewhere(self._found, self._sequences)
        self._per_node = PerNode(self._found)
        self._polls = Polls(self.linker, self._found)
        self._pauses = Pauses(self._sequences, self._polls.limits)
        self._locks = Locks(self.propagation, self._found)
        self._lock_misuses = LockMisuses(self._locks, self._tests, self._sequences)
        self._vanishings = Vanishings(self._found, self._tests)
        self._markers = Markers(self.linker, self._found)
        wanted = None if targets is None else frozenset(targets)
        self.targets = tuple(module for module in modules if wanted is None or module.relative in wanted)

    def sites(self, *ops: Op) -> Iterator[Site]:
        """Give the sites of some operations where they stand, file by file in the order of the code."""
        for module in self.targets:
            for function in module.functions:
                yield from (site for site in self._found.direct(function) if site.act.op in ops)

    def exposed(self, *ops: Op) -> Iterator[Site]:
        """Give the sites of some operations where their path is decided.

        A function that writes the path it is given is no site of its own where
        its callers are known: each call of it is one.
        """
        for module in self.targets:
            for function in module.functions:
                yield from (site for site in self._found.exposed(function) if site.act.op in ops)

    def probe_then(self, *ops: Op, absent: bool) -> Iterator[tuple[Probe, Site]]:
        """Give the sites that are reached only after an existence test of their path.

        Args:
            ops: The operations of the sites.
            absent: Whether the test found the path missing (else: there).

        Yields:
            The nearest such test before the site, and the site.
        """
        for site in self.sites(*ops):
            probe = self._nearest(site.event, site.path, absent=absent)
            if probe is not None:
                yield probe, site

    def probe_of(self, site: Site) -> Probe | None:
        """Give the nearest existence test of its path that comes before a site, whatever it found."""
        return self._nearest(site.event, site.path)

    def probe_where_done(self, site: Site, *, absent: bool) -> Probe | None:
        """Give the nearest existence test of its path in the function that does it."""
        done = site
        while done.below is not None:
            done = done.below
        return self._nearest(done.event, done.path, absent=absent)

    def created_after_check(self, *ops: Op) -> Iterator[tuple[Probe, Site]]:
        """Give the sites that make something after a test that found it missing.

        Where a call leads to a site, the test may stand before the call; it is
        given there, once.

        Args:
            ops: The operations of the sites.

        Yields:
            The nearest such test before the site, and the site.
        """
        for site in self._everywhere(ops):
            probe = self._missing(site)
            if probe is not None and not (site.below and self.is_created_after_check(site.below)):
                yield probe, site

    def is_created_after_check(self, site: Site) -> bool:
        """Tell whether `created_after_check` gives a site, from where it is seen or from below."""
        if self._missing(site) is not None:
            return True
        return site.below is not None and self.is_created_after_check(site.below)

    def comes_in_order(self, site: Site) -> bool:
        """Tell whether the calls by which several processes come to a site let the first one go first."""
        return any(self.propagation.protection.first(event) is not None for event in site.way)

    def created_beside(self, probe: Probe, site: Site) -> Iterator[Site]:
        """Give what is made after the same test as a site, in the same folder, with no test of its own."""
        for other in self._found.seen(site.event.function):
            if (
                other.event is not site.event
                and other.act.op == site.act.op
                and self._missing(other) is None
                and _are_siblings(probe.path, other.path)
                and any(before.span == probe.span for before in self._tests.before(other.event))
            ):
                yield other

    def pairs(self, first: Container[Op], then: Container[Op]) -> Iterator[tuple[Site, Site]]:
        """Give two acts on one path, or the second within it, one after the other in the same function.

        Args:
            first: The operations of the first.
            then: The operations of the second.

        Yields:
            The two sites; each second one with the nearest that comes before it.
        """
        for module in self.targets:
            for function in module.functions:
                found = self._found.seen(function)
                for index, site in enumerate(found):
                    if site.act.op in then:
                        before = (other for other in reversed(found[:index]) if other.act.op in first)
                        other = next((other for other in before if _are_one_after_another(other, site)), None)
                        if other is not None:
                            yield other, site

    def _everywhere(self, ops: Container[Op]) -> Iterator[Site]:
        """Give the sites of some operations where they stand, and at the calls that lead to open ones."""
        for module in self.targets:
            for function in module.functions:
                yield from (site for site in self._found.seen(function) if site.act.op in ops)

    def _nearest(self, event: Event, path: Path | None, *, absent: bool | None = None) -> Probe | None:
        probes = (probe for probe in self._tests.before(event) if absent is None or probe.absent == absent)
        return next((probe for probe in probes if related(probe.path, path)), None)

    def _missing(self, site: Site) -> Probe | None:
        """Give the nearest test before a site that found missing what it makes."""
        for probe in self._tests.before(site.event):
            if probe.absent and related(probe.path, site.path) and _asks_for(probe, site):
                return probe
        return None

    def per_node(self) -> Iterator[PerNodeAct]:
        """Give what one process of each node does where nodes may share the path, file by file."""
        for module in self.targets:
            for function in module.functions:
                yield from self._per_node.of(function)

    def polls(self) -> Iterator[Poll]:
        """Give the waits for a path by looking again and again, file by file in the order of the code."""
        for module in self.targets:
            for function in module.functions:
                yield from self._polls.of(function)

    def absences(self) -> Iterator[Absence]:
        """Give what one process makes on its node and those of others use, in the order of the code."""
        for module in self.targets:
            for function in module.functions:
                yield from self._elsewhere.of(function)

    def pauses(self) -> Iterator[Pause]:
        """Give the sleeps on which the order of processes hangs, file by file in the order of the code."""
        for module in self.targets:
            for function in module.functions:
                yield from self._pauses.of(function)

    def divergent(self) -> Iterator[Divergence]:
        """Give the collectives that some of the processes miss, file by file in the order of the code."""
        for module in self.targets:
            for function in module.functions:
                yield from self._divergences.of(function)

    def locks(self) -> Iterator[Lock]:
        """Give the calls that make or take a lock between processes, in the order of the code."""
        for module in self.targets:
            for function in module.functions:
                yield from self._locks.of(function)

    def guarded(self, lock: Lock) -> Iterator[Site]:
        """Give the acts that the function of a lock does, or leads to, while it holds the lock."""
        function = lock.site.event.function
        acts = dict.fromkeys((*self._found.direct(function), *self._found.exposed(function)))
        return (site for site in acts if self._locks.is_held(lock, site.event))

    def locks_what_it_opens(self, site: Site) -> bool:
        """Tell whether an act opens a file that its function, or its class, then locks."""
        locks = self._locks.of_class(site.origin.function)
        return any(lock.opened is not None and lock.opened.call is site.origin.call for lock in locks)

    def is_lock_file(self, site: Site) -> bool:
        """Tell whether an act is done to a file that is a lock by its name, or is locked once it is open."""
        return (site.path is not None and site.path.names_a_lock) or self.locks_what_it_opens(site)

    def deleted_locks(self) -> Iterator[tuple[Lock, Site]]:
        """Give the locks whose files are deleted, and the deletes."""
        for delete in self.sites("delete"):
            lock = self._lock_misuses.deleted(delete)
            if lock is not None:
                yield lock, delete

    def emptied_before_locked(self) -> Iterator[tuple[Lock, Site]]:
        """Give the locks of files that are emptied when they are opened, and the opening."""
        for lock in self.locks():
            opened = self._lock_misuses.emptied(lock)
            if opened is not None:
                yield lock, opened

    def tested_before_locked(self) -> Iterator[tuple[Lock, Probe, Site]]:
        """Give the locks in front of which it is decided what is done while they are held.

        Yields:
            The lock, the existence test before it, and what is done under the lock without another test.
        """
        for lock in self.locks():
            yield from self._lock_misuses.decided_outside(lock)

    def unflushed(self) -> Iterator[tuple[Site, Site]]:
        """Give the acts that hand a file over to other processes before all of its content is in it.

        Yields:
            What put something into the open file, and what renames the file or releases its lock while that
            is still in a buffer.
        """
        for module in self.targets:
            for function in module.functions:
                yield from self._lock_misuses.released(function)
                yield from self._lock_misuses.renamed(function)

    def vanishing(self) -> Iterator[Vanishing]:
        """Give the reads of what was there, and what code of the project takes away."""
        for module in self.targets:
            for function in module.functions:
                yield from self._vanishings.of(function)

    def unfinished(self) -> Iterator[tuple[Site, Site]]:
        """Give the saves that go on in the background, and what already names them for others to read."""
        for module in self.targets:
            for function in module.functions:
                yield from self._lock_misuses.pointed_at(function)

    def claims(self) -> Iterator[Claim]:
        """Give the lock files that code of the project creates after it looked for them."""
        for module in self.targets:
            for function in module.functions:
                yield from self._markers.claims(function)

    def unordered(self) -> Iterator[Unordered]:
        """Give acts of one process and of others on one path that nothing orders."""
        for module in self.targets:
            for function in module.functions:
                yield from self._orders.of(function)

    def is_raced(self, site: Site) -> bool:
        """Tell whether several processes do it at once to one path, and none is turned away."""
        harmless = site.act.exclusive or site.act.tolerant
        tested = site.is_ordered and self.probe_of(site) is not None
        return site.is_contended and not harmless and not tested

    def is_surely_raced(self, site: Site) -> bool:
        """Tell whether it is evident that several processes do it at once to one path."""
        return site.certain and site.evidence is Evidence.EVIDENT and self.is_raced(site)

    def name_of(self, site: Site) -> FileName:
        """Tell what the path of a site is for, as far as its name tells."""
        return self._names.of(site)

    def origins(self, site: Site) -> Origins:
        """Tell by what the path of a site differs from process to process, also of one not followed."""
        if site.path is not None:
            return site.path.origins
        return self.linker.privacy.origins(site.act.path, site.origin.state.scope)

    def is_own(self, site: Site) -> bool:
        """Tell whether the path of a site is new each time.

        One that holds a rank is not, nor one in the folder of a run, whose name the time or chance made.
        """
        if site.path is None or not site.path.private:
            return site.reach is Reach.PRIVATE or not self.origins(site) <= {"rank"}
        name, folder = Path(site.path.components[-1:]), Path(site.path.components[:-1])
        return not (name.origins <= {"rank"} and folder.origins <= {"rank", "clock", "chance"})

    def is_in_place(self, site: Site) -> bool:
        """Tell whether a file is emptied and filled under the name by which it is read."""
        is_new = self.is_own(site) or site.after is not None
        if site.act.spares_what_was_there or site.locked or is_new:
            return False
        return not self.name_of(site).is_temporary and self.renamed_later(site) is None

    def renamed_later(self, site: Site) -> Site | None:
        """Give the rename, later in the same function, of what a site makes, or of a folder around it."""
        function = site.event.function
        if function not in self._renames:
            found = self._found.exposed(function)
            self._renames[function] = tuple(other for other in found if other.act.op == "rename")
        later = (other for other in self._renames[function] if _is_later(other, site))
        return next((other for other in later if _lies_in(site, other)), None)

    def made_before(self, moved: Site) -> bool:
        """Tell whether what a rename moves was made there by several processes, which is what is at fault."""
        seen = self._found.seen(moved.event.function) if moved.act.op == "rename" else ()
        made = (site for site in seen if site.act.op in {"write", "copy", "download"})
        return any(_is_later(moved, site) and _lies_in(site, moved) and self.is_raced(site) for site in made)

    def deleted_later(self, site: Site) -> Site | None:
        """Give the delete, later in the same function, of what a site makes."""
        later = (
            other
            for other in self._found.direct(site.event.function)
            if other.act.op == "delete" and other.span > site.span and other.path is not None
        )
        return next((delete for delete in later if delete.path == site.path), None)

    def made_anew(self) -> Iterator[tuple[Site, Site]]:
        """Give what takes a file away, and the link or rename, later in that function, that makes it anew."""
        for made in self.sites("link", "rename"):
            gone = None if made.locked or self.is_own(made) else self._taken_away_before(made)
            if gone is not None:
                yield gone, made

    def _taken_away_before(self, site: Site) -> Site | None:
        """Give what deletes or renames, earlier in the same function, the very file that a site makes."""
        made = self.made_by(site)
        earlier = (
            other
            for other in self._found.direct(site.event.function)
            if other.act.op in {"delete", "rename"}
            and other.span < site.span
            and other.act.api != "shutil.rmtree"
        )
        return next((other for other in earlier if made is not None and other.path == made), None)

    def made_by(self, site: Site) -> Path | None:
        """Give the path that is there when a site is done: of a rename, the new one."""
        if site.act.op != "rename":
            return site.path
        if site.act.target is None or site.event is not site.origin:
            return None
        return self.linker.paths.normalize(site.act.target, site.event.state.scope)

    def is_node_local(self, path: Path | None) -> bool:
        """Tell whether each node has a path of its own under this name."""
        return self.linker.paths.is_node_local(path)

    def is_scratch(self, site: Site) -> bool:
        """Tell whether a site makes something that is not to stay: its name says so, or it is renamed."""
        return self.name_of(site).is_scratch or self.renamed_later(site) is not None

    def agrees(self, site: Site) -> bool:
        """Tell whether what one process has is sent to all others in the function of a site."""
        return self.linker.privacy.agrees(site.event.function)

    def cached(self, *ops: Op) -> Iterator[tuple[Probe | None, Site]]:
        """Give the sites that make what is read later, and the tests that found it missing.

        Args:
            ops: The operations of the sites.

        Yields:
            The nearest such test, made here or by a helper, and the site: where the test
            stands, else where its path is decided.
        """
        for site in self.exposed(*ops):
            yield self._tests.wanting(site), site

    def _at_origin(self, site: Site) -> Site:
        """Give a site as it stands where it is done, before its path is decided."""
        own = self.linker.paths.normalize(site.act.path, site.origin.state.scope)
        return replace(site, event=site.origin, path=own)

    def cache_test_of(self, site: Site) -> Probe | None:
        """Give the nearest test before a site that makes what it found missing, also by a helper."""
        return self._tests.wanting(site)

    def moved_after(self, site: Site) -> Iterator[Site]:
        """Give the moves of what a site has made in its function, as they look from where it arrives."""
        for rename in self._found.direct(site.event.function):
            if rename.act.op != "rename" or rename.path is None or site.path is None:
                continue
            arrival = self._found.arrival(rename)
            if rename.path.is_within(site.path) and arrival is not None:
                yield arrival

    def is_staged(self, site: Site) -> bool:
        """Tell whether what a site makes, or its folder, is renamed in its function, or where it is done."""
        return any(
            rename.act.op == "rename"
            and rename.path is not None
            and seen.path is not None
            and seen.path.is_within(rename.path)
            for seen in (site, self._at_origin(site))
            for rename in self._found.direct(seen.event.function)
        )

    def never_entered(self) -> Iterator[Misuse]:
        """Give the calls that make a context for several processes and drop it; `subject` is what it does."""
        for module in self.targets:
            for function in module.functions:
                yield from self._misuses.never_entered(function)

    def eager(self) -> Iterator[Misuse]:
        """Give the calls that hand the result of a call to what runs a function in one process."""
        for module in self.targets:
            for function in module.functions:
                yield from self._misuses.eager(function)

    def before_the_group(self, *ops: Op) -> Iterator[VainTest]:
        """Give the sites that only the first process should reach, and all reach for want of a group."""
        for site in self.sites(*ops):
            vain = self._groups.vain_test(site)
            if vain is not None:
                yield vain

    def silent(self, reported: Container[Span]) -> Iterator[tuple[Site, Reason]]:
        """Give the sites of the files asked for that are no findings, and why.

        Args:
            reported: The calls at which rules found something.

        Yields:
            The sites, file by file in the order of the code, and what keeps them silent.
        """
        for module in self.targets:
            for function in module.functions:
                direct = self._found.direct(function)
                seen = (site for site in self._found.exposed(function) if site not in direct)
                at_calls = (site for site in seen if site.act.op in JUDGED_AT_CALLS)
                for site in sorted((*direct, *at_calls), key=lambda site: site.span):
                    if site.span not in reported:
                        yield site, self._reason(site)

    def _reason(self, site: Site) -> Reason:
        reason = self._silences.reason(site)
        if reason.is_weak and site.act.op == "write" and self.is_lock_file(site):
            return Reason("lock", f"{site.spelled} is a lock, or is locked once it is open")
        if reason.is_weak and site.act.op in JUDGED_AT_CALLS and self._found.is_open(site):
            event = self.propagation.edges(site.event.function)[0].event
            place = Place(event.function.module.path, event.call.span)
            return Reason("callers", "its path is decided where it is called, and judged there", place)
        return reason

    def about(self, module: Module) -> Project:
        """Give the same project with one file to report on; what was linked is shared."""
        narrowed = copy.copy(self)
        narrowed.targets = (module,)
        return narrowed

    def statistics(self) -> dict[str, int]:
        """Count what was linked and what could not be resolved."""
        return {
            "functions": sum(len(module.functions) for module in self.linker.table.modules),
            **self.linker.counts(),
        }


def _asks_for(probe: Probe, site: Site) -> bool:
    """Tell whether a test asks for what a site makes, or for the folder it lies in, and not what that is."""
    if probe.path == site.path:
        return not probe.asks_kind or site.act.tree or site.act.op == "link"
    below = site.path is not None and site.path.is_within(probe.path)
    return probe.asks_presence or not below


def _are_siblings(one: Path, other: Path | None) -> bool:
    """Tell whether two paths lie in one folder, which is more than the current one."""
    if other is None or one == other or len(one.components) == 1:
        return False
    return one.components[:-1] == other.components[:-1]


def _are_one_after_another(first: Site, then: Site) -> bool:
    if first.path is None or then.path is None or first.event is then.event:
        return False
    same = then.path.is_within(first.path)
    return same and not are_apart(first.event.state.literals, then.event.state.literals)


def _is_later(one: Site, other: Site) -> bool:
    """Tell whether a site comes after another, perhaps both in a function that one call leads to."""
    if one.event is other.event:
        return one.origin.function is other.origin.function and one.origin.call.span > other.origin.call.span
    return one.span > other.span


def _lies_in(site: Site, folder: Site) -> bool:
    """Tell whether what one site is about lies in, or is, what another is about."""
    if site.path is None or folder.path is None:
        return site.act.path == folder.act.path and site.origin.function is folder.origin.function
    return site.path.is_within(folder.path)


__all__ = ["Project", "Storage", "link_module"]
