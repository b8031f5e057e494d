"""What shows that multiple processes run an access, how certain it is, and how severe the finding is.

Shows: `analysis/accesses/confidence.py`, `analysis/callgraph/concurrency_evidence.py`,
`analysis/callgraph/concurrency_markers.py`, `analysis/callgraph/chain_steps.py`, `program/programs.py`
"""

from __future__ import annotations

from textwrap import dedent, indent
from typing import TYPE_CHECKING, NamedTuple

import pytest
from support.mdtest import run

if TYPE_CHECKING:
    from pathlib import Path


class Expected(NamedTuple):
    """The parts of a finding that depend on who runs it."""

    severity: str
    confidence: str
    evidence: str
    scenario: str
    strict: bool = False


HIGH = Expected("error", "high", "evident", "ranks")
UNSURE = HIGH._replace(severity="warning", confidence="medium")
WORKERS = UNSURE._replace(scenario="workers")
NOTE = HIGH._replace(severity="note", confidence="low")
RANK_CODE = Expected("warning", "medium", "likely", "ranks")
LIBRARY = Expected("warning", "medium", "plausible", "calls")
CALLER = Expected("note", "low", "plausible", "calls")
COMMAND = Expected("note", "low", "plausible", "commands")
ONE_PROCESS = Expected("note", "low", "none", "", strict=True)


def judged(root: Path, texts: dict[str, str]) -> Expected:
    """Write a project, and return the only finding in it, also if only the strict profile reports it."""
    texts = {"pyproject.toml": '[tool.fsrace-lint]\nprofile = "strict"\n'} | texts
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(dedent(text), "utf-8")
    _, checked = run(root)
    (finding,) = (f for f in checked.outcome.findings if f.code in {"FSR101", "FSR102", "FSR103", "FSR302"})
    return Expected(
        finding.severity.value, finding.confidence, finding.evidence, finding.scenario, finding.strict
    )


MAKE = """\
import os


def make(folder):
    if not os.path.exists(folder):
        os.makedirs(folder)
"""
SCRIPT = f"""{MAKE}

if __name__ == "__main__":
    make("runs")
"""
MAIN = """
import sys

from lib.folders import make

if __name__ == "__main__":
    make(sys.argv[1])
"""
LIB = {"lib/__init__.py": "", "lib/folders.py": MAKE}


SINGLE = """\
[tool.fsrace-lint]
profile = "strict"

[[tool.fsrace-lint.programs]]
file = "train.py"
processes = 1
"""
JOINING = f"""{MAKE}

import torch.distributed as dist
import torch.multiprocessing as mp

dist.init_process_group()
"""
SPAWNING = f"""{JOINING}

def work(rank):
    make("runs")


mp.spawn(work, nprocs=4)
"""
MAIN_JOINING = f"import torch.distributed as dist\n{MAIN}".replace(
    "    make", "    dist.init_process_group()\n    make"
)


class TestLaunches:
    """Launch commands in the repository."""

    @pytest.mark.parametrize(
        ("path", "command", "expected"),
        [
            ("run.sh", "torchrun --nproc_per_node 8 train.py", HIGH),
            ("scripts/run.sh", "cd ..\ntorchrun train.py", HIGH),
            ("README.md", "```sh\nmpirun -n 4 python ./train.py\n```", HIGH),
            ("run.sh", "torchrun --nproc_per_node 1 train.py", ONE_PROCESS),
            ("run.sh", "python train.py", ONE_PROCESS),
            ("run.sh", "torchrun other.py", ONE_PROCESS),
        ],
    )
    def test_script(self, tmp_path: Path, path: str, command: str, expected: Expected) -> None:
        assert judged(tmp_path, {"train.py": SCRIPT, path: f"{command}\n"}) == expected

    def test_workers(self, tmp_path: Path) -> None:
        texts = {"app.py": f"{MAKE}\n\nmake('runs')\n", "Procfile.sh": "gunicorn -w 4 app:application\n"}
        assert judged(tmp_path, texts) == WORKERS

    def test_strongest_command_counts(self, tmp_path: Path) -> None:
        texts = {"train.py": SCRIPT, "a.sh": "python train.py\n", "b.sh": "torchrun train.py\n"}
        assert judged(tmp_path, texts) == HIGH

    def test_settings_replace_the_commands(self, tmp_path: Path) -> None:
        texts = {"train.py": SCRIPT, "a.sh": "torchrun train.py\n", "pyproject.toml": SINGLE}
        assert judged(tmp_path, texts) == ONE_PROCESS

    @pytest.mark.parametrize(
        ("files", "expected"),
        [
            ({"train.py": f"{JOINING}\nmake('runs')\n"}, ONE_PROCESS),
            ({"train.py": SPAWNING}, HIGH),
            ({**LIB, "train.py": MAIN_JOINING}, ONE_PROCESS),
            ({**LIB, "train.py": MAIN_JOINING, "other.py": MAIN_JOINING}, HIGH),
        ],
    )
    def test_settings_replace_code_that_joins_a_job(
        self, tmp_path: Path, files: dict[str, str], expected: Expected
    ) -> None:
        assert judged(tmp_path, files | {"pyproject.toml": SINGLE}) == expected

    def test_module_of_a_package(self, tmp_path: Path) -> None:
        texts = {**LIB, "lib/__main__.py": MAIN, "run.sh": "torchrun -m lib out\n"}
        assert judged(tmp_path, texts) == HIGH

    def test_module_that_is_not_in_the_project(self, tmp_path: Path) -> None:
        texts = {"train.py": SCRIPT, "run.sh": "torchrun -m elsewhere.train\n"}
        assert judged(tmp_path, texts) == ONE_PROCESS

    def test_code_that_only_some_programs_reach(self, tmp_path: Path) -> None:
        texts = {**LIB, "train.py": MAIN, "convert.py": MAIN, "run.sh": "torchrun train.py out\n"}
        assert judged(tmp_path, texts) == HIGH


class TestInitialization:
    """Code that joins a distributed job."""

    @pytest.mark.parametrize(
        ("setup", "expected"),
        [
            ("dist.init_process_group()", HIGH),
            ("if not dist.is_initialized():\n    dist.init_process_group()", HIGH),
            ("start()", HIGH),
            ("if len(sys.argv) > 1:\n    dist.init_process_group()", RANK_CODE),
            ("if int(os.environ['WORLD_SIZE']) > 1:\n    dist.init_process_group()", RANK_CODE),
            ("start_if(len(sys.argv) > 1)", RANK_CODE),
            ("train()", RANK_CODE),
            ("dist.init_process_group(world_size=1, rank=0)", ONE_PROCESS),
        ],
    )
    def test_setup(self, tmp_path: Path, setup: str, expected: Expected) -> None:
        text = f"""{MAKE}

import sys
import torch.distributed as dist


def start():
    dist.init_process_group()


def train():
    dist.init_process_group()
    print(1)


def start_if(wanted):
    if wanted:
        dist.init_process_group()


def main():
    SETUP
    make("runs")


if __name__ == "__main__":
    main()
"""
        assert (
            judged(tmp_path, {"train.py": text.replace("SETUP", setup.replace("\n", "\n    "))}) == expected
        )

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("table[unknown()]", UNSURE),
            ("unknown()[0]", UNSURE),
            ("unknown().name", UNSURE),
            ("unknown().parts[0].lower()", UNSURE),
            ("next(unknown()).name", UNSURE),
            ("found.name", UNSURE),
            ("parsed.name", UNSURE),
            ("args.name", HIGH),
            ("load_config()['name']", HIGH),
            ("unknown().config.name", HIGH),
            ("table['name']", HIGH),
            ("sys.argv[1]", HIGH),
        ],
    )
    def test_unknown_path_limits_the_confidence(self, tmp_path: Path, name: str, expected: Expected) -> None:
        text = f"""\
            import argparse
            import os
            import sys

            import torch.distributed as dist
            from elsewhere import load_config, table, unknown

            dist.init_process_group()
            args = argparse.ArgumentParser().parse_args()
            found = unknown()
            parsed, rest = unknown()
            folder = os.path.join("out", {name})
            if not os.path.exists(folder):
                os.makedirs(folder)
            """
        assert judged(tmp_path, {"train.py": text}) == expected

    def test_another_method_of_the_class(self, tmp_path: Path) -> None:
        text = """\
            import os

            import torch.distributed as dist


            class Model:
                def make(self):
                    if not os.path.exists("runs"):
                        os.makedirs("runs")

                def wait(self):
                    dist.barrier()

                def setup(self):
                    dist.init_process_group()

                def end(self):
                    dist.barrier()
            """
        assert judged(tmp_path, {"lib/__init__.py": "", "lib/model.py": text}) == HIGH

    def test_started_processes(self, tmp_path: Path) -> None:
        text = f"""{MAKE}

import torch.multiprocessing as mp


def work(rank, folder):
    make(folder)


if __name__ == "__main__":
    mp.spawn(work, args=("runs",), nprocs=4)
"""
        assert judged(tmp_path, {"train.py": text}) == HIGH

    def test_pool_of_workers(self, tmp_path: Path) -> None:
        text = f"""{MAKE}

from multiprocessing import Pool


def work(item):
    make("runs")


if __name__ == "__main__":
    with Pool(4) as pool:
        pool.map(work, range(4))
"""
        assert judged(tmp_path, {"train.py": text}) == WORKERS

    @pytest.mark.parametrize(
        ("head", "expected"),
        [
            ("from celery import shared_task\n\n\n@shared_task", WORKERS),
            ("import horovod\n\nhorovod.run(lambda: make('runs'), np=4)\n\n", HIGH),
        ],
    )
    def test_roles(self, tmp_path: Path, head: str, expected: Expected) -> None:
        text = f"{MAKE}\n\n{head}\ndef work():\n    make('runs')\n"
        assert judged(tmp_path, {"lib/__init__.py": "", "lib/jobs.py": text}) == expected

    @pytest.mark.parametrize(
        ("test", "expected"),
        [
            ("assert 0 <= local_rank < 8", HIGH),
            ("if local_rank >= 8:\n        raise ValueError(local_rank)", HIGH),
            ("if local_rank >= 8:\n        raise SystemExit(1)", HIGH),
            ("if local_rank >= 8:\n        return", RANK_CODE),
        ],
    )
    def test_setup_after_a_test_that_ends_the_program(
        self, tmp_path: Path, test: str, expected: Expected
    ) -> None:
        """Without the job, the program does not get far, so the setup is not optional."""
        text = f"""{MAKE}

import torch.distributed as dist


def init_distributed(local_rank):
    {test}
    dist.init_process_group("nccl")


def main(local_rank):
    init_distributed(local_rank)
    make("runs")
"""
        assert judged(tmp_path, {"lib/__init__.py": "", "lib/train.py": text}) == expected

    def test_parent_of_started_processes(self, tmp_path: Path) -> None:
        text = f"""{MAKE}

import torch.multiprocessing as mp


def work(rank):
    pass


if __name__ == "__main__":
    make("runs")
    mp.spawn(work, nprocs=4)
"""
        assert judged(tmp_path, {"train.py": text}) == ONE_PROCESS


RANK_AWARE = {
    "lib/__init__.py": "",
    "lib/folders.py": """\
        import os

        import torch.distributed as dist


        def make(folder):
            if not os.path.exists(folder):
                os.makedirs(folder)
            if dist.get_rank() == 0:
                print(folder)
        """,
}


class TestRankCode:
    """Code that distinguishes ranks, which also works in one process."""

    def test_library(self, tmp_path: Path) -> None:
        assert judged(tmp_path, RANK_AWARE) == RANK_CODE

    @pytest.mark.parametrize(
        "texts", [{}, {"README.md": "```sh\npython convert.py out\n```\n"}], ids=["by hand", "launched"]
    )
    def test_converter_calls_rank_aware_helper(self, tmp_path: Path, texts: dict[str, str]) -> None:
        assert judged(tmp_path, {**RANK_AWARE, "convert.py": MAIN, **texts}) == ONE_PROCESS

    def test_script_that_checks_ranks_itself(self, tmp_path: Path) -> None:
        text = f"{MAIN}    import torch.distributed as dist\n    print(dist.get_rank() == 0)\n"
        assert judged(tmp_path, {**RANK_AWARE, "train.py": text}) == RANK_CODE

    def test_another_program_is_open(self, tmp_path: Path) -> None:
        texts = {
            **RANK_AWARE,
            "convert.py": MAIN,
            "lib/main.py": "from lib.folders import make\n\n\ndef run(folder):\n    make(folder)\n",
        }
        assert judged(tmp_path, texts) == RANK_CODE

    def test_every_caller_runs_one_process(self, tmp_path: Path) -> None:
        text = """\
            import torch.distributed as dist
            from lib.folders import make


            def main():
                dist.init_process_group(world_size=1, rank=0)
                make("out")
            """
        assert judged(tmp_path, {**RANK_AWARE, "lib/main.py": text}) == ONE_PROCESS


class TestRehearsals:
    """Settings with which a program only shows what it would do."""

    @pytest.mark.parametrize(
        ("test", "expected"),
        [
            ("args.dry_run", NOTE),
            ("config['dry-run']", NOTE),
            ("not args.wet and args.dryrun", NOTE),
            ("not args.dry_run", HIGH),
            ("args.dry_run or args.verbose", HIGH),
            ("args.drying", HIGH),
        ],
    )
    def test_setting(self, tmp_path: Path, test: str, expected: Expected) -> None:
        text = f"""{MAKE}

import torch.distributed as dist


def main(args, config):
    dist.init_process_group()
    if {test}:
        make("runs")
"""
        assert judged(tmp_path, {"train.py": text}) == expected


class TestDefaultSettings:
    """Settings without which one process comes to a path, or each process has its own."""

    @pytest.mark.parametrize(
        ("parameters", "test", "expected"),
        [
            ("main_only=True", "not main_only or dist.get_rank() == 0", NOTE),
            ("every=False", "every or dist.get_rank() == 0", NOTE),
            ("every=None", "every is not None or dist.get_rank() == 0", NOTE),
            ("args", "args.every or dist.get_rank() == 0", NOTE),
            ("mode='one'", "mode == 'each' or dist.get_rank() == 0", NOTE),
            ("main_only=False", "not main_only or dist.get_rank() == 0", HIGH),
            ("every", "every or dist.get_rank() == 0", HIGH),
            ("every=False", "every", HIGH),
        ],
    )
    def test_guard(self, tmp_path: Path, parameters: str, test: str, expected: Expected) -> None:
        text = f"""{MAKE}

import torch.distributed as dist


def main({parameters}):
    dist.init_process_group()
    if {test}:
        make("runs")
"""
        assert judged(tmp_path, {"train.py": text}) == expected

    def test_guard_that_is_passed_on(self, tmp_path: Path) -> None:
        text = f"""{MAKE}

import torch.distributed as dist


def prepare(mine):
    if mine:
        make("runs")


def main(main_only=True):
    dist.init_process_group()
    mine = not main_only or dist.get_rank() == 0
    prepare(mine)
"""
        assert judged(tmp_path, {"train.py": text}) == NOTE

    @pytest.mark.parametrize(
        ("parameters", "value", "expected"),
        [
            ("folder=None", "folder or tempfile.mkdtemp()", NOTE),
            ("folder=None", "tempfile.mkdtemp() if folder is None else folder", NOTE),
            ("args", "args.folder or tempfile.mkdtemp()", NOTE),
            ("own=True", "f'runs/{dist.get_rank()}' if own else 'runs'", NOTE),
            ("own=False", "f'runs/{dist.get_rank()}' if own else 'runs'", UNSURE),
            ("folder='runs'", "folder or tempfile.mkdtemp()", UNSURE),
            ("folder", "folder or tempfile.mkdtemp()", UNSURE),
        ],
    )
    def test_path(self, tmp_path: Path, parameters: str, value: str, expected: Expected) -> None:
        text = f"""
import os
import tempfile

import torch.distributed as dist


def main({parameters}):
    dist.init_process_group()
    chosen = {value}
    if not os.path.exists(chosen):
        os.makedirs(chosen)
"""
        assert judged(tmp_path, {"train.py": text}) == expected


BASE = """\
class Base:
    def __init__(self, folder):
        self.folder = folder
        self.prepare()

    def prepare(self):
        raise NotImplementedError

    def close(self):
        pass
"""
HEIRS = f"""{MAKE}

from base import Base


class Made(Base):
    def prepare(self):
        make("runs")


class Grand(Made):
    pass


class Other(Base):
    def prepare(self):
        print(1)

    def close(self):
        print(2)
"""


class TestClasses:
    """Chains on which the class of an object decides which method runs."""

    @pytest.mark.parametrize(
        ("run", "expected"),
        [
            ("Made('a')", HIGH),
            ("Grand('a')", HIGH),
            ("heir.prepare()", HIGH),
            ("Made('a').prepare()", HIGH),
            ("create(Made, 'a')", HIGH),
            ("create(Grand, 'a')", HIGH),
            ("create(Base, 'a')\n    Made('a')", HIGH),
            ("create(Base, 'a')", UNSURE),
            ("item.prepare()", UNSURE),
            ("made = load()\n    made.prepare()", UNSURE),
        ],
    )
    def test_class(self, tmp_path: Path, run: str, expected: Expected) -> None:
        text = f"""\
import torch.distributed as dist
from base import Base
from elsewhere import create, load
from heirs import Grand, Made


def main(item: Base, heir: Made):
    dist.init_process_group()
    {run}
"""
        assert judged(tmp_path, {"base.py": BASE, "heirs.py": HEIRS, "train.py": text}) == expected


class TestProcesses:
    """Chains with tests of the process that are not understood."""

    @pytest.mark.parametrize(
        ("guard", "expected"),
        [
            ("if env().current_endpoint in chosen():", NOTE),
            ("if not env().current_endpoint not in chosen():", NOTE),
            ("if chosen() == worker_index:", NOTE),
            ("if config['node_id'] == chosen() and wanted:", NOTE),
            ("if env().current_endpoint not in chosen():", HIGH),
            ("if worker_index != chosen():", HIGH),
            ("if env().address in chosen():", HIGH),
            ("if chosen() in env().endpoints:", HIGH),
            ("if num_workers == chosen():", HIGH),
            ("if worker_index == chosen() or wanted:", HIGH),
            ("if node.kind == chosen():", HIGH),
            ("try:", HIGH),
        ],
    )
    def test_guard(self, tmp_path: Path, guard: str, expected: Expected) -> None:
        rest = "    except OSError:\n        raise\n" if guard == "try:" else ""
        text = f"""{MAKE}

import torch.distributed as dist
from elsewhere import chosen, config, env, node, num_workers, wanted, worker_index


def main():
    dist.init_process_group()
    {guard}
        make("runs")
{rest}"""
        assert judged(tmp_path, {"train.py": text}) == expected

    def test_other_branch_is_for_other_jobs(self, tmp_path: Path) -> None:
        text = f"""{MAKE}

import torch.distributed as dist
from elsewhere import chosen, env


def main(together):
    dist.init_process_group()
    if not together:
        make("runs")
    elif env().current_endpoint in chosen():
        make("runs")
"""
        assert judged(tmp_path, {"train.py": text}) == NOTE

    def test_guard_at_the_access(self, tmp_path: Path) -> None:
        text = """\
            import os

            import torch.distributed as dist
            from elsewhere import chosen, endpoint


            def main():
                dist.init_process_group()
                if endpoint == chosen():
                    if not os.path.exists("runs"):
                        os.makedirs("runs")
            """
        assert judged(tmp_path, {"train.py": text}) == NOTE


class TestLibraries:
    """Functions that nothing limits to one process."""

    @pytest.mark.parametrize(("name", "expected"), [("make", CALLER), ("make_cache", LIBRARY)])
    def test_function(self, tmp_path: Path, name: str, expected: Expected) -> None:
        texts = {path: text.replace("make(", f"{name}(") for path, text in LIB.items()}
        assert judged(tmp_path, texts) == expected

    def test_demonstration_does_not_make_it_a_script(self, tmp_path: Path) -> None:
        assert judged(tmp_path, {**LIB, "examples/demo.py": MAIN}) == CALLER

    def test_demonstration_itself(self, tmp_path: Path) -> None:
        assert judged(tmp_path, {"examples/demo.py": SCRIPT}) == ONE_PROCESS

    def test_functions_that_call_each_other(self, tmp_path: Path) -> None:
        text = """\
            import os


            def make(folder, depth):
                if not os.path.exists(folder):
                    os.makedirs(folder)
                again(folder, depth - 1)


            def again(folder, depth):
                if depth:
                    make(folder, depth)
            """
        assert judged(tmp_path, {"lib/__init__.py": "", "lib/folders.py": text}) == CALLER

    def test_import(self, tmp_path: Path) -> None:
        text = f"{MAKE}\n\nmake('/opt/data')\n"
        expected = LIBRARY._replace(scenario="imports")
        assert judged(tmp_path, {"lib/__init__.py": "", "lib/folders.py": text}) == expected

    @pytest.mark.parametrize(
        ("name", "expected"),
        [("clear", LIBRARY._replace(severity="note", confidence="low")), ("clear_cache", LIBRARY)],
    )
    def test_delete(self, tmp_path: Path, name: str, expected: Expected) -> None:
        text = f"""\
            import os


            def {name}(file):
                if os.path.exists(file):
                    os.remove(file)
            """
        assert judged(tmp_path, {"lib/__init__.py": "", "lib/files.py": text}) == expected

    @pytest.mark.parametrize(
        ("name", "around", "expected"),
        [
            ("__del__", "CLEAR", "note"),
            ("close", "CLEAR", "warning"),
            ("fill", "try: load()\nexcept OSError:\n    CLEAR\n    raise", "note"),
            ("fill", "try: load()\nexcept OSError:\n    CLEAR", "warning"),
            ("fill", "try: load()\nfinally:\n    CLEAR", "warning"),
            ("fill", "try: load()\nexcept OSError:\n    CLEAR\n    if self.strict: raise", "warning"),
        ],
    )
    def test_delete_whose_failure_does_no_harm(
        self, tmp_path: Path, name: str, around: str, expected: str
    ) -> None:
        body = around.replace("CLEAR", "if os.path.exists(self.cache): os.remove(self.cache)")
        head = f"import os\nfrom elsewhere import load\n\n\nclass Store:\n    def {name}(self):\n"
        text = head + indent(body, " " * 8) + "\n"
        assert judged(tmp_path, {"lib/__init__.py": "", "lib/files.py": text}).severity == expected

    def test_delete_in_a_callee(self, tmp_path: Path) -> None:
        text = """\
            import os


            def clear(file):
                if os.path.exists(file):
                    os.remove(file)


            def refresh_cache():
                clear("index.bin")
            """
        assert judged(tmp_path, {"lib/__init__.py": "", "lib/files.py": text}) == LIBRARY


class TestCommands:
    """The main code of an installed package, which users start one at a time."""

    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("sys.argv[1]", COMMAND),
            ("'runs'", COMMAND),
            ("'/opt/ml/code'", COMMAND._replace(severity="warning", confidence="medium")),
            ("'~/.tool'", COMMAND._replace(severity="warning", confidence="medium")),
            ("home() + '/tool'", COMMAND._replace(severity="warning", confidence="medium")),
            ("home(sys.argv) + '/tool'", COMMAND),
            ("f'{sys.argv}/tool'", COMMAND),
            ("f'{sys.argv[1]}/cache'", COMMAND),
        ],
    )
    def test_path(self, tmp_path: Path, path: str, expected: Expected) -> None:
        text = f"""\
            import os
            import sys

            from lib.places import home

            if __name__ == "__main__":
                folder = {path}
                if not os.path.exists(folder):
                    os.makedirs(folder)
            """
        texts = {"lib/__init__.py": "", "lib/cli.py": text, "lib/places.py": "def home(*args): ...\n"}
        assert judged(tmp_path, texts) == expected

    @pytest.mark.parametrize(
        "head",
        [
            "def main():",
            "def cli():",
            "@app.command()\ndef run():",
            "@click.command\ndef run():",
        ],
    )
    def test_function_of_a_command(self, tmp_path: Path, head: str) -> None:
        body = "    if not os.path.exists(sys.argv[1]):\n        os.makedirs(sys.argv[1])\n"
        text = f"import os\nimport sys\n\nimport click\n\n\n{head}\n{body}"
        assert judged(tmp_path, {"lib/__init__.py": "", "lib/cli.py": text}) == COMMAND

    def test_installed_command(self, tmp_path: Path) -> None:
        body = "    if not os.path.exists(sys.argv[1]):\n        os.makedirs(sys.argv[1])\n"
        text = f"import os\nimport sys\n\n\ndef start():\n{body}"
        settings = '[project.scripts]\ntool = "lib.cli:start"\n\n[tool.fsrace-lint]\nprofile = "strict"\n'
        texts = {"src/lib/__init__.py": "", "src/lib/cli.py": text, "pyproject.toml": settings}
        assert judged(tmp_path, texts) == COMMAND

    @pytest.mark.parametrize(
        ("composed", "expected"),
        [
            ("", COMMAND),
            ("tool = 'lib-fetch'", COMMAND),
            ("command = ['lib-fetch']", COMMAND),
            ("command = [help, 'lib-fetch']", COMMAND),
            ("def job(folder):\n    return ['lib-fetch', folder]", LIBRARY),
            ("run(image, ('lib-fetch', '--folder', '/data'))", LIBRARY),
        ],
    )
    @pytest.mark.parametrize("where", ["lib/jobs.py", "tests/test_cli.py"])
    def test_download(self, tmp_path: Path, composed: str, expected: Expected, where: str) -> None:
        """A command downloads for one user, unless the package composes the command line for a cluster."""
        texts = {
            "lib/__init__.py": "",
            "lib/cli.py": FETCH,
            where: f"from cluster import image, run\n\n{composed}\n",
            "pyproject.toml": '[project.scripts]\nlib-fetch = "lib.cli:main"\n',
        }
        found = judged(tmp_path, texts)
        assert found == (expected if where.startswith("lib") else COMMAND)

    def test_another_function_leads_to_it(self, tmp_path: Path) -> None:
        texts = {
            "lib/__init__.py": "",
            "lib/cli.py": FETCH.replace("main", "fetch") + "\n\ndef main():\n    fetch()\n",
            "lib/data.py": "from lib.cli import fetch\n\n\ndef prepare():\n    fetch()\n",
        }
        assert judged(tmp_path, texts) == LIBRARY


UNUSED = """\
import urllib.request


def load(file):
    return open(file)


def fetch(file):
    urllib.request.urlretrieve("https://example.org/file", file)


class Store(BASE):
    def __init__(self, file):
        super(Store, self).__init__()
        self.file = file

    def get_file(self):
        fetch(self.file)
"""


class TestUnusedCode:
    """Functions and methods that no code names, in a file whose other functions are used."""

    @pytest.mark.parametrize(
        ("base", "other", "expected"),
        [
            ("object", "", "low"),
            ("object", "store.Store('a')", "low"),
            ("object", "store.Store('a').get_file()", "medium"),
            ("object", "name = 'lib.store.Store'", "low"),
            ("object", "names = 'lib.store:Store', 'get_file'", "medium"),
            ("object", "from lib.store import Store\n\nprint(Store.get_file)", "medium"),
            ("load.Base", "store.Store('a')", "medium"),
            ("load.Base", "", "low"),
            ("load.Base", "from lib.store import *", "medium"),
        ],
    )
    def test_method(self, tmp_path: Path, base: str, other: str, expected: str) -> None:
        text = UNUSED.replace("(BASE)", "" if base == "object" else f"({base})")
        texts = {
            "lib/__init__.py": "",
            "lib/store.py": text,
            "lib/main.py": f"from lib import store\n\nstore.load('file')\n{other}\n",
        }
        assert judged(tmp_path, texts).confidence == expected

    @pytest.mark.parametrize(
        ("decorator", "main", "expected"),
        [
            ("", "from lib.files import load\n", "low"),
            ("@register\n", "from lib.files import load\n", "medium"),
            ("", "from lib.files import load, fetch_cache\n", "medium"),
            ("", "from lib.other import load\n", "medium"),
        ],
    )
    def test_function(self, tmp_path: Path, decorator: str, main: str, expected: str) -> None:
        """If no file imports the file of a function, a framework can load it by its path."""
        text = f"""\
import os
from elsewhere import register


def load(file):
    return open(file)


{decorator}def fetch_cache(file):
    if os.path.exists(file):
        os.remove(file)
"""
        texts = {
            "lib/__init__.py": "",
            "lib/files.py": text,
            "lib/main.py": main,
            "lib/other.py": "load = 1\n",
        }
        assert judged(tmp_path, texts).confidence == expected


class TestReaders:
    """Files that every rank writes: whether anything reads them."""

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ("torch.save(model, 'out/weights')", "warning"),
            ("model.save_pretrained('out')", "warning"),
            ("write('out/config.json')", "warning"),
            ("write('out/status.json')", "warning"),
            ("write('out/model.ckpt')", "warning"),
            ("write(args.save_predictions)", "warning"),
            ("write_predictions('out/test.json')", "warning"),
            ("write(args.file)\n    evaluate(args.file)", "warning"),
            ("write(args.file)\n    open(args.file).read()", "warning"),
            ("evaluate(args.file)\n    write(args.file)", "note"),
            ("write(args.file)\n    evaluate(args.other)", "note"),
            ("write(args.file)\n    print(args.file)", "note"),
            ("write(args.save_config)", "note"),
            ("write('out/arguments.json')", "note"),
            ("write('out/embedding.bin')", "note"),
            ("write(model.table[args][0])", "note"),
        ],
    )
    def test_severity(self, tmp_path: Path, body: str, expected: str) -> None:
        (tmp_path / "pyproject.toml").write_text('[tool.fsrace-lint]\nprofile = "strict"\n', "utf-8")
        (tmp_path / "train.py").write_text(f"{WRITING}    {body}\n\n\nmain(parse(), load())\n", "utf-8")
        _, checked = run(tmp_path)
        found = [f for f in checked.outcome.findings if f.code == "FSR201" and f.function == "main"]
        assert [f.severity.value for f in found] == [expected]

    @pytest.mark.parametrize(
        ("files", "expected"),
        [
            ({"lib/__init__.py": "", "lib/io.py": ""}, "warning"),
            ({"src/lib/__init__.py": "", "src/lib/io.py": ""}, "warning"),
            ({"tools/__init__.py": "", "tools/lib/__init__.py": "", "tools/lib/io.py": ""}, "warning"),
            (
                {
                    "lib/__init__.py": "",
                    "lib/io.py": "",
                    "examples/demo.py": "from lib.io import save\nsave({})\n",
                },
                "warning",
            ),
            ({"lib/io.py": ""}, "note"),
            ({"research/lib/__init__.py": "", "research/lib/io.py": ""}, "note"),
            ({"io.py": ""}, "note"),
            (
                {"lib/__init__.py": "", "lib/io.py": "", "main.py": "from lib.io import save\nsave({})\n"},
                "note",
            ),
            ({"lib/__init__.py": "", "lib/io.py": "if __name__ == '__main__':\n    save({})\n"}, "note"),
        ],
    )
    def test_ranks_are_only_likely(self, tmp_path: Path, files: dict[str, str], expected: str) -> None:
        """The users of a package start the processes. A program of the project would show how."""
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            is_writer = name.endswith("io.py")
            (tmp_path / name).write_text(f"{SAVING}{text}" if is_writer else text, "utf-8")
        _, checked = run(tmp_path)
        found = [f for f in checked.outcome.findings if f.code == "FSR201"]
        assert [(f.severity.value, f.evidence) for f in found] == [(expected, "likely")]


SAVING = """import torch
import torch.distributed as dist


def save(state):
    torch.save(state, "checkpoint.pt")
    dist.barrier()


"""

WRITING = """\
import torch
import torch.distributed as dist
from elsewhere import load, parse

dist.init_process_group()


def write(path):
    with open(path, "w") as stream:
        stream.write("text")


def write_predictions(path):
    with open(path, "w") as stream:
        stream.write("text")


def evaluate(path):
    print(path)


def main(args, model):
"""
FETCH = """\
import os
import sys
import urllib.request


def main():
    if not os.path.exists(sys.argv[1]):
        urllib.request.urlretrieve("https://example.org/file", sys.argv[1])
"""
