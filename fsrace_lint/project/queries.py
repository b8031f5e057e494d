"""The linked project, as rules ask about it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from fsrace_lint.project.differences import Differences
from fsrace_lint.project.divergence import Divergences
from fsrace_lint.project.filenames import FileName, FileNames
from fsrace_lint.project.forms import Path
from fsrace_lint.project.linker import Linker
from fsrace_lint.project.model import Evidence, Reach
from fsrace_lint.project.modules import link_module
from fsrace_lint.project.probes import Probes
from fsrace_lint.project.propagate import Propagation
from fsrace_lint.project.sequences import Sequences
from fsrace_lint.project.silence import Reason, Silences
from fsrace_lint.project.sites import Sites
from fsrace_lint.spans import Place

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from fsrace_lint.catalog import Catalog, Op
    from fsrace_lint.project.divergence import Divergence
    from fsrace_lint.project.forms import Origins
    from fsrace_lint.project.model import Probe, Site
    from fsrace_lint.project.modules import LinkedFunction, Module
    from fsrace_lint.spans import Span

JUDGED_AT_CALLS: Final[frozenset[Op]] = frozenset({"write", "copy"})
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
        self._tests = Probes(self.linker, self._found.effects)
        self._names = FileNames(self.linker)
        self._renames: dict[LinkedFunction, tuple[Site, ...]] = {}
        self._silences = Silences(self.propagation)
        self._sequences = Sequences(self._found, Differences(self.linker, self._found.effects))
        self._divergences = Divergences(self._sequences)
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
            probe = next((probe for probe in probes if _related(probe.path, site.path)), None)
            if probe is not None:
                yield probe, site

    def probe_of(self, site: Site) -> Probe | None:
        """Give the nearest existence test of its path that comes before a site, whatever it found."""
        return next((probe for probe in self._tests.before(site) if _related(probe.path, site.path)), None)

    def divergent(self) -> Iterator[Divergence]:
        """Give the collectives that some of the processes miss, file by file in the order of the code."""
        for module in self.targets:
            for function in module.functions:
                yield from self._divergences.of(function)

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


def _related(probed: Path, path: Path | None) -> bool:
    if path is None:
        return False
    return probed.is_within(path) or path.is_within(probed) or path.is_parent_of(probed)


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


__all__ = ["Project", "link_module"]
