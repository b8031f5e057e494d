"""Queries for the life cycle of files, and for the purpose of a file name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.accesses.model import Reach
from fsrace_lint.analysis.callgraph.concurrency import Entry, Evidence
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

_FILLING: Final = frozenset({"write", "copy", "download", "rename"})
"""The operations that put content into a file."""
_CREATING: Final = _FILLING | {"create", "mkdir"}


class FileQueries(AccessQueries):
    """Queries for files: races, renames, deletes, and names."""

    def is_raced(self, access: Access) -> bool:
        """Return whether multiple processes run an access to one path concurrently.

        Exclusive and tolerant operations do not count, nor do accesses that later processes skip because the
        first process runs first.
        """
        harmless = access.operation.exclusive or access.operation.tolerant
        tested = access.is_serialized and (
            self.probe_of(access) is not None or self.is_skipped_by_followers(access)
        )
        return access.is_contended and not harmless and not tested

    def is_marker(self, access: Access) -> bool:
        """Return whether an access creates an empty file to which no code of its module writes."""
        return access.operation.empty and not any(
            other.op in _FILLING and not other.operation.empty for other in self._others(access)
        )

    def is_accepted_alone(self, write: Access) -> bool:
        """Return whether the check before a write accepts the file, whatever else exists.

        If the check also asks for a file that is created later, a partial file is not accepted. A file with
        fixed text, which no code of its module reads, only shows that the other files exist.
        """
        is_fixed = self._accesses.is_marker(write) and all(each.op != "read" for each in self._others(write))
        created = [
            other.path
            for other in self._accesses.all_accesses(write.call_site.function)
            if other.op in _CREATING and (is_fixed or other.comes_after(write)) and other.path != write.path
        ]
        for literal in write.call_site.state.conditions:
            probes = self._accesses.tests.among((literal,), write.call_site.call)
            missing = [each.path for each in probes if each.found_missing and not each.is_implied]
            if write.path in missing and any(path in created for path in missing):
                return False
        return True

    def _others(self, access: Access) -> Iterator[Access]:
        """Yield the accesses to the path of an access in its module."""
        for function in access.leaf_call.function.module.functions:
            for other in self._accesses.direct(function):
                if other.operation.path == access.operation.path or other.path == access.path is not None:
                    yield other

    def is_surely_raced(self, access: Access) -> bool:
        """Return whether there is evidence `EVIDENT` that multiple processes run an access concurrently."""
        sure = access.certain and not access.is_one_of_group
        return sure and access.evidence >= Evidence.LIKELY and self.is_raced(access)

    def is_opened_at_once(self, access: Access) -> bool:
        """Return whether the result of a call is passed directly to `open()`."""
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
        """Return what the file name of an access says about its purpose."""
        return self._file_names.of(access)

    def is_expected(self, write: Access) -> bool:
        """Return whether other code or a later run probably reads what an access writes.

        If each process writes its own share of the results, the file lacks all other shares.
        """
        named = self._file_names.is_expected(write)
        return named or write.operation.saves_model or self._is_passed_on_later(write)

    def is_called_from_outside(self, access: Access) -> bool:
        """Return whether only the users of a package call what runs an access: code outside the project."""
        source, *below = access.call_site.function.module.name.split(".")
        package = f"{source}.{below[0]}" if source == "src" and below else source
        is_packaged = bool(below) and self.flows.table.exact(package) is not None
        return is_packaged and access.trace.entry is Entry.CALL

    def _is_passed_on_later(self, write: Access) -> bool:
        """Return whether the function of a write later reads the file, or passes its path to the project."""
        path = write.path
        users = () if path is None else self._users(write.call_site.function).get(path, ())
        return any(each.call.span > write.span for each in users)

    @query
    def _users(self, function: LinkedFunction) -> dict[AbstractPath | None, list[CallSite]]:
        """Return the calls that read a path, or pass it to code of the project, by the path."""
        found: dict[AbstractPath | None, list[CallSite]] = {}
        normalize, callee = self.entry_states.paths.normalize, self.flows.resolver.callee
        for each in self.flows.call_sites(function):
            scope = each.state.scope
            if each.call.arguments and (callee(each.call, scope) is not None or self._reads(each)):
                for argument in each.call.arguments:
                    found.setdefault(normalize(argument, scope), []).append(each)
        return found

    def _reads(self, call_site: CallSite) -> bool:
        operation = self._accesses.operation(call_site)
        return operation is not None and operation.op == "read"

    def origins(self, access: Access) -> Origins:
        """Return why the path of an access differs between ranks, even if the path is not resolved."""
        if access.path is not None:
            return access.path.rank_dependence
        return self.entry_states.rank_dependence.origins(access.operation.path, access.leaf_call.state.scope)

    def is_own(self, access: Access) -> bool:
        """Return whether the path of an access is new each time.

        It is not if the file name depends at most on the rank, and the directory at most on the rank, the
        clock, or a random number.
        """
        if access.path is None or not access.path.rank_dependent:
            return access.reach is Reach.PRIVATE or not self.origins(access) <= RANK_ALONE
        name, folder = AbstractPath(access.path.components[-1:]), AbstractPath(access.path.components[:-1])
        return not (
            name.rank_dependence <= RANK_ALONE and folder.rank_dependence <= {"rank", "clock", "chance"}
        )

    def written_in_place(self) -> Iterator[Access]:
        """Yield the accesses that write a file in place.

        Each access is yielded once:

        * in the function that determines its path;
        * in its own function, if a lock is held or if the callers determine only the directory;
        * after the check that found the path missing, if the callers determine the path.
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
        """Return whether a callee finds the path of an access missing before it creates the path."""
        below = access.callee_access
        return below is not None and (self.probe_of_itself(below) is not None or self._is_tested_below(below))

    def _is_named(self, access: Access) -> bool:
        """Return whether the callers determine only the directory, and the access the file name."""
        return (
            access.path is not None
            and access.path.names_its_last_part
            and self._accesses.is_parametric(access)
        )

    def is_in_place(self, access: Access) -> bool:
        """Return whether an access truncates and writes a file under the name that readers use."""
        is_new = self.is_own(access) or access.claimed_by is not None
        if access.operation.spares_what_was_there or is_new or self.is_marker(access):
            return False
        return not self.name_of(access).is_temporary and self.renamed_later(access) is None

    def renamed_later(self, access: Access) -> Access | None:
        """Return the later rename, in the same function, of what an access creates or its parent."""
        function = access.call_site.function
        later = (other for other in self._renames(function) if other.comes_after(access))
        return next((other for other in later if _lies_in(access, other)), None)

    @query
    def _renames(self, function: LinkedFunction) -> tuple[Access, ...]:
        return tuple(other for other in self._accesses.all_accesses(function) if other.op == "rename")

    def made_before(self, moved: Access) -> bool:
        """Return whether multiple processes race on creating the file that a rename then moves."""
        seen = self._accesses.all_accesses(moved.call_site.function) if moved.op == "rename" else ()
        made = (access for access in seen if access.op in {"write", "copy", "download"})
        return any(
            moved.comes_after(access) and _lies_in(access, moved) and self.is_raced(access) for access in made
        )

    def deleted_later(self, access: Access) -> Access | None:
        """Return the later delete, in the same function, of what an access creates."""
        later = (
            other
            for other in self._accesses.direct(access.call_site.function)
            if other.op == "delete" and other.comes_after(access) and other.path is not None
        )
        return next((delete for delete in later if delete.path == access.path), None)

    def made_anew(self) -> Iterator[tuple[Access, Access]]:
        """Yield the removals of a file, and the later link or rename that recreates it in that function."""
        for made in self.accesses("link", "rename"):
            gone = None if made.locked or self.is_own(made) else self._taken_away_before(made)
            if gone is not None:
                yield gone, made

    def _taken_away_before(self, access: Access) -> Access | None:
        """Return the earlier delete or rename, in the same function, of the file that an access creates."""
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
        """Return the path that exists after an access: the new path if it is a rename."""
        if access.op != "rename":
            return access.path
        if access.operation.target is None or access.call_site is not access.leaf_call:
            return None
        return self.entry_states.paths.normalize(access.operation.target, access.call_site.state.scope)

    def is_node_local(self, path: AbstractPath | None) -> bool:
        """Return whether a path is on the local storage of each node."""
        return self.entry_states.paths.node_local.holds(path)

    def is_scratch(self, access: Access) -> bool:
        """Return whether an access creates a temporary file, by its name or because it is renamed later."""
        return self.name_of(access).is_scratch or self.renamed_later(access) is not None

    def is_for_a_cache(self, access: Access) -> bool:
        """Return whether an access creates a file under a temporary name, to be renamed.

        A check before the access found the final name missing.
        """
        rename = self.renamed_later(access)
        made = None if rename is None else self._accesses.arrival(rename)
        is_known = made is not None and made.path is not None and not made.path.has_work_item
        if access.path is not None and access.path.has_work_item:
            return False
        if made is not None and is_known and self._accesses.tests.wanting(made) is not None:
            return True
        return access.callee_access is not None and self.is_for_a_cache(access.callee_access)

    def agrees(self, access: Access) -> bool:
        """Return whether the function of an access broadcasts a value from one rank to all ranks."""
        return self.entry_states.rank_dependence.agrees(access.call_site.function)


def _lies_in(access: Access, folder: Access) -> bool:
    """Return whether the path of one access is, or is in, the path of another."""
    if access.path is None or folder.path is None:
        return (
            access.operation.path == folder.operation.path
            and access.leaf_call.function is folder.leaf_call.function
        )
    return access.path.is_within(folder.path)
