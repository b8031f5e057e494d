"""Reading and decoding source files, and mapping byte offsets to columns."""

from __future__ import annotations

import ast
import hashlib
import os
import socket
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from support.trees import make_tree

from fsrace_lint.files.source import LARGEST, Columns, Source, Unreadable, decode, read
from fsrace_lint.files.spans import Span


def good(data: bytes) -> Source:
    result = decode(data, Path("/p/a.py"), Path("/p"))
    assert isinstance(result, Source)
    return result


def bad(data: bytes) -> Unreadable:
    result = decode(data, Path("/p/a.py"), Path("/p"))
    assert isinstance(result, Unreadable)
    return result


class TestRead:
    def test_read_fills_every_field(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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

    def test_path_outside_the_current_directory_and_the_root(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_tree(tmp_path, "here/", "here2/a.py", "there/")
        monkeypatch.chdir(tmp_path / "here")
        result = read(Path("../here2/a.py"), tmp_path / "there")
        assert isinstance(result, Source)
        assert result.path == (tmp_path / "here2/a.py").as_posix()
        assert result.file == tmp_path / "here2" / "a.py"
        assert result.relative == "../here2/a.py"

    def test_links_are_not_resolved(self, tmp_path: Path) -> None:
        make_tree(tmp_path, "real/a.py")
        (tmp_path / "link").symlink_to("real")
        (tmp_path / "b.py").symlink_to("real/a.py")
        assert read(tmp_path / "link" / "a.py", tmp_path).relative == "link/a.py"
        assert read(tmp_path / "b.py", tmp_path).file == tmp_path / "b.py"

    def test_dotdot_after_a_link_resolves_like_the_os(self, tmp_path: Path) -> None:
        make_tree(tmp_path, "real/deep/", "a.py")
        (tmp_path / "real" / "a.py").write_bytes(b"right = 1")
        (tmp_path / "link").symlink_to("real/deep")
        result = read(tmp_path / "link" / ".." / "a.py", tmp_path)
        assert isinstance(result, Source)
        assert result.text == "right = 1"
        assert result.relative == "real/a.py"

    def test_not_a_regular_file_is_unreadable(self, tmp_path: Path) -> None:
        (tmp_path / "folder.py").mkdir()
        os.mkfifo(tmp_path / "pipe.py")
        server = socket.socket(socket.AF_UNIX)
        server.bind(os.path.relpath(tmp_path / "s.py"))
        server.close()
        (tmp_path / "dangling.py").symlink_to("nowhere")
        (tmp_path / "loop.py").symlink_to("loop.py")
        make_tree(tmp_path, "file")
        for name, expected in [
            ("folder.py", "path is a directory, not a regular file"),
            ("pipe.py", "not a regular file"),
            ("s.py", "not a regular file"),
            ("missing.py", "does not exist"),
            ("dangling.py", "does not exist"),
            ("loop.py", "cannot read the file: "),
            ("file/a.py", "cannot read the file: "),
            ("nul\0.py", "cannot read the file: "),
        ]:
            result = read(tmp_path / name, tmp_path)
            assert isinstance(result, Unreadable), name
            assert expected in result.reason
            assert (result.relative, result.line, result.column) == (name, 1, 1)

    def test_permission_denied_is_unreadable(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(_: Path) -> bytes:
            raise PermissionError(13, "Permission denied")

        make_tree(tmp_path, "a.py")
        monkeypatch.setattr(Path, "read_bytes", refuse)
        result = read(tmp_path / "a.py", tmp_path)
        assert isinstance(result, Unreadable)
        assert result.reason == "cannot read the file: Permission denied"

    def test_deleted_current_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        make_tree(tmp_path, "gone/", "a.py")
        monkeypatch.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        assert read(tmp_path / "a.py", tmp_path).path == (tmp_path / "a.py").as_posix()

    def test_too_large_file_is_not_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = tmp_path / "a.py"
        with file.open("wb") as out:
            out.truncate(LARGEST + 1)
        monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail("it was read"))
        result = read(file, tmp_path)
        assert isinstance(result, Unreadable)
        assert result.reason == "file is 5.0 MB; the limit is 5 MB"

    def test_file_of_the_maximum_size_is_read(self, tmp_path: Path) -> None:
        file = tmp_path / "a.py"
        file.write_bytes(b"#" * LARGEST)
        assert isinstance(read(file, tmp_path), Source)


class TestDecode:
    def test_too_large_buffer_is_unreadable(self) -> None:
        assert bad(b"#" * (LARGEST + 1)).reason == "file is 5.0 MB; the limit is 5 MB"

    def test_empty_file(self) -> None:
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
    def test_encoding_cookie(self, data: bytes, text: str) -> None:
        source = good(data)
        assert source.text.splitlines()[-1] == text
        assert source.text.encode(source.encoding) == data

    def test_encoding_cookie_after_line_two_is_ignored(self) -> None:
        assert "UTF-8" in bad(b"\n\n# coding: latin-1\nx = '\xe9'").reason
        assert "UTF-8" in bad(b"# a\rb\r# coding: latin-1\r'\xe9'").reason

    @pytest.mark.parametrize(
        ("data", "expected", "line", "column"),
        [
            (b"x = 1\r\ny = '\xff'\n", "not encoded as UTF-8: byte 0xff", 2, 6),
            (b"\xef\xbb\xbf\xc3\xa9\xff", "not encoded as UTF-8: byte 0xff", 1, 2),
            (b"\xff\xfex\0", "not encoded as UTF-8: byte 0xff", 1, 1),
            (b"# coding: ascii\rx = '\xe9'", "not encoded as ASCII: byte 0xe9", 2, 6),
            (b"# coding: cp1252\nx = '\x81'", "not encoded as CP1252: byte 0x81", 2, 6),
            (b"# coding: nonsense\n", "unknown encoding: nonsense", 1, 1),
            (b"# coding: rot13\n", "is not a text encoding", 1, 1),
            (b"# coding: undefined\n", "cannot decode the file: ", 1, 1),
            (b"\xef\xbb\xbf# coding: latin-1\n", "encoding problem", 1, 1),
            (b"# coding: utf-7\nx = '+2AA-'\n", "cannot decode the file: ", 1, 1),
            (b"x\ny\0z\n", "contains a NUL character", 2, 2),
        ],
    )
    def test_undecodable_bytes_are_located(self, data: bytes, expected: str, line: int, column: int) -> None:
        result = bad(data)
        assert expected in result.reason
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
    def test_newline_is_the_most_frequent_one(self, data: bytes, newline: str) -> None:
        assert good(data).newline == newline

    @given(st.text(st.characters(exclude_characters="\0", codec="utf-8")), st.booleans())
    def test_decoding_round_trips(self, text: str, bom: bool) -> None:
        if "coding" in text or text.startswith("\ufeff"):
            return
        data = (b"\xef\xbb\xbf" if bom else b"") + text.encode()
        source = good(data)
        assert (source.text, source.bom, source.data) == (text, bom, data)

    @given(st.binary())
    def test_any_bytes_decode_or_are_unreadable(self, data: bytes) -> None:
        result = decode(data, Path("/p/a.py"), Path("/p"))
        if isinstance(result, Source):
            assert result.text.encode() == data.removeprefix(b"\xef\xbb\xbf")
        else:
            assert result.line <= len(data) + 1


LINES = st.lists(
    st.tuples(
        st.text("ab \t\x0b\x0c\x1c\x85\u2028é\u0301€😀", max_size=6), st.sampled_from(["\n", "\r\n", "\r"])
    ),
    min_size=1,
    max_size=6,
)


class TestColumns:
    @given(LINES, st.data())
    def test_byte_offset_to_character_column(self, lines: list[tuple[str, str]], data: st.DataObject) -> None:
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
    def test_spans_match_parser_nodes(self, pieces: list[str], ends: list[str]) -> None:
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

    def test_node_without_an_end_has_an_empty_span(self) -> None:
        node = ast.parse("é = f(x)").body[0]
        node.end_lineno = None
        assert Columns("é = f(x)").span(node) == Span(1, 1, 1, 1)

    def test_invalid_offsets_are_clamped(self) -> None:
        columns = Columns("é€\nab")
        assert columns.character(1, 1) == 1
        assert columns.character(1, 99) == 3
        assert columns.character(7, 2) == 3
