"""Findings do not depend on the order of queries.

Shows: `analysis/queries/linked.py`, `analysis/queries/project.py`, `engine/query.py`
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from support import CASE_DOCUMENTS, ROOT
from support.linking import project
from support.mdtest import collect

from fsrace_lint import rules
from fsrace_lint.analysis.dataflow.process_set import MAIN, TOP
from fsrace_lint.analysis.values.resolve import Resolver
from fsrace_lint.config import settings
from fsrace_lint.pipeline.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from support.mdtest import Case

    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.queries.project import Project

SEVERAL_FILES = [case for case in collect(CASE_DOCUMENTS) if len(case.files) > 1]


def found(root: Path, reverse: bool) -> dict[str, list[tuple[str, int, str]]]:
    chosen = settings.with_overrides(settings.load(root, rules.names()), profile="strict")
    run = Run(chosen, ())
    order: Iterable[str] = reversed(list(run.files)) if reverse else list(run.files)
    return {
        path: [(f.code, f.place.span.line, f.evidence) for f in run.check_file(path, []).kept]
        for path in order
    }


@pytest.mark.parametrize("case", SEVERAL_FILES, ids=lambda case: f"{case.document.stem}: {case.title}")
def test_cases_in_both_file_orders(case: Case, tmp_path: Path) -> None:
    root = case.write(tmp_path)
    assert found(root, reverse=False) == found(root, reverse=True)


def test_examples_in_both_file_orders() -> None:
    one = found(ROOT / "examples", reverse=False)
    assert sum(map(len, one.values())) >= 12
    assert one == found(ROOT / "examples", reverse=True)


CIRCLE = {
    "index.py": """\
import tempfile


class Index:
    def download(self, spec, folder=None):
        folder = folder or tempfile.mkdtemp()
        return self.fetch(spec, folder)

    def fetch(self, spec, folder):
        name = self.url(spec, folder)
        with open(name, "w") as stream:
            stream.write(spec)
        return name

    def url(self, spec, folder):
        if spec.startswith("file:"):
            return self.download(spec[5:], folder)
        return folder + "/" + spec
""",
    "install.py": """\
from index import Index


class Installer:
    def __init__(self):
        self.index = Index()

    def install(self, spec, folder):
        path = self.index.download(spec, folder)
        if self.index.url(spec, path):
            self.index.fetch(spec, path)
""",
}


def test_recursive_functions_in_both_file_orders(tmp_path: Path) -> None:
    for name, text in CIRCLE.items():
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "setup.cfg").touch()
    assert found(tmp_path, reverse=False) == found(tmp_path, reverse=True)


def test_exponentially_many_call_paths_are_fast(tmp_path: Path) -> None:
    """Each function calls the next four times: a million paths, but one result per function."""
    lines = ["import os"]
    for level in range(10):
        following = f"f{level + 1}(x)"
        lines += [
            f"def f{level}(x):",
            f"    if {following}:",
            f"        return {following} + {following} + {following}",
        ]
    lines += ["def f10(x):", "    if not os.path.exists(x):", "        os.makedirs(x)"]
    (tmp_path / "main.py").write_text("\n".join(lines) + "\n", "utf-8")
    (tmp_path / "setup.cfg").touch()
    assert found(tmp_path, reverse=False) == {"main.py": [("FSR101", 34, "plausible")]}


LEADER = """
import torch.distributed as dist


def first(thing):
    thing.make()
    if dist.get_rank() == 0:
        make()


def others():
    if dist.get_rank() != 0:
        make()


def make():
    pass
"""


def calls_of(linked: Project, name: str) -> list[CallSite]:
    functions = [function for module in linked.flows.table.modules for function in module.functions]
    (called,) = (function for function in functions if function.facts.name == name)
    return [edge.call_site for edge in linked.entry_states.callers(called)]


def test_negated_condition_does_not_reuse_a_result() -> None:
    """A result for a temporary condition must not be returned for the next one."""
    linked = project({"a.py": LEADER})
    tests = [event.state.conditions[0] for event in calls_of(linked, "make")]
    assert [literal.truth for literal in tests] == [True, True]
    for _ in range(20):
        otherwise = [linked.entry_states.deciding(replace(literal, truth=False)) for literal in tests]
        assert otherwise == [TOP & ~MAIN, MAIN]


@pytest.mark.parametrize("called", range(1, 7))
def test_query_that_failed_is_repeated(called: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A RecursionError ends one query, wherever it occurs; the next query has the full result."""
    linked = project({"a.py": LEADER})
    entity, times = Resolver.symbol, count()

    def deep(*arguments: Any) -> Any:
        if next(times) == called:
            raise RecursionError
        return entity(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Resolver, "symbol", deep)
        with pytest.raises(RecursionError):
            calls_of(linked, "make")
    again = [event.function.facts.name for event in calls_of(linked, "make")]
    assert again == [event.function.facts.name for event in calls_of(project({"a.py": LEADER}), "make")]
    assert again == ["first", "others"]
