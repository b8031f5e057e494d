"""How expressions are spelled in messages: a reader must not misread them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsrace_lint.files.source import of_text
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.extract import extract
from fsrace_lint.syntax.model import FileFacts
from fsrace_lint.syntax.unparse import LONGEST, spell

SAME = (
    *("a", "a.b", "a.b()", "a[0]", "a(b, c=d, **e)", "'x'", "None", "(a,)", "()", "(a, b)", "[a]", "{a, b}"),
    *("not (a or b)", "not a == b", "(not a) == b", "not (not a and b)", "a == (b or c)", "(a == b) == c"),
    *("a or b and c", "(a or b) and c", "a and (b or c)", "(a or b)(c)", "(a or b).c", "(a or b)[c]"),
    *("a + b - c", "a - (b - c)", "a * (b + c)", "(a | b) & c", "a / b // c", "a % (b,)", "(a / b).name"),
    *("a if b else c", "(a if b else c) if d else e", "a if b else c if d else e", "(a if b else c) + d"),
    *('f"{a}/b"', 'f"{{{a}}}"', 'f"it\'s {a}"', 'f"\\"{a}\\n"', "a if (b if c else d) else e"),
)


def read(text: str) -> m.Expr:
    facts = extract(of_text(f"value = {text}\n", Path("/p/a.py"), Path("/p")))
    assert isinstance(facts, FileFacts)
    (statement,) = facts.functions[0].body
    assert isinstance(statement, m.Assign)
    assert statement.value is not None
    return statement.value


@pytest.mark.parametrize("text", SAME)
def test_spelling_equals_the_source(text: str) -> None:
    assert spell(read(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(a + b) - c", "a + b - c"),
        ("(a and b) or c", "a and b or c"),
        ("'a' 'b'", "'ab'"),
        ("a ** b", "a ? b"),
        ("(a @ b) + c", "(a ? b) + c"),
        ("(lambda: a)()", "…()"),
        ("-a", "…"),
    ],
)
def test_details_missing_from_facts_are_elided(text: str, expected: str) -> None:
    assert spell(read(text)) == expected


def test_text_of_the_maximum_length_is_complete() -> None:
    longest = " + ".join(f"name_{number}" for number in range(7))
    assert len(longest) == LONGEST
    assert spell(read(longest)) == longest


def test_long_text_is_truncated() -> None:
    found = spell(read(" + ".join(f"name_{number}" for number in range(8))))
    assert (len(found), found[-1]) == (LONGEST, "…")
