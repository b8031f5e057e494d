"""Values that differ between ranks, operation sequences, and divergent collectives."""

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

    from fsrace_lint.analysis.synchronization.model import Divergence


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
    """Links a single-file project."""

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


class TestRankDependentValues:
    """A collective is divergent if its condition can differ between ranks."""

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
    def test_values_that_differ_between_ranks(self, project: Maker, value: str, kind: str) -> None:
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
    def test_values_that_are_equal_on_all_ranks(self, project: Maker, form: str, value: str) -> None:
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
    def test_value_bound_to_a_name(self, project: Maker, head: str, test: str, kind: str | None) -> None:
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
    def test_value_returned_by_a_function(self, project: Maker, body: str, kind: str | None) -> None:
        look = f"def look(path):\n    {body.strip()}\n"
        text = f"{look}\ndef f(path):\n    if look(path):\n        dist.barrier()\n"
        kinds = [found.difference.kind for found in project.divergences(text) if found.difference]
        assert kinds == ([] if kind is None else [kind])

    @pytest.mark.parametrize(("test", "found"), [("there", 1), ("size", 0)])
    def test_element_of_a_returned_tuple(self, project: Maker, test: str, found: int) -> None:
        text = f"""
            def look(path):
                return os.path.exists(path), 1

            def f(path):
                there, size = look(path)
                if {test}:
                    dist.barrier()
        """
        assert len(project.divergences(text)) == found

    def test_value_of_a_property(self, project: Maker) -> None:
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
    def test_check_for_a_distributed_run_is_equal_on_all_ranks(
        self, project: Maker, test: str, found: int
    ) -> None:
        text = f"""
            def f(path):
                rank = int(os.environ.get("RANK", -1))
                if {test}:
                    dist.barrier()
        """
        assert len(project.divergences(text)) == found

    def test_result_of_a_collective_is_equal_on_all_ranks(self, project: Maker) -> None:
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
    """How some ranks come to skip a collective."""

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
    def test_kind_of_divergence(self, project: Maker, how: str, body: str) -> None:
        lines = "\n".join(f"    {line}" for line in body.split("\n"))
        assert [found.how for found in project.divergences(f"def f(path):\n{lines}\n")] == [how]

    def test_only_the_first_collective_of_a_branch_is_reported(self, project: Maker) -> None:
        text = """
            def f():
                if dist.get_rank() == 0:
                    dist.barrier()
                    dist.all_reduce(1)
                    dist.barrier()
        """
        (found,) = project.divergences(text)
        assert found.sync_point.span.line == 7

    def test_rank_that_raises_before_a_collective(self, project: Maker) -> None:
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

    def test_setting_in_the_callee_makes_it_uncertain(self, project: Maker) -> None:
        text = """
            def wait(settings):
                if settings.wait:
                    dist.barrier()

            def f(settings):
                if dist.get_rank() == 0:
                    wait(settings)
        """
        assert [found.certain for found in project.divergences(text)] == [False]

    def test_constant_argument_rules_out_divergence(self, project: Maker) -> None:
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

    def test_isfile_check_on_a_directory_is_uncertain(self, project: Maker) -> None:
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
    def test_world_group_counts_as_all_ranks(self, project: Maker, group: str) -> None:
        text = "def f(tensor):\n    if dist.get_rank() == 0:\n        dist.all_reduce(tensor, group={})\n"
        assert len(project.divergences(text.format(group))) == 1
        assert project.divergences(text.format("tensor.process_group")) == []

    def test_condition_that_is_always_true(self, project: Maker) -> None:
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

    def test_repeated_condition_is_not_reported_again(self, project: Maker) -> None:
        text = """
            def f():
                if dist.get_rank() == 0:
                    if dist.get_rank() < 1:
                        dist.barrier()
        """
        (found,) = project.divergences(text)
        assert found.place.span.line == 6

    def test_named_condition_that_raises(self, project: Maker) -> None:
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

    def test_handler_that_repeats_the_collective(self, project: Maker) -> None:
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
    def test_framework_callbacks(self, project: Maker, base: str, method: str, found: list[str]) -> None:
        """A method that a framework calls on one process may also be called from elsewhere."""
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

    def test_file_can_appear_between_two_checks(self, project: Maker) -> None:
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
    """The operations and collectives of a function, in order."""

    def test_sequence_includes_callees(self, project: Maker) -> None:
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

    def test_sequence_length_is_limited(self, project: Maker) -> None:
        text = "def f0(path):\n    os.makedirs(path)\n    os.rmdir(path)\n"
        for number in range(1, 5):
            text += f"def f{number}(path):\n" + f"    f{number - 1}(path)\n" * 120
        linked = project(text)
        (module,) = linked.flows.table.modules
        longest = [len(linked.sequences.of(f)) for f in module.functions]  # no rule asks for all of them
        assert longest == [0, 2, 200, 200, 200, 200]

    def test_recursive_calls_terminate(self, project: Maker) -> None:
        text = """
            def one(path):
                two(path)
                dist.barrier()

            def two(path):
                if dist.get_rank() == 0:
                    one(path)
        """
        assert {found.how for found in project.divergences(text)} == {"branch"}


class TestLaterCollectives:
    """The first skipped collective lists the others in the same branch."""

    def test_all_collectives_in_the_branch_are_listed(self, project: Maker) -> None:
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

    def test_collectives_after_the_branch_are_not_listed(self, project: Maker) -> None:
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

    def test_collectives_after_an_early_return_are_not_listed(self, project: Maker) -> None:
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
