"""The hooks in the real pre-commit, which installs this project into a separate environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support import ROOT, pages

PARTS = ("fsrace_lint", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml")
HAZARD = 'import os\n\nif not os.path.isdir("d"):\n    os.makedirs("d")\n'
OFFLINE = re.compile(
    "Failed to establish a new connection|Temporary failure in name resolution|Max retries exceeded"
    "|ConnectTimeoutError|ProxyError|Network is unreachable|NameResolutionError"
)

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="pre-commit needs git"),
]


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PRE_COMMIT"))}
    kept.pop("SKIP", None)
    kept["PATH"] = os.pathsep.join([os.fspath(Path(sys.executable).parent), kept.get("PATH", "")])
    identity = {
        f"GIT_{who}_{what}": "nobody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    return {**kept, **identity, "PRE_COMMIT_HOME": str(home), "PRE_COMMIT_COLOR": "never"}


def git(directory: Path, *arguments: str) -> str:
    command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false", *arguments]
    done = subprocess.run(
        command, cwd=directory, env=environment(directory), capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(directory: Path) -> str:
    git(directory, "init", "--quiet")
    git(directory, "add", "--all", "--force")
    git(directory, "commit", "--quiet", "--message=all")
    return git(directory, "rev-parse", "HEAD")


def pre_commit(directory: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pre_commit", *arguments]
    done = subprocess.run(
        command, cwd=directory, env=environment(home), capture_output=True, text=True, check=False
    )
    if done.returncode and OFFLINE.search(done.stdout + done.stderr):
        pytest.skip("the package index cannot be reached, and pre-commit installs from there")
    return done


@pytest.fixture
def hooks(tmp_path: Path) -> Path:
    """The current state of this project, committed to a separate repository."""
    directory = tmp_path / "hooks"
    directory.mkdir()
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, directory / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, directory)
    commit(directory)
    return directory


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    (directory / "tests").mkdir(parents=True)
    (directory / "pyproject.toml").write_text("")
    (directory / "train.py").write_text(HAZARD)
    (directory / "tests" / "test_train.py").write_text(HAZARD)
    commit(directory)
    return directory


def test_try_repo(hooks: Path, project: Path, tmp_path: Path) -> None:
    done = pre_commit(project, tmp_path / "home", "try-repo", str(hooks), "fsrace-lint", "--all-files")
    assert done.returncode == 1, done.stderr
    assert re.search(r"^fsrace-lint\.+Failed$", done.stdout, flags=re.MULTILINE)
    assert "- exit code: 1" in done.stdout
    assert "train.py:4:5: FSR101 [*] directory " in done.stdout
    assert "test_train" not in done.stdout
    assert (project / "train.py").read_text() == HAZARD


def test_hooks_in_a_configuration(hooks: Path, project: Path, tmp_path: Path) -> None:
    """The hooks fail, fix, and then pass; only unguarded files are reported."""
    configuration = f"""
repos:
  - repo: {hooks}
    rev: {git(hooks, "rev-parse", "HEAD")}
    hooks:
      - id: fsrace-fix
      - id: fsrace-lint
        args: [--profile=strict, --format=github]
"""
    (project / ".pre-commit-config.yaml").write_text(configuration)
    git(project, "add", ".pre-commit-config.yaml")
    home = tmp_path / "home"
    first = pre_commit(project, home, "run", "--all-files")
    assert first.returncode == 1, first.stderr
    assert re.search(r"fsrace-fix\.+Failed", first.stdout)
    assert "- files were modified by this hook" in first.stdout
    assert "Fixed 1 finding in 1 file. 0 remaining." in first.stdout
    assert re.search(r"fsrace-lint\.+Passed", first.stdout)
    assert (project / "train.py").read_text() == 'import os\n\nos.makedirs("d", exist_ok=True)\n'
    assert (project / "tests" / "test_train.py").read_text() == HAZARD
    git(project, "add", "--update")
    second = pre_commit(project, home, "run", "--all-files")
    assert (second.returncode, second.stderr) == (0, "")
    assert second.stdout.count("Passed") == 2

    (project / "work.py").write_text(
        "import os\n\n\ndef f(d):\n    if not os.path.isdir(d):\n        os.mkdir(d)\n"
    )
    (project / "train.py").write_text(
        "import torch.distributed as dist\nimport work\n\nif dist.get_rank() == 0:\n    work.f('d')\n"
    )
    git(project, "add", "--all")
    guarded = pre_commit(project, home, "run", "--files", "work.py")
    assert guarded.returncode == 0, guarded.stdout
    (project / "train.py").write_text("import work\n\nwork.f('d')\n")
    git(project, "add", "--all")
    unguarded = pre_commit(project, home, "run", "fsrace-lint", "--files", "work.py")
    assert unguarded.returncode == 1
    assert "::warning file=work.py,line=6," in unguarded.stdout


def reported(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 1, done.stderr
    return re.findall(r"^(\S+\.py):\d+:\d+: FSR101 ", done.stdout, re.MULTILINE)


def test_documented_configuration(project: Path, tmp_path: Path) -> None:
    """The documented hook, on all files and on changed files only."""
    blocks = pages.blocks(ROOT / "docs" / "pre-commit.md")
    documents = [yaml.safe_load(block.text) for block in blocks if block.kind == "yaml"]
    (local,) = [rows for rows in documents if "repos" not in rows and rows[0].get("repo") == "local"]
    (project / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": local}))
    (project / "new.py").write_text(HAZARD)
    before = git(project, "rev-parse", "HEAD")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message=new")
    home = tmp_path / "home"

    everything = pre_commit(project, home, "run", "--all-files", "fsrace-lint")
    assert reported(everything) == ["new.py", "train.py"]
    change = pre_commit(project, home, "run", "fsrace-lint", "--from-ref", before, "--to-ref", "HEAD")
    assert reported(change) == ["new.py"]
    nothing = pre_commit(project, home, "run", "fsrace-lint", "--from-ref", "HEAD", "--to-ref", "HEAD")
    assert (nothing.returncode, "Skipped" in nothing.stdout) == (0, True)
