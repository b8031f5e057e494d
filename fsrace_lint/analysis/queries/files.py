"""Queries for what becomes of a file, and for what its name tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.accesses.model import Reach
from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.analysis.paths.abstract_path import RANK_ALONE, AbstractPath
from fsrace_lint.analysis.queries.accesses import AccessQueries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.file_names import FileName
    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.paths.abstract_path import Origins


class FileQueries(AccessQueries):
    """What becomes of a file, and what its name tells."""

    def is_raced(self, site: Access) -> bool:
        """Tell whether several processes do it at once to one path, and none is turned away."""
        harmless = site.operation.exclusive or site.operation.tolerant
        tested = site.is_serialized and (
            self.probe_of(site) is not None or self.is_skipped_by_followers(site)
        )
        return site.is_contended and not harmless and not tested

    def is_surely_raced(self, site: Access) -> bool:
        """Tell whether it is evident that several processes do it at once to one path."""
        sure = site.certain and not site.is_one_of_group
        return sure and site.evidence is Evidence.EVIDENT and self.is_raced(site)

    def is_opened_at_once(self, site: Access) -> bool:
        """Tell whether what a call gives is the path that another opens, and nothing else sees it."""
        call = site.call_site.call
        return any(
            other.call.arguments[:1] == (call,) and self._opens(other)
            for other in self.linker.call_sites(site.call_site.function)
        )

    def _opens(self, event: CallSite) -> bool:
        return self.linker.resolver.qualify(event.call.function, event.state.scope) in {"open", "io.open"}

    def name_of(self, site: Access) -> FileName:
        """Tell what the path of a site is for, as far as its name tells."""
        return self._names.of(site)

    def origins(self, site: Access) -> Origins:
        """Tell by what the path of a site differs from process to process, also of one not followed."""
        if site.path is not None:
            return site.path.rank_dependence
        return self.linker.privacy.origins(site.operation.path, site.leaf_call.state.scope)

    def is_own(self, site: Access) -> bool:
        """Tell whether the path of a site is new each time.

        One that holds a rank is not, nor one in the folder of a run, whose name the time or chance made.
        """
        if site.path is None or not site.path.rank_dependent:
            return site.reach is Reach.PRIVATE or not self.origins(site) <= RANK_ALONE
        name, folder = AbstractPath(site.path.components[-1:]), AbstractPath(site.path.components[:-1])
        return not (
            name.rank_dependence <= RANK_ALONE and folder.rank_dependence <= {"rank", "clock", "chance"}
        )

    def written_in_place(self) -> Iterator[Access]:
        """Give what is written in place, where its path is decided, or, under a lock, where it stands.

        Where callers decide the folder, and a function the file in it, that is given there; and where a
        function finds missing what its callers name, that is given behind this test.
        """
        seen = (site for site in self.instantiated("write", "copy") if not site.locked)
        decided = (s for s in seen if not (self._is_named(s.leaf_access) or self._is_tested_below(s)))
        standing = (site for site in self.accesses("write", "copy") if site.locked or self._is_named(site))
        open_ = (site for site in self._everywhere({"write", "copy"}) if self._found.is_parametric(site))
        tested = (s for s in open_ if self.probe_of_itself(s) is not None and not self._is_tested_below(s))
        yield from filter(self.is_in_place, dict.fromkeys((*decided, *standing, *tested)))

    def _is_tested_below(self, site: Access) -> bool:
        """Tell whether a function that a call leads to finds missing what a site makes."""
        below = site.callee_access
        return below is not None and (self.probe_of_itself(below) is not None or self._is_tested_below(below))

    def _is_named(self, site: Access) -> bool:
        """Tell whether callers decide the folder of a site, and it the file in it."""
        return site.path is not None and site.path.names_its_last_part and self._found.is_parametric(site)

    def is_in_place(self, site: Access) -> bool:
        """Tell whether a file is emptied and filled under the name by which it is read."""
        is_new = self.is_own(site) or site.claimed_by is not None
        if site.operation.spares_what_was_there or is_new:
            return False
        return not self.name_of(site).is_temporary and self.renamed_later(site) is None

    def renamed_later(self, site: Access) -> Access | None:
        """Give the rename, later in the same function, of what a site makes, or of a folder around it."""
        function = site.call_site.function
        if function not in self._renames:
            found = self._found.all_accesses(function)
            self._renames[function] = tuple(other for other in found if other.operation.op == "rename")
        later = (other for other in self._renames[function] if other.comes_after(site))
        return next((other for other in later if _lies_in(site, other)), None)

    def made_before(self, moved: Access) -> bool:
        """Tell whether what a rename moves was made there by several processes, which is what is at fault."""
        seen = self._found.all_accesses(moved.call_site.function) if moved.operation.op == "rename" else ()
        made = (site for site in seen if site.operation.op in {"write", "copy", "download"})
        return any(moved.comes_after(site) and _lies_in(site, moved) and self.is_raced(site) for site in made)

    def deleted_later(self, site: Access) -> Access | None:
        """Give the delete, later in the same function, of what a site makes."""
        later = (
            other
            for other in self._found.direct(site.call_site.function)
            if other.operation.op == "delete" and other.comes_after(site) and other.path is not None
        )
        return next((delete for delete in later if delete.path == site.path), None)

    def made_anew(self) -> Iterator[tuple[Access, Access]]:
        """Give what takes a file away, and the link or rename, later in that function, that makes it anew."""
        for made in self.accesses("link", "rename"):
            gone = None if made.locked or self.is_own(made) else self._taken_away_before(made)
            if gone is not None:
                yield gone, made

    def _taken_away_before(self, site: Access) -> Access | None:
        """Give what deletes or renames, earlier in the same function, the very file that a site makes."""
        made = self.made_by(site)
        earlier = (
            other
            for other in self._found.direct(site.call_site.function)
            if other.operation.op in {"delete", "rename"}
            and site.comes_after(other)
            and other.operation.api != "shutil.rmtree"
        )
        return next((other for other in earlier if made is not None and other.path == made), None)

    def made_by(self, site: Access) -> AbstractPath | None:
        """Give the path that is there when a site is done: of a rename, the new one."""
        if site.operation.op != "rename":
            return site.path
        if site.operation.target is None or site.call_site is not site.leaf_call:
            return None
        return self.linker.paths.normalize(site.operation.target, site.call_site.state.scope)

    def is_node_local(self, path: AbstractPath | None) -> bool:
        """Tell whether each node has a path of its own under this name."""
        return self.linker.paths.node_local.holds(path)

    def is_scratch(self, site: Access) -> bool:
        """Tell whether a site makes something that is not to stay: its name says so, or it is renamed."""
        return self.name_of(site).is_scratch or self.renamed_later(site) is not None

    def is_for_a_cache(self, site: Access) -> bool:
        """Tell whether a site makes, under another name, what a test before it found missing."""
        rename = self.renamed_later(site)
        made = None if rename is None else self._found.arrival(rename)
        is_known = made is not None and made.path is not None and not made.path.has_work_item
        if site.path is not None and site.path.has_work_item:
            return False
        if made is not None and is_known and self._found.tests.wanting(made) is not None:
            return True
        return site.callee_access is not None and self.is_for_a_cache(site.callee_access)

    def agrees(self, site: Access) -> bool:
        """Tell whether what one process has is sent to all others in the function of a site."""
        return self.linker.privacy.agrees(site.call_site.function)


def _lies_in(site: Access, folder: Access) -> bool:
    """Tell whether what one site is about lies in, or is, what another is about."""
    if site.path is None or folder.path is None:
        return (
            site.operation.path == folder.operation.path
            and site.leaf_call.function is folder.leaf_call.function
        )
    return site.path.is_within(folder.path)
