"""Whether a failing schedule is the race of a finding."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest
from support.reproducing import finding_in

from fsrace_lint.files.spans import Place, Span
from fsrace_lint.findings.finding import Related, Role
from fsrace_lint.reproduce.as_told import ReachedError, is_as_told, lines_at, lines_of, raising_if_reached

if TYPE_CHECKING:
    from pathlib import Path

CODE = """\
import os
def f(a, b):
    try:
        if not os.path.exists(
            a,
        ):
            os.makedirs(
                a,
            )
    finally:
        with open(b, "w") as stream:
            stream.write("x")
            stream.write("y")
        b = a
    match b:
        case 1:
            pass
"""


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        (1, [1]),
        (2, [2]),
        (4, [4, 5, 6]),
        (5, [4, 5, 6]),
        (7, [7, 8, 9]),
        (8, [7, 8, 9]),
        (11, [11, 12, 13]),
        (12, [12]),
        (14, [14]),
        (15, [15]),
        (99, [99]),
    ],
)
def test_lines_of_a_statement(tmp_path: Path, line: int, lines: list[int]) -> None:
    file = tmp_path / "main.py"
    file.write_text(CODE)
    assert {
        name: sorted(found) for name, found in lines_at([Place(str(file), Span(line, 1, line, 2))]).items()
    } == {str(file): lines}


def test_related_places_take_part_but_not_the_call_chain(tmp_path: Path) -> None:
    file, other = tmp_path / "main.py", tmp_path / "other.py"
    file.write_text("a = 1\nb = 2  # here\nc = 3\n")
    other.write_text("d = 4\n")
    finding = finding_in(
        file,
        (
            Related(Place(str(other), Span(1, 1, 1, 2)), "m", Role.PLACE),
            Related(Place(str(file), Span(3, 1, 3, 2)), "m", Role.CALL),
            Related(Place(str(tmp_path / "gone.py"), Span(3, 1, 3, 2)), "m", Role.PLACE),
        ),
    )
    assert lines_of(finding) == {str(file): {2}, str(other): {1}}


@pytest.mark.parametrize(
    ("acting", "expected"),
    [(["/a.py:3"], True), (["/b.py:3", "/a.py:4"], True), (["/a.py:5", "/b.py:3", ":", ""], False)],
)
def test_acting_call_is_at_a_line(acting: list[str], *, expected: bool) -> None:
    assert is_as_told({"/a.py": {3, 4}}, acting) is expected


@pytest.mark.parametrize(("given", "is_reached"), [(1, True), (2, True), (0, False)])
def test_function_that_reaches_a_line_is_noticed(tmp_path: Path, given: int, *, is_reached: bool) -> None:
    file = tmp_path / "main.py"
    text = (
        "def f(a):\n    if a:\n        b = 1  # here\n    if a == 2:\n        raise KeyError\n    return a\n"
    )
    file.write_text(textwrap.dedent(text))
    names: dict[str, Any] = {}
    exec(compile(text, str(file), "exec"), names)
    run = raising_if_reached(names["f"], lines_of(finding_in(file)))
    if is_reached:
        with pytest.raises(ReachedError):
            run(given)
    else:
        run(given)
