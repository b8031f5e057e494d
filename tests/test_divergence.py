"""Values that differ between ranks, sequences of steps, and what decides over collectives."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from fsrace_lint import catalog
from fsrace_lint.facts.extract import extract
from fsrace_lint.facts.model import FileFacts
from fsrace_lint.project.queries import Project, link_module
from fsrace_lint.source import Source, decode

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.project.order.divergence import Divergence


@pytest.fixture(name="project")
def _project(tmp_path: Path) -> Maker:
    return Maker(tmp_path)


class Maker:
    """Links a project of one file."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __call__(self, text: str) -> Project:
        head = "import os, socket, time\nimport torch\nimport torch.distributed as dist\n"
        source = decode((head + dedent(text)).encode(), self.root / "main.py", self.root)
        assert isinstance(source, Source)
        facts = extract(source)
        assert isinstance(facts, FileFacts)
        return Project([link_module("main.py", "main.py", facts)], catalog.load())

    def divergences(self, text: str) -> list[Divergence]:
        return list(self(text).divergent())


class TestDifferences:
    """A test decides where its value can differ between ranks."""

    @pytest.mark.parametrize(
        ("value", "kind"),
        [
            ("dist.get_rank() == 0", "rank"),
            ("dist.get_rank() % 4 == 0", "rank"),
            ("os.path.exists(path)", "files"),
            ("len(os.listdir(path)) > 0", "files"),
            ("bool([name for name in os.listdir(path)])", "files"),
            ("time.time() > limit", "own"),
            ("os.getpid() % 2", "own"),
            ("socket.gethostname().endswith('-0')", "own"),
        ],
    )
    def test_what_differs(self, project: Maker, value: str, kind: str) -> None:
        text = f"""
            def f(path, limit):
                found = {value}
                if found:
                    dist.barrier()
        """
        (found,) = project.divergences(text)
        assert found.difference is not None
        assert found.difference.kind == kind
        assert found.is_by_files == (kind != "rank")

    @pytest.mark.parametrize(
        "value",
        [
            "limit",
            "dist.is_initialized()",
            "dist.get_world_size() > 1",
            "os.environ.get('DEBUG')",
            "settings.wait",
            "step % 10 == 0",
            "torch.rand(1) > limit",
        ],
    )
    def test_what_is_equal(self, project: Maker, value: str) -> None:
        text = f"""
            def f(path, limit, step, settings):
                found = {value}
                if found:
                    dist.barrier()
        """
        assert project.divergences(text) == []

    def test_what_was_given_to_a_collective_is_equal(self, project: Maker) -> None:
        text = """
            def f(path):
                found = torch.tensor([os.path.exists(path)])
                {}
                if found.item():
                    dist.barrier()
        """
        assert [d.how for d in project.divergences(text.format("pass"))] == ["branch"]
        assert project.divergences(text.format("dist.broadcast(found, 0)")) == []


class TestDivergences:
    """How it comes about that some processes miss a meeting."""

    @pytest.mark.parametrize(
        ("how", "body"),
        [
            ("branch", "if dist.get_rank() == 0:\n    dist.barrier()"),
            ("exit", "if dist.get_rank() == 0:\n    return\ndist.barrier()"),
            ("exit", "if dist.get_rank() == 0:\n    if path:\n        return\ndist.barrier()"),
            ("loop", "for name in os.listdir(path):\n    dist.barrier()"),
            ("path", "torch.distributed.checkpoint.save({}, checkpoint_id=sorted(os.listdir(path))[-1])"),
        ],
    )
    def test_how(self, project: Maker, how: str, body: str) -> None:
        lines = "\n".join(f"    {line}" for line in body.split("\n"))
        assert [found.how for found in project.divergences(f"def f(path):\n{lines}\n")] == [how]

    def test_the_first_of_several_speaks_for_all(self, project: Maker) -> None:
        text = """
            def f():
                if dist.get_rank() == 0:
                    dist.barrier()
                    dist.all_reduce(1)
                    dist.barrier()
        """
        (found,) = project.divergences(text)
        assert found.meeting.span.line == 7

    def test_those_who_die_may_take_the_others_along(self, project: Maker) -> None:
        text = """
            def f(path):
                if dist.get_rank() == 0:
                    if {}os.path.exists(path):
                        raise FileExistsError(path)
                dist.barrier()
        """
        (found,) = project.divergences(text.format(""))
        assert found.raises
        assert project.divergences(text.format("not ")) == []

    def test_a_setting_of_the_function_called_decides_too(self, project: Maker) -> None:
        text = """
            def wait(settings):
                if settings.wait:
                    dist.barrier()

            def f(settings):
                if dist.get_rank() == 0:
                    wait(settings)
        """
        assert [found.certain for found in project.divergences(text)] == [False]

    def test_a_constant_rules_it_out(self, project: Maker) -> None:
        text = """
            def save(wait=False):
                if wait:
                    dist.barrier()

            def f():
                if dist.get_rank() == 0:
                    save({})
        """
        assert len(project.divergences(text.format("wait=True"))) == 1
        assert project.divergences(text.format("")) == []
        assert project.divergences(text.format("wait=False")) == []

    def test_a_file_where_all_make_a_directory_is_a_mistake(self, project: Maker) -> None:
        text = """
            def f(path):
                if os.path.{}(path):
                    return
                os.makedirs(path, exist_ok=True)
                dist.barrier()
        """
        assert [found.certain for found in project.divergences(text.format("isdir"))] == [True]
        assert [found.certain for found in project.divergences(text.format("isfile"))] == [False]

    @pytest.mark.parametrize("group", ["None", "dist.group.WORLD"])
    def test_the_world_is_no_group(self, project: Maker, group: str) -> None:
        text = "def f(tensor):\n    if dist.get_rank() == 0:\n        dist.all_reduce(tensor, group={})\n"
        assert len(project.divergences(text.format(group))) == 1
        assert project.divergences(text.format("tensor.process_group")) == []

    def test_a_test_that_nobody_can_fail_any_more(self, project: Maker) -> None:
        text = """
            def f():
                if dist.get_rank() != 0:
                    dist.barrier()
                    return
                first = dist.get_rank() == 0
                if first:
                    dist.barrier()
        """
        assert project.divergences(text) == []

    def test_a_file_may_come_in_between_two_tests(self, project: Maker) -> None:
        text = """
            def f(path):
                found = os.path.exists(path)
                if {0}:
                    dist.barrier()
                if not {0}:
                    dist.barrier()
        """
        assert project.divergences(text.format("found")) == []
        assert len(project.divergences(text.format("os.path.exists(path)"))) == 2


class TestSequences:
    """What happens in a function, in order."""

    def test_acts_and_meetings_of_what_is_called(self, project: Maker) -> None:
        text = """
            def inner(path):
                os.makedirs(path)
                dist.barrier()

            def f(path):
                if os.path.exists(path):
                    inner(path + "/a")
        """
        linked = project(text)
        (module,) = linked.linker.table.modules
        function = next(f for f in module.functions if f.facts.name == "f")
        steps = linked._sequences.of(function)  # no rule asks for all of them
        assert [step.act.op if step.act else step.meeting for step in steps] == ["probe", "mkdir", "barrier"]
        assert [step.span.line for step in steps] == [10, 11, 11]
        assert [len(step.literals) for step in steps] == [0, 1, 1]

    def test_a_circle_of_calls_ends(self, project: Maker) -> None:
        text = """
            def one(path):
                two(path)
                dist.barrier()

            def two(path):
                if dist.get_rank() == 0:
                    one(path)
        """
        assert {found.how for found in project.divergences(text)} == {"branch"}
