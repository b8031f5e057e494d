"""Suppression: `noqa` comments as flake8 reads them, but not in strings; and unused suppressions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sampling import bound

from fsrace_lint.files.source import Source, decode
from fsrace_lint.files.spans import Place, Span
from fsrace_lint.findings import noqa, suppressions
from fsrace_lint.findings.finding import Applicability, Finding, Fix, Severity
from fsrace_lint.findings.suppressions import Suppressed, apply


def source(text: str) -> Source:
    result = decode(text.encode(), Path("/project/a.py"), Path("/project"))
    assert isinstance(result, Source)
    return result


def finding(line: int, code: str = "FSR101") -> Finding:
    place = Place("/project/a.py", Span(line, 1, line, 2))
    return Finding(code, "some-rule", "said", place, "<module>", Severity.ERROR, "evident")


def run(text: str, *findings: Finding, inactive: tuple[str, ...] = ()) -> Suppressed:
    return apply(source(text), findings, lambda code: code not in inactive)


def suppresses(text: str, line: int = 1, code: str = "FSR101") -> bool:
    result = run(text, finding(line, code))
    assert len(result.kept) + len(result.suppressed) == 1
    return bool(result.suppressed)


def unused(result: Suppressed) -> list[tuple[str, int, int, int]]:
    spans = [(item.message, item.place.span) for item in result.unused]
    return [(message.split("`")[1], span.line, span.column, span.end_column) for message, span in spans]


@pytest.mark.parametrize(
    ("comment", "does"),
    [
        ("# noqa", True),
        ("# NoQA", True),
        ("# noqa: FSR101", True),
        ("# noqa:FSR101", True),
        ("# noqa: fsr101", True),
        ("# noqa: E501, FSR101", True),
        ("# noqa: E501 FSR101", True),
        ("# noqa: E501,FSR101 because it is one process", True),
        ("# noqa: FSR1", True),
        ("# noqa: FSR10", True),
        ("# type: ignore # noqa: FSR101", True),
        ("# noqa: FSR102", False),
        ("# noqa: E501", False),
        ("# noqa: FSR1011", False),
        ("# noqa : FSR102", True),
        ("# noqa: check-then-mkdir", True),
        ("#noqa", False),
        ("#  noqa", False),
        ("# no qa", False),
        ("# noqa: E501  # noqa: FSR101", False),
    ],
)
def test_comment_suppresses(comment: str, does: bool) -> None:
    assert suppresses(f"mkdir(d)  {comment}\n") is does


def test_comment_applies_to_the_reported_line_only() -> None:
    text = "a()\nmkdir(d)  # noqa: FSR101\nb()\n"
    assert [suppresses(text, line) for line in (1, 2, 3)] == [False, True, False]


def test_noqa_in_a_string_is_ignored() -> None:
    assert not suppresses("mkdir('# noqa: FSR101')\n")
    assert not suppresses('mkdir("""\n# noqa\n""")\n', line=2)
    assert not suppresses('"""\n# flake8: noqa\n"""\nmkdir(d)\n', line=4)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_comment_with_any_newline(newline: str) -> None:
    text = "a = 1\n\x0c\nmkdir(d)  # noqa: FSR101\nmkdir(e)\n".replace("\n", newline)
    assert [suppresses(text, line) for line in (1, 2, 3, 4)] == [False, False, True, False]


def test_comment_without_a_final_newline() -> None:
    assert suppresses("mkdir(d)  # noqa: FSR101")


SHAPES = {
    "plain": "u1\nu2  # noqa: F821\nu3\n",
    "string": 'a = """\n{}\n""".format(u3)  # noqa: F821\nu4\n',
    "string-first": 'f = (u1, """\n\n""")  # noqa: F821\n',
    "backslash": "a = u1 + \\\n    u2 + \\\n    u3  # noqa: F821\nu4\n",
    "call": "print(\n    u2,\n    u3,  # noqa: F821\n    u4,\n)\n",
    "call-end": "print(\n    u2,\n)  # noqa: F821\n",
    "block": "if u1:  # noqa: F821\n    u2\n",
    "own-line": "# noqa: F821\nu2\n",
    "decorator": "@u1  # noqa: F821\ndef f(x=u2):\n    return u3\n",
    "bare": "u1  # noqa\nu2\n",
    "other": "u1  # noqa: E501\nu2  # noqa: F8\nu3  # noqa: F8,E5\nu4  # noqa:F821\nu5  # noqa : E501\n",
    "twice": "u1  # noqa: E501 # noqa: F821\nu2  # noqa: F821 # noqa: E501\n",
    "file": "# flake8: noqa\nu2\n",
    "file-after-code": "u1  # flake8: noqa\nu2\n",
    "file-indented": "if u1:\n    # FLAKE8=NOQA\n    u3\n",
    "prose": "u1  # noqa: because it is so\n",
    "no-newline": "u1\nu2  # noqa: F821",
    "form-feed": "u1\n\x0c\nu3  # noqa: F821\n",
}


# Keep the fsrace-lint plugin out: it would read the same comments again.
FLAKE8_ALONE = """
import importlib.metadata as metadata
everything = metadata.distributions
metadata.distributions = lambda: (d for d in everything() if d.metadata["Name"] != "fsrace-lint")
from flake8.main.cli import main
raise SystemExit(main())
"""


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES.keys())
def test_suppressed_lines_match_flake8(text: str, tmp_path: Path) -> None:
    pytest.importorskip("flake8")
    (tmp_path / "a.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", FLAKE8_ALONE, "--isolated", "--select=F821", "a.py"]
    seen: list[set[int]] = []
    for extra in ("--disable-noqa", "--jobs=1"):
        done = subprocess.run([*command, extra], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        seen.append({int(line.split(":")[1]) for line in done.stdout.splitlines()})
    everything, theirs = seen
    assert everything
    ours = run(text, *(finding(line, "F821") for line in sorted(everything)))
    assert {item.place.span.line for item in ours.kept} == theirs


def test_file_level_codes_do_not_affect_other_rules() -> None:
    result = run("# flake8: noqa: FSR101\na\n", finding(2, "FSR101"), finding(2, "FSR201"))
    assert [item.code for item in result.kept] == ["FSR201"]
    assert [item.code for item in result.suppressed] == ["FSR101"]
    assert result.unused == ()


def test_file_level_comment_applies_to_every_line() -> None:
    assert suppresses("mkdir(d)\nx = 1\n# flake8: noqa: FSR101\n", line=1)
    assert suppresses("# flake8: noqa\n", line=99)


def test_suppressed_file_reports_no_unused_suppression() -> None:
    result = run("# flake8: noqa\nx = 1  # noqa: FSR101\n", finding(1))
    assert result == Suppressed((), (finding(1),), (), ("",))


def test_unused_code_is_reported_at_its_position() -> None:
    text = "é = 1  # noqa: E501, FSR101,FSR202\n# flake8: noqa: FSR301\nx()  # flake8: noqa: FSR401\n"
    result = run(text, finding(1, "FSR202"))
    assert unused(result) == [
        ("noqa: FSR101", 1, 22, 28),
        ("noqa: FSR301", 2, 17, 23),
        ("noqa: FSR401", 3, 22, 28),
    ]
    for item in result.unused:
        span = item.place.span
        line = text.split("\n")[span.line - 1]
        assert line[span.column - 1 : span.end_column - 1] in item.message


def test_unused_suppression_finding() -> None:
    (item,) = run("x = 1  # noqa: FSR101\n").unused
    assert item == Finding(
        code="FSR003",
        name="unused-suppression",
        message="unused `noqa: FSR101`: it suppresses no finding on this line",
        place=Place(source("").path, Span(1, 16, 1, 22)),
        function="<module>",
        severity=Severity.WARNING,
        evidence="evident",
        fix=Fix("drop-noqa", Span(1, 8, 1, 22), Applicability.SAFE, "remove `FSR101` from the comment"),
    )


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("# noqa: FSR101", []),
        ("# noqa: FSR1", []),
        ("# noqa: FSR101, FSR101", []),
        ("# noqa: FSR2", ["FSR2"]),
        ("# noqa: FSR999", ["FSR999"]),
        ("# noqa: fsr202", ["fsr202"]),
        ("# noqa: FSR003", ["FSR003"]),
        ("# noqa: FSR101 # noqa: FSR101", ["FSR101"]),
        ("# noqa: E501, F401", []),
        ("# noqa", []),
    ],
)
def test_which_codes_are_unused(comment: str, expected: list[str]) -> None:
    result = run(f"mkdir(d)  {comment}\n", finding(1))
    assert [name.removeprefix("noqa: ") for name, *_ in unused(result)] == expected


def test_disabled_codes_are_not_unused() -> None:
    text = "x = 1  # noqa: FSR101, FSR102\n"
    assert [name for name, *_ in unused(run(text, inactive=("FSR101",)))] == ["noqa: FSR102"]
    assert run(text, inactive=("FSR003",)).unused == ()


def test_unused_suppression_cannot_be_suppressed() -> None:
    assert len(run("x = 1  # noqa: FSR003, FSR101\n").unused) == 2
    assert len(run("# flake8: noqa: FSR003\nx = 1  # noqa: FSR101\n").unused) == 2


@pytest.mark.parametrize(
    "text", ["mkdir(d)  # noqa: FSR101\n(", "if x:\n        a\n    b  # noqa: FSR101\n", "'''# noqa"]
)
def test_text_that_cannot_be_tokenized_suppresses_nothing(text: str) -> None:
    assert run(text, finding(1), finding(3)) == Suppressed((finding(1), finding(3)))


def test_file_without_noqa_is_not_tokenized(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("fsrace_lint.findings.noqa.tokenize.generate_tokens", fail)
    assert run("mkdir(d)  # no\n", finding(1)).kept == (finding(1),)
    assert run("x = 1  # noqa: E501\n").kept == ()
    with pytest.raises(AssertionError):
        run("mkdir(d)  # NOQA\n", finding(1))


def test_order_of_findings_is_kept() -> None:
    findings = [finding(3), finding(1), finding(2), finding(1, "FSR202")]
    result = run("a  # noqa: FSR202\nb  # noqa\nc\n", *findings)
    assert result.kept == (finding(3), finding(1))
    assert result.suppressed == (finding(2), finding(1, "FSR202"))


WORDS = "x| = 1|# noqa|# NoQA|: |:|E501|FSR101|fsr1|F|FSR|, | |some-rule|# flake8: noqa|# FLAKE8=noqa"
PIECES = st.sampled_from(
    (*WORDS.split("|"), "#", "'", '"""', "\\", "because", "-- ", "(", ")", "\n", "\r\n", "\f")
)


@given(st.lists(PIECES, max_size=30).map("".join), st.booleans())
@settings(max_examples=bound(200, 1500), deadline=None)
def test_prefilter_does_not_change_the_result(text: str, is_found: bool) -> None:
    """Skipping files without relevant comments gives the same result as tokenizing every file."""
    names = {"some-rule": "FSR101"}
    findings = [finding(1), finding(2, "FSR201")] if is_found else []
    quick = apply(source(text), findings, lambda _: True, names)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(suppressions, "is_for_us", lambda *_: True)
        slow = apply(source(text), findings, lambda _: True, names)
    assert quick == slow


@pytest.mark.parametrize(
    ("comment", "times"),
    [("# noqa: E501", 0), ("# noqa: F401, W291", 0), ("# noqa", 1), ("# noqa: E501 FSR1", 1)],
)
def test_other_tools_codes_are_not_tokenized(
    comment: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenized: list[str] = []

    def chunks(text: str) -> list[noqa.Chunk]:
        tokenized.append(text)
        return []

    monkeypatch.setattr(noqa, "chunks", chunks)
    run(f"x = 1  {comment}\n", finding(1))
    assert len(tokenized) == times
