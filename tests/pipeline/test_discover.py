"""File discovery: which files are found and which are skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.trees import make_tree

from fsrace_lint.config.settings import Settings
from fsrace_lint.files.source import Unreadable
from fsrace_lint.pipeline.discover import find, is_test_path, leaves_out


def ignore(directory: Path, *lines: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / ".gitignore").write_text("\n".join(lines) + "\n", encoding="utf-8")


def found(root: Path, *paths: Path, settings: Settings | None = None) -> list[str]:
    items = find(paths or [root], settings or Settings(root=root))
    return [os.path.relpath(item if isinstance(item, Path) else item.file, root) for item in items]


class TestFind:
    def test_python_files_are_sorted_and_unique(self, tmp_path: Path) -> None:
        make_tree(tmp_path, "b.py", "a/z.py", "a/b/c.pyw", "stub.pyi", "text.txt", "py", "Z.PY")
        paths = [tmp_path, tmp_path / "a", tmp_path / "b.py", tmp_path / "a" / ".." / "b.py"]
        assert found(tmp_path, *paths) == ["a/b/c.pyw", "a/z.py", "b.py"]

    def test_relative_paths(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        make_tree(tmp_path, "p/a/x.py", "p/b/y.py")
        monkeypatch.chdir(tmp_path / "p" / "a")
        settings = Settings(root=tmp_path / "p")
        assert list(find([Path(), Path("..")], settings)) == [tmp_path / "p/a/x.py", tmp_path / "p/b/y.py"]

    def test_named_file_is_always_checked(self, tmp_path: Path) -> None:
        make_tree(tmp_path, "script", "build/x.py", "tests/test_x.py", "notes.pyi")
        ignore(tmp_path, "script")
        names = ["build/x.py", "missing.py", "notes.pyi", "script", "tests/test_x.py"]
        assert found(tmp_path, *(tmp_path / name for name in names)) == names

    def test_built_in_excludes(self, tmp_path: Path) -> None:
        names = (
            ".git .hg .svn .tox .nox .venv venv __pycache__ .eggs x.egg-info build dist _build node_modules"
        )
        directories = [*names.split(), "site-packages", ".mypy_cache", ".pytest_cache", ".ruff_cache"]
        directories.append(".fsrace_cache")
        make_tree(tmp_path, *(f"pkg/{name}/in.py" for name in directories))
        make_tree(tmp_path, "pkg/env/pyvenv.cfg", "pkg/env/lib/in.py")
        kept = ["build.py", "distribution/a.py", "dist.py", "env/a.py", "environment/a.py", "rebuild/a.py"]
        make_tree(tmp_path, *kept)
        assert found(tmp_path) == sorted(kept)

    def test_tests_and_docs_are_skipped_unless_included(self, tmp_path: Path) -> None:
        skipped = [
            "a/test/x.py",
            "conftest.py",
            "doc/conf.py",
            "docs/conf.py",
            "tests/x.py",
        ]
        kept = ["contest.py", "latest.py", "testing/x.py", "tests.py", "testutils/x.py"]
        make_tree(tmp_path, *skipped, *kept)
        assert found(tmp_path) == kept
        assert found(tmp_path, settings=Settings(root=tmp_path, include_tests=True)) == sorted(skipped + kept)
        assert found(tmp_path, tmp_path / "tests", tmp_path / "a" / "test") == ["a/test/x.py", "tests/x.py"]
        assert [is_test_path(name) for name in skipped] == [True] * len(skipped)
        assert [is_test_path(name) for name in kept] == [False] * len(kept)

    @pytest.mark.parametrize("name", ["a_test.py", "test_net.py"])
    @pytest.mark.parametrize(
        ("text", "is_test"),
        [
            ("def test_save() -> None: ...\n", True),
            ("class TestSave: ...\n", True),
            ("class Save(parameterized.TestCase): ...\n", True),
            ("import pytest\n", True),
            ("from unittest import mock\n", True),
            ("", False),
            ("def main() -> None: ...\n\n\nmain()\n", False),
        ],
    )
    def test_program_may_have_a_test_file_name(
        self, tmp_path: Path, name: str, text: str, *, is_test: bool
    ) -> None:
        make_tree(tmp_path, f"tools/{name}", "a.py")
        (tmp_path / "tools" / name).write_text(text)
        kept = ["a.py"] if is_test else ["a.py", f"tools/{name}"]
        assert found(tmp_path) == kept
        settings = Settings(root=tmp_path)
        assert leaves_out(tmp_path / "tools" / name, settings) is is_test
        assert found(tmp_path, settings=Settings(root=tmp_path, include_tests=True))[1:] == [f"tools/{name}"]

    def test_unreadable_test_file_is_skipped(self, tmp_path: Path) -> None:
        (tmp_path / "test_a.py").symlink_to("nowhere.py")
        assert leaves_out(tmp_path / "test_a.py", Settings(root=tmp_path))
        assert found(tmp_path) == []

    def test_directories_above_root_do_not_matter(self, tmp_path: Path) -> None:
        root = make_tree(tmp_path / "build" / "tests" / "site-packages" / "proj", "a.py", "pkg/b.py")
        make_tree(tmp_path, "build/pyvenv.cfg")
        ignore(tmp_path, "*")
        assert found(root) == ["a.py", "pkg/b.py"]
        assert found(root, root / "pkg") == ["pkg/b.py"]

    def test_named_directory_is_walked(self, tmp_path: Path) -> None:
        make_tree(
            tmp_path, "build/lib/a.py", "build/dist/b.py", "env/pyvenv.cfg", "env/c.py", "ignored/in/d.py"
        )
        make_tree(tmp_path, "ignored/in/build/e.py")
        ignore(tmp_path, "ignored/", "*.tmp")
        for directory, names in [
            ("build", ["build/lib/a.py"]),
            ("build/dist", ["build/dist/b.py"]),
            ("env", ["env/c.py"]),
            ("ignored", ["ignored/in/d.py"]),
            ("ignored/in", ["ignored/in/d.py"]),
        ]:
            assert found(tmp_path, tmp_path / directory) == names
        ignore(tmp_path, "*")
        assert found(tmp_path, tmp_path / "ignored") == ["ignored/in/d.py"]
        assert found(tmp_path) == []

    def test_configured_excludes(self, tmp_path: Path) -> None:
        make_tree(
            tmp_path, "src/gen/a.py", "src/b_pb2.py", "gen/c.py", "build/d.py", "src/e.py", "src/gen.py"
        )
        settings = Settings(root=tmp_path, extend_exclude=("src/gen", "*_pb2.py"))
        assert found(tmp_path, settings=settings) == ["gen/c.py", "src/e.py", "src/gen.py"]
        assert found(tmp_path, tmp_path / "src", settings=settings) == ["src/e.py", "src/gen.py"]
        settings = Settings(root=tmp_path, exclude=("gen/",))
        assert found(tmp_path, settings=settings) == ["build/d.py", "src/b_pb2.py", "src/e.py", "src/gen.py"]

    def test_directory_outside_root(self, tmp_path: Path) -> None:
        make_tree(tmp_path, "root/", "other/src/a.py", "other/build/b.py")
        ignore(tmp_path / "other", "ignored.py")
        make_tree(tmp_path, "other/ignored.py")
        names = list(find([tmp_path / "other"], Settings(root=tmp_path / "root")))
        assert names == [tmp_path / "other" / "src" / "a.py"]

    def test_symlinks(self, tmp_path: Path) -> None:
        make_tree(tmp_path, "pkg/a.py", "elsewhere/b.py")
        (tmp_path / "pkg" / "loop").symlink_to("..")
        (tmp_path / "pkg" / "folder.py").symlink_to("../elsewhere")
        (tmp_path / "pkg" / "file.py").symlink_to("../elsewhere/b.py")
        (tmp_path / "pkg" / ".#a.py").symlink_to("someone@host.1234")
        (tmp_path / "pkg" / "self.py").symlink_to("self.py")
        assert found(tmp_path) == ["elsewhere/b.py", "pkg/a.py", "pkg/file.py"]
        assert found(tmp_path, tmp_path / "pkg" / "folder.py") == ["pkg/folder.py/b.py"]

    def test_special_files_are_skipped(self, tmp_path: Path) -> None:
        make_tree(tmp_path, "folder.py/a.py")
        os.mkfifo(tmp_path / "pipe.py")
        os.mkfifo(tmp_path / ".gitignore")
        assert found(tmp_path) == ["folder.py/a.py"]

    def test_directory_that_cannot_be_listed_is_reported(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_tree(tmp_path, "a.py", "b/c.py", "d.py")
        scandir = os.scandir

        def refuse(directory: str) -> object:
            if directory.endswith("b"):
                raise PermissionError(13, "Permission denied")
            return scandir(directory)

        monkeypatch.setattr("fsrace_lint.files.source.os.scandir", refuse)
        monkeypatch.chdir(tmp_path)
        first, second, third = find([tmp_path], Settings(root=tmp_path))
        assert (first, third) == (tmp_path / "a.py", tmp_path / "d.py")
        assert second == Unreadable("b", tmp_path / "b", "b", "cannot list the directory: Permission denied")

    def test_include_tests_adds_test_files(self, tmp_path: Path) -> None:
        make_tree(tmp_path, "a.py", "pkg/b.py", "tests/c.py", "ignored.py", "build/d.py")
        ignore(tmp_path, "ignored.py")
        assert [*find([tmp_path], Settings(root=tmp_path))] == [tmp_path / "a.py", tmp_path / "pkg" / "b.py"]
        assert tmp_path / "tests" / "c.py" in [*find([tmp_path], Settings(root=tmp_path, include_tests=True))]


FILES: tuple[str, ...] = (
    "a.py",
    "b.py",
    "keep.py",
    "src/a.py",
    "src/b.py",
    "src/keep.py",
    "src/sub/a.py",
    "src/sub/keep.py",
)
FILES += ("out/a.py", "out/keep.py", "out/src/a.py", "out/src/keep.py", "#a.py", "!a.py", "sp ace.py", "é.py")
IGNORES: dict[str, dict[str, tuple[str, ...]]] = {
    "names": {"": ("a.py", "out")},
    "directories": {"": ("src/", "a.py/")},
    "anchored": {"": ("/a.py", "src/sub", "/src/b.py")},
    "anchored-elsewhere": {"": ("sub/a.py",), "src": ("sub/a.py", "/sub/keep.py")},
    "negated": {"": ("*.py", "!keep.py")},
    "negated-first": {"": ("!keep.py", "*.py")},
    "nested-negation": {"": ("a.py", "keep.py"), "src": ("!a.py",), "src/sub": ("a.py", "!keep.py")},
    "no-negation-inside-an-excluded-directory": {"": ("out/", "!out/keep.py"), "out": ("!keep.py",)},
    "excluded-contents-with-negation": {"": ("out/*", "!out/keep.py", "!out/src/")},
    "all-contents-with-negation": {"": ("out/**", "!out/keep.py")},
    "allow-list": {"": ("*", "!*/", "!keep.py", "!.gitignore")},
    "allow-list-nested": {"": ("/*", "!/src", "!/.gitignore"), "src": ("*", "!sub/", "!a.py")},
    "stars": {"": ("**/sub/a.py", "out/**/keep.py", "s*/b.p?", "[b-k]*.py")},
    "classes": {"": ("[!béc].py", "src/[a-c].py")},
    "escapes": {"": ("\\#a.py", "\\!a.py", "# a comment", "", "é.py")},
    "spaces": {"": ("a.py   ", "sp ace.py")},
    "windows": {"": ("a.py\r", "src/\r")},
    "bad-lines": {"": ("[z-a].py", "b.py\\", "!", "/", "//", "a.py")},
    "bom": {"": ("\ufeffa.py",)},
    "same-name-twice": {"": ("src", "!/src")},
}


class TestGitignore:
    @pytest.mark.parametrize("name", IGNORES)
    def test_finds_the_same_files_as_git(
        self, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        git = shutil.which("git")
        if git is None:
            pytest.skip("git is not installed")
        for variable in [variable for variable in os.environ if variable.startswith("GIT_")]:
            monkeypatch.delenv(variable)
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
        monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        root = make_tree(tmp_path / "root", *FILES)
        for directory, lines in IGNORES[name].items():
            ignore(root / directory, *lines)
        subprocess.run([git, "init", "-q"], cwd=root, check=True)
        command = [git, "ls-files", "-z", "--others", "--exclude-standard"]
        listed = (
            subprocess.run(command, cwd=root, check=True, capture_output=True).stdout.decode().split("\0")
        )
        expected = sorted(item for item in listed if item.endswith(".py"))
        assert len(expected) < len(FILES)
        assert sorted(found(root)) == expected
        everything = found(root, settings=Settings(root=root, respect_gitignore=False))
        assert sorted(everything) == sorted(FILES)

    def test_patterns_that_pathspec_rejects_are_ignored(self, tmp_path: Path) -> None:
        make_tree(tmp_path, "a.py", "b.py")
        ignore(tmp_path, "[[:alpha:]].py", "[a&&b].py", "b.py")
        assert found(tmp_path) == ["a.py"]

    def test_parent_gitignore_files_apply_up_to_root(self, tmp_path: Path) -> None:
        root = make_tree(tmp_path / "root", "pkg/in/a.py", "pkg/in/b.py", "pkg/in/c.py", "pkg/in/d.py")
        ignore(tmp_path, "d.py")
        ignore(root, "a.py", "/pkg/in/b.py")
        ignore(root / "pkg", "c.py")
        assert found(root, root / "pkg" / "in") == ["pkg/in/d.py"]
