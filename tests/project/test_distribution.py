"""The wheel and the sdist contain the right files, and run without the checkout."""

from __future__ import annotations

import email
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest
from filelock import FileLock
from support import ROOT, pages
from support.commands import environment, lines_of

from fsrace_lint import __version__, catalog

PACKAGE = ROOT / "fsrace_lint"
OFFLINE = re.compile(
    "Failed to establish a new connection|Temporary failure in name resolution|Max retries exceeded"
    "|ConnectTimeoutError|ProxyError|Network is unreachable|NameResolutionError|dns error|tcp connect error"
    "|error sending request|Failed to fetch|Could not connect"
)
WITHOUT_INDEX = "the package index cannot be reached, and builds install from there"


class Built(NamedTuple):
    """The paths of both files."""

    wheel: Path
    sdist: Path


def start(*command: str | Path, directory: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a clean environment; skip the test if the package index cannot be reached."""
    done = subprocess.run(
        command,
        cwd=directory,
        env={**environment(directory), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if done.returncode and OFFLINE.search(done.stdout + done.stderr):
        pytest.skip(WITHOUT_INDEX)
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build the sdist, and the wheel from it, once for all processes of pytest-xdist."""
    directory = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        directory = directory.parent
    directory /= "dist"
    with FileLock(f"{directory}.lock", timeout=600):
        if not directory.exists():
            new = directory.with_name("new")
            build = (sys.executable, "-m", "build", "--installer=uv", "--outdir", new, ROOT)
            done = start(*build, directory=tmp_path_factory.mktemp("home"))
            assert done.returncode == 0, done.stdout + done.stderr
            new.rename(directory)
    (wheel,) = directory.glob("*.whl")
    (sdist,) = directory.glob("*.tar.gz")
    return Built(wheel, sdist)


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the `bin` directory of an environment in which only the wheel is installed."""
    directory = tmp_path_factory.mktemp("clean")
    for command in (
        ("uv", "venv", "--quiet", "--python", sys.executable, "env"),
        ("uv", "pip", "install", "--quiet", "--python", "env", built.wheel),
    ):
        done = start(*command, directory=directory)
        assert done.returncode == 0, done.stderr
    return directory / "env" / "bin"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    shutil.copytree(ROOT / "examples", directory / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return directory


@functools.cache
def tracked(*directories: str) -> frozenset[str]:
    """Return the files of these directories in the checkout."""
    found = (path for directory in directories for path in (ROOT / directory).rglob("*") if path.is_file())
    unwanted = {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".fsrace_cache"}
    names = (path.relative_to(ROOT) for path in found)
    return frozenset(file.as_posix() for file in names if not unwanted & set(file.parts))


class TestContent:
    def test_wheel_contains_the_package_and_its_metadata(self, built: Built) -> None:
        with zipfile.ZipFile(built.wheel) as archive:
            names = set(archive.namelist())
        about = f"fsrace_lint-{__version__}.dist-info"
        described = {f"{about}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
        assert names == tracked("fsrace_lint") | described | {f"{about}/licenses/LICENSE"}
        assert "fsrace_lint/py.typed" in names
        assert {f"fsrace_lint/catalog/{framework}.toml" for framework in catalog.files()} <= names

    def test_sdist_contains_the_checkout(self, built: Built) -> None:
        with tarfile.open(built.sdist) as archive:
            names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
        wanted = tracked("fsrace_lint", "gallery", "tests", "docs", "examples", "scripts", ".ci") | {
            ".gitignore",
            ".pre-commit-hooks.yaml",
            "CHANGELOG.md",
            "CONTRIBUTING.md",
            "LICENSE",
            "PKG-INFO",
            "README.md",
            "mkdocs.yml",
            "pyproject.toml",
        }
        assert names == wanted

    def test_metadata(self, built: Built) -> None:
        with zipfile.ZipFile(built.wheel) as archive:
            about = f"fsrace_lint-{__version__}.dist-info"
            metadata = email.message_from_bytes(archive.read(f"{about}/METADATA"))
            points = archive.read(f"{about}/entry_points.txt").decode()
        assert (metadata["Name"], metadata["Version"]) == ("fsrace-lint", __version__)
        assert metadata["Requires-Python"] == ">=3.10"
        assert metadata["License-Expression"] == "MIT"
        assert metadata["Description-Content-Type"] == "text/markdown"
        needed = [row for row in metadata.get_all("Requires-Dist", ()) if "extra ==" not in row]
        assert {re.split(r"[<>=; ]", row)[0] for row in needed} <= {
            "black", "click", "isort", "libcst", "markdown-it-py", "msgspec", "pathspec", "pyyaml", "rich",
            "tomli", "tree-sitter", "tree-sitter-bash",
        }  # fmt: skip
        assert {"docs", "flake8", "test"} <= set(metadata.get_all("Provides-Extra", ()))
        assert "fsrace-lint = fsrace_lint.__main__:main" in points
        assert "FSR = fsrace_lint.flake8_plugin:Plugin" in points

    def test_twine_accepts_the_metadata(self, built: Built, tmp_path: Path) -> None:
        done = start(sys.executable, "-m", "twine", "check", "--strict", *built, directory=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("PASSED") == 2


class TestInstalled:
    def test_installed_check_reports_the_examples(self, installed: Path, project: Path) -> None:
        done = start(installed / "fsrace-lint", "check", "examples", "--format=json", directory=project)
        assert done.returncode == 1, done.stderr
        assert len(json.loads(done.stdout)["findings"]) == 12

    @pytest.mark.parametrize(
        ("command", "code"),
        [
            ("explain FSR101", 0),
            ("fix --diff examples", 1),
            ("prove scenario.py::prepare", 1),
            ("rules", 0),
            ("vendor --check .", 1),
        ],
    )
    def test_installed_commands_run(self, installed: Path, project: Path, command: str, code: int) -> None:
        text = 'import os\n\n\ndef prepare(root, rank):\n    os.mkdir(root / "out")\n'
        (project / "scenario.py").write_text(text, "utf-8")
        done = start(installed / "fsrace-lint", *command.split(), directory=project)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr

    def test_all_outputs_show_the_same_version(self, installed: Path, project: Path) -> None:
        done = start(installed / "fsrace-lint", "--version", directory=project)
        assert done.stdout == f"fsrace-lint, version {__version__}\n"
        done = start(installed / "fsrace-lint", "check", "examples", "--format=sarif", directory=project)
        driver = json.loads(done.stdout)["runs"][0]["tool"]["driver"]
        assert driver["semanticVersion"] == __version__
        start(installed / "fsrace-lint", "vendor", "fs_safe.py", directory=project)
        header = (project / "fs_safe.py").read_text("utf-8").partition("\n")[0]
        assert f"fsrace-lint {__version__} vendor" in header

    def test_type_checkers_use_the_type_hints(self, installed: Path, tmp_path: Path) -> None:
        text = "from fsrace_lint.safe import ensure_dir\n\nensure_dir(1)\n"
        (tmp_path / "use.py").write_text(text, "utf-8")
        command = (sys.executable, "-m", "mypy", "--python-executable", installed / "python", "use.py")
        done = start(*command, directory=tmp_path)
        assert 'Argument 1 to "ensure_dir" has incompatible type "int"' in done.stdout


def commands_of(program: str) -> list[str]:
    """Return the commands of the README that use a runner such as `uvx` or `pipx`."""
    texts = [block.text for block in pages.blocks(ROOT / "README.md") if block.kind == "sh"]
    return [line for text in texts for line in lines_of(text) if line.split()[0] == program]


class TestRunners:
    """The README commands that run fsrace-lint without installing it."""

    @pytest.mark.parametrize("program", ["uvx", "pipx"])
    def test_runner_runs_the_wheel(self, built: Built, project: Path, program: str) -> None:
        found = commands_of(program)
        assert found
        shutil.copytree(built.wheel.parent, project / "dist")
        for command in found:
            done = start("bash", "-c", command, directory=project, UV_NO_PROGRESS="1")
            assert done.returncode == 1, done.stdout + done.stderr
            assert "Found 12 findings (5 errors, 7 warnings)" in done.stdout


def test_tests_of_the_sdist_run(built: Built, tmp_path: Path) -> None:
    with tarfile.open(built.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    root = tmp_path / f"fsrace_lint-{__version__}"
    tests = "tests/project/test_imports.py"
    done = start(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests, directory=root)
    assert done.returncode == 0, done.stdout
    where = start(sys.executable, "-c", "import fsrace_lint; print(fsrace_lint.__file__)", directory=root)
    assert Path(where.stdout.strip()).is_relative_to(root)
