"""Queries for acts on the filesystem, and for the tests before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.existence_checks import related
from fsrace_lint.analysis.callgraph.concurrency import ConcurrencyMarker, ConcurrencyTrace, Evidence
from fsrace_lint.analysis.dataflow.abstract_state import mutually_exclusive
from fsrace_lint.analysis.dataflow.process_set import Runs
from fsrace_lint.analysis.queries.linked import Linked
from fsrace_lint.files.spans import Place

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from fsrace_lint.analysis.accesses.model import Access, ExistenceCheck
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.catalog import Op


class AccessQueries(Linked):
    """What is done to the filesystem, and what was tested before."""

    def accesses(self, *ops: Op) -> Iterator[Access]:
        """Give the sites of some operations where they stand, file by file in the order of the code."""
        return (access for access in self.each_acting(self._accesses.direct) if access.op in ops)

    def instantiated(self, *ops: Op) -> Iterator[Access]:
        """Give the sites of some operations where their path is decided.

        A function that writes the path it is given is no site of its own where
        its callers are known: each call of it is one.
        """
        return (access for access in self.each_acting(self._accesses.instantiated) if access.op in ops)

    def probe_then(self, *ops: Op, absent: bool) -> Iterator[tuple[ExistenceCheck, Access]]:
        """Give the sites that are reached only after an existence test of their path.

        Args:
            ops: The operations of the sites.
            absent: Whether the test found the path missing (else: there).

        Yields:
            The nearest such test before the site, and the site.
        """
        for access in self.accesses(*ops):
            probe = self._nearest(access.call_site, access.path, absent=absent)
            if probe is not None:
                yield probe, access

    def probe_of(self, access: Access) -> ExistenceCheck | None:
        """Give the nearest existence test of its path that comes before a site, whatever it found."""
        return self._nearest(access.call_site, access.path)

    def probe_of_itself(self, access: Access) -> ExistenceCheck | None:
        """Give the test that found missing just what a site makes, which is taken for whole from then on."""
        probe = self.probe_of(access)
        return probe if probe is not None and probe.found_missing and probe.path == access.path else None

    def probe_where_done(self, access: Access, *, absent: bool) -> ExistenceCheck | None:
        """Give the nearest existence test of its path in the function that does it."""
        done = access
        while done.callee_access is not None:
            done = done.callee_access
        return self._nearest(done.call_site, done.path, absent=absent)

    def created_after_check(self, *ops: Op) -> Iterator[tuple[ExistenceCheck, Access]]:
        """Give the sites that make something after a test that found it missing.

        Where a call leads to a site, the test may stand before the call; it is
        given there, once.

        Args:
            ops: The operations of the sites.

        Yields:
            The nearest such test before the site, and the site.
        """
        for access in self._everywhere(ops):
            probe = self._missing(access)
            if probe is not None and not (
                access.callee_access and self.is_created_after_check(access.callee_access)
            ):
                yield probe, access

    def is_created_after_check(self, access: Access) -> bool:
        """Tell whether `created_after_check` gives a site, from where it is seen or from below."""
        if self._missing(access) is not None:
            return True
        return access.callee_access is not None and self.is_created_after_check(access.callee_access)

    def comes_in_order(self, access: Access) -> bool:
        """Tell whether the calls by which several processes come to a site let the first one go first."""
        return any(
            self.entry_states.protection.serializing_context(call_site) is not None
            for call_site in access.call_chain
        )

    def is_skipped_by_followers(self, access: Access) -> bool:
        """Tell whether the first process goes first on the way to a site, and a test finds something missing.

        What the first one made may be what the test asks for, though its name does not show it.
        """
        ordered = access.is_serialized or self.comes_in_order(access)
        before = (
            probe
            for call_site in (*access.inlined_chain, *access.call_chain)
            for probe in self._accesses.tests.before(call_site)
        )
        return ordered and any(probe.found_missing for probe in before)

    def is_given_up_after(self, access: Access) -> bool:
        """Tell whether a handler does it and then raises: who fails in it is lost anyway."""
        flow, conditions = self.flows.flow(access.call_site.function), access.call_site.state.conditions
        caught = any(literal.attempt is not None and literal.truth for literal in conditions)
        if flow is None or not caught:
            return False
        before = flow.call_sites.index(access.call_site)
        return any(
            way.position > before and way.state.conditions == conditions for way in flow.exceptional_exits
        )

    def stands_among_processes(self, access: Access) -> bool:
        """Tell whether several processes may run a site, and its file shows that there are several."""
        shown = self._accesses.evidence.is_shown_in_file
        return access.evidence is not Evidence.NONE and shown(access.call_site.function)

    def created_beside(self, probe: ExistenceCheck, access: Access) -> Iterator[Access]:
        """Give what is made after the same test as a site, in the same folder, with no test of its own."""
        for other in self._accesses.all_accesses(access.call_site.function):
            if (
                other.call_site is not access.call_site
                and other.op == access.op
                and self._missing(other) is None
                and _are_siblings(probe.path, other.path)
                and any(before.span == probe.span for before in self._accesses.tests.before(other.call_site))
            ):
                yield other

    def pairs(self, first: Container[Op], then: Container[Op]) -> Iterator[tuple[Access, Access]]:
        """Give two acts on one path, or the second within it, one after the other in the same function.

        Args:
            first: The operations of the first.
            then: The operations of the second.

        Yields:
            The two sites; each second one with the nearest that comes before it.
        """
        for found in self.each_acting(lambda function: (self._accesses.all_accesses(function),)):
            for index, access in enumerate(found):
                if access.op in then:
                    before = (other for other in reversed(found[:index]) if other.op in first)
                    other = next((other for other in before if are_one_after_another(other, access)), None)
                    if other is not None:
                        yield other, access

    def shown_by(self, before: Access | None, access: Access) -> Access:
        """Give a site as evident where one process alone, of several, makes what it then deals with.

        Args:
            before: What is done to its path before, in the same function.
            access: The site.

        Returns:
            The site; its trace leads to the call that lets one process alone make it.
        """
        if before is None or before.runs is not Runs.ONE or access.evidence is Evidence.EVIDENT:
            return access
        place = Place(before.call_site.function.module.path, before.span)
        sign = ConcurrencyMarker(place, f"{before.callee} lets one process alone make it")
        return replace(access, shown=ConcurrencyTrace(Evidence.EVIDENT, (), sign))

    def shown_by_one(self, access: Access) -> Access:
        """Give a site as evident where one of several processes evidently comes to it, alone or not."""
        if access.evidence is Evidence.EVIDENT:
            return access
        trace = self._accesses.evidence.trace(access.call_site, by_one=True)
        if trace.evidence is not Evidence.EVIDENT:
            return access
        return replace(access, shown=ConcurrencyTrace(Evidence.EVIDENT, (), trace.marker))

    def resets(self) -> Iterator[tuple[Access, Access]]:
        """Give the deletes of what the same function then makes a directory again, and what makes it."""
        for gone, made in self.pairs({"delete"}, {"mkdir", "copy"}):
            if made.op == "mkdir" or made.operation.tree:
                yield gone, made

    def _everywhere(self, ops: Container[Op]) -> Iterator[Access]:
        """Give the sites of some operations where they stand, and at the calls that lead to open ones."""
        return (access for access in self.each_acting(self._accesses.all_accesses) if access.op in ops)

    def _nearest(
        self, call_site: CallSite, path: AbstractPath | None, *, absent: bool | None = None
    ) -> ExistenceCheck | None:
        probes = (
            probe
            for probe in self._accesses.tests.before(call_site)
            if absent is None or probe.found_missing == absent
        )
        return next((probe for probe in probes if related(probe.path, path)), None)

    def _missing(self, access: Access) -> ExistenceCheck | None:
        """Give the nearest test before a site that found missing what it makes."""
        probes = tuple(self._accesses.tests.before(access.call_site))
        if any(
            not probe.found_missing and probe.asks_presence and probe.path == access.path for probe in probes
        ):
            return None
        for probe in probes:
            if probe.found_missing and related(probe.path, access.path) and _asks_for(probe, access):
                return probe
        return None

    def cached(self, *ops: Op) -> Iterator[tuple[ExistenceCheck | None, Access]]:
        """Give the sites that make what is read later, and the tests that found it missing.

        Args:
            ops: The operations of the sites.

        Yields:
            The nearest such test, made here or by a helper, and the site: where the test
            stands, else where its path is decided.
        """
        for access in self.instantiated(*ops):
            yield self._accesses.tests.wanting(access), access

    def _at_origin(self, access: Access) -> Access:
        """Give a site as it stands where it is done, before its path is decided."""
        own = self.entry_states.paths.normalize(access.operation.path, access.leaf_call.state.scope)
        return replace(access, call_site=access.leaf_call, path=own)

    def cache_test_of(self, access: Access) -> ExistenceCheck | None:
        """Give the nearest test before a site that makes what it found missing, also by a helper."""
        return self._accesses.tests.wanting(access)

    def moved_after(self, access: Access) -> Iterator[Access]:
        """Give the moves of what a site has made in its function, as they look from where it arrives."""
        for rename in self._accesses.direct(access.call_site.function):
            if rename.op != "rename" or rename.path is None or access.path is None:
                continue
            arrival = self._accesses.arrival(rename)
            if rename.path.is_within(access.path) and arrival is not None:
                yield arrival

    def file_deleted_for(self, access: Access) -> Access | None:
        """Give the delete of a file in whose place a site puts something; it fails where a directory is."""
        for other in self._accesses.direct(access.call_site.function):
            plain = other.op == "delete" and not other.operation.tree and other.path is not None
            if plain and other.path == access.path and access.comes_after(other):
                return None if other.tolerates("FileNotFoundError") else other
        return None

    def is_staged(self, access: Access) -> bool:
        """Tell whether what a site makes, or its folder, is renamed in its function, or where it is done."""
        return any(
            rename.op == "rename"
            and rename.path is not None
            and seen.path is not None
            and seen.path.is_within(rename.path)
            for seen in (access, self._at_origin(access))
            for rename in self._accesses.direct(seen.call_site.function)
        )


def _asks_for(probe: ExistenceCheck, access: Access) -> bool:
    """Tell whether a test asks for what a site makes, or for the folder it lies in, and not what that is."""
    if probe.path == access.path:
        return not probe.asks_kind or access.operation.tree or access.op == "link"
    below = access.path is not None and access.path.is_within(probe.path)
    return probe.asks_presence or not below


def _are_siblings(one: AbstractPath, other: AbstractPath | None) -> bool:
    """Tell whether two paths lie in one folder, which is more than the current one."""
    if other is None or one == other or len(one.components) == 1:
        return False
    return one.components[:-1] == other.components[:-1]


def are_one_after_another(first: Access, then: Access) -> bool:
    """Tell whether two acts are of one path, or the second within it, and one process may do both."""
    if first.path is None or then.path is None or first.call_site is then.call_site:
        return False
    same = then.path.is_within(first.path)
    return same and not mutually_exclusive(first.call_site.state.conditions, then.call_site.state.conditions)
