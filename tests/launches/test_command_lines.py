"""The commands in a text for a shell."""

from __future__ import annotations

import pytest

from fsrace_lint.launches.command_lines import CommandLine, command_lines


def words(text: str) -> list[str]:
    return [" ".join(f"[{word}]" for word in line.words) for line in command_lines(text) if line.words]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("", []),
        ("# tar xf a", []),
        ("tar xf a", ["[tar] [xf] [a]"]),
        ("tar xf 'a b' \"c d\" e\\ f", ["[tar] [xf] [a b] [c d] [e f]"]),
        ("tar --file=\"a\"b'c'", ["[tar] [--file=abc]"]),
        ('echo "a\\"b\\c" a\\ b', ['[echo] [a"b\\c] [a b]']),
        ('echo "a\\\nb" \\\n c', ["[echo] [ab] [c]"]),
        ("a && b || c; d & e | f\ng", ["[a]", "[b]", "[c]", "[d]", "[e]", "[f]", "[g]"]),
        ("(cd a && b)", ["[cd] [a]", "[b]"]),
        ("if [ -f a ]; then b; else c; fi", ["[b]", "[c]"]),
        ("A=b c $D ${E}/f", ["[c] [$D] [${E}/f]"]),
        ("f() { a; }; b", ["[b]"]),
        ("a <<EOF\nb\nEOF", ["[a]"]),
        ("a <<< b", ["[a]"]),
        ("a $(b c)", ["[a] [$(b c)]", "[b] [c]"]),
    ],
)
def test_commands(text: str, commands: list[str]) -> None:
    assert words(text) == commands


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("a > b", CommandLine(output="b")),
        ("a >| b", CommandLine(output="b")),
        ("a 1> 'b c'", CommandLine(output="b c")),
        ("a &> b", CommandLine(output="b")),
        ("a >> b", CommandLine(output="b", appends=True)),
        ("a &>> b", CommandLine(output="b", appends=True)),
        ("a | b > c", CommandLine(output="c")),
        ("a 2>&1 > b", CommandLine(output="b")),
        ("cat <<EOF > b\na\nEOF", CommandLine(output="b")),
    ],
)
def test_redirections(text: str, output: CommandLine) -> None:
    assert [line for line in command_lines(text) if not line.words] == [output]


@pytest.mark.parametrize("text", ["a", "a < b", "a 2> b", "a 2>> b", "a >&2", "a 2>&1", "test 1 -gt 0"])
def test_no_redirection(text: str) -> None:
    assert all(line.words for line in command_lines(text))


def test_limits() -> None:
    assert command_lines("a " * 20_000) == []
    assert "[b]" not in words("if a; then " * 200 + "b" + "; fi" * 200)
    assert words("if a; then " * 20 + "b" + "; fi" * 20) == [*["[a]"] * 20, "[b]"]
