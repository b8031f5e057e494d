"""The reference of linking on demand: the same project with every filter taken out.

A filter says where to look closer. Here each of them lets everything through, so that what is found
rests on what names are resolved to alone.
"""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from fsrace_lint import catalog, rules
from fsrace_lint.analysis.accesses import accesses
from fsrace_lint.analysis.callgraph import call_graph
from fsrace_lint.analysis.callgraph.reaching_functions import ReachingFunctions
from fsrace_lint.analysis.program.candidate_callers import CandidateCallers
from fsrace_lint.analysis.program.modules import link_module
from fsrace_lint.analysis.queries.linked import Linked
from fsrace_lint.analysis.queries.project import Project
from fsrace_lint.analysis.synchronization import event_sequences
from fsrace_lint.analysis.synchronization.misused_helpers import MisusedHelpers
from fsrace_lint.analysis.synchronization.polling import Polling
from fsrace_lint.files.source import of_text
from fsrace_lint.syntax.extract import SyntaxProblem, extract
from fsrace_lint.syntax.model import FileFacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.program.modules import LinkedFunction, Module

ROOT: Final = Path("/p")


class _Everything(frozenset[Any]):
    """A set that has whatever it is asked for."""

    def __contains__(self, _item: object) -> bool:
        return True

    def isdisjoint(self, _other: Iterable[object]) -> bool:
        return False


EVERYTHING: Final = _Everything()


def _all_functions(self: CandidateCallers, _function: object) -> tuple[LinkedFunction, ...]:
    return tuple(function for module in self._modules for function in module.functions)


def _all_mentions(
    self: CandidateCallers, _function: object, *, handed: bool = False
) -> Iterator[tuple[LinkedFunction, _Everything]]:
    del handed
    return ((function, EVERYTHING) for function in _all_functions(self, None))


def _leads_everywhere(entry_states: EntryStates, _kinds: object, _depth: object) -> ReachingFunctions:
    return ReachingFunctions(frozenset(_all_functions(entry_states.mentions, None)), EVERYTHING)


def _all_names(_self: object, _names: object = None) -> _Everything:
    return EVERYTHING


@contextlib.contextmanager
def unfiltered() -> Iterator[None]:
    """Take the filters out of all projects that are linked and asked within."""
    with contextlib.ExitStack() as stack:
        for owner, name, value in (
            (CandidateCallers, "of", _all_functions),
            (CandidateCallers, "names", _all_names),
            (CandidateCallers, "search", _all_mentions),
            (CandidateCallers, "calling", _all_functions),
            (CandidateCallers, "names_for", _all_names),
            (CandidateCallers, "denoting", property(_all_names)),
            (MisusedHelpers, "_handing", property(_all_names)),
            (Polling, "_handing", property(_all_names)),
            (Linked, "each_acting", Linked.each),
            (accesses, "reaching_functions", _leads_everywhere),
            (event_sequences, "reaching_functions", _leads_everywhere),
        ):
            stack.enter_context(mock.patch.object(owner, name, value))
        yield


@contextlib.contextmanager
def all_followed(after: int) -> Iterator[None]:
    """Have all functions looked at once their callers were sought by `after` names for each of them."""
    with mock.patch.object(call_graph, "COST_OF_FOLLOWING", after):
        yield


def modules(files: Mapping[str, str]) -> list[Module]:
    """Link the files of a project, given by path; those that do not parse are left out."""
    found = []
    for path, text in files.items():
        facts = _facts(path, text)
        if isinstance(facts, FileFacts):
            found.append(link_module(path, path, facts))
    return found


@functools.lru_cache(64)
def _facts(path: str, text: str) -> FileFacts | SyntaxProblem:
    return extract(of_text(text, ROOT / path, ROOT))


def project(files: Mapping[str, str], *, asks_few: bool = False) -> Project:
    """Link a project of sources, given by path."""
    return Project(modules(files), catalog.load(), asks_few=asks_few)


def told(asked: Project, paths: Iterable[str]) -> list[str]:
    """Give all that is said of some files: the findings of both profiles, and why the rest is silent."""
    found = []
    for path in paths:
        (module,) = (one for one in asked.flows.table.modules if one.relative == path)
        about = asked.about(module)
        findings = [finding for rule in rules.load() if rule.check for finding in rule.check(about)]
        reported = {finding.place.span for finding in findings}
        found += sorted(repr(finding) for finding in findings)
        found += sorted(
            f"{site.path_source} {site.span}: {reason}" for site, reason in about.not_reported(reported)
        )
    return found


def codes(files: Mapping[str, str], path: str) -> set[tuple[str, str]]:
    """Give the findings of both profiles in one file of a project: their codes, and in which function."""
    asked = project(files)
    (module,) = (one for one in asked.flows.table.modules if one.relative == path)
    about = asked.about(module)
    found = (finding for rule in rules.load() if rule.check for finding in rule.check(about))
    return {(finding.code, finding.function) for finding in found}


def all_told(files: Mapping[str, str], *, asks_few: bool = False) -> list[str]:
    """Give the same of a whole project."""
    asked = project(files, asks_few=asks_few)
    return told(asked, [module.relative for module in asked.flows.table.modules])


def ways_in(asked: Project) -> dict[str, list[str]]:
    """Give the ways into each function: the place of each call, and whether it hands the function over."""
    return {
        function.qualified: sorted(
            f"{(at := edge.call_site).function.qualified}:{at.call.span} "
            f"{edge.passed_as_callback} {edge.position}"
            for edge in asked.entry_states.callers(function)
        )
        for module in asked.flows.table.modules
        for function in module.functions
    }
