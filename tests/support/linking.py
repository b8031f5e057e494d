"""Projects linked from sources, and their complete results."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unittest import mock

from fsrace_lint import catalog, rules
from fsrace_lint.analysis.queries.project import Project
from fsrace_lint.files.source import of_text
from fsrace_lint.program import relevance
from fsrace_lint.program.modules import link_module
from fsrace_lint.syntax.extract import SyntaxProblem, extract
from fsrace_lint.syntax.model import FileFacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fsrace_lint.program.modules import Module

ROOT: Final = Path("/p")


@contextlib.contextmanager
def all_followed(after: int) -> Iterator[None]:
    """Follow all functions once the search for callers has used `after` names per function."""
    with mock.patch.object(relevance, "COST_OF_READING", after):
        yield


def modules(files: Mapping[str, str]) -> list[Module]:
    """Link the files of a project, given by path; files that do not parse are left out."""
    found = []
    for path, text in files.items():
        facts = _facts(path, text)
        if isinstance(facts, FileFacts):
            found.append(link_module(path, path, facts))
    return found


@functools.lru_cache(64)
def _facts(path: str, text: str) -> FileFacts | SyntaxProblem:
    return extract(of_text(text, ROOT / path, ROOT))


def project(files: Mapping[str, str], *, targeted: bool = False, exhaustive: bool = False) -> Project:
    """Link a project from sources, given by path."""
    return Project(modules(files), catalog.load(), targeted=targeted, exhaustive=exhaustive)


def results_in(asked: Project, paths: Iterable[str]) -> list[str]:
    """Return the findings of both profiles in these files, and the reasons for all other calls."""
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


def codes(files: Mapping[str, str], path: str, *, exhaustive: bool = False) -> set[tuple[str, str]]:
    """Return the codes and functions of the findings of both profiles in one file of a project."""
    asked = project(files, exhaustive=exhaustive)
    (module,) = (one for one in asked.flows.table.modules if one.relative == path)
    about = asked.about(module)
    found = (finding for rule in rules.load() if rule.check for finding in rule.check(about))
    return {(finding.code, finding.function) for finding in found}


def all_results(files: Mapping[str, str], *, targeted: bool = False, exhaustive: bool = False) -> list[str]:
    """Return the results of `results_in` for a whole project."""
    asked = project(files, targeted=targeted, exhaustive=exhaustive)
    return results_in(asked, [module.relative for module in asked.flows.table.modules])


def callers_by_function(asked: Project) -> dict[str, list[str]]:
    """Return the callers of each function: the place of each call, and whether it passes the function."""
    return {
        function.qualified: sorted(
            f"{(at := edge.call_site).function.qualified}:{at.call.span} "
            f"{edge.passed_as_callback} {edge.position}"
            for edge in asked.entry_states.callers(function)
        )
        for module in asked.flows.table.modules
        for function in module.functions
    }
