"""Queries for what becomes of a file, and for what its name tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.accesses.model import Reach
from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.analysis.paths.abstract_path import RANK_ALONE, AbstractPath
from fsrace_lint.analysis.queries.accesses import AccessQueries
from fsrace_lint.engine.query import query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.file_names import FileName
    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.paths.abstract_path import Origins
    from fsrace_lint.program.modules import LinkedFunction


class FileQueries(AccessQueries):
    """What becomes of a file, and what its name tells."""

    def is_raced(self, access: Access) -> bool:
        """Tell whether several processes do it at once to one path, and none is turned away."""
        harmless = access.operation.exclusive or access.operation.tolerant
        tested = access.is_serialized and (
            self.probe_of(access) is not None or self.is_skipped_by_followers(access)
        )
        return access.is_contended and not harmless and not tested

    def is_surely_raced(self, access: Access) -> bool:
        """Tell whether it is evident that several processes do it at once to one path."""
        sure = access.certain and not access.is_one_of_group
        return sure and access.evidence is Evidence.EVIDENT and self.is_raced(access)

    def is_opened_at_once(self, access: Access) -> bool:
        """Tell whether what a call gives is the path that another opens, and nothing else sees it."""
        call = access.call_site.call
        return any(
            other.call.arguments[:1] == (call,) and self._opens(other)
            for other in self.flows.call_sites(access.call_site.function)
        )

    def _opens(self, call_site: CallSite) -> bool:
        return self.flows.resolver.qualify(call_site.call.function, call_site.state.scope) in {
            "open",
            "io.open",
        }

    def name_of(self, access: Access) -> FileName:
        """Tell what the path of a site is for, as far as its name tells."""
        return self._file_names.of(access)

    def origins(self, access: Access) -> Origins:
        """Tell by what the path of a site differs from process to process, also of one not followed."""
        if access.path is not None:
            return access.path.rank_dependence
        return self.entry_states.rank_dependence.origins(access.operation.path, access.leaf_call.state.scope)

    def is_own(self, access: Access) -> bool:
        """Tell whether the path of a site is new each time.

        One that holds a rank is not, nor one in the folder of a run, whose name the time or chance made.
        """
        if access.path is None or not access.path.rank_dependent:
            return access.reach is Reach.PRIVATE or not self.origins(access) <= RANK_ALONE
        name, folder = AbstractPath(access.path.components[-1:]), AbstractPath(access.path.components[:-1])
        return not (
            name.rank_dependence <= RANK_ALONE and folder.rank_dependence <= {"rank", "clock", "chance"}
        )

    def written_in_place(self) -> Iterator[Access]:
        """Give what is written in place, where its path is decided, or, under a lock, where it stands.

        Where callers decide the folder, and a function the file in it, that is given there; and where a
        function finds missing what its callers name, that is given behind this test.
        """
        seen = (access for access in self.instantiated("write", "copy") if not access.locked)
        decided = (s for s in seen if not (self._is_named(s.leaf_access) or self._is_tested_below(s)))
        standing = (
            access for access in self.accesses("write", "copy") if access.locked or self._is_named(access)
        )
        open_ = (
            access for access in self._everywhere({"write", "copy"}) if self._accesses.is_parametric(access)
        )
        tested = (s for s in open_ if self.probe_of_itself(s) is not None and not self._is_tested_below(s))
        yield from filter(self.is_in_place, dict.fromkeys((*decided, *standing, *tested)))

    def _is_tested_below(self, access: Access) -> bool:
        """Tell whether a function that a call leads to finds missing what a site makes."""
        below = access.callee_access
        return below is not None and (self.probe_of_itself(below) is not None or self._is_tested_below(below))

    def _is_named(self, access: Access) -> bool:
        """Tell whether callers decide the folder of a site, and it the file in it."""
        return (
            access.path is not None
            and access.path.names_its_last_part
            and self._accesses.is_parametric(access)
        )

    def is_in_place(self, access: Access) -> bool:
        """Tell whether a file is emptied and filled under the name by which it is read."""
        is_new = self.is_own(access) or access.claimed_by is not None
        if access.operation.spares_what_was_there or is_new:
            return False
        return not self.name_of(access).is_temporary and self.renamed_later(access) is None

    def renamed_later(self, access: Access) -> Access | None:
        """Give the rename, later in the same function, of what a site makes, or of a folder around it."""
        function = access.call_site.function
        later = (other for other in self._renames(function) if other.comes_after(access))
        return next((other for other in later if _lies_in(access, other)), None)

    @query
    def _renames(self, function: LinkedFunction) -> tuple[Access, ...]:
        return tuple(other for other in self._accesses.all_accesses(function) if other.op == "rename")

    def made_before(self, moved: Access) -> bool:
        """Tell whether what a rename moves was made there by several processes, which is what is at fault."""
        seen = self._accesses.all_accesses(moved.call_site.function) if moved.op == "rename" else ()
        made = (access for access in seen if access.op in {"write", "copy", "download"})
        return any(
            moved.comes_after(access) and _lies_in(access, moved) and self.is_raced(access) for access in made
        )

    def deleted_later(self, access: Access) -> Access | None:
        """Give the delete, later in the same function, of what a site makes."""
        later = (
            other
            for other in self._accesses.direct(access.call_site.function)
            if other.op == "delete" and other.comes_after(access) and other.path is not None
        )
        return next((delete for delete in later if delete.path == access.path), None)

    def made_anew(self) -> Iterator[tuple[Access, Access]]:
        """Give what takes a file away, and the link or rename, later in that function, that makes it anew."""
        for made in self.accesses("link", "rename"):
            gone = None if made.locked or self.is_own(made) else self._taken_away_before(made)
            if gone is not None:
                yield gone, made

    def _taken_away_before(self, access: Access) -> Access | None:
        """Give what deletes or renames, earlier in the same function, the very file that a site makes."""
        made = self.made_by(access)
        earlier = (
            other
            for other in self._accesses.direct(access.call_site.function)
            if other.op in {"delete", "rename"}
            and access.comes_after(other)
            and other.operation.api != "shutil.rmtree"
        )
        return next((other for other in earlier if made is not None and other.path == made), None)

    def made_by(self, access: Access) -> AbstractPath | None:
        """Give the path that is there when a site is done: of a rename, the new one."""
        if access.op != "rename":
            return access.path
        if access.operation.target is None or access.call_site is not access.leaf_call:
            return None
        return self.entry_states.paths.normalize(access.operation.target, access.call_site.state.scope)

    def is_node_local(self, path: AbstractPath | None) -> bool:
        """Tell whether each node has a path of its own under this name."""
        return self.entry_states.paths.node_local.holds(path)

    def is_scratch(self, access: Access) -> bool:
        """Tell whether a site makes something that is not to stay: its name says so, or it is renamed."""
        return self.name_of(access).is_scratch or self.renamed_later(access) is not None

    def is_for_a_cache(self, access: Access) -> bool:
        """Tell whether a site makes, under another name, what a test before it found missing."""
        rename = self.renamed_later(access)
        made = None if rename is None else self._accesses.arrival(rename)
        is_known = made is not None and made.path is not None and not made.path.has_work_item
        if access.path is not None and access.path.has_work_item:
            return False
        if made is not None and is_known and self._accesses.tests.wanting(made) is not None:
            return True
        return access.callee_access is not None and self.is_for_a_cache(access.callee_access)

    def agrees(self, access: Access) -> bool:
        """Tell whether what one process has is sent to all others in the function of a site."""
        return self.entry_states.rank_dependence.agrees(access.call_site.function)


def _lies_in(access: Access, folder: Access) -> bool:
    """Tell whether what one site is about lies in, or is, what another is about."""
    if access.path is None or folder.path is None:
        return (
            access.operation.path == folder.operation.path
            and access.leaf_call.function is folder.leaf_call.function
        )
    return access.path.is_within(folder.path)
