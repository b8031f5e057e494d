"""The programs of a project: which functions the launch commands of a repository start.

Shows: `program/programs.py`, `program/python_commands.py`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from msgspec.structs import replace
from support import linking
from support.launching import read

from fsrace_lint.launches import reading
from fsrace_lint.launches.model import Origin
from fsrace_lint.program.module_table import ModuleTable
from fsrace_lint.program.programs import Programs

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.launches.model import Launch

MAIN = "if __name__ == '__main__':\n    main()\n"
FUNCTION = "def main():\n    pass\n"


def programs(root: Path, files: dict[str, str], *, more: tuple[Launch, ...] = ()) -> Programs:
    """Return the programs of a repository, whose Python files are linked."""
    sources = {path: text for path, text in files.items() if path.endswith(".py")}
    others = {path: text for path, text in files.items() if path not in sources}
    read(root, files)
    installed = reading.read_installed(root, [root / name for name in others])
    found = reading.read_launches(root, [root / name for name in others], installed)
    table = ModuleTable(linking.modules(sources), {})
    return Programs(table, (*more, *found), installed)


def started(root: Path, files: dict[str, str]) -> dict[str, list[str]]:
    """Return the places of the commands that start each program."""
    return {
        f"{program.function.module.relative}:{program.function.facts.name}": [
            f"{launch.path}:{launch.line}" for launch in program.launches
        ]
        for program in programs(root, files).all()
        if program.launches
    }


class TestFile:
    @pytest.mark.parametrize(
        ("path", "command", "program"),
        [
            ("run.sh", "python tools/train.py", "tools/train.py"),
            ("scripts/run.sh", "python tools/train.py", "tools/train.py"),
            ("scripts/run.sh", "python ../tools/train.py", "tools/train.py"),
            ("tools/run.sh", "python train.py", "tools/train.py"),
            ("scripts/run.sh", "cd tools && python train.py", "tools/train.py"),
            ("scripts/run.sh", "cd tools && python ./train.py", "tools/train.py"),
            ("scripts/run.sh", "python only.py", "deep/er/only.py"),
        ],
    )
    def test_name_is_relative_to_a_known_directory(
        self, tmp_path: Path, path: str, command: str, program: str
    ) -> None:
        files = {path: command, "tools/train.py": "", "other/train.py": "", "deep/er/only.py": ""}
        assert started(tmp_path, files) == {f"{program}:<module>": [f"{path}:1"]}

    def test_directory_of_the_command_goes_first(self, tmp_path: Path) -> None:
        files = {"a/run.sh": "cd b && python train.py", "a/train.py": "", "b/train.py": "", "train.py": ""}
        assert [*started(tmp_path, files)] == ["b/train.py:<module>"]

    def test_ambiguous_suffix_starts_nothing(self, tmp_path: Path) -> None:
        files = {"scripts/run.sh": "python train.py", "a/train.py": "", "b/train.py": ""}
        assert started(tmp_path, files) == {}

    def test_nearest_file_with_the_suffix_is_started(self, tmp_path: Path) -> None:
        files = {"a/scripts/run.sh": "python train.py", "a/src/train.py": "", "b/src/train.py": ""}
        assert [*started(tmp_path, files)] == ["a/src/train.py:<module>"]

    def test_bare_name_in_documentation_can_be_a_program_of_the_user(self, tmp_path: Path) -> None:
        text = "```sh\ntorchrun {}\n```\n"
        sources = {"tools/deep/train.py": ""}
        assert started(tmp_path, {"docs/use.md": text.format("train.py"), **sources}) == {}
        assert started(tmp_path, {"docs/use.md": text.format("deep/train.py"), **sources}) == {
            "tools/deep/train.py:<module>": ["docs/use.md:2"]
        }

    def test_bare_name_in_documentation_can_be_in_the_root(self, tmp_path: Path) -> None:
        files = {"docs/use.md": "```sh\ntorchrun train.py\n```\n", "train.py": ""}
        assert [*started(tmp_path, files)] == ["train.py:<module>"]


class TestModule:
    def test_module(self, tmp_path: Path) -> None:
        files = {"run.sh": "torchrun -m pkg.train", "pkg/__init__.py": "", "pkg/train.py": ""}
        assert started(tmp_path, files) == {"pkg/train.py:<module>": ["run.sh:1"]}

    def test_package_runs_its_main_file(self, tmp_path: Path) -> None:
        files = {"run.sh": "python -m pkg", "pkg/__init__.py": "", "pkg/__main__.py": ""}
        assert [*started(tmp_path, files)] == ["pkg/__main__.py:<module>"]

    def test_module_below_src(self, tmp_path: Path) -> None:
        files = {"run.sh": "python -m pkg.train", "src/pkg/__init__.py": "", "src/pkg/train.py": ""}
        assert [*started(tmp_path, files)] == ["src/pkg/train.py:<module>"]


class TestInstalledCommand:
    CFG = "[options.entry_points]\nconsole_scripts =\n    work = pkg.cli:main\n"

    def test_command_starts_its_function(self, tmp_path: Path) -> None:
        files = {"setup.cfg": self.CFG, "run.sh": "torchrun --no_python work", "pkg/cli.py": FUNCTION}
        assert started(tmp_path, files) == {"pkg/cli.py:main": ["run.sh:1"]}

    def test_function_is_that_of_the_package_and_not_of_its_main_file(self, tmp_path: Path) -> None:
        cfg = self.CFG.replace("pkg.cli", "pkg")
        files = {"setup.cfg": cfg, "run.sh": "work", "pkg/__init__.py": FUNCTION, "pkg/__main__.py": FUNCTION}
        assert [*started(tmp_path, files)] == ["pkg/__init__.py:main"]

    @pytest.mark.parametrize("statement", ["from .cli import run as main", "from pkg.cli import run as main"])
    @pytest.mark.parametrize("top", ["", "src/"])
    def test_imported_function_is_followed(self, tmp_path: Path, statement: str, top: str) -> None:
        cfg = self.CFG.replace("pkg.cli", "pkg")
        code = {f"{top}pkg/__init__.py": statement, f"{top}pkg/cli.py": "def run():\n    pass\n"}
        assert [*started(tmp_path, {"setup.cfg": cfg, "run.sh": "work", **code})] == [f"{top}pkg/cli.py:run"]

    def test_imports_in_a_circle_start_nothing(self, tmp_path: Path) -> None:
        code = {
            "pkg/__init__.py": "",
            "pkg/cli.py": "from .a import main",
            "pkg/a.py": "from .cli import main",
        }
        assert started(tmp_path, {"setup.cfg": self.CFG, "run.sh": "work", **code}) == {}

    def test_missing_function_starts_nothing(self, tmp_path: Path) -> None:
        files = {"setup.cfg": self.CFG, "run.sh": "work", "pkg/cli.py": "main = 1\n"}
        assert started(tmp_path, files) == {}


class TestPythonCode:
    """Lists of words that code passes to calls."""

    @pytest.mark.parametrize(
        ("code", "arguments"),
        [
            ("run(['torchrun', 'a.py', 'x'])", ("x",)),
            (
                "subprocess.Popen(args=1)\nsubprocess.run(('torchrun', 'a.py', f'{x}', f'b{1}'), env=e)",
                ("", ""),
            ),
            ("cmd = ['torchrun', 'a.py']\ncheck_call(cmd)", ("",)),
            ("cmd = ['torchrun', 'a.py']\nif x:\n    cmd += ['-v']\nprint(cmd)\ncall(cmd)", ("", "")),
            ("call(['torchrun', 'a.py', str(x)] + extra)", ("", "")),
            ("a = b = [sys.executable, '-m', 'torch.distributed.run', 'a.py']\ncall(b)", ("",)),
            ("call(['bash', '-c', 'torchrun a.py x'])", ("x",)),
            ("def f():\n    if x:\n        return call(['mpirun', '-n', n, 'python', 'a.py'])", ()),
        ],
    )
    def test_list_of_words(self, tmp_path: Path, code: str, arguments: tuple[str, ...]) -> None:
        files = {"b.py": f"import subprocess\nimport sys\n{code}\n", "a.py": ""}
        (program,) = programs(tmp_path, files).all()
        (launch,) = program.launches
        assert program.function.module.relative == "a.py"
        assert launch.arguments == arguments
        assert (launch.path, launch.line) == ("b.py", 2 + len(code.split("\n")))
        assert launch.reported == program.function.module.path.replace("a.py", "b.py")

    @pytest.mark.parametrize(
        "code",
        [
            "import subprocess\nsubprocess.run(['python', 'a.py'])",
            "import subprocess\nsubprocess.run(['torchrun'])\nsubprocess.run(words + ['a.py'])\nrun()",
            "import subprocess\nsubprocess.run('torchrun a.py')",
            "import sys\nsys.exit(['torchrun', 'a.py'])",
        ],
    )
    def test_other_code(self, tmp_path: Path, code: str) -> None:
        assert started(tmp_path, {"b.py": code, "a.py": ""}) == {}


class TestAll:
    def test_scripts_and_commands_without_launches_are_programs(self, tmp_path: Path) -> None:
        cfg = TestInstalledCommand.CFG
        files = {"setup.cfg": cfg, "b.py": MAIN, "a.py": MAIN, "c.py": "", "pkg/cli.py": FUNCTION}
        found = programs(tmp_path, files)
        named = [program.function.qualified for program in found.all()]
        assert sorted(named) == ["a.<module>", "b.<module>", "pkg.cli.main"]
        command = next(program.function for program in found.all() if program.function.index)
        assert found.commands_of(command) == ("work",)
        assert found.is_command(command)

    def test_function_of_an_imported_command_is_a_command(self, tmp_path: Path) -> None:
        files = {
            "setup.cfg": "[options.entry_points]\nconsole_scripts =\n    work = pkg:main\n",
            "pkg/__init__.py": "from .cli import run as main",
            "pkg/cli.py": "def run():\n    pass\n",
        }
        found = programs(tmp_path, files)
        (program,) = found.all()
        assert program.function.qualified == "pkg.cli.run"
        assert found.is_command(program.function)

    def test_multiple_processes_go_first(self, tmp_path: Path) -> None:
        files = {
            "a.sh": "python a.py",
            "z.md": "```sh\ntorchrun a.py\n```",
            "m.sh": "torchrun a.py",
            "a.py": "",
        }
        assert started(tmp_path, files) == {"a.py:<module>": ["m.sh:1", "z.md:2", "a.sh:1"]}


class TestTestRunner:
    FILES: ClassVar = {
        "run.sh": "pytest -n 2 tests/unit",
        "tests/conftest.py": "",
        "tests/unit/test_a.py": "@fixture\ndef made():\n    pass\ndef test_b():\n    pass\n",
        "tests/unit/helper.py": "",
        "tests/unitary/test_c.py": "",
    }

    def test_processes_import_the_tests(self, tmp_path: Path) -> None:
        assert started(tmp_path, self.FILES) == {"tests/unit/test_a.py:<module>": ["run.sh:1"]}

    def test_processes_run_fixtures(self, tmp_path: Path) -> None:
        found = programs(tmp_path, self.FILES)
        (module,) = {each.function.module for each in found.all()}
        fixture, test = module.functions[1:]
        assert found.launches_of(fixture)
        assert not found.launches_of(test)

    def test_one_file_of_tests(self, tmp_path: Path) -> None:
        files = {"run.sh": "pytest -n 2 tests/test_a.py", "tests/test_a.py": "", "tests/test_b.py": ""}
        assert started(tmp_path, files) == {"tests/test_a.py:<module>": ["run.sh:1"]}

    def test_one_process_starts_no_programs(self, tmp_path: Path) -> None:
        assert started(tmp_path, {**self.FILES, "run.sh": "pytest tests"}) == {}


class TestSettings:
    @pytest.fixture
    def setting(self, tmp_path: Path) -> Launch:
        (launch,) = read(tmp_path, {"x.sh": "python a.py"})
        return replace(launch, origin=Origin.SETTINGS, path="pyproject.toml")

    def test_only_launches_of_the_settings_count(self, tmp_path: Path, setting: Launch) -> None:
        files = {"run.sh": "torchrun a.py\ntorchrun b.py", "a.py": "", "b.py": ""}
        found = programs(tmp_path, files, more=(setting,))
        first, second = found.all()
        assert found.launches_of(first.function) == (setting,)
        assert [launch.path for launch in found.launches_of(second.function)] == ["run.sh"]

    def test_launches_that_name_no_program(self, tmp_path: Path, setting: Launch) -> None:
        assert programs(tmp_path, {"a.py": ""}, more=(setting,)).unmatched() == []
        found = programs(tmp_path, {"b.py": "", "run.sh": "torchrun c.py"}, more=(setting,))
        assert found.unmatched() == [setting]
