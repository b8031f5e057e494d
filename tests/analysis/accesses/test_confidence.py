"""What shows that multiple processes run an access, how certain it is, and how severe the finding is.

Shows: `analysis/accesses/confidence.py`, `analysis/callgraph/concurrency_evidence.py`,
`analysis/callgraph/concurrency_markers.py`, `program/programs.py`
"""

from __future__ import annotations

from textwrap import dedent
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
        assert judged(tmp_path, texts) == HIGH._replace(scenario="workers")

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
        assert judged(tmp_path, {"train.py": text}) == HIGH._replace(scenario="workers")

    @pytest.mark.parametrize(
        ("head", "scenario"),
        [
            ("from celery import shared_task\n\n\n@shared_task", "workers"),
            ("import horovod\n\nhorovod.run(lambda: make('runs'), np=4)\n\n", "ranks"),
        ],
    )
    def test_roles(self, tmp_path: Path, head: str, scenario: str) -> None:
        text = f"{MAKE}\n\n{head}\ndef work():\n    make('runs')\n"
        assert judged(tmp_path, {"lib/__init__.py": "", "lib/jobs.py": text}) == HIGH._replace(
            scenario=scenario
        )

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
            ("args.dry_run", HIGH._replace(severity="note", confidence="low")),
            ("config['dry-run']", HIGH._replace(severity="note", confidence="low")),
            ("not args.wet and args.dryrun", HIGH._replace(severity="note", confidence="low")),
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
            ("f'{sys.argv[1]}/cache'", COMMAND._replace(severity="warning", confidence="medium")),
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

    def test_download(self, tmp_path: Path) -> None:
        text = """\
            import os
            import sys
            import urllib.request


            def main():
                if not os.path.exists(sys.argv[1]):
                    urllib.request.urlretrieve("https://example.org/file", sys.argv[1])
            """
        expected = COMMAND._replace(severity="warning", confidence="medium")
        assert judged(tmp_path, {"lib/__init__.py": "", "lib/cli.py": text}) == expected
