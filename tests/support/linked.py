"""Small projects, linked in memory."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

from fsrace_lint import catalog
from fsrace_lint.analysis.queries.project import Project
from fsrace_lint.files.source import Source, decode
from fsrace_lint.program.modules import link_module
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.extract import extract
from fsrace_lint.syntax.model import FileFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.dataflow.process_set import Runs


SITE = "os.makedirs(out)"


def project(files: Mapping[str, str]) -> Project:
    """Link a project from sources, given by path."""
    modules = []
    for path, text in files.items():
        source = decode(dedent(text).encode(), Path("/p", path), Path("/p"))
        assert isinstance(source, Source)
        facts = extract(source)
        assert isinstance(facts, FileFacts), facts
        modules.append(link_module(path, path, facts))
    return Project(modules, catalog.load())


def runs(files: Mapping[str, str]) -> Runs:
    """Return which processes run the only site of a project."""
    (site,) = project(files).accesses("mkdir")
    return site.runs


def source(text: str) -> Source:
    found = decode(text.encode(), Path("/p/a.py"), Path("/p"))
    assert isinstance(found, Source)
    return found


def facts(text: str) -> m.FileFacts:
    found = extract(source(text))
    assert isinstance(found, m.FileFacts), found
    return found


def marked(linked: Project) -> CallSite:
    """Return the only call of `mark` in a project."""
    (event,) = [
        event
        for module in linked.flows.table.modules
        for function in module.functions
        if (flow := linked.flows.flow(function)) is not None
        for event in flow.call_sites
        if event.call.function == m.Name("mark")
    ]
    return event
