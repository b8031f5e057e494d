"""Symbolic links between the files of a project: one file with multiple names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from fsrace_lint import rules
from fsrace_lint.config import settings
from fsrace_lint.config.roots import find_root
from fsrace_lint.pipeline import check as checking
from fsrace_lint.pipeline import discover

PREPARE = """\
    import os


    def prepare(folder):
        if not os.path.isdir(folder):
            os.makedirs(folder)
    """
GUARDED = """\
    import torch.distributed as dist
    from prepare import prepare

    if dist.get_rank() == 0:
        prepare("data")
    """


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    """Two recipes that share a file in their parent directory, with a symlink next to each script."""
    (tmp_path / "pyproject.toml").write_text("", "utf-8")
    (tmp_path / "prepare.py").write_text(dedent(PREPARE), "utf-8")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "prepare.py").symlink_to("../prepare.py")
        (tmp_path / name / "train.py").write_text(dedent(GUARDED), "utf-8")
    return tmp_path


def check(*named: Path) -> list[tuple[str, int]]:
    results = checking.check(named, lambda path: settings.load(find_root(path), rules.names()))
    (checked,) = [checked for _, checked in results]
    return [
        (Path(finding.place.path).name, finding.place.span.line)
        if Path(finding.place.path).parent == named[0]
        else (finding.place.path, finding.place.span.line)
        for finding in checked.outcome.findings
    ]


def test_rank_checks_in_importers_of_symlinks_protect_the_file(recipes: Path) -> None:
    assert check(recipes) == []


def test_one_caller_without_rank_check_is_reported(recipes: Path) -> None:
    script = recipes / "two" / "train.py"
    script.write_text("from prepare import prepare\n\nprepare('data')\n", "utf-8")
    assert [line for _, line in check(recipes)] == [6]


def test_file_is_reported_once_under_its_real_name(recipes: Path) -> None:
    (recipes / "one" / "train.py").unlink()
    (recipes / "two" / "train.py").unlink()
    assert check(recipes) == [("prepare.py", 6)]


def test_named_symlink_is_resolved_to_its_file(recipes: Path) -> None:
    (recipes / "one" / "train.py").unlink()
    (recipes / "two" / "train.py").unlink()
    run, checked = checking.check(
        [recipes / "two" / "prepare.py"],
        lambda path: settings.load(find_root(path), rules.names()),
    )[0]
    assert run.links == {"one/prepare.py": "prepare.py", "two/prepare.py": "prepare.py"}
    assert [Path(finding.place.path) for finding in checked.outcome.findings] == [recipes / "prepare.py"]


def test_symlink_to_file_outside_project_is_checked(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "pyproject.toml").write_text("", "utf-8")
    (outside / "lib.py").write_text(dedent(PREPARE), "utf-8")
    (root / "lib.py").symlink_to("../outside/lib.py")
    assert check(root) == [("lib.py", 6)]


def test_chained_and_broken_symlinks(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("", "utf-8")
    (tmp_path / "b.py").symlink_to("a.py")
    (tmp_path / "c.py").symlink_to("b.py")
    (tmp_path / "dangling.py").symlink_to("nowhere.py")
    (tmp_path / "loop.py").symlink_to("loop.py")
    files = sorted(tmp_path.glob("*.py"))
    assert discover.links_among([discover.known(file, tmp_path) for file in files], tmp_path) == {
        "b.py": "a.py",
        "c.py": "a.py",
    }


def test_root_may_be_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.py").write_text("", "utf-8")
    (tmp_path / "real" / "b.py").symlink_to("a.py")
    (tmp_path / "root").symlink_to("real")
    root = tmp_path / "root"
    files = [root / name for name in ("a.py", "b.py")]
    assert discover.links_among([discover.known(file, root) for file in files], root) == {"b.py": "a.py"}


def test_fix_writes_the_file_and_keeps_symlinks(recipes: Path) -> None:
    (recipes / "one" / "train.py").unlink()
    (recipes / "two" / "train.py").unlink()
    command = [sys.executable, "-m", "fsrace_lint", "fix", os.fspath(recipes / "one" / "prepare.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=recipes)
    assert done.returncode == 0, done.stderr
    assert "exist_ok=True" in (recipes / "prepare.py").read_text("utf-8")
    assert (recipes / "one" / "prepare.py").readlink() == Path("../prepare.py")


def test_flake8_reports_the_file_once(recipes: Path) -> None:
    (recipes / "one" / "train.py").unlink()
    (recipes / "two" / "train.py").unlink()
    command = [sys.executable, "-m", "flake8", "--isolated", "--select=FSR", "."]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=recipes)
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["./prepare.py"]
    shown = subprocess.run(
        [sys.executable, "-m", "fsrace_lint", "check", "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=recipes,
    )
    assert [finding["path"] for finding in json.loads(shown.stdout)["findings"]] == ["prepare.py"]
