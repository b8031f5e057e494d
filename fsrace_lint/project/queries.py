"""The linked project, as rules ask about it."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fsrace_lint.project.groups import Groups
from fsrace_lint.project.linker import Linker
from fsrace_lint.project.misuses import Misuses
from fsrace_lint.project.modules import link_module
from fsrace_lint.project.probes import related
from fsrace_lint.project.propagate import Propagation
from fsrace_lint.project.silence import Reason, Silences
from fsrace_lint.project.sites import Sites
from fsrace_lint.spans import Place

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from fsrace_lint.catalog import Catalog, Op
    from fsrace_lint.project.model import Misuse, Probe, Site, VainTest
    from fsrace_lint.project.modules import Module
    from fsrace_lint.spans import Span

JUDGED_AT_CALLS: Final[frozenset[Op]] = frozenset({"write", "download"})
"""The operations that rules ask for with `exposed`, and not where they stand."""


class Project:
    """All files of a project, linked; sites are found on demand and only in the files asked for."""

    def __init__(
        self,
        modules: Sequence[Module],
        catalog: Catalog,
        targets: Iterable[str] | None = None,
        also: Mapping[str, Module | None] | None = None,
    ) -> None:
        """Link the modules of a project.

        Args:
            modules: The modules, as link_module makes them.
            catalog: What library names mean.
            targets: The relative paths of the files to report on; all where None.
            also: Further relative paths under which modules can be imported.
        """
        self.catalog = catalog
        self.linker = Linker(modules, catalog, also or {})
        self.linker.follow_all()
        self.propagation = Propagation(self.linker)
        self._found = Sites(self.linker, self.propagation)
        self._tests = self._found.tests
        self._groups = Groups(self.propagation)
        self._misuses = Misuses(self.propagation, self._found)
        self._silences = Silences(self.propagation)
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
            probes = (probe for probe in self._tests.before(site) if probe.absent == absent)
            probe = next((probe for probe in probes if related(probe.path, site.path)), None)
            if probe is not None:
                yield probe, site

    def probe_of(self, site: Site) -> Probe | None:
        """Give the nearest existence test of its path that comes before a site, whatever it found."""
        return self._tests.nearest(site)

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


__all__ = ["Project", "link_module"]
