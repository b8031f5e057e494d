"""Values that differ between ranks, sequences of steps, and what decides over collectives."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from fsrace_lint import catalog
from fsrace_lint.analysis.queries.project import Project
from fsrace_lint.files.source import Source, decode
from fsrace_lint.program.modules import link_module
from fsrace_lint.syntax.extract import extract
from fsrace_lint.syntax.model import FileFacts

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.analysis.synchronization.rank_divergence import Divergence


LATEST = """
    for name in ("b.pt", "a.pt"):
        if {}:
            last = name
            break
    else:
        last = None
    return last
"""


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
            "lambda: os.path.exists(path)",
            "os.environ.get('RANK')",
            "os.environ.get('WORLD_SIZE')",
            "limit is not None",
        ],
    )
    @pytest.mark.parametrize("form", ["if {}:", "found = {}\n    if found:"])
    def test_what_is_equal(self, project: Maker, form: str, value: str) -> None:
        text = f"def f(path, limit, step, settings):\n    {form.format(value)}\n        dist.barrier()\n"
        assert project.divergences(text) == []

    @pytest.mark.parametrize(
        ("head", "test", "kind"),
        [
            ("found, count = os.path.exists(path), 1", "found", "files"),
            ("folder, name = os.path.split(sorted(os.listdir(path))[0])", "name", None),
            ("with os.scandir(path) as entries:\n        names = list(entries)", "names", "files"),
            (
                "if os.path.exists(path):\n        name = path\n    else:\n        name = None",
                "name",
                "files",
            ),
            ("if os.path.exists(path):\n        name = path\n    else:\n        name = limit", "name", None),
            ("name = path if limit else str(time.time())", "name", "own"),
            (
                "try:\n        n = len(os.listdir(path))\n    except OSError:\n        n = limit",
                "n > 3",
                "files",
            ),
            ("import collections as name", "name", None),
            ("n = 0\n    while os.path.exists(f'{path}/version_{n}'):\n        n += 1", "n > 3", "files"),
            ("n = 0\n    while n < limit and limit:\n        n += 1", "n > 3", None),
            ("name = f'{path}/{time.time()}'", "name is None", None),
            ("name = os.path.join(path, str(os.getpid()))", "name is not None", None),
            ("name = os.path.exists(path) or None", "name is not None", "files"),
        ],
    )
    def test_what_a_name_was_bound_to(self, project: Maker, head: str, test: str, kind: str | None) -> None:
        text = f"def f(path, limit):\n    {head}\n    if {test}:\n        dist.barrier()\n"
        kinds = [found.difference.kind for found in project.divergences(text) if found.difference]
        assert kinds == ([] if kind is None else [kind])

    @pytest.mark.parametrize(
        ("body", "kind"),
        [
            ("return os.path.exists(path)", "files"),
            ("if os.path.exists(path):\n        return True\n    return False", "files"),
            ("if os.path.exists(path):\n        return path\n    return None", "files"),
            ("if os.path.exists(path):\n        raise ValueError(path)\n    return True", None),
            ("if path:\n        return True\n    return False", None),
            ("for name in os.listdir(path):\n        yield name", None),
            (LATEST.format("os.path.exists(name)"), "files"),
            (LATEST.format("name in path"), None),
        ],
    )
    def test_what_a_function_returns(self, project: Maker, body: str, kind: str | None) -> None:
        look = f"def look(path):\n    {body.strip()}\n"
        text = f"{look}\ndef f(path):\n    if look(path):\n        dist.barrier()\n"
        kinds = [found.difference.kind for found in project.divergences(text) if found.difference]
        assert kinds == ([] if kind is None else [kind])

    @pytest.mark.parametrize(("test", "found"), [("there", 1), ("size", 0)])
    def test_a_part_of_what_a_function_returns(self, project: Maker, test: str, found: int) -> None:
        text = f"""
            def look(path):
                return os.path.exists(path), 1

            def f(path):
                there, size = look(path)
                if {test}:
                    dist.barrier()
        """
        assert len(project.divergences(text)) == found

    def test_a_property_is_what_its_function_returns(self, project: Maker) -> None:
        text = """
            class Store:
                @property
                def is_there(self):
                    return {}

            def f():
                store = Store()
                if store.is_there:
                    dist.barrier()
        """
        (found,) = project.divergences(text.format("os.path.exists('data')"))
        assert found.difference is not None
        assert found.difference.kind == "files"
        assert project.divergences(text.format("True")) == []

    @pytest.mark.parametrize(
        ("test", "found"), [("rank == 0", 1), ("rank is not None", 0), ("rank != -1", 0)]
    )
    def test_whether_there_are_several_is_equal(self, project: Maker, test: str, found: int) -> None:
        text = f"""
            def f(path):
                rank = int(os.environ.get("RANK", -1))
                if {test}:
                    dist.barrier()
        """
        assert len(project.divergences(text)) == found

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
        assert project.divergences(text.format("dist.broadcast(found[0], 0)")) == []
        assert project.divergences(text.format("dist.all_reduce(found.view(-1))")) == []
        assert project.divergences(text.format("dist.all_reduce(tensor=found)")) == []
        assert len(project.divergences(text.format("dist.broadcast(other, 0)"))) == 1
        assert len(project.divergences(text.format("dist.broadcast(len(found), 0)"))) == 1


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
        assert found.sync_point.span.line == 7

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

    def test_a_test_after_the_same_test_says_nothing_new(self, project: Maker) -> None:
        text = """
            def f():
                if dist.get_rank() == 0:
                    if dist.get_rank() < 1:
                        dist.barrier()
        """
        (found,) = project.divergences(text)
        assert found.place.span.line == 6

    def test_what_was_asked_under_a_name(self, project: Maker) -> None:
        text = """
            def f(path):
                found = {}os.path.exists(path)
                if dist.get_rank() == 0:
                    if found:
                        raise FileExistsError(path)
                dist.barrier()
        """
        assert [found.raises for found in project.divergences(text.format(""))] == [True]
        assert project.divergences(text.format("not ")) == []

    def test_a_handler_that_does_again_what_was_tried(self, project: Maker) -> None:
        text = """
            def f(path):
                try:
                    os.remove(path)
                    {}
                except OSError:
                    dist.barrier()
        """
        assert len(project.divergences(text.format("pass"))) == 1
        assert project.divergences(text.format("dist.barrier()")) == []

    @pytest.mark.parametrize(
        ("base", "method", "found"),
        [
            ("object", "save", ["function"]),
            ("Callback", "on_train_end", ["function"]),
            ("Logger", "after_save_checkpoint", []),
        ],
    )
    def test_who_calls_a_method(self, project: Maker, base: str, method: str, found: list[str]) -> None:
        """Who overrides what a framework calls on one process may call it elsewhere."""
        text = f"""
            from lightning.pytorch.callbacks import Callback
            from lightning.pytorch.loggers import Logger
            from lightning.pytorch.utilities import rank_zero_only

            class Saver({base}):
                @rank_zero_only
                def {method}(self):
                    dist.barrier()
        """
        assert [one.how for one in project.divergences(text)] == found

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
        (module,) = linked.flows.table.modules
        function = next(f for f in module.functions if f.facts.name == "f")
        steps = linked.sequences.of(function)  # no rule asks for all of them
        assert [step.operation.op if step.operation else step.sync_point for step in steps] == [
            "probe",
            "mkdir",
            "barrier",
        ]
        assert [step.span.line for step in steps] == [10, 11, 11]
        assert [len(step.conditions) for step in steps] == [0, 1, 1]

    def test_no_more_than_so_many_are_followed(self, project: Maker) -> None:
        text = "def f0(path):\n    os.makedirs(path)\n    os.rmdir(path)\n"
        for number in range(1, 5):
            text += f"def f{number}(path):\n" + f"    f{number - 1}(path)\n" * 120
        linked = project(text)
        (module,) = linked.flows.table.modules
        longest = [len(linked.sequences.of(f)) for f in module.functions]  # no rule asks for all of them
        assert longest == [0, 2, 200, 200, 200, 200]

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


class TestOthersUnderOneGuard:
    """The first meeting that is missed names those in the same branch that are missed with it."""

    def test_all_in_the_branch_are_named(self, project: Maker) -> None:
        [found] = project.divergences(
            """
            def collect(batch, boxes):
                dist.barrier()
                if dist.get_rank() == 0:
                    dist.barrier()
                    for item in batch:
                        dist.all_gather_object(boxes, item)
                    meet()

            def meet():
                dist.barrier()
            """
        )
        assert found.sync_point.span.line == 8
        assert [later.span.line for later in found.later] == [10, 11]

    def test_what_stands_behind_the_branch_is_not(self, project: Maker) -> None:
        [found] = project.divergences(
            """
            def collect(ready):
                dist.barrier()
                if dist.get_rank() == 0:
                    dist.barrier()
                dist.barrier()
            """
        )
        assert found.later == ()

    def test_what_stands_behind_a_way_out_is_not(self, project: Maker) -> None:
        [found] = project.divergences(
            """
            def collect():
                dist.barrier()
                if dist.get_rank() == 0:
                    return
                dist.barrier()
                dist.barrier()
            """
        )
        assert (found.how, found.later) == ("exit", ())
