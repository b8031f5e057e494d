"""The baseline: what it holds, what it survives, and what is said of it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import ROOT
from support.cli import CODE, reported, run, write
from support.sampling import bound

from fsrace_lint.cli import main
from fsrace_lint.files import atomic_write
from fsrace_lint.files.spans import Place, Span
from fsrace_lint.findings import baseline, fingerprints
from fsrace_lint.findings.finding import Finding, Severity
from fsrace_lint.findings.fingerprints import Key

if TYPE_CHECKING:
    from click.testing import Result

pytestmark = pytest.mark.usefixtures("here")

SCHEMA = json.loads((ROOT / "docs" / "findings.schema.json").read_text(encoding="utf-8"))
TABLE = '[tool.fsrace-lint]\nbaseline = "known.json"\n'


def accept(*arguments: str) -> None:
    run("check", "--write-baseline", "known.json", *arguments, code=0)


def new(*arguments: str, code: int = 1) -> list[str]:
    return reported("--baseline", "known.json", *arguments, code=code)


def entries(name: str = "known.json") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(Path(name).read_text(encoding="utf-8"))["findings"]
    return found


def failed(*arguments: str) -> str:
    return run(*arguments, code=2).stderr


class TestWriting:
    def test_what_is_known_is_not_reported(self) -> None:
        write({"a.py": CODE})
        result = run("check", "--write-baseline", "known.json", code=0)
        assert result.stdout == ""
        assert result.stderr == "Wrote 2 findings to known.json.\n"
        done = run("check", "--baseline", "known.json", code=0)
        assert done.stdout == "No new filesystem races found in 1 file; 2 in the baseline.\n"
        assert done.stderr == ""
        assert len(reported()) == 2

    def test_the_file_is_sorted_and_has_an_entry_a_line(self) -> None:
        write({"b/z.py": CODE, "a.py": CODE})
        accept()
        lines = Path("known.json").read_text(encoding="utf-8").splitlines()
        assert lines[:4] == [
            "{",
            '  "format": "fsrace-lint baseline",',
            '  "version": 1,',
            '  "findings": [',
        ]
        rows = [json.loads(line.strip().rstrip(",")) for line in lines[4:-2]]
        assert [(row["path"], row["code"], row["function"]) for row in rows] == [
            ("a.py", "FSR101", "prepare"),
            ("a.py", "FSR103", "clean"),
            ("b/z.py", "FSR101", "prepare"),
            ("b/z.py", "FSR103", "clean"),
        ]
        assert all(sorted(row) == ["code", "function", "path", "text"] for row in rows)
        first = Path("known.json").read_bytes()
        accept()
        assert Path("known.json").read_bytes() == first

    def test_it_holds_no_source_text(self) -> None:
        write({"a.py": 'import os\nif not os.path.exists("s3cret"):\n    os.mkdir("s3cret")\n'})
        accept()
        assert "cret" not in Path("known.json").read_text(encoding="utf-8")

    def test_nothing_found(self) -> None:
        write({"a.py": "x = 1\n"})
        accept()
        assert entries() == []
        assert (
            run("check", "--baseline", "known.json", code=0).stdout
            == "No filesystem races found in 1 file.\n"
        )

    def test_what_is_about_the_tool_is_never_known(self) -> None:
        write({"a.py": "def f(:\n", "b.py": "x = 1  # noqa: FSR101\n", "c.py": CODE})
        result = run("check", "--write-baseline", "known.json", code=0)
        assert result.stderr.splitlines()[0] == "Wrote 2 findings to known.json."
        assert [line[:24] for line in result.stderr.splitlines()[1:]] == [
            "a.py:1:7: FSR001 not wri",
            "b.py:1:16: FSR003 not wr",
        ]
        assert new() == ["a.py:1 FSR001", "b.py:1 FSR003"]
        rows = [{**row, "code": "FSR001"} for row in entries()]
        document = {"format": baseline.FORMAT, "version": 1, "findings": rows}
        Path("known.json").write_text(json.dumps(document))
        assert "a.py:1 FSR001" in new()

    def test_a_run_over_a_part_keeps_the_rest(self) -> None:
        write({"a.py": CODE, "b.py": CODE})
        accept()
        write({"a.py": CODE.replace("def clean", "def sweep")})
        result = run("check", "--write-baseline", "known.json", "a.py", code=0)
        told = "took 1 out that no longer occurs, and kept 2 that this run could not see"
        assert result.stderr == f"Wrote 2 findings to known.json, {told}.\n"
        assert {row["function"] for row in entries() if row["path"] == "a.py"} == {"prepare", "sweep"}
        assert len(entries()) == 4

    def test_a_failed_run_writes_nothing(self) -> None:
        write({"a.py": CODE})
        assert "known.json is not written" in failed(
            "check", "--write-baseline", "known.json", "a.py", "no.py"
        )
        assert not Path("known.json").exists()

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "[]",
            "{}",
            '{"version": 1, "findings": []}',
            '{"name": "my package", "version": "1.0"}',
            "x = 1\n",
            '{"format": "fsrace-lint baseline", "version": 2, "findings": [], "new": 1}',
            '{"format": "fsrace-lint baseline", "version": 1, "findings": [{"path": "a.py"}]}',
        ],
    )
    @pytest.mark.parametrize("option", ["--write-baseline", "--baseline", "--prune-baseline"])
    def test_another_file_is_left_alone(self, text: str, option: str) -> None:
        write({"a.py": CODE, "precious": text})
        chosen = (option, "--baseline=precious") if option == "--prune-baseline" else (option, "precious")
        (line,) = [line for line in failed("check", *chosen).splitlines() if line.startswith("Error")]
        assert "precious: is " in line
        assert Path("precious").read_text() == text

    def test_a_link_stays_one(self) -> None:
        write({"a.py": CODE})
        Path("real.json").write_text('{"format": "fsrace-lint baseline", "version": 1, "findings": []}')
        Path("known.json").symlink_to("real.json")
        accept()
        assert Path("known.json").is_symlink()
        assert len(entries("real.json")) == 2

    def test_the_mode_stays(self) -> None:
        write({"a.py": CODE})
        accept()
        Path("known.json").chmod(0o640)
        write({"a.py": CODE.partition("def clean")[0]})
        accept()
        assert Path("known.json").stat().st_mode & 0o777 == 0o640
        assert len(entries()) == 1

    @pytest.mark.parametrize("option", ["--write-baseline=known.json", "--prune-baseline"])
    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda file: file.chmod(0o444), "is read-only"),
            (lambda file: Path("other.json").hardlink_to(file), "has more than one hard link"),
        ],
    )
    def test_what_must_not_be_replaced(self, change: Any, reason: str, option: str) -> None:
        write({"a.py": CODE})
        accept()
        change(Path("known.json"))
        before = Path("known.json").read_bytes()
        write({"a.py": CODE.partition("def clean")[0]})
        known = ("--baseline=known.json",) if option == "--prune-baseline" else ()
        assert f"known.json: {reason}" in failed("check", option, *known)
        assert Path("known.json").read_bytes() == before
        assert not list(Path().glob(".*.tmp"))

    @pytest.mark.parametrize("there", [True, False])
    def test_what_somebody_else_writes_meanwhile_stays(
        self, monkeypatch: pytest.MonkeyPatch, *, there: bool
    ) -> None:
        write({"a.py": CODE})
        if there:
            accept()
            write({"a.py": CODE.partition("def clean")[0]})
        monkeypatch.setattr(os, "fsync", lambda descriptor: Path("known.json").write_text("theirs"))
        monkeypatch.delattr(os, "link")
        done = "changed" if there else "made"
        assert f"was {done} by somebody else" in failed("check", "--write-baseline", "known.json")
        assert Path("known.json").read_text() == "theirs"
        assert not list(Path().glob(".*.tmp"))

    def test_what_appears_in_the_last_instant_stays(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write({"a.py": CODE})
        link = os.link

        def late(one: Any, other: Any) -> None:
            Path("known.json").write_text("theirs")
            link(one, other)

        monkeypatch.setattr(os, "link", late)
        assert "was made by somebody else" in failed("check", "--write-baseline", "known.json")
        assert Path("known.json").read_text() == "theirs"

    def test_a_filesystem_without_links(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*arguments: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)
        write({"a.py": CODE})
        accept()
        assert len(entries()) == 2

    @pytest.mark.parametrize("call", ["replace", "fsync"])
    def test_an_interrupt_leaves_nothing(self, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
        def interrupt(*arguments: object) -> None:
            raise KeyboardInterrupt

        file = Path("any.json")
        file.write_text("before")
        monkeypatch.setattr(os, call, interrupt)
        with pytest.raises(KeyboardInterrupt):
            atomic_write.put(file, b"after")
        assert file.read_text() == "before"
        assert not list(Path().glob(".*.tmp"))

    def test_a_name_that_is_too_long(self) -> None:
        write({"a.py": CODE})
        assert "cannot be read: File name too long" in failed("check", "--write-baseline", "x" * 300)

    @pytest.mark.parametrize("option", ["--write-baseline", "--add-noqa"])
    def test_silence(self, option: str) -> None:
        write({"a.py": "def f(:\n", "b.py": CODE})
        write({"c.py": 'import os\nif not os.path.exists(d): os.makedirs(f"""{d}\n""")\n'})
        arguments = (option, "known.json") if option == "--write-baseline" else (option,)
        for more in (("."), ("no.py")):
            done = CliRunner().invoke(main.main, ["check", "--silent", *arguments, ".", more])
            assert done.output == ""
        assert CliRunner().invoke(main.main, ["check", *arguments, "."]).stderr

    def test_a_foreign_file_is_refused_in_silence(self) -> None:
        write({"a.py": CODE, "precious": "x = 1"})
        assert run("check", "--silent", "--write-baseline", "precious", code=2).output == ""

    def test_a_folder_that_is_not_there(self) -> None:
        write({"a.py": CODE})
        assert "cannot be written: No such file" in failed("check", "--write-baseline", "no/known.json")


class TestReading:
    def test_a_missing_file_tells_how_to_write_one(self) -> None:
        write({"a.py": CODE})
        for options in (("--baseline", "known.json"), ()):
            (error,) = [line for line in failed("check", *options).splitlines() if line.startswith("Error")]
            assert "known.json: there is no such baseline; `fsrace-lint check --write-baseline" in error
            write({"pyproject.toml": TABLE})

    def test_a_newer_version(self) -> None:
        write({"a.py": CODE, "known.json": '{"format": "fsrace-lint baseline", "version": 7}'})
        assert "version 7, and this fsrace-lint knows version 1; upgrade" in failed(
            "check", "--baseline", "known.json"
        )

    def test_the_marks_of_a_merge(self) -> None:
        write({"a.py": CODE})
        accept()
        text = Path("known.json").read_text().replace('  "findings"', '<<<<<<< ours\n  "findings"')
        Path("known.json").write_text(text)
        assert "a merge that was not finished" in failed("check", "--baseline", "known.json")

    def test_an_entry_that_is_no_utf_8(self) -> None:
        write({"a.py": CODE})
        accept()
        data = Path("known.json").read_bytes().replace(b"a.py", b"a\xff.py")
        Path("known.json").write_bytes(data)
        for option in ("--baseline", "--write-baseline"):
            assert "known.json: is " in failed("check", option, "known.json")
        assert Path("known.json").read_bytes() == data

    def test_an_entry_that_a_merge_left_twice_counts_once(self) -> None:
        write({"a.py": CODE})
        accept()
        document = {"format": baseline.FORMAT, "version": 1, "findings": entries() * 2}
        write({"a.py": CODE + "    if os.path.exists(out):\n        shutil.rmtree(out)\n"})
        Path("known.json").write_text(json.dumps(document))
        assert new() == ["a.py:15 FSR103"]

    def test_too_large(self) -> None:
        write({"a.py": CODE})
        with Path("known.json").open("wb") as stream:
            stream.truncate(17 * 1024 * 1024)
        assert "known.json: cannot be read: is too large" in failed("check", "--baseline", "known.json")

    def test_nested_without_end(self) -> None:
        write({"a.py": CODE, "known.json": "[" * 100_000})
        assert "is no baseline" in failed("check", "--baseline", "known.json")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
    def test_a_pipe_is_not_waited_for(self) -> None:
        write({"a.py": CODE})
        os.mkfifo("known.json")
        assert "is no regular file" in failed("check", "--baseline", "known.json")

    @pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", "a\0b", "\x1b[2J.py", "x" * 5000])
    def test_hostile_entries_hide_nothing_and_touch_nothing(self, path: str) -> None:
        write({"a.py": CODE})
        row = {"path": path, "code": "FSR101", "function": "\x1b]0;f", "text": "0" * 16}
        document = {"format": baseline.FORMAT, "version": 1, "findings": [row]}
        Path("known.json").write_text(json.dumps(document))
        result = run("check", "--baseline", "known.json", "--prune-baseline", code=1)
        assert "\x1b" not in result.output
        assert "Found 2 problems" in result.stdout

    @given(st.binary(max_size=200) | st.text(max_size=50).map(str.encode))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    def test_whatever_the_file_holds(self, data: bytes) -> None:
        file = Path("any.json")
        file.write_bytes(data)
        with pytest.raises(baseline.BaselineError, match=r"any\.json: is "):
            baseline.load(file)

    @given(
        st.dictionaries(
            st.builds(
                Key,
                st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9),
                st.just("FSR101"),
                st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9),
                st.text("0123456789abcdef", min_size=16, max_size=16),
            ),
            st.integers(1, 9),
            max_size=5,
        )
    )
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    def test_what_is_written_is_read(self, counts: dict[Key, int]) -> None:
        file = Path("any.json")
        file.unlink(missing_ok=True)
        baseline.write(file, baseline.Baseline(counts))
        assert baseline.load(file).counts == counts


class TestWhatItSurvives:
    @pytest.mark.parametrize(
        "change",
        [
            lambda text: "# a comment\n" * 7 + text,
            lambda text: text.replace("\n", "\r\n"),
            lambda text: text.replace(
                "makedirs(out)", "makedirs(\n            out,  # where, (really)\n        )"
            ),
            lambda text: text.replace("def prepare", "def other():\n    pass\n\n\ndef prepare"),
            lambda text: text.replace("        os.makedirs(out)", "        made = os.makedirs( out )"),
            lambda text: text.replace("rmtree(out)", "rmtree((out))"),
            lambda text: text.replace("    if os", "    value = 1\n    if os"),
        ],
    )
    def test_changes_around_it(self, change: Any) -> None:
        write({"a.py": CODE})
        accept()
        Path("a.py").write_bytes(change(CODE).encode())
        assert new(code=0) == []

    @pytest.mark.parametrize(
        ("old", "fresh", "found"),
        [
            ("def prepare", "def ready", "FSR101"),
            ("makedirs(out)", "makedirs(out, 0o700)", "FSR101"),
            ("rmtree(out)", "rmtree(out, False)", "FSR103"),
        ],
    )
    def test_changes_of_the_code_itself(self, old: str, fresh: str, found: str) -> None:
        write({"a.py": CODE})
        accept()
        write({"a.py": CODE.replace(old, fresh)})
        assert [row.split()[1] for row in new()] == [found]

    def test_a_third_one_is_new(self) -> None:
        twice = "    if os.path.exists(out):\n        shutil.rmtree(out)\n"
        write({"a.py": CODE + twice})
        accept()
        assert [row["count"] for row in entries() if row["code"] == "FSR103"] == [2]
        write({"a.py": CODE + twice * 2})
        assert new() == ["a.py:17 FSR103"]

    @given(
        st.lists(st.sampled_from(["", "# text", "x = 1", '"""text\n\n"""']), max_size=4),
        st.permutations(CODE.strip().split("\n\n\n")[1:]),
        st.sampled_from(["\n", "\r\n"]),
    )
    @settings(
        suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=bound(8, 25)
    )
    def test_lines_that_move(self, above: list[str], functions: list[str], newline: str) -> None:
        write({"a.py": CODE})
        Path("known.json").unlink(missing_ok=True)
        accept()
        text = "\n".join(["import os, shutil", *above, *functions, ""])
        Path("a.py").write_bytes(text.replace("\n", newline).encode())
        assert new(code=0) == []

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("f('a', b)", 'f(\n    "a",\n    b,\n)'),
            ("f(u'a')", 'f("a")'),
            ("f(a + b)", "f((a + b))"),
            ("f(a) # note", "f(a)"),
            ("f('#a')  # b", 'f("#a")'),
            ("f(x, \\\n  y)", "f(x, y)"),
            (r"f('it\'s')", 'f("it\'s")'),
            (r"f('\\')", r'f("\\")'),
            ("""f('a"b')""", r'f("a\"b")'),
            ("f(F'{a}')", 'f(f"{a}")'),
            ("f(r'a')", "f(R'a')"),
            ("f(0XFF)", "f(0xff)"),
            ("f(a,)", "f(a)"),
            ("f(g(a,),)", "f(\n    g(\n        a,\n    ),  # note\n)"),
            ("f([a, b])", "f([\n    a,\n    b,  # (last)\n])"),
            ("f(a+b, c[1:2])", "f((a + b), c[1 : 2])"),
        ],
    )
    def test_layout_is_no_part_of_the_code(self, one: str, other: str) -> None:
        assert digest(one) == digest(other)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("f(a)", "f(b)"),
            ("f('#a')", "f('#b')"),
            ("f(F)", "f(f)"),
            ("f(a)", "f(a, b)"),
            ("f(out)", "f('out')"),
            ("f(f'run_{n}')", "f('run_{n}')"),
            ("f('a b')", "f('ab')"),
            ("f('a,b')", "f('ab')"),
            ("f('(a)')", "f('a')"),
            (r"f('a\n')", "f('an')"),
            (r"f('a\n')", r"f(r'a\n')"),
            ("f(b'a')", "f('a')"),
            ("f('a', 'b')", "f('a' 'b')"),
            ("f('a', b)", "f('a, b')"),
            ("f('A')", "f('a')"),
            ("f(a, b)", "f(ab)"),
            ("f(not a)", "f(nota)"),
        ],
    )
    def test_what_is_a_part(self, one: str, other: str) -> None:
        assert digest(one) != digest(other)


def digest(text: str) -> str:
    place = Place("a.py", Span(1, 1, 1, 2))
    found = Finding("FSR101", "name", "said", place, "f", Severity.ERROR, "evident")
    return fingerprints.key(found, "a.py", text).text


class TestPruning:
    def test_what_has_gone_is_told_and_taken_out(self) -> None:
        write({"a.py": CODE})
        accept()
        write({"a.py": CODE.partition("def clean")[0]})
        noted = run("check", "--baseline", "known.json", code=0).stderr
        assert noted.startswith("Note: 1 finding of the baseline ")
        assert noted.endswith("known.json no longer occurs; --prune-baseline takes them out.\n")
        assert len(entries()) == 2
        told = run("check", "--baseline", "known.json", "--prune-baseline", code=0).stderr.splitlines()
        assert told[0] == "a.py: FSR103 in clean has gone from the baseline."
        assert told[1].startswith("Took 1 finding out of ")
        assert [row["code"] for row in entries()] == ["FSR101"]
        assert run("check", "--baseline", "known.json", "--prune-baseline", code=0).stderr == ""

    def test_a_count_that_shrinks(self) -> None:
        write({"a.py": CODE + "    if os.path.exists(out):\n        shutil.rmtree(out)\n"})
        accept()
        write({"a.py": CODE})
        run("check", "--baseline", "known.json", "--prune-baseline", code=0)
        assert [row.get("count", 1) for row in entries()] == [1, 1]

    @pytest.mark.parametrize(
        "arguments",
        [
            ("a.py",),
            ("--select=FSR101",),
            ("--ignore=FSR103",),
            ("--extend-exclude=b",),
            ("--extend-exclude=b", "a.py"),
        ],
    )
    def test_what_was_not_looked_at_stays(self, arguments: tuple[str, ...]) -> None:
        write({"a.py": CODE, "b/c.py": CODE})
        accept()
        write({"b/c.py": "x = 1\n" if "FSR" not in arguments[0] else CODE.partition("def clean")[0]})
        result = run("check", "--baseline", "known.json", "--prune-baseline", *arguments, code=0)
        assert result.stderr == ""
        assert len(entries()) == 4

    def test_what_only_the_strict_profile_reports_stays(self) -> None:
        write({"a.py": "import os\n\n\ndef f(d):\n    os.mkdir(d)\n"})
        assert len(reported("--profile=strict")) == 1
        assert reported(code=0) == []
        accept("--profile=strict")
        assert new("--profile=strict", code=0) == []
        assert run("check", "--baseline", "known.json", "--prune-baseline", code=0).stderr == ""
        accept()
        assert len(entries()) == 1

    def test_a_file_that_is_gone(self) -> None:
        write({"a.py": CODE, "b/c.py": CODE})
        accept()
        Path("b/c.py").unlink()
        assert run("check", "--baseline", "known.json", "--prune-baseline", "a.py", code=0).stderr == ""
        assert len(entries()) == 4
        run("check", "--baseline", "known.json", "--prune-baseline", "b", code=0)
        assert {row["path"] for row in entries()} == {"a.py"}

    def test_a_file_that_does_not_parse_any_more(self) -> None:
        write({"a.py": CODE, "b.py": CODE})
        accept()
        write({"b.py": "def f(:\n"})
        run("check", "--baseline", "known.json", "--prune-baseline", code=1)
        assert len(entries()) == 4

    def test_after_a_failure_nothing_is_gone(self) -> None:
        write({"a.py": CODE})
        accept()
        write({"a.py": "x = 1\n"})
        run("check", "--baseline", "known.json", "--prune-baseline", ".", "no.py", code=2)
        assert len(entries()) == 2

    def test_a_comment_takes_the_place_of_an_entry(self) -> None:
        write({"a.py": CODE})
        accept()
        write({"a.py": CODE.replace("makedirs(out)", "makedirs(out)  # noqa: FSR101")})
        run("check", "--baseline", "known.json", "--prune-baseline", code=0)
        assert [row["code"] for row in entries()] == ["FSR103"]

    def test_a_comment_frees_no_room(self) -> None:
        one = "    if os.path.exists(out):\n        shutil.rmtree(out)\n"
        noqa = one.replace("(out)\n", "(out)  # noqa: FSR103\n")
        write({"a.py": CODE + one})
        accept()
        start = CODE.removesuffix(one)
        write({"a.py": start + noqa + one})
        assert new(code=0) == []
        write({"a.py": start + noqa + one * 2})
        assert new() == ["a.py:17 FSR103"]
        write({"a.py": start + one + noqa + one})
        assert new() == ["a.py:17 FSR103"]

    def test_a_comment_on_what_is_new_takes_no_room(self) -> None:
        one = "    if os.path.exists(out):\n        shutil.rmtree(out)\n"
        write({"a.py": CODE + one})
        accept()
        write({"a.py": CODE + one * 2})
        run("check", "--baseline=known.json", "--add-noqa", code=0)
        assert Path("a.py").read_text() == CODE + one + one.replace("(out)\n", "(out)  # noqa: FSR103\n")
        assert new(code=0) == []
        assert run("check", "--baseline=known.json", "--prune-baseline", code=0).stderr == ""

    @pytest.mark.parametrize(
        ("comments", "counted"), [("-n", 1), ("n-", 2), ("nn", 0), ("n-n", 2), ("nn-", 3), ("--", 2)]
    )
    def test_what_is_written_and_pruned_holds_all(self, comments: str, counted: int) -> None:
        one = "    if os.path.exists(out):\n        shutil.rmtree(out)"
        start = CODE.partition("    if os.path.exists(out):")[0]
        write({"a.py": start + "".join(f"{one}\n" for _ in comments)})
        accept()
        shown = "".join(one + {"n": "  # noqa: FSR103\n", "-": "\n"}[sign] for sign in comments)
        write({"a.py": start + shown})
        for option in (("--baseline=known.json", "--prune-baseline"), ("--write-baseline=known.json",)):
            run("check", *option, code=0)
            assert [r.get("count", 1) for r in entries() if r["code"] == "FSR103"] == [counted] * (
                counted > 0
            )
            assert new(code=0) == []


class TestOfWhichProject:
    @pytest.fixture(autouse=True)
    def two(self, here: Path) -> None:
        write({f"{name}/pyproject.toml": "" for name in ("pa", "pb", "pa/sub")})
        write({"pa/one.py": CODE, "pa/two.py": CODE, "pb/one.py": CODE, "pb/three.py": CODE})

    @pytest.mark.parametrize(
        "options",
        [
            ("--write-baseline", "../pa/known.json"),
            ("--baseline", "../pa/known.json"),
            ("--baseline", "../pa/known.json", "--prune-baseline"),
        ],
    )
    def test_that_of_another_one_is_refused(
        self, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
    ) -> None:
        run("check", "--write-baseline", "pa/known.json", "pa", code=0)
        before = Path("pa/known.json").read_bytes()
        monkeypatch.chdir("pb")
        error = failed("check", *options, ".")
        assert "is the baseline of another project: its paths count from " in error
        assert f"{Path('../pa').resolve()}, and here from {Path.cwd()}" in error
        assert Path("../pa/known.json").read_bytes() == before

    def test_one_at_the_top_for_each(self) -> None:
        for name in ("pa", "pb"):
            run("check", "--write-baseline", f"{name}.json", name, code=0)
            assert json.loads(Path(f"{name}.json").read_bytes())["root"] == name
            assert reported("--baseline", f"{name}.json", name, code=0) == []
            run("check", "--baseline", f"{name}.json", "--prune-baseline", name, code=0)
            assert len(entries(f"{name}.json")) == 4
        for arguments in (("pa.json", "pb"), ("pa.json", ".")):
            for option in ("--baseline", "--write-baseline"):
                assert "another project" in failed("check", option, *arguments)
        run("check", "--write-baseline", "known.json", ".", code=0)
        assert "root" not in json.loads(Path("known.json").read_bytes())
        assert "another project" in failed("check", "--write-baseline", "known.json", "pa")

    def test_a_root_from_the_settings(self) -> None:
        write({"pa/pyproject.toml": '[tool.fsrace-lint]\nroot = ".."\nbaseline = "known.json"\n'})
        run("check", "--write-baseline", "pa/known.json", "pa", code=0)
        assert {row["path"] for row in entries("pa/known.json")} == {"pa/one.py", "pa/two.py"}
        assert reported("pa", code=0) == []
        assert json.loads(Path("pa/known.json").read_bytes())["root"] == ".."
        write({"pa/pyproject.toml": ""})
        assert "another project" in failed("check", "--baseline", "pa/known.json", "pa")

    def test_the_settings_of_one_name_that_of_another(self) -> None:
        run("check", "--write-baseline", "pa/known.json", "pa", code=0)
        write({"pb/pyproject.toml": '[tool.fsrace-lint]\nbaseline = "../pa/known.json"\n'})
        assert "another project" in failed("check", "pb")

    def test_outside_of_any_project(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        file = str(tmp_path_factory.mktemp("outside") / "known.json")
        run("check", "--write-baseline", file, "pa", code=0)
        assert "root" not in json.loads(Path(file).read_bytes())
        assert reported("--baseline", file, "pa", code=0) == []
        told = run("check", "--write-baseline", file, "pb", code=0).stderr
        assert told == f"Wrote 4 findings to {file}, and took 2 out that no longer occur.\n"

    def test_a_project_behind_a_link(self) -> None:
        Path("link").symlink_to("pa")
        run("check", "--write-baseline", "link/known.json", "pa", code=0)
        assert "root" not in json.loads(Path("pa/known.json").read_bytes())
        assert reported("--baseline", "pa/known.json", "link", code=0) == []


class TestSettings:
    def test_the_setting_counts_from_its_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write({"a.py": CODE, "sub/b.py": CODE, "pyproject.toml": TABLE})
        accept()
        assert reported(code=0) == []
        monkeypatch.chdir("sub")
        assert reported(".", code=0) == []
        assert len(reported("--no-baseline", ".")) == 2

    def test_the_option_goes_first_and_counts_from_the_current_folder(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write({"sub/b.py": CODE, "pyproject.toml": TABLE})
        monkeypatch.chdir("sub")
        run("check", "--write-baseline", "here.json", code=0)
        assert reported("--baseline", "here.json", code=0) == []
        assert not Path("../known.json").exists()

    def test_each_project_has_its_own(self) -> None:
        write({"one/pyproject.toml": TABLE, "two/pyproject.toml": "", "one/a.py": CODE, "two/a.py": CODE})
        run("check", "--write-baseline", "one/known.json", "one", code=0)
        assert reported("one", "two") == ["two/a.py:8 FSR101", "two/a.py:13 FSR103"]
        assert "--write-baseline is for one project" in failed(
            "check", "--write-baseline", "one/known.json", "one", "two"
        )
        assert "one/known.json: is the baseline of another project" in failed(
            "check", "--baseline", "one/known.json", "one", "two"
        )

    def test_paths_that_are_no_utf_8(self) -> None:
        name = b"na\xefve.py"
        try:
            Path(os.fsdecode(name)).write_text(CODE)
        except OSError:
            pytest.skip("the filesystem takes no such names")
        accept()
        assert {row["path"] for row in entries()} == {"na\\udcefve.py"}
        assert run("check", "--baseline", "known.json", "--prune-baseline", code=0).stderr == ""
        assert len(entries()) == 2

    def test_a_link_to_a_file_of_the_project(self) -> None:
        write({"a.py": CODE})
        Path("b.py").symlink_to("a.py")
        accept()
        assert {row["path"] for row in entries()} == {"a.py"}
        assert new("b.py", code=0) == []

    def test_fix_leaves_what_is_known(self) -> None:
        write({"a.py": CODE})
        accept()
        more = CODE + "\n\ndef new(out):\n    if not os.path.exists(out):\n        os.makedirs(out)\n"
        write({"a.py": more})
        done = run("fix", "--baseline", "known.json", code=0)
        assert done.stderr == "Fixed 1 problem in 1 file; 0 left.\n"
        text = Path("a.py").read_text()
        assert text.startswith(CODE)
        assert text.count("exist_ok") == 1

    def test_flake8_and_the_command_line_agree(self) -> None:
        pytest.importorskip("flake8")
        write({"a.py": CODE, "b/c.py": CODE, "pyproject.toml": TABLE})
        accept("a.py")
        write({"a.py": "\n\n" + CODE + "    if os.path.exists(out):\n        shutil.rmtree(out)\n"})
        expected = ["a.py:17", "b/c.py:13", "b/c.py:8"]
        assert sorted(row.split()[0] for row in reported()) == expected
        for jobs in ("1", "2"):
            command = [sys.executable, "-m", "flake8", "--isolated", "--select=FSR", f"--jobs={jobs}", "."]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            rows = [":".join(line.removeprefix("./").split(":")[:2]) for line in done.stdout.splitlines()]
            assert (sorted(rows), done.stderr) == (expected, "")

    def test_flake8_tells_of_a_baseline_that_is_not_there(self) -> None:
        pytest.importorskip("flake8")
        write({"a.py": CODE, "pyproject.toml": TABLE})
        done = subprocess.run(
            [sys.executable, "-m", "flake8", "--isolated", "."], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert "there is no such baseline" in done.stdout
        assert "Traceback" not in done.stderr


class TestOptions:
    @pytest.mark.parametrize(
        "arguments",
        [
            ("--baseline=a", "--no-baseline"),
            ("--baseline=a", "--write-baseline=b"),
            ("--prune-baseline", "--write-baseline=b"),
            ("--prune-baseline", "--no-baseline"),
            ("--write-baseline=b", "--format=json"),
            ("--write-baseline=b", "--output-file=c"),
            ("--write-baseline=b", "--report=json=c"),
            ("--write-baseline=b", "--show-suppressed"),
            ("--add-noqa", "--write-baseline=b"),
            ("--add-noqa", "--statistics"),
        ],
    )
    def test_what_does_not_go_together(self, arguments: tuple[str, ...]) -> None:
        write({"a.py": CODE})
        before = sorted(Path().iterdir())
        assert "do not go together" in failed("check", *arguments)
        assert sorted(Path().iterdir()) == before

    def test_pruning_needs_a_baseline(self) -> None:
        write({"a.py": CODE})
        done = run("check", "--prune-baseline", code=2)
        assert "--prune-baseline needs a baseline" in done.stderr
        assert done.stdout == ""

    def test_pruning_goes_with_reports(self) -> None:
        write({"a.py": CODE})
        accept()
        arguments = ("--baseline=known.json", "--prune-baseline", "--format=json", "--report=junit=j.xml")
        assert json.loads(run("check", *arguments, code=0).stdout)["statistics"]["baseline"] == 2


class TestShowing:
    def result(self, *arguments: str) -> Result:
        text = CODE.replace("makedirs(out)", "makedirs(out)  # noqa: FSR101 -- one process")
        write({"a.py": text})
        accept()
        return run("check", "--baseline=known.json", "--show-suppressed", *arguments, code=0)

    def test_as_text(self) -> None:
        assert self.result().stdout == dedent(
            """\
            a.py:8:9: suppressed: comment: FSR101 check-then-mkdir: another process can create out after the check on line 7 (one process)
            a.py:13:9: suppressed: baseline: FSR103 check-then-delete: another process can delete out after the check on line 12

            No new filesystem races found in 1 file; 1 suppressed by comments; 1 in the baseline.
            """  # noqa: E501  # lines of a report
        )

    def test_as_json(self) -> None:
        document = json.loads(self.result("--format=json").stdout)
        jsonschema.Draft202012Validator(SCHEMA).validate(document)
        rows = [(row["finding"]["code"], row["by"], row["reason"]) for row in document["suppressed"]]
        assert rows == [("FSR101", "comment", "one process"), ("FSR103", "baseline", None)]
        assert "suppressed" not in json.loads(run("check", "--format=json", code=1).stdout)

    def test_in_other_formats(self) -> None:
        write({"a.py": CODE})
        assert "--show-suppressed needs --format text or json" in failed(
            "check", "--show-suppressed", "--format=sarif"
        )

    def test_among_what_is_silent(self) -> None:
        write({"a.py": CODE})
        accept()
        done = run("check", "--baseline=known.json", "--show-silenced", code=0).stdout
        assert "silent: baseline: os.makedirs(out): the baseline holds FSR101" in done


def test_the_help_names_the_options() -> None:
    text = CliRunner().invoke(main.main, ["check", "--help"]).stdout
    for option in (
        "--baseline FILE",
        "--no-baseline",
        "--write-baseline FILE",
        "--prune-baseline",
        "--add-noqa",
    ):
        assert option in text
    assert "--baseline FILE" in CliRunner().invoke(main.main, ["fix", "--help"]).stdout


PAGE = (ROOT / "docs" / "adopting.md").read_text(encoding="utf-8")
COMMANDS = [line.strip() for line in PAGE.splitlines() if line.startswith("    fsrace-lint ")]
COMMANDS += re.findall("`(fsrace-lint [^`]+)`", PAGE)


class TestThePage:
    def test_its_commands_run(self) -> None:
        assert len(COMMANDS) > 10
        write(
            {
                "a.py": CODE,
                "tools/b.py": CODE,
                "pyproject.toml": '[tool.fsrace-lint]\nbaseline = "fsrace-baseline.json"\n',
            }
        )
        run("check", "--write-baseline", "fsrace-baseline.json", code=0)
        for command in COMMANDS:
            result = CliRunner().invoke(main.main, shlex.split(command)[1:])
            assert result.exit_code in (0, 1), (command, result.output)

    def test_the_ratchet(self) -> None:
        write({"a.py": CODE})
        run("check", "--write-baseline", "fsrace-baseline.json", code=0)
        table = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
        assert table
        write({"pyproject.toml": table[1]})
        run("check", code=0)
        write({"b.py": CODE})
        run("check", code=1)
        Path("b.py").unlink()
        run("fix", "--no-baseline", "--unsafe-fixes", code=0)
        assert "no longer occur" in run("check", code=0).stderr
        run("check", "--prune-baseline", code=0)
        assert entries("fsrace-baseline.json") == []
        write({"a.py": CODE})
        run("check", code=1)

    def test_the_comment_it_shows(self) -> None:
        write({"a.py": CODE})
        (command,) = [line for line in COMMANDS if "--reason" in line]
        run(*shlex.split(command)[1:], code=0)
        assert "os.makedirs(out)  # noqa: FSR101 -- one process only\n" in Path("a.py").read_text()
