"""Source: which files are found, how they are read, and where their columns are."""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from fsrace_lint.config.settings import Settings
from fsrace_lint.files.source import LARGEST, Columns, Source, Unreadable, decode, read
from fsrace_lint.files.spans import Span
from fsrace_lint.pipeline.discover import find, is_test_path, leaves_out


def tree(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.touch()
    return root


def ignore(folder: Path, *lines: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("\n".join(lines) + "\n", encoding="utf-8")


def found(root: Path, *paths: Path, settings: Settings | None = None) -> list[str]:
    items = find(paths or [root], settings or Settings(root=root))
    return [os.path.relpath(item if isinstance(item, Path) else item.file, root) for item in items]


def good(data: bytes) -> Source:
    result = decode(data, Path("/p/a.py"), Path("/p"))
    assert isinstance(result, Source)
    return result


def bad(data: bytes) -> Unreadable:
    result = decode(data, Path("/p/a.py"), Path("/p"))
    assert isinstance(result, Unreadable)
    return result


class TestRead:
    def test_everything_about_a_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        data = b"\xef\xbb\xbfx = '\xc3\xa9'\r\ny = 2\n\r\n"
        (tmp_path / "project" / "pkg").mkdir(parents=True)
        file = tmp_path / "project" / "pkg" / "a.py"
        file.write_bytes(data)
        monkeypatch.chdir(tmp_path)
        found = read(Path("project/pkg/a.py"), tmp_path / "project")
        assert found == Source(
            path="project/pkg/a.py",
            file=file,
            relative="pkg/a.py",
            data=data,
            encoding="utf-8",
            bom=True,
            newline="\r\n",
            digest=hashlib.blake2b(data, digest_size=20).hexdigest(),
        )
        assert found.text == "x = 'é'\r\ny = 2\n\r\n"

    def test_names_outside_the_current_folder_and_the_root(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tree(tmp_path, "here/", "here2/a.py", "there/")
        monkeypatch.chdir(tmp_path / "here")
        result = read(Path("../here2/a.py"), tmp_path / "there")
        assert isinstance(result, Source)
        assert result.path == (tmp_path / "here2/a.py").as_posix()
        assert result.file == tmp_path / "here2" / "a.py"
        assert result.relative == "../here2/a.py"

    def test_links_stay_links(self, tmp_path: Path) -> None:
        tree(tmp_path, "real/a.py")
        (tmp_path / "link").symlink_to("real")
        (tmp_path / "b.py").symlink_to("real/a.py")
        assert read(tmp_path / "link" / "a.py", tmp_path).relative == "link/a.py"
        assert read(tmp_path / "b.py", tmp_path).file == tmp_path / "b.py"

    def test_dots_behind_a_link_mean_what_they_mean_to_the_system(self, tmp_path: Path) -> None:
        tree(tmp_path, "real/deep/", "a.py")
        (tmp_path / "real" / "a.py").write_bytes(b"right = 1")
        (tmp_path / "link").symlink_to("real/deep")
        result = read(tmp_path / "link" / ".." / "a.py", tmp_path)
        assert isinstance(result, Source)
        assert result.text == "right = 1"
        assert result.relative == "real/a.py"

    def test_what_is_no_file(self, tmp_path: Path) -> None:
        (tmp_path / "folder.py").mkdir()
        os.mkfifo(tmp_path / "pipe.py")
        server = socket.socket(socket.AF_UNIX)
        server.bind(os.path.relpath(tmp_path / "s.py"))
        server.close()
        (tmp_path / "dangling.py").symlink_to("nowhere")
        (tmp_path / "loop.py").symlink_to("loop.py")
        tree(tmp_path, "file")
        for name, said in [
            ("folder.py", "is a folder"),
            ("pipe.py", "not a regular file"),
            ("s.py", "not a regular file"),
            ("missing.py", "does not exist"),
            ("dangling.py", "does not exist"),
            ("loop.py", "cannot be read"),
            ("file/a.py", "cannot be read"),
            ("nul\0.py", "cannot be read"),
        ]:
            result = read(tmp_path / name, tmp_path)
            assert isinstance(result, Unreadable), name
            assert said in result.reason
            assert (result.relative, result.line, result.column) == (name, 1, 1)

    def test_permission_denied(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(_: Path) -> bytes:
            raise PermissionError(13, "Permission denied")

        tree(tmp_path, "a.py")
        monkeypatch.setattr(Path, "read_bytes", refuse)
        result = read(tmp_path / "a.py", tmp_path)
        assert isinstance(result, Unreadable)
        assert result.reason == "cannot be read: Permission denied"

    def test_the_current_folder_may_be_gone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tree(tmp_path, "gone/", "a.py")
        monkeypatch.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        assert read(tmp_path / "a.py", tmp_path).path == (tmp_path / "a.py").as_posix()

    def test_a_file_that_is_too_large(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is not even read."""
        file = tmp_path / "a.py"
        with file.open("wb") as out:
            out.truncate(LARGEST + 1)
        monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail("it was read"))
        result = read(file, tmp_path)
        assert isinstance(result, Unreadable)
        assert result.reason == "is not analyzed: 5.0 MB are more than the 5 MB that a file may have"

    def test_one_that_has_the_most_there_may_be(self, tmp_path: Path) -> None:
        file = tmp_path / "a.py"
        file.write_bytes(b"#" * LARGEST)
        assert isinstance(read(file, tmp_path), Source)


class TestDecode:
    def test_an_editor_hands_over_too_much(self) -> None:
        assert bad(b"#" * (LARGEST + 1)).reason.startswith("is not analyzed: 5.0 MB")

    def test_an_empty_file(self) -> None:
        assert (good(b"").text, good(b"").newline, good(b"").encoding) == ("", "\n", "utf-8")

    @pytest.mark.parametrize(
        ("data", "text"),
        [
            (b"# -*- coding: latin-1 -*-\nx = '\xe9'", "x = 'é'"),
            (b"#!/bin/sh\n# vim: fileencoding=cp1252\nx = '\x80'", "x = '€'"),
            (b"# caf\xe9\n# coding: latin-1\nx", "x"),
            (b"# coding: latin-1 caf\xe9\nx", "x"),
            (b"# coding: latin-1\rx = '\xe9'", "x = 'é'"),
            (b"# coding: shift_jis\nx = '\x83\x5c'", "x = 'ソ'"),
            (b"# coding: utf-8\nx = '\xc3\xa9'", "x = 'é'"),
        ],
    )
    def test_a_comment_names_the_encoding(self, data: bytes, text: str) -> None:
        source = good(data)
        assert source.text.splitlines()[-1] == text
        assert source.text.encode(source.encoding) == data

    def test_the_encoding_is_named_in_the_first_two_lines_only(self) -> None:
        assert "UTF-8" in bad(b"\n\n# coding: latin-1\nx = '\xe9'").reason
        assert "UTF-8" in bad(b"# a\rb\r# coding: latin-1\r'\xe9'").reason

    @pytest.mark.parametrize(
        ("data", "said", "line", "column"),
        [
            (b"x = 1\r\ny = '\xff'\n", "is not encoded as UTF-8: byte 0xff", 2, 6),
            (b"\xef\xbb\xbf\xc3\xa9\xff", "is not encoded as UTF-8: byte 0xff", 1, 2),
            (b"\xff\xfex\0", "is not encoded as UTF-8: byte 0xff", 1, 1),
            (b"# coding: ascii\rx = '\xe9'", "is not encoded as ASCII: byte 0xe9", 2, 6),
            (b"# coding: cp1252\nx = '\x81'", "is not encoded as CP1252: byte 0x81", 2, 6),
            (b"# coding: nonsense\n", "unknown encoding: nonsense", 1, 1),
            (b"# coding: rot13\n", "is not a text encoding", 1, 1),
            (b"# coding: undefined\n", "cannot be decoded", 1, 1),
            (b"\xef\xbb\xbf# coding: latin-1\n", "encoding problem", 1, 1),
            (b"# coding: utf-7\nx = '+2AA-'\n", "cannot be decoded", 1, 1),
            (b"x\ny\0z\n", "contains a NUL character", 2, 2),
        ],
    )
    def test_what_cannot_be_decoded(self, data: bytes, said: str, line: int, column: int) -> None:
        result = bad(data)
        assert said in result.reason
        assert (result.line, result.column) == (line, column)
        with pytest.raises((SyntaxError, ValueError)):
            compile(data, "a.py", "exec")

    @pytest.mark.parametrize(
        ("data", "newline"),
        [
            (b"a\nb\r\n", "\n"),
            (b"a\r\nb\r\nc\n", "\r\n"),
            (b"a\rb\rc\r\n", "\r"),
            (b"a", "\n"),
            (b"\n\r", "\n"),
        ],
    )
    def test_the_most_frequent_newline(self, data: bytes, newline: str) -> None:
        assert good(data).newline == newline

    @given(st.text(st.characters(exclude_characters="\0", codec="utf-8")), st.booleans())
    def test_nothing_is_lost(self, text: str, bom: bool) -> None:
        if "coding" in text or text.startswith("\ufeff"):
            return
        data = (b"\xef\xbb\xbf" if bom else b"") + text.encode()
        source = good(data)
        assert (source.text, source.bom, source.data) == (text, bom, data)

    @given(st.binary())
    def test_any_bytes_have_an_answer(self, data: bytes) -> None:
        result = decode(data, Path("/p/a.py"), Path("/p"))
        if isinstance(result, Source):
            assert result.text.encode() == data.removeprefix(b"\xef\xbb\xbf")
        else:
            assert result.line <= len(data) + 1


class TestFind:
    def test_python_files_in_sorted_order_once(self, tmp_path: Path) -> None:
        tree(tmp_path, "b.py", "a/z.py", "a/b/c.pyw", "stub.pyi", "text.txt", "py", "Z.PY")
        paths = [tmp_path, tmp_path / "a", tmp_path / "b.py", tmp_path / "a" / ".." / "b.py"]
        assert found(tmp_path, *paths) == ["a/b/c.pyw", "a/z.py", "b.py"]

    def test_relative_paths(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tree(tmp_path, "p/a/x.py", "p/b/y.py")
        monkeypatch.chdir(tmp_path / "p" / "a")
        settings = Settings(root=tmp_path / "p")
        assert list(find([Path(), Path("..")], settings)) == [tmp_path / "p/a/x.py", tmp_path / "p/b/y.py"]

    def test_a_file_that_is_named_is_always_checked(self, tmp_path: Path) -> None:
        tree(tmp_path, "script", "build/x.py", "tests/test_x.py", "notes.pyi")
        ignore(tmp_path, "script")
        names = ["build/x.py", "missing.py", "notes.pyi", "script", "tests/test_x.py"]
        assert found(tmp_path, *(tmp_path / name for name in names)) == names

    def test_built_in_excludes(self, tmp_path: Path) -> None:
        names = (
            ".git .hg .svn .tox .nox .venv venv __pycache__ .eggs x.egg-info build dist _build node_modules"
        )
        folders = [*names.split(), "site-packages", ".mypy_cache", ".pytest_cache", ".ruff_cache"]
        folders.append(".fsrace_cache")
        tree(tmp_path, *(f"pkg/{name}/in.py" for name in folders))
        tree(tmp_path, "pkg/env/pyvenv.cfg", "pkg/env/lib/in.py")
        kept = ["build.py", "distribution/a.py", "dist.py", "env/a.py", "environment/a.py", "rebuild/a.py"]
        tree(tmp_path, *kept)
        assert found(tmp_path) == sorted(kept)

    def test_tests_and_docs_are_left_out_unless_wanted(self, tmp_path: Path) -> None:
        left_out = [
            "a/test/x.py",
            "conftest.py",
            "doc/conf.py",
            "docs/conf.py",
            "tests/x.py",
        ]
        kept = ["contest.py", "latest.py", "testing/x.py", "tests.py", "testutils/x.py"]
        tree(tmp_path, *left_out, *kept)
        assert found(tmp_path) == kept
        assert found(tmp_path, settings=Settings(root=tmp_path, include_tests=True)) == sorted(
            left_out + kept
        )
        assert found(tmp_path, tmp_path / "tests", tmp_path / "a" / "test") == ["a/test/x.py", "tests/x.py"]
        assert [is_test_path(name) for name in left_out] == [True] * len(left_out)
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
    def test_a_program_may_be_named_like_a_test(
        self, tmp_path: Path, name: str, text: str, *, is_test: bool
    ) -> None:
        tree(tmp_path, f"tools/{name}", "a.py")
        (tmp_path / "tools" / name).write_text(text)
        kept = ["a.py"] if is_test else ["a.py", f"tools/{name}"]
        assert found(tmp_path) == kept
        settings = Settings(root=tmp_path)
        assert leaves_out(tmp_path / "tools" / name, settings) is is_test
        assert found(tmp_path, settings=Settings(root=tmp_path, include_tests=True))[1:] == [f"tools/{name}"]

    def test_a_test_that_cannot_be_read_is_left_out(self, tmp_path: Path) -> None:
        (tmp_path / "test_a.py").symlink_to("nowhere.py")
        assert leaves_out(tmp_path / "test_a.py", Settings(root=tmp_path))
        assert found(tmp_path) == []

    def test_folders_above_the_root_do_not_matter(self, tmp_path: Path) -> None:
        root = tree(tmp_path / "build" / "tests" / "site-packages" / "proj", "a.py", "pkg/b.py")
        tree(tmp_path, "build/pyvenv.cfg")
        ignore(tmp_path, "*")
        assert found(root) == ["a.py", "pkg/b.py"]
        assert found(root, root / "pkg") == ["pkg/b.py"]

    def test_a_folder_that_is_named_is_walked(self, tmp_path: Path) -> None:
        tree(tmp_path, "build/lib/a.py", "build/dist/b.py", "env/pyvenv.cfg", "env/c.py", "ignored/in/d.py")
        tree(tmp_path, "ignored/in/build/e.py")
        ignore(tmp_path, "ignored/", "*.tmp")
        for folder, names in [
            ("build", ["build/lib/a.py"]),
            ("build/dist", ["build/dist/b.py"]),
            ("env", ["env/c.py"]),
            ("ignored", ["ignored/in/d.py"]),
            ("ignored/in", ["ignored/in/d.py"]),
        ]:
            assert found(tmp_path, tmp_path / folder) == names
        ignore(tmp_path, "*")
        assert found(tmp_path, tmp_path / "ignored") == ["ignored/in/d.py"]
        assert found(tmp_path) == []

    def test_own_excludes(self, tmp_path: Path) -> None:
        tree(tmp_path, "src/gen/a.py", "src/b_pb2.py", "gen/c.py", "build/d.py", "src/e.py", "src/gen.py")
        settings = Settings(root=tmp_path, extend_exclude=("src/gen", "*_pb2.py"))
        assert found(tmp_path, settings=settings) == ["gen/c.py", "src/e.py", "src/gen.py"]
        assert found(tmp_path, tmp_path / "src", settings=settings) == ["src/e.py", "src/gen.py"]
        settings = Settings(root=tmp_path, exclude=("gen/",))
        assert found(tmp_path, settings=settings) == ["build/d.py", "src/b_pb2.py", "src/e.py", "src/gen.py"]

    def test_a_folder_outside_the_root(self, tmp_path: Path) -> None:
        tree(tmp_path, "root/", "other/src/a.py", "other/build/b.py")
        ignore(tmp_path / "other", "ignored.py")
        tree(tmp_path, "other/ignored.py")
        names = list(find([tmp_path / "other"], Settings(root=tmp_path / "root")))
        assert names == [tmp_path / "other" / "src" / "a.py"]

    def test_links(self, tmp_path: Path) -> None:
        tree(tmp_path, "pkg/a.py", "elsewhere/b.py")
        (tmp_path / "pkg" / "loop").symlink_to("..")
        (tmp_path / "pkg" / "folder.py").symlink_to("../elsewhere")
        (tmp_path / "pkg" / "file.py").symlink_to("../elsewhere/b.py")
        (tmp_path / "pkg" / ".#a.py").symlink_to("someone@host.1234")
        (tmp_path / "pkg" / "self.py").symlink_to("self.py")
        assert found(tmp_path) == ["elsewhere/b.py", "pkg/a.py", "pkg/file.py"]
        assert found(tmp_path, tmp_path / "pkg" / "folder.py") == ["pkg/folder.py/b.py"]

    def test_what_is_no_file(self, tmp_path: Path) -> None:
        tree(tmp_path, "folder.py/a.py")
        os.mkfifo(tmp_path / "pipe.py")
        os.mkfifo(tmp_path / ".gitignore")
        assert found(tmp_path) == ["folder.py/a.py"]

    def test_a_folder_that_cannot_be_listed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tree(tmp_path, "a.py", "b/c.py", "d.py")
        scandir = os.scandir

        def refuse(folder: str) -> object:
            if folder.endswith("b"):
                raise PermissionError(13, "Permission denied")
            return scandir(folder)

        monkeypatch.setattr("fsrace_lint.files.source.os.scandir", refuse)
        monkeypatch.chdir(tmp_path)
        first, second, third = find([tmp_path], Settings(root=tmp_path))
        assert (first, third) == (tmp_path / "a.py", tmp_path / "d.py")
        assert second == Unreadable("b", tmp_path / "b", "b", "cannot be listed: Permission denied")

    def test_all_files_of_the_project(self, tmp_path: Path) -> None:
        tree(tmp_path, "a.py", "pkg/b.py", "tests/c.py", "ignored.py", "build/d.py")
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
    "folders": {"": ("src/", "a.py/")},
    "anchored": {"": ("/a.py", "src/sub", "/src/b.py")},
    "anchored-elsewhere": {"": ("sub/a.py",), "src": ("sub/a.py", "/sub/keep.py")},
    "negated": {"": ("*.py", "!keep.py")},
    "negated-back": {"": ("!keep.py", "*.py")},
    "nested-negation": {"": ("a.py", "keep.py"), "src": ("!a.py",), "src/sub": ("a.py", "!keep.py")},
    "no-way-back-into-a-folder": {"": ("out/", "!out/keep.py"), "out": ("!keep.py",)},
    "contents-and-back": {"": ("out/*", "!out/keep.py", "!out/src/")},
    "contents-deep": {"": ("out/**", "!out/keep.py")},
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
    def test_the_same_files_as_git(self, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        git = shutil.which("git")
        if git is None:
            pytest.skip("git is not installed")
        for variable in [variable for variable in os.environ if variable.startswith("GIT_")]:
            monkeypatch.delenv(variable)
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
        monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        root = tree(tmp_path / "root", *FILES)
        for folder, lines in IGNORES[name].items():
            ignore(root / folder, *lines)
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

    def test_lines_that_pathspec_cannot_read_say_nothing(self, tmp_path: Path) -> None:
        tree(tmp_path, "a.py", "b.py")
        ignore(tmp_path, "[[:alpha:]].py", "[a&&b].py", "b.py")
        assert found(tmp_path) == ["a.py"]

    def test_files_above_the_folder_count_up_to_the_root(self, tmp_path: Path) -> None:
        root = tree(tmp_path / "root", "pkg/in/a.py", "pkg/in/b.py", "pkg/in/c.py", "pkg/in/d.py")
        ignore(tmp_path, "d.py")
        ignore(root, "a.py", "/pkg/in/b.py")
        ignore(root / "pkg", "c.py")
        assert found(root, root / "pkg" / "in") == ["pkg/in/d.py"]


LINES = st.lists(
    st.tuples(
        st.text("ab \t\x0b\x0c\x1c\x85\u2028é\u0301€😀", max_size=6), st.sampled_from(["\n", "\r\n", "\r"])
    ),
    min_size=1,
    max_size=6,
)


class TestColumns:
    @given(LINES, st.data())
    def test_bytes_become_characters(self, lines: list[tuple[str, str]], data: st.DataObject) -> None:
        text = "".join(line + end for line, end in lines)
        assume(text.count("\r\n") == sum(end == "\r\n" for _, end in lines))
        columns = Columns(text)
        number = data.draw(st.integers(1, len(lines)))
        line = lines[number - 1][0]
        characters = data.draw(st.integers(0, len(line)))
        offset = len(line[:characters].encode())
        assert columns.character(number, offset) == len(line.encode()[:offset].decode()) + 1 == characters + 1

    @given(
        st.lists(
            st.sampled_from(["é", "x", "'😀'", "f(1)", "(\x0c2)", "'\u2028\x85'", "'''a\r\né\nb'''"]),
            min_size=1,
            max_size=5,
        ),
        st.lists(
            st.sampled_from(["\n", "\r\n", "\r", " ;\x0c", "; ", "\n\x0c", "\n\n", "\r\r\n"]),
            min_size=5,
            max_size=5,
        ),
    )
    @example(["'''a\r\né\nb'''", "é"], ["; "] * 5)
    @example(["'\u2028'", "é"], ["\r"] * 5)
    def test_spans_cut_out_what_the_parser_saw(self, pieces: list[str], ends: list[str]) -> None:
        text = "".join(piece + end for piece, end in zip(pieces, ends, strict=False))
        columns = Columns(text)
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.expr, ast.stmt))]
        assert nodes
        for node in nodes:
            span = columns.span(node)
            cut = lines[span.line - 1 : span.end_line]
            cut[-1] = cut[-1][: span.end_column - 1]
            cut[0] = cut[0][span.column - 1 :]
            segment = ast.get_source_segment(text, node)
            assert segment is not None
            assert "\n".join(cut) == segment.replace("\r\n", "\n").replace("\r", "\n")

    def test_a_node_without_an_end_is_empty(self) -> None:
        node = ast.parse("é = f(x)").body[0]
        node.end_lineno = None
        assert Columns("é = f(x)").span(node) == Span(1, 1, 1, 1)

    def test_offsets_that_the_parser_got_wrong_do_no_harm(self) -> None:
        columns = Columns("é€\nab")
        assert columns.character(1, 1) == 1
        assert columns.character(1, 99) == 3
        assert columns.character(7, 2) == 3
