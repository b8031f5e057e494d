"""`.gitignore` lines that are matched without a regular expression match the same paths."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.sampling import bound

from fsrace_lint.files import gitignore

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("a", "b.py", ".b", "a.b", "c-d", "x.pyc", "a b", "a$b.c")
PARTS = st.sampled_from(
    ("a", "b", "*", "?", "[ab]", ".", ".py", "*.py", "*.py[cod]", "c-d", "a b", "$", "**", "x#")
)
WORDS = st.lists(PARTS, min_size=1, max_size=3).map("".join).filter(lambda word: word.strip() == word)
NAMED = st.tuples(WORDS, st.sampled_from(("", "/"))).map("".join)
PLACED = st.tuples(
    st.sampled_from(("", "/")),
    st.lists(WORDS, min_size=1, max_size=3).map("/".join),
    st.sampled_from(("", "/")),
).map("".join)
ANYWHERE = st.sampled_from(("**/a", "**/a/", "**/*.py", "**/*", "**/[ab]*/", "**/#a"))
PLAIN = NAMED | PLACED.filter(lambda line: "**" not in line or "/" not in line.rstrip("/"))
OTHERS = st.sampled_from(
    (
        "!a",
        "!*.py",
        "**/!a",
        "**/**",
        "**/a/b",
        "a/**",
        "/**",
        "a/**b",
        "!a/",
        "# a",
        "",
        "[a-b]",
        "[!a]",
        "[]a]",
        "a\\ ",
        "!.b",
        "/",
    )
)
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)


class TestPlainLines:
    @given(
        lines=st.lists(PLAIN | ANYWHERE | OTHERS, max_size=5),
        entries=st.lists(st.tuples(PATHS, st.booleans()), min_size=1, max_size=8),
        base=st.sampled_from(("", "p/", "p/q/")),
    )
    @settings(
        max_examples=bound(100, 600),
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    def test_plain_matching_equals_regex_matching(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        lines: list[str],
        entries: list[tuple[str, bool]],
        base: str,
    ) -> None:
        (tmp_path / ".gitignore").write_text("\n".join(lines), encoding="utf-8")
        quick = gitignore.Ignore(str(tmp_path), base)
        with monkeypatch.context() as patched:
            patched.setattr(gitignore, "PLAIN", re.compile("(?!)"))
            patched.setattr(gitignore, "anywhere", lambda line: line)
            slow = gitignore.Ignore(str(tmp_path), base)
        for path, is_directory in entries:
            name = base + path
            assert quick.decides(name, folder=is_directory) == slow.decides(name, folder=is_directory), name

    @given(line=PLAIN)
    def test_plain_line_is_accepted(self, line: str) -> None:
        assert gitignore.Plain.takes(line)

    @given(line=ANYWHERE)
    def test_double_star_prefix_is_reduced_to_a_plain_line(self, line: str) -> None:
        assert not gitignore.Plain.takes(line)
        assert gitignore.Plain.takes(gitignore.anywhere(line))

    @given(line=OTHERS)
    def test_complex_line_is_rejected(self, line: str) -> None:
        assert not gitignore.Plain.takes(gitignore.anywhere(line)) or line.startswith("#")

    @pytest.mark.parametrize(
        "line", ["*" * 5_000 + "!", "a*" * 2_500 + "!", "a/" * 2_500 + "!", "[a]" * 2_000 + "!"]
    )
    def test_classifying_a_long_line_terminates(self, line: str) -> None:
        """A backtracking classifier would never finish on these lines."""
        assert not gitignore.Plain.takes(gitignore.anywhere(line))
