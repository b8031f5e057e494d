"""Queries for what becomes of a file, and for what its name tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.accesses.model import Reach
from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.analysis.paths.abstract_path import RANK_ALONE, Path
from fsrace_lint.analysis.queries.accesses import SiteQueries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.file_names import FileName
    from fsrace_lint.analysis.accesses.model import Site
    from fsrace_lint.analysis.dataflow.abstract_state import Event
    from fsrace_lint.analysis.paths.abstract_path import Origins


class FileQueries(SiteQueries):
    """What becomes of a file, and what its name tells."""

    def is_raced(self, site: Site) -> bool:
        """Tell whether several processes do it at once to one path, and none is turned away."""
        harmless = site.act.exclusive or site.act.tolerant
        tested = site.is_ordered and (self.probe_of(site) is not None or self.is_skipped_by_followers(site))
        return site.is_contended and not harmless and not tested

    def is_surely_raced(self, site: Site) -> bool:
        """Tell whether it is evident that several processes do it at once to one path."""
        sure = site.certain and not site.is_one_of_group
        return sure and site.evidence is Evidence.EVIDENT and self.is_raced(site)

    def is_opened_at_once(self, site: Site) -> bool:
        """Tell whether what a call gives is the path that another opens, and nothing else sees it."""
        call = site.event.call
        return any(
            other.call.arguments[:1] == (call,) and self._opens(other)
            for other in self.linker.events(site.event.function)
        )

    def _opens(self, event: Event) -> bool:
        return self.linker.resolver.qualify(event.call.function, event.state.scope) in {"open", "io.open"}

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
            return site.reach is Reach.PRIVATE or not self.origins(site) <= RANK_ALONE
        name, folder = Path(site.path.components[-1:]), Path(site.path.components[:-1])
        return not (name.origins <= RANK_ALONE and folder.origins <= {"rank", "clock", "chance"})

    def written_in_place(self) -> Iterator[Site]:
        """Give what is written in place, where its path is decided, or, under a lock, where it stands.

        Where callers decide the folder, and a function the file in it, that is given there; and where a
        function finds missing what its callers name, that is given behind this test.
        """
        seen = (site for site in self.exposed("write", "copy") if not site.locked)
        decided = (s for s in seen if not (self._is_named(s.root) or self._is_tested_below(s)))
        standing = (site for site in self.sites("write", "copy") if site.locked or self._is_named(site))
        open_ = (site for site in self._everywhere({"write", "copy"}) if self._found.is_open(site))
        tested = (s for s in open_ if self.probe_of_itself(s) is not None and not self._is_tested_below(s))
        yield from filter(self.is_in_place, dict.fromkeys((*decided, *standing, *tested)))

    def _is_tested_below(self, site: Site) -> bool:
        """Tell whether a function that a call leads to finds missing what a site makes."""
        below = site.below
        return below is not None and (self.probe_of_itself(below) is not None or self._is_tested_below(below))

    def _is_named(self, site: Site) -> bool:
        """Tell whether callers decide the folder of a site, and it the file in it."""
        return site.path is not None and site.path.names_its_last_part and self._found.is_open(site)

    def is_in_place(self, site: Site) -> bool:
        """Tell whether a file is emptied and filled under the name by which it is read."""
        is_new = self.is_own(site) or site.after is not None
        if site.act.spares_what_was_there or is_new:
            return False
        return not self.name_of(site).is_temporary and self.renamed_later(site) is None

    def renamed_later(self, site: Site) -> Site | None:
        """Give the rename, later in the same function, of what a site makes, or of a folder around it."""
        function = site.event.function
        if function not in self._renames:
            found = self._found.seen(function)
            self._renames[function] = tuple(other for other in found if other.act.op == "rename")
        later = (other for other in self._renames[function] if other.comes_after(site))
        return next((other for other in later if _lies_in(site, other)), None)

    def made_before(self, moved: Site) -> bool:
        """Tell whether what a rename moves was made there by several processes, which is what is at fault."""
        seen = self._found.seen(moved.event.function) if moved.act.op == "rename" else ()
        made = (site for site in seen if site.act.op in {"write", "copy", "download"})
        return any(moved.comes_after(site) and _lies_in(site, moved) and self.is_raced(site) for site in made)

    def deleted_later(self, site: Site) -> Site | None:
        """Give the delete, later in the same function, of what a site makes."""
        later = (
            other
            for other in self._found.direct(site.event.function)
            if other.act.op == "delete" and other.comes_after(site) and other.path is not None
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
            and site.comes_after(other)
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
        return self.linker.paths.node_local.holds(path)

    def is_scratch(self, site: Site) -> bool:
        """Tell whether a site makes something that is not to stay: its name says so, or it is renamed."""
        return self.name_of(site).is_scratch or self.renamed_later(site) is not None

    def is_for_a_cache(self, site: Site) -> bool:
        """Tell whether a site makes, under another name, what a test before it found missing."""
        rename = self.renamed_later(site)
        made = None if rename is None else self._found.arrival(rename)
        is_known = made is not None and made.path is not None and not made.path.varies
        if site.path is not None and site.path.varies:
            return False
        if made is not None and is_known and self._found.tests.wanting(made) is not None:
            return True
        return site.below is not None and self.is_for_a_cache(site.below)

    def agrees(self, site: Site) -> bool:
        """Tell whether what one process has is sent to all others in the function of a site."""
        return self.linker.privacy.agrees(site.event.function)


def _lies_in(site: Site, folder: Site) -> bool:
    """Tell whether what one site is about lies in, or is, what another is about."""
    if site.path is None or folder.path is None:
        return site.act.path == folder.act.path and site.origin.function is folder.origin.function
    return site.path.is_within(folder.path)
