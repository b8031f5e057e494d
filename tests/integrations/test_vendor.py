"""Vendored copies of the helpers, which never overwrite user changes."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fsrace_lint import __version__
from fsrace_lint.cli import main
from fsrace_lint.integrations import vendor
from fsrace_lint.integrations.vendor import Copy

SAFE = Path(vendor.__file__).parents[1] / "safe.py"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main.main, ["vendor", *map(str, arguments)])


def test_copy_has_a_header_with_version_and_digest(tmp_path: Path) -> None:
    result = run(tmp_path)
    file = tmp_path / "fs_safe.py"
    assert (result.exit_code, result.stdout) == (0, "")
    header, _, body = file.read_bytes().partition(b"\n")
    assert body.endswith(SAFE.read_bytes())
    digest = hashlib.sha256(body).hexdigest()
    assert (
        header.decode() == f"# Written by fsrace-lint {__version__} vendor, sha256:{digest}. Do not edit it."
    )


@pytest.mark.parametrize("name", vendor.helpers())
def test_excerpt_is_complete_and_minimal(tmp_path: Path, name: str) -> None:
    """Without the comments that tell tools to leave the copy alone, nothing is undefined or unused in it."""
    file = tmp_path / "helpers.py"
    assert run(file, name).exit_code == 0
    file.write_text(file.read_text().partition("# ruff: noqa\n")[2])
    rules = "--select=E4,E7,E9,F,I"
    ruff = ["ruff", "check", "--isolated", "--no-cache", "--target-version=py310", rules, str(file)]
    subprocess.run(ruff, check=True, capture_output=True)
    program = "import helpers; print(helpers.__all__)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.stdout) == ("", f"{[name]}\n")


@pytest.mark.parametrize("names", [(), ("atomic_write", "barrier")])
def test_copy_passes_the_tools_of_the_project(tmp_path: Path, names: tuple[str, ...]) -> None:
    run(tmp_path, *names)
    file = str(tmp_path / "fs_safe.py")
    for command in (
        ["ruff", "check", "--isolated", "--no-cache", file],
        ["ruff", "format", "--check", "--isolated", "--no-cache", file],
        ["flake8", "--isolated", file],
        *([["black", "--check", "--quiet", file]] if shutil.which("black") else []),
    ):
        done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_copy_contains_what_the_project_uses(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "a.py").write_text("from .fs_safe import atomic_write\n")
    (tmp_path / "package" / "b.py").write_text("from package import fs_safe\n\nfs_safe.barrier()\n")
    (tmp_path / "package" / "c.py").write_text("fs_safe = ensure_dir =\n")
    file = tmp_path / "package" / "fs_safe.py"
    assert run(file).exit_code == 0
    assert '__all__ = ["atomic_write", "barrier"]' in file.read_text()
    assert run("--check", file).exit_code == 0
    (tmp_path / "package" / "c.py").write_text("from package.fs_safe import ensure_dir\n")
    assert run("--check", file).exit_code == 1
    assert run(file).exit_code == 0
    assert "def ensure_dir" in file.read_text()


def test_unknown_helper_is_an_error(tmp_path: Path) -> None:
    result = run(tmp_path, "atomic_read")
    assert (result.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "no helper `atomic_read`; there are ensure_dir, " in result.stderr


def test_copy_works_without_fsrace_lint(tmp_path: Path) -> None:
    run(tmp_path / "helpers.py")
    program = "import helpers; helpers.ensure_dir('a/b'); print(sorted(helpers.__all__)[0])"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.stdout) == ("", "atomic_path\n")
    assert (tmp_path / "a" / "b").is_dir()


@pytest.mark.parametrize(
    ("made", "copy"),
    [
        (lambda data: data, Copy.CURRENT),
        (lambda data: data.replace(b"\n", b"\r\n"), Copy.CURRENT),
        (lambda data: data + b"# mine\n", Copy.CHANGED),
        (lambda data: data.replace(b"def barrier", b"def barriers", 1), Copy.CHANGED),
        (lambda data: data.partition(b"\n")[2], Copy.FOREIGN),
        (lambda data: b"", Copy.FOREIGN),
    ],
)
def test_state_of_an_existing_file(tmp_path: Path, made: object, copy: Copy) -> None:
    file = tmp_path / "fs_safe.py"
    vendor.write(file)
    assert callable(made)
    file.write_bytes(made(file.read_bytes()))
    assert vendor.look(file) is copy


def other_version(file: Path) -> None:
    body = b"def barrier(): ...\n"
    digest = hashlib.sha256(body).hexdigest()
    header = f"# Written by fsrace-lint 0.0.1 vendor, sha256:{digest}. Do not edit it.\n"
    file.write_bytes(header.encode() + body)


def test_copy_of_another_version_is_updated(tmp_path: Path) -> None:
    file = tmp_path / "fs_safe.py"
    other_version(file)
    assert vendor.look(file) is Copy.OLD
    assert run("--check", file).exit_code == 1
    assert run(file).exit_code == 0
    assert vendor.look(file) is Copy.CURRENT


@pytest.mark.parametrize("text", ["# Written by fsrace-lint\n", "x = 1\n", ""])
def test_foreign_file_is_overwritten_only_with_force(tmp_path: Path, text: str) -> None:
    file = tmp_path / "fs_safe.py"
    file.write_text(text)
    result = run(file)
    assert result.exit_code == 1
    assert "--force" in result.stderr
    assert file.read_text() == text
    assert run("--force", file).exit_code == 0
    assert vendor.look(file) is Copy.CURRENT
    assert [path.name for path in tmp_path.iterdir()] == ["fs_safe.py"]


def test_check_writes_nothing(tmp_path: Path) -> None:
    result = run("--check", tmp_path)
    assert (result.exit_code, list(tmp_path.iterdir())) == (1, [])
    assert "fs_safe.py does not exist; run `fsrace-lint vendor` to create it." in result.stderr
    run(tmp_path)
    again = run("--check", "--force", tmp_path)
    assert (again.exit_code, again.stdout) == (0, "")


@pytest.mark.parametrize("options", [[], ["--check"]])
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing/fs_safe.py", "missing; create it first"),
        ("missing/", "missing; create it first"),
        ("text.txt/fs_safe.py", "text.txt; create it first"),
    ],
)
def test_missing_directory_is_an_error(tmp_path: Path, path: str, message: str, options: list[str]) -> None:
    (tmp_path / "text.txt").touch()
    result = run(*options, f"{tmp_path}/{path}")
    assert result.exit_code == 2
    assert message in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_copy_has_no_findings(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.fsrace-lint]\nhelper-module = "fs_safe"\n')
    run(tmp_path)
    result = CliRunner().invoke(main.main, ["check", str(tmp_path)])
    assert result.stdout.startswith("No filesystem races found"), result.stdout
    assert result.exit_code == 0


def test_fix_imports_helpers_only_from_the_module_of_the_settings(tmp_path: Path) -> None:
    """An import of `fsrace_lint.safe` would make fsrace-lint a runtime dependency."""
    hazard = 'dist.init_process_group()\nos.makedirs("data", exist_ok=True)\n'
    (tmp_path / "main.py").write_text(f"import os\n\nimport torch.distributed as dist\n\n{hazard}")
    arguments = ["fix", "--unsafe-fixes", "--diff", "--profile=strict", str(tmp_path)]
    (tmp_path / "pyproject.toml").write_text("")
    default = CliRunner().invoke(main.main, arguments)
    assert default.stdout == ""
    assert "the fix needs the `helper-module` setting" in default.stderr
    (tmp_path / "pyproject.toml").write_text('[tool.fsrace-lint]\nhelper-module = "fs_safe"\n')
    own = CliRunner().invoke(main.main, arguments)
    assert "+from fs_safe import ensure_dir" in own.stdout
