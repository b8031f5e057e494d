"""A file has the same findings in all ways to check it: alone, in flake8, in the server, in the daemon."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support.monorepo import TABLE, TRAIN, WORK, Repository, by_check, by_flake8, by_server, of, repositories
from support.sampling import bound

from fsrace_lint.pipeline.warm import WarmProjects

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKSPACE = {
    ".git/HEAD": "",
    "pyproject.toml": "[tool.uv.workspace]\n",
    "app/pyproject.toml": "[project]\nname = 'app'\n",
    "app/train.py": TRAIN.format(package="lib", guard="prepare(out)"),
    "lib/pyproject.toml": "[project]\nname = 'lib'\n",
    "lib/lib/__init__.py": "",
    "lib/lib/work.py": WORK,
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextlib.contextmanager
def written(repository: Repository) -> Iterator[None]:
    """Write a repository to a temporary directory, and make that the current directory."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        repository.write(Path(folder))
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def test_workspace_reports_the_same_for_each_file(here: Path) -> None:
    Repository(WORKSPACE).write(here)
    whole, _ = by_check(["."])
    assert {(path, code) for path, _, code, _ in whole} == {
        ("lib/lib/work.py", "FSR101"),
        ("lib/lib/work.py", "FSR201"),
    }
    for names in (["lib"], ["lib/lib/work.py"], ["app/train.py", "lib/lib/work.py"]):
        assert by_check(names)[0] == by_flake8(names) == whole
    assert by_server(["lib/lib/work.py"]) == whole


def test_package_with_its_own_root_is_checked_alone(here: Path) -> None:
    Repository({**WORKSPACE, "lib/pyproject.toml": f'{TABLE}root = "."\n'}).write(here)
    whole, _ = by_check(["."])
    assert {code for _, _, code, _ in whole} == {"FSR101", "FSR204"}
    assert by_check(["lib"])[0] == by_flake8(["."]) == whole
    assert by_check(["."])[1] == {"app/train.py", "lib/lib/__init__.py", "lib/lib/work.py"}


@given(repository=repositories(), data=st.data())
@hypothesis_settings(max_examples=bound(25, 400), deadline=None)
def test_parts_report_the_same_as_the_whole(repository: Repository, data: st.DataObject) -> None:
    with written(repository):
        whole, all_checked = by_check(["."])
        targets = [*repository.code, *repository.folders]
        named = data.draw(st.lists(st.sampled_from(targets), min_size=1, max_size=4, unique=True))
        part, checked = by_check(named)
        assert checked <= all_checked
        assert part == of(whole, checked)
        files = sorted(checked)
        assert by_server(files) == part
        warm = WarmProjects()
        warm.loads = True
        for file in files[:1]:
            assert by_check([file], warm)[0] == of(whole, {file})


@given(repository=repositories(), data=st.data())
@hypothesis_settings(max_examples=bound(3, 60), deadline=None)
def test_flake8_reports_the_same_as_the_whole(repository: Repository, data: st.DataObject) -> None:
    with written(repository):
        whole, all_checked = by_check(["."])
        targets = [*repository.code, *repository.folders]
        named = data.draw(st.lists(st.sampled_from(targets), min_size=1, max_size=4, unique=True))
        assert by_flake8(named) == of(whole, by_check(named)[1] & all_checked)
