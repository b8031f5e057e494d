"""The project root: git, the outermost marker, the named directory, and the setting `root`."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsrace_lint.config.roots import find_root, is_project

ROOT_TABLE = '[tool.fsrace-lint]\nroot = "{}"\n'


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """A directory `top/a/b` with the file `x.py`."""
    deep = tmp_path / "top" / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "x.py").touch()
    return deep


def roots(*paths: Path) -> set[Path]:
    return {find_root(path) for path in paths}


@pytest.mark.parametrize("marker", ["pyproject.toml", "setup.py", "setup.cfg"])
def test_root_is_the_outermost_directory_with_a_marker(deep: Path, marker: str) -> None:
    top = deep.parent.parent
    (top / marker).touch()
    (deep.parent / "pyproject.toml").touch()
    (deep / "setup.py").touch()
    assert roots(deep / "x.py", deep, deep.parent, deep / "missing.py", top) == {top}


def test_root_is_the_repository(deep: Path) -> None:
    (deep.parent.parent / "pyproject.toml").touch()
    (deep.parent / ".git").mkdir()
    (deep / "pyproject.toml").touch()
    assert roots(deep, deep.parent) == {deep.parent}
    assert find_root(deep.parent.parent) == deep.parent.parent


@pytest.mark.parametrize(
    ("git", "is_own"),
    [
        ("gitdir: ../../.git/modules/a/b\n", False),
        ("gitdir: ../../.git/worktrees/one/modules/b\n", False),
        ("gitdir: C:\\\\repository\\\\.git\\\\modules\\\\b\n".replace("\\\\", "\\"), False),
        ("gitdir: /home/me/modules/top/.git/worktrees/one\n", True),
        ("", True),
    ],
)
def test_submodule_belongs_to_the_repository_around_it(deep: Path, git: str, *, is_own: bool) -> None:
    top = deep.parent.parent
    (top / ".git").mkdir()
    (deep / ".git").write_text(git)
    assert find_root(deep / "x.py") == (deep if is_own else top)


def test_submodule_without_a_repository_around_it(deep: Path) -> None:
    (deep / ".git").write_text("gitdir: ../.git/modules/b\n")
    assert find_root(deep / "x.py") == deep


def test_root_of_a_relative_path(deep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (deep.parent / "setup.py").touch()
    monkeypatch.chdir(deep)
    assert find_root(Path("x.py")) == deep.parent


def test_root_without_a_marker(deep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fsrace_lint.config.roots.ROOT_MARKERS", ("no-such-marker",))
    top = deep.parent.parent
    assert not is_project(top)
    assert find_root(deep) == find_root(deep / "x.py") == deep
    assert find_root(deep / "x.py", [deep.parent, top / "other"]) == deep.parent
    assert find_root(deep / "x.py", [deep.parent, top]) == top


class TestRootSetting:
    @pytest.fixture(autouse=True)
    def repository(self, deep: Path) -> None:
        (deep.parent.parent / ".git").mkdir()

    def test_nearest_table_that_sets_it_decides(self, deep: Path) -> None:
        (deep.parent / "pyproject.toml").write_text(ROOT_TABLE.format("."))
        (deep / "pyproject.toml").write_text("[tool.fsrace-lint]\n")
        assert roots(deep / "x.py", deep.parent) == {deep.parent}
        assert find_root(deep.parent.parent) == deep.parent.parent

    def test_root_can_be_above_the_repository(self, deep: Path) -> None:
        (deep.parent.parent / "pyproject.toml").write_text(ROOT_TABLE.format(".."))
        assert find_root(deep / "x.py") == deep.parent.parent.parent

    @pytest.mark.parametrize("table", [ROOT_TABLE.format("b"), "[tool.fsrace-lint]\nroot = 1\n", "fsrace ="])
    def test_invalid_root_is_ignored_until_the_settings_are_read(self, deep: Path, table: str) -> None:
        (deep.parent / "pyproject.toml").write_text(table)
        assert find_root(deep / "x.py") == deep.parent.parent
