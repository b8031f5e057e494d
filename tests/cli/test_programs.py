"""The command `programs`: the list, JSON, errors, and the settings that correct it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import reported, run, write

pytestmark = pytest.mark.usefixtures("here")

MAIN = 'if __name__ == "__main__":\n    open("config.json", "w").write("x")\n'
JOIN = """\
import torch.distributed as dist

def setup():
    dist.init_process_group("nccl")

if __name__ == "__main__":
    setup()
"""
RANK = "import torch.distributed as dist\n\ndef main():\n    if dist.get_rank() == 0:\n        print()\n\n"


def shown(*arguments: str) -> list[str]:
    """Return the lines of the list, without the number of programs."""
    return run("programs", *arguments, code=0).stdout.splitlines()[:-2]


def as_json(*arguments: str) -> list[dict[str, Any]]:
    programs: list[dict[str, Any]] = json.loads(
        run("programs", "--output-format=json", *arguments, code=0).stdout
    )["programs"]
    return programs


def configure(*lines: str, key: str = 'file = "train.py"') -> None:
    text = "\n".join(["[[tool.fsrace-lint.programs]]", key, *lines])
    Path("pyproject.toml").write_text(f"{text}\n")


class TestList:
    @pytest.mark.parametrize(
        ("command", "expected"),
        [
            ("torchrun --nproc_per_node 8 train.py", "8 ranks"),
            ("torchrun --nproc_per_node $N train.py", "multiple ranks"),
            ("torchrun --nproc_per_node 1 train.py", "one process"),
            ("seq 4 | xargs -P 4 -n 1 python train.py", "4 workers"),
            ("python train.py", "one process"),
        ],
    )
    def test_launch_has_a_place_and_a_number_of_processes(self, command: str, expected: str) -> None:
        write({"train.py": MAIN, "scripts/run.sh": f"# runs\n{command}\n"})
        title, launch = shown()
        assert title == "train.py (script)"
        assert launch.startswith(f"  scripts/run.sh:2: {expected}: ")

    def test_code_decides_without_launches(self) -> None:
        write({"join.py": JOIN, "rank.py": f"{RANK}{MAIN}", "plain.py": MAIN})
        assert shown() == [
            "join.py (script)",
            "  joins a job: `dist.init_process_group()` (join.py:4)",
            "plain.py (script)",
            "  no launch command found",
            "rank.py (script)",
            "  the code distinguishes ranks with `dist.get_rank() == 0` (rank.py:4)",
        ]

    def test_code_is_not_mentioned_if_there_are_launches(self) -> None:
        write({"join.py": JOIN, "run.sh": "python join.py\n"})
        assert shown() == ["join.py (script)", "  run.sh:1: one process: python join.py"]

    def test_entries(self) -> None:
        write(
            {
                "pyproject.toml": '[project]\nscripts = {work = "pkg.cli:main", lost = "pkg.nothing:main"}\n',
                "pkg/__init__.py": "",
                "pkg/cli.py": "def main():\n    pass\n",
                "pkg/job.py": "print()\n",
                "tool.py": "print()\n",
                "library.py": "print()\n",
                "run.sh": "python -m pkg.job\npython tool.py\nwork\n",
            }
        )
        assert [line for line in shown() if not line.startswith(" ")] == [
            "pkg/cli.py: main (command work)",
            "pkg/job.py (module)",
            "tool.py (script)",
        ]

    def test_named_paths_limit_the_list(self) -> None:
        write({"train.py": MAIN, "sub/tool.py": MAIN, "sub/run.sh": "python tool.py; torchrun ../train.py\n"})
        assert shown("sub") == ["sub/tool.py (script)", "  sub/run.sh:1: one process: python tool.py"]

    def test_tests_are_left_out(self) -> None:
        write({"tests/tool.py": MAIN})
        assert run("programs", code=0).stdout == "No programs found.\n"
        assert shown("--include-tests") == ["tests/tool.py (script)", "  no launch command found"]

    def test_long_lists_of_commands_are_shortened(self) -> None:
        write({"train.py": MAIN, "run.sh": "".join(f"python train.py {n}\n" for n in range(9))})
        assert len(shown()) == 7
        assert shown()[-1] == "  and 4 more commands"
        assert len(as_json()[0]["launches"]) == 9

    def test_cache_does_not_change_the_list(self) -> None:
        write({"train.py": MAIN, "join.py": JOIN, "run.sh": "torchrun train.py\n"})
        first = shown()
        assert first == shown() == shown("--no-cache")

    def test_json(self) -> None:
        write({"train.py": MAIN, "join.py": JOIN, "run.sh": "torchrun --nproc_per_node 8 train.py\n"})
        join, train = as_json()
        assert join == {
            "path": "join.py",
            "function": None,
            "entries": [{"kind": "script", "name": None}],
            "launches": [],
            "code": {
                "kind": "joins-job",
                "text": "dist.init_process_group()",
                "path": "join.py",
                "line": 4,
            },
        }
        assert train["code"] is None
        assert train["launches"] == [
            {
                "path": "run.sh",
                "line": 1,
                "source": "script",
                "command": "torchrun --nproc_per_node 8 train.py",
                "launcher": "torchrun",
                "processes": 8,
                "role": "rank",
            }
        ]


class TestBadInput:
    def test_empty_folder(self) -> None:
        result = run("programs", code=0)
        assert result.stdout == "No programs found.\n"
        assert "Warning: no Python files found in " in result.stderr
        assert as_json() == []

    def test_broken_file_is_a_warning(self) -> None:
        write({"broken.py": "def f(:\n", "train.py": MAIN})
        result = run("programs", code=0)
        assert result.stdout.startswith("train.py (script)\n")
        assert result.stderr.startswith("Warning: broken.py:1: ")

    def test_missing_path_is_an_error(self) -> None:
        write({"train.py": MAIN})
        result = run("programs", "nowhere", "train.py", code=2)
        assert result.stdout.startswith("train.py (script)\n")
        assert result.stderr == "Error: nowhere: no such file or directory\n"

    def test_invalid_settings_are_an_error(self) -> None:
        write({"train.py": MAIN})
        configure("processes = 0")
        assert "`programs[0].processes`: expected integer >= 1" in run("programs", code=2).stderr

    def test_control_characters_are_escaped(self) -> None:
        write({"train.py": MAIN, "run.sh": "python train.py '\x1b[31m\u202e'\n"})
        for form in ("full", "json"):
            assert not {"\x1b", "\u202e"} & set(run("programs", f"--format={form}", code=0).stdout)


class TestSettings:
    def test_settings_replace_the_commands(self) -> None:
        write({"train.py": MAIN, "run.sh": "torchrun --nproc_per_node 8 train.py\n"})
        assert reported() == ["train.py:2 FSR201"]
        configure("processes = 1")
        assert shown() == ["train.py (script)", "  pyproject.toml:1: one process: python train.py"]
        assert reported(code=0) == []

    def test_settings_add_a_launch(self) -> None:
        write({"train.py": MAIN, "run.sh": "python train.py\n"})
        assert reported(code=0) == []
        configure("processes = 4", 'launcher = "our-scheduler run"')
        assert shown()[1:] == ["  pyproject.toml:1: 4 ranks: our-scheduler run train.py"]
        assert reported() == ["train.py:2 FSR201"]

    def test_other_programs_keep_their_commands(self) -> None:
        write({"train.py": MAIN, "other.py": MAIN, "run.sh": "torchrun train.py\ntorchrun other.py\n"})
        configure("processes = 1")
        assert reported() == ["other.py:2 FSR201"]

    @pytest.mark.parametrize(
        ("key", "launch"),
        [
            ('module = "pkg.cli"', "multiple workers: python -m pkg.cli"),
            ('command = "work"', "multiple workers: work"),
        ],
    )
    def test_modules_and_commands(self, key: str, launch: str) -> None:
        write({"pkg/__init__.py": "", "pkg/cli.py": "def main():\n    pass\n"})
        write({"setup.cfg": "[options.entry_points]\nconsole_scripts =\n    work = pkg.cli:main\n"})
        configure('role = "worker"', key=key)
        assert f"  pyproject.toml:1: {launch}" in shown()

    def test_line_is_that_of_the_table(self) -> None:
        write({"a.py": MAIN, "b.py": MAIN})
        table = '[[tool.fsrace-lint.programs]]\nfile = "{}.py"\n\n'
        Path("pyproject.toml").write_text(f"# settings\n{table.format('b')}{table.format('a')}")
        assert shown()[1::2] == [
            "  pyproject.toml:5: multiple ranks: python a.py",
            "  pyproject.toml:2: multiple ranks: python b.py",
        ]

    @pytest.mark.parametrize("key", ['module = "pkg.gone"', 'command = "gone"'])
    def test_program_that_does_not_exist_is_a_warning(self, key: str) -> None:
        write({"train.py": MAIN})
        configure(key=key)
        assert "Warning: pyproject.toml:1: no " in run("programs", code=0).stderr

    def test_effective_settings_show_programs(self) -> None:
        write({"train.py": MAIN})
        configure("processes = 4")
        text = run("check", "--show-settings", code=0).stdout
        assert '[[tool.fsrace-lint.programs]]  # pyproject.toml\nfile = "train.py"\nprocesses = 4\n' in text
