"""The baseline: reading, writing, matching after code changes, pruning, and error messages."""

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


def new_findings(*arguments: str, code: int = 1) -> list[str]:
    return reported("--baseline", "known.json", *arguments, code=code)


def entries(name: str = "known.json") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(Path(name).read_text(encoding="utf-8"))["findings"]
    return found


def error_of(*arguments: str) -> str:
    return run(*arguments, code=2).stderr


class TestWriting:
    def test_baseline_findings_are_not_reported(self) -> None:
        write({"a.py": CODE})
        result = run("check", "--write-baseline", "known.json", code=0)
        assert result.stdout == ""
        assert result.stderr == "Wrote 2 findings to known.json.\n"
        done = run("check", "--baseline", "known.json", code=0)
        assert done.stdout == "No new filesystem races found in 1 file; 2 in the baseline.\n"
        assert done.stderr == ""
        assert len(reported()) == 2

    def test_file_is_sorted_with_one_entry_per_line(self) -> None:
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
            ("a.py", "FSR103", "clean_cache"),
            ("b/z.py", "FSR101", "prepare"),
            ("b/z.py", "FSR103", "clean_cache"),
        ]
        assert all(sorted(row) == ["code", "function", "path", "text"] for row in rows)
        first = Path("known.json").read_bytes()
        accept()
        assert Path("known.json").read_bytes() == first

    def test_file_contains_no_source_text(self) -> None:
        write({"a.py": 'import os\nif not os.path.isdir("s3cret"):\n    os.mkdir("s3cret")\n'})
        accept()
        assert "cret" not in Path("known.json").read_text(encoding="utf-8")

    def test_empty_baseline(self) -> None:
        write({"a.py": "x = 1\n"})
        accept()
        assert entries() == []
        assert (
            run("check", "--baseline", "known.json", code=0).stdout
            == "No filesystem races found in 1 file.\n"
        )

    def test_fsr00x_findings_are_not_added(self) -> None:
        write({"a.py": "def f(:\n", "b.py": "x = 1  # noqa: FSR101\n", "c.py": CODE})
        result = run("check", "--write-baseline", "known.json", code=0)
        assert result.stderr.splitlines()[0] == "Wrote 2 findings to known.json."
        assert [line.rpartition(" to the baseline: ")[0] for line in result.stderr.splitlines()[1:]] == [
            "a.py:1:7: FSR001 was not added",
            "b.py:1:16: FSR003 was not added",
        ]
        assert new_findings() == ["a.py:1 FSR001", "b.py:1 FSR003"]
        rows = [{**row, "code": "FSR001"} for row in entries()]
        document = {"format": baseline.FORMAT, "version": 1, "findings": rows}
        Path("known.json").write_text(json.dumps(document))
        assert "a.py:1 FSR001" in new_findings()

    def test_partial_run_keeps_unchecked_entries(self) -> None:
        write({"a.py": CODE, "b.py": CODE})
        accept()
        write({"a.py": CODE.replace("def clean", "def sweep")})
        result = run("check", "--write-baseline", "known.json", "a.py", code=0)
        message = "removed 1 that no longer occurs, and kept 2 that this run did not check"
        assert result.stderr == f"Wrote 2 findings to known.json, {message}.\n"
        assert {row["function"] for row in entries() if row["path"] == "a.py"} == {"prepare", "sweep_cache"}
        assert len(entries()) == 4

    def test_failed_run_writes_nothing(self) -> None:
        write({"a.py": CODE})
        assert "known.json was not written because the run failed" in error_of(
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
    def test_file_that_is_not_a_baseline_is_not_overwritten(self, text: str, option: str) -> None:
        write({"a.py": CODE, "precious": text})
        chosen = (option, "--baseline=precious") if option == "--prune-baseline" else (option, "precious")
        (line,) = [line for line in error_of("check", *chosen).splitlines() if line.startswith("Error")]
        assert re.search(r"\bprecious: (not an? |baseline format 2 is not supported)", line)
        assert Path("precious").read_text() == text

    def test_symbolic_link_is_kept(self) -> None:
        write({"a.py": CODE})
        Path("real.json").write_text('{"format": "fsrace-lint baseline", "version": 1, "findings": []}')
        Path("known.json").symlink_to("real.json")
        accept()
        assert Path("known.json").is_symlink()
        assert len(entries("real.json")) == 2

    def test_file_mode_is_kept(self) -> None:
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
    def test_protected_file_is_not_replaced(self, change: Any, reason: str, option: str) -> None:
        write({"a.py": CODE})
        accept()
        change(Path("known.json"))
        before = Path("known.json").read_bytes()
        write({"a.py": CODE.partition("def clean")[0]})
        known = ("--baseline=known.json",) if option == "--prune-baseline" else ()
        assert f"known.json: {reason}" in error_of("check", option, *known)
        assert Path("known.json").read_bytes() == before
        assert not list(Path().glob(".*.tmp"))

    @pytest.mark.parametrize("there", [True, False])
    def test_concurrent_write_is_kept(self, monkeypatch: pytest.MonkeyPatch, *, there: bool) -> None:
        write({"a.py": CODE})
        if there:
            accept()
            write({"a.py": CODE.partition("def clean")[0]})
        monkeypatch.setattr(os, "fsync", lambda descriptor: Path("known.json").write_text("theirs"))
        monkeypatch.delattr(os, "link")
        done = "changed" if there else "created"
        assert f"was {done} by another process during the run" in error_of(
            "check", "--write-baseline", "known.json"
        )
        assert Path("known.json").read_text() == "theirs"
        assert not list(Path().glob(".*.tmp"))

    def test_file_created_just_before_the_link_is_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write({"a.py": CODE})
        link = os.link

        def late(one: Any, other: Any) -> None:
            Path("known.json").write_text("theirs")
            link(one, other)

        monkeypatch.setattr(os, "link", late)
        assert "was created by another process during the run" in error_of(
            "check", "--write-baseline", "known.json"
        )
        assert Path("known.json").read_text() == "theirs"

    def test_filesystem_without_hard_links(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*arguments: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)
        write({"a.py": CODE})
        accept()
        assert len(entries()) == 2

    @pytest.mark.parametrize("call", ["replace", "fsync"])
    def test_interrupt_leaves_no_temporary_file(self, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
        def interrupt(*arguments: object) -> None:
            raise KeyboardInterrupt

        file = Path("any.json")
        file.write_text("before")
        monkeypatch.setattr(os, call, interrupt)
        with pytest.raises(KeyboardInterrupt):
            atomic_write.put(file, b"after")
        assert file.read_text() == "before"
        assert not list(Path().glob(".*.tmp"))

    def test_too_long_file_name_is_an_error(self) -> None:
        write({"a.py": CODE})
        assert "cannot read the baseline: File name too long" in error_of(
            "check", "--write-baseline", "x" * 300
        )

    @pytest.mark.parametrize("option", ["--write-baseline", "--add-noqa"])
    def test_silent_prints_nothing(self, option: str) -> None:
        write({"a.py": "def f(:\n", "b.py": CODE})
        write({"c.py": 'import os\nif not os.path.exists(d): os.makedirs(f"""{d}\n""")\n'})
        arguments = (option, "known.json") if option == "--write-baseline" else (option,)
        for more in (("."), ("no.py")):
            done = CliRunner().invoke(main.main, ["check", "--silent", *arguments, ".", more])
            assert done.output == ""
        assert CliRunner().invoke(main.main, ["check", *arguments, "."]).stderr

    def test_silent_refusal_prints_nothing(self) -> None:
        write({"a.py": CODE, "precious": "x = 1"})
        assert run("check", "--silent", "--write-baseline", "precious", code=2).output == ""

    def test_missing_directory_is_an_error(self) -> None:
        write({"a.py": CODE})
        assert "cannot write the baseline: No such file" in error_of(
            "check", "--write-baseline", "no/known.json"
        )


class TestReading:
    def test_missing_baseline_error_shows_how_to_create_one(self) -> None:
        write({"a.py": CODE})
        for options in (("--baseline", "known.json"), ()):
            (error,) = [line for line in error_of("check", *options).splitlines() if line.startswith("Error")]
            assert (
                "known.json: baseline not found; to create it, run `fsrace-lint check --write-baseline"
                in error
            )
            write({"pyproject.toml": TABLE})

    def test_newer_format_is_an_error(self) -> None:
        write({"a.py": CODE, "known.json": '{"format": "fsrace-lint baseline", "version": 7}'})
        assert "baseline format 7 is not supported (supported: 1); upgrade fsrace-lint" in error_of(
            "check", "--baseline", "known.json"
        )

    def test_merge_conflict_markers_are_an_error(self) -> None:
        write({"a.py": CODE})
        accept()
        text = Path("known.json").read_text().replace('  "findings"', '<<<<<<< ours\n  "findings"')
        Path("known.json").write_text(text)
        assert "the file contains unresolved merge conflicts\n" in error_of(
            "check", "--baseline", "known.json"
        )

    def test_invalid_utf_8_is_an_error(self) -> None:
        write({"a.py": CODE})
        accept()
        data = Path("known.json").read_bytes().replace(b"a.py", b"a\xff.py")
        Path("known.json").write_bytes(data)
        for option in ("--baseline", "--write-baseline"):
            assert "known.json: not a valid fsrace-lint baseline: " in error_of("check", option, "known.json")
        assert Path("known.json").read_bytes() == data

    def test_duplicate_entry_counts_once(self) -> None:
        write({"a.py": CODE})
        accept()
        document = {"format": baseline.FORMAT, "version": 1, "findings": entries() * 2}
        write({"a.py": CODE + "    if os.path.exists(out):\n        shutil.rmtree(out)\n"})
        Path("known.json").write_text(json.dumps(document))
        assert new_findings() == ["a.py:15 FSR103"]

    def test_too_large_baseline_is_an_error(self) -> None:
        write({"a.py": CODE})
        with Path("known.json").open("wb") as stream:
            stream.truncate(17 * 1024 * 1024)
        assert "known.json: cannot read the baseline: file is 17.8 MB; the limit is 16.8 MB" in error_of(
            "check", "--baseline", "known.json"
        )

    def test_deeply_nested_json_is_an_error(self) -> None:
        write({"a.py": CODE, "known.json": "[" * 100_000})
        assert "not an fsrace-lint baseline" in error_of("check", "--baseline", "known.json")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
    def test_named_pipe_is_an_error(self) -> None:
        write({"a.py": CODE})
        os.mkfifo("known.json")
        assert "cannot read the baseline: not a regular file" in error_of("check", "--baseline", "known.json")

    @pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", "a\0b", "\x1b[2J.py", "x" * 5000])
    def test_hostile_entries_have_no_effect(self, path: str) -> None:
        write({"a.py": CODE})
        row = {"path": path, "code": "FSR101", "function": "\x1b]0;f", "text": "0" * 16}
        document = {"format": baseline.FORMAT, "version": 1, "findings": [row]}
        Path("known.json").write_text(json.dumps(document))
        result = run("check", "--baseline", "known.json", "--prune-baseline", code=1)
        assert "\x1b" not in result.output
        assert "Found 2 warnings" in result.stdout

    @given(st.binary(max_size=200) | st.text(max_size=50).map(str.encode))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    def test_arbitrary_content_is_a_baseline_error(self, data: bytes) -> None:
        file = Path("any.json")
        file.write_bytes(data)
        with pytest.raises(baseline.BaselineError, match=r"any\.json: not an? "):
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
    def test_write_and_load_round_trip(self, counts: dict[Key, int]) -> None:
        file = Path("any.json")
        file.unlink(missing_ok=True)
        baseline.write(file, baseline.Baseline(counts))
        assert baseline.load(file).counts == counts


class TestMatching:
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
    def test_unrelated_changes_keep_the_match(self, change: Any) -> None:
        write({"a.py": CODE})
        accept()
        Path("a.py").write_bytes(change(CODE).encode())
        assert new_findings(code=0) == []

    @pytest.mark.parametrize(
        ("old", "fresh", "found"),
        [
            ("def prepare", "def prepare_all", "FSR101"),
            ("makedirs(out)", "makedirs(out, 0o700)", "FSR101"),
            ("rmtree(out)", "rmtree(out, False)", "FSR103"),
        ],
    )
    def test_change_to_the_reported_code_is_new(self, old: str, fresh: str, found: str) -> None:
        write({"a.py": CODE})
        accept()
        write({"a.py": CODE.replace(old, fresh)})
        assert [row.split()[1] for row in new_findings()] == [found]

    def test_finding_beyond_the_count_is_new(self) -> None:
        twice = "    if os.path.exists(out):\n        shutil.rmtree(out)\n"
        write({"a.py": CODE + twice})
        accept()
        assert [row["count"] for row in entries() if row["code"] == "FSR103"] == [2]
        write({"a.py": CODE + twice * 2})
        assert new_findings() == ["a.py:17 FSR103"]

    @given(
        st.lists(st.sampled_from(["", "# text", "x = 1", '"""text\n\n"""']), max_size=4),
        st.permutations(CODE.strip().split("\n\n\n")[1:]),
        st.sampled_from(["\n", "\r\n"]),
    )
    @settings(
        suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=bound(8, 25)
    )
    def test_moved_code_keeps_the_match(self, above: list[str], functions: list[str], newline: str) -> None:
        write({"a.py": CODE})
        Path("known.json").unlink(missing_ok=True)
        accept()
        text = "\n".join(["import os, shutil", *above, *functions, ""])
        Path("a.py").write_bytes(text.replace("\n", newline).encode())
        assert new_findings(code=0) == []

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
    def test_fingerprint_ignores_layout(self, one: str, other: str) -> None:
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
    def test_fingerprint_depends_on_code(self, one: str, other: str) -> None:
        assert digest(one) != digest(other)


def digest(text: str) -> str:
    place = Place("a.py", Span(1, 1, 1, 2))
    found = Finding("FSR101", "name", "said", place, "f", Severity.ERROR, "evident")
    return fingerprints.key(found, "a.py", text).text


class TestPruning:
    def test_stale_entry_is_reported_and_pruned(self) -> None:
        write({"a.py": CODE})
        accept()
        write({"a.py": CODE.partition("def clean")[0]})
        noted = run("check", "--baseline", "known.json", code=0).stderr
        assert noted.startswith("Note: 1 entry in the baseline ")
        assert noted.endswith(
            "known.json no longer matches a finding. Use --prune-baseline to remove stale entries.\n"
        )
        assert len(entries()) == 2
        message = run("check", "--baseline", "known.json", "--prune-baseline", code=0).stderr.splitlines()
        assert message[0] == "a.py: FSR103 in clean_cache was removed from the baseline."
        assert re.fullmatch(r"Removed 1 finding from .*known\.json\. 1 remaining\.", message[1])
        assert [row["code"] for row in entries()] == ["FSR101"]
        assert run("check", "--baseline", "known.json", "--prune-baseline", code=0).stderr == ""

    def test_pruning_lowers_the_count(self) -> None:
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
    def test_pruning_keeps_entries_that_were_not_checked(self, arguments: tuple[str, ...]) -> None:
        write({"a.py": CODE, "b/c.py": CODE})
        accept()
        write({"b/c.py": "x = 1\n" if "FSR" not in arguments[0] else CODE.partition("def clean")[0]})
        result = run("check", "--baseline", "known.json", "--prune-baseline", *arguments, code=0)
        assert result.stderr == ""
        assert len(entries()) == 4

    def test_pruning_keeps_strict_profile_entries(self) -> None:
        write({"a.py": "import os\n\n\ndef f(d):\n    os.mkdir(d)\n"})
        assert len(reported("--profile=strict")) == 1
        assert reported(code=0) == []
        accept("--profile=strict")
        assert new_findings("--profile=strict", code=0) == []
        assert run("check", "--baseline", "known.json", "--prune-baseline", code=0).stderr == ""
        accept()
        assert len(entries()) == 1

    def test_pruning_removes_entries_of_a_deleted_file(self) -> None:
        write({"a.py": CODE, "b/c.py": CODE})
        accept()
        Path("b/c.py").unlink()
        assert run("check", "--baseline", "known.json", "--prune-baseline", "a.py", code=0).stderr == ""
        assert len(entries()) == 4
        run("check", "--baseline", "known.json", "--prune-baseline", "b", code=0)
        assert {row["path"] for row in entries()} == {"a.py"}

    def test_pruning_keeps_entries_of_an_unparsable_file(self) -> None:
        write({"a.py": CODE, "b.py": CODE})
        accept()
        write({"b.py": "def f(:\n"})
        run("check", "--baseline", "known.json", "--prune-baseline", code=0)
        assert len(entries()) == 4

    def test_failed_run_prunes_nothing(self) -> None:
        write({"a.py": CODE})
        accept()
        write({"a.py": "x = 1\n"})
        run("check", "--baseline", "known.json", "--prune-baseline", ".", "no.py", code=2)
        assert len(entries()) == 2

    def test_noqa_comment_replaces_an_entry(self) -> None:
        write({"a.py": CODE})
        accept()
        write({"a.py": CODE.replace("makedirs(out)", "makedirs(out)  # noqa: FSR101")})
        run("check", "--baseline", "known.json", "--prune-baseline", code=0)
        assert [row["code"] for row in entries()] == ["FSR103"]

    def test_noqa_comment_does_not_free_a_baseline_slot(self) -> None:
        one = "    if os.path.exists(out):\n        shutil.rmtree(out)\n"
        noqa = one.replace("(out)\n", "(out)  # noqa: FSR103\n")
        write({"a.py": CODE + one})
        accept()
        start = CODE.removesuffix(one)
        write({"a.py": start + noqa + one})
        assert new_findings(code=0) == []
        write({"a.py": start + noqa + one * 2})
        assert new_findings() == ["a.py:17 FSR103"]
        write({"a.py": start + one + noqa + one})
        assert new_findings() == ["a.py:17 FSR103"]

    def test_noqa_on_a_new_finding_uses_no_baseline_slot(self) -> None:
        one = "    if os.path.exists(out):\n        shutil.rmtree(out)\n"
        write({"a.py": CODE + one})
        accept()
        write({"a.py": CODE + one * 2})
        run("check", "--baseline=known.json", "--add-noqa", code=0)
        assert Path("a.py").read_text() == CODE + one + one.replace("(out)\n", "(out)  # noqa: FSR103\n")
        assert new_findings(code=0) == []
        assert run("check", "--baseline=known.json", "--prune-baseline", code=0).stderr == ""

    @pytest.mark.parametrize(
        ("comments", "counted"), [("-n", 1), ("n-", 2), ("nn", 0), ("n-n", 2), ("nn-", 3), ("--", 2)]
    )
    def test_writing_and_pruning_keep_the_same_counts(self, comments: str, counted: int) -> None:
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
            assert new_findings(code=0) == []


class TestProjectOfTheBaseline:
    @pytest.fixture(autouse=True)
    def two_projects(self, here: Path) -> None:
        write({f"{name}/pyproject.toml": '[tool.fsrace-lint]\nroot = "."\n' for name in ("pa", "pb")})
        write({"pa/one.py": CODE, "pa/two.py": CODE, "pb/one.py": CODE, "pb/three.py": CODE})

    @pytest.mark.parametrize(
        "options",
        [
            ("--write-baseline", "../pa/known.json"),
            ("--baseline", "../pa/known.json"),
            ("--baseline", "../pa/known.json", "--prune-baseline"),
        ],
    )
    def test_baseline_of_another_project_is_refused(
        self, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
    ) -> None:
        run("check", "--write-baseline", "pa/known.json", "pa", code=0)
        before = Path("pa/known.json").read_bytes()
        monkeypatch.chdir("pb")
        error = error_of("check", *options, ".")
        assert "baseline of another project: its paths are relative to " in error
        assert f"{Path('../pa').resolve()}, not to {Path.cwd()}" in error
        assert Path("../pa/known.json").read_bytes() == before

    def test_baselines_above_the_project_roots(self) -> None:
        for name in ("pa", "pb"):
            run("check", "--write-baseline", f"{name}.json", name, code=0)
            assert json.loads(Path(f"{name}.json").read_bytes())["root"] == name
            assert reported("--baseline", f"{name}.json", name, code=0) == []
            run("check", "--baseline", f"{name}.json", "--prune-baseline", name, code=0)
            assert len(entries(f"{name}.json")) == 4
        for arguments in (("--baseline", "pa.json", "pb"), ("--write-baseline", "pa.json", "pb")):
            assert "another project" in error_of("check", *arguments)
        assert "another project" in error_of("check", "--baseline", "pa.json", ".")
        assert "one project at a time" in error_of("check", "--write-baseline", "known.json", ".")

    def test_root_setting_decides_relative_paths(self) -> None:
        write({"pa/pyproject.toml": '[tool.fsrace-lint]\nbaseline = "known.json"\n'})
        run("check", "--write-baseline", "pa/known.json", "pa", code=0)
        assert {row["path"] for row in entries("pa/known.json")} == {"pa/one.py", "pa/two.py"}
        assert reported("pa", code=0) == []
        assert "root" not in json.loads(Path("pa/known.json").read_bytes())
        write({"pa/pyproject.toml": '[tool.fsrace-lint]\nroot = "."\n'})
        Path("pa/known.json").rename("known.json")
        assert "another project" in error_of("check", "--baseline", "known.json", "pa")

    def test_settings_naming_another_projects_baseline_are_refused(self) -> None:
        run("check", "--write-baseline", "pa/known.json", "pa", code=0)
        write({"pb/pyproject.toml": '[tool.fsrace-lint]\nroot = "."\nbaseline = "../pa/known.json"\n'})
        assert "another project" in error_of("check", "pb")

    def test_baseline_outside_any_project(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        file = str(tmp_path_factory.mktemp("outside") / "known.json")
        run("check", "--write-baseline", file, "pa", code=0)
        assert "root" not in json.loads(Path(file).read_bytes())
        assert reported("--baseline", file, "pa", code=0) == []
        message = run("check", "--write-baseline", file, "pb", code=0).stderr
        assert message == f"Wrote 4 findings to {file}, and removed 2 that no longer occur.\n"

    def test_project_reached_through_a_link(self) -> None:
        Path("link").symlink_to("pa")
        run("check", "--write-baseline", "link/known.json", "pa", code=0)
        assert "root" not in json.loads(Path("pa/known.json").read_bytes())
        assert reported("--baseline", "pa/known.json", "link", code=0) == []


class TestSettings:
    def test_baseline_setting_is_relative_to_its_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write({"a.py": CODE, "sub/b.py": CODE, "pyproject.toml": TABLE})
        accept()
        assert reported(code=0) == []
        monkeypatch.chdir("sub")
        assert reported(".", code=0) == []
        assert len(reported("--no-baseline", ".")) == 2

    def test_baseline_option_overrides_the_setting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write({"sub/b.py": CODE, "pyproject.toml": TABLE})
        monkeypatch.chdir("sub")
        run("check", "--write-baseline", "here.json", code=0)
        assert reported("--baseline", "here.json", code=0) == []
        assert not Path("../known.json").exists()

    def test_each_project_uses_its_own_baseline(self) -> None:
        write({"one/pyproject.toml": TABLE, "two/pyproject.toml": "", "one/a.py": CODE, "two/a.py": CODE})
        write({"one/.git/HEAD": "", "two/.git/HEAD": ""})
        run("check", "--write-baseline", "one/known.json", "one", code=0)
        assert reported("one", "two") == ["two/a.py:8 FSR101", "two/a.py:13 FSR103"]
        assert "--write-baseline works on one project at a time" in error_of(
            "check", "--write-baseline", "one/known.json", "one", "two"
        )
        assert "one/known.json: baseline of another project" in error_of(
            "check", "--baseline", "one/known.json", "one", "two"
        )

    def test_each_table_has_its_own_baseline(self) -> None:
        write({f"{name}/a.py": CODE for name in ("one", "two", "three")})
        for name in ("one", "two"):
            run("check", "--write-baseline", f"{name}/known.json", name, code=0)
            write({f"{name}/pyproject.toml": TABLE})
        assert {row.partition(":")[0] for row in reported(".")} == {"three/a.py"}
        write({"one/a.py": "", "two/a.py": ""})
        run("check", "--prune-baseline", "two", "three", code=1)
        assert (len(entries("one/known.json")), len(entries("two/known.json"))) == (2, 0)
        Path("one/known.json").write_text("")
        assert "one/known.json: not a valid fsrace-lint baseline" in error_of("check", "three")

    def test_path_that_is_not_utf_8(self) -> None:
        name = b"na\xefve.py"
        try:
            Path(os.fsdecode(name)).write_text(CODE)
        except OSError:
            pytest.skip("the filesystem takes no such names")
        accept()
        assert {row["path"] for row in entries()} == {"na\\udcefve.py"}
        assert run("check", "--baseline", "known.json", "--prune-baseline", code=0).stderr == ""
        assert len(entries()) == 2

    def test_link_shares_the_entry_of_its_target(self) -> None:
        write({"a.py": CODE})
        Path("b.py").symlink_to("a.py")
        accept()
        assert {row["path"] for row in entries()} == {"a.py"}
        assert new_findings("b.py", code=0) == []

    def test_fix_leaves_baseline_findings(self) -> None:
        write({"a.py": CODE})
        accept()
        more = CODE + "\n\ndef new_cache(out):\n    if not os.path.isdir(out):\n        os.makedirs(out)\n"
        write({"a.py": more})
        done = run("fix", "--baseline", "known.json", code=0)
        assert done.stderr == "Fixed 1 finding in 1 file. 0 remaining.\n"
        text = Path("a.py").read_text()
        assert text.startswith(CODE)
        assert text.count("exist_ok") == 1

    def test_flake8_and_the_command_line_agree_on_the_baseline(self) -> None:
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

    def test_flake8_reports_a_missing_baseline(self) -> None:
        pytest.importorskip("flake8")
        write({"a.py": CODE, "pyproject.toml": TABLE})
        done = subprocess.run(
            [sys.executable, "-m", "flake8", "--isolated", "."], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert "baseline not found; to create it, run " in done.stdout
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
    def test_conflicting_options_are_an_error(self, arguments: tuple[str, ...]) -> None:
        write({"a.py": CODE})
        before = sorted(Path().iterdir())
        assert re.search(
            r"Error: (--[\w-]+) cannot be used with (?!\1\n)--[\w-]+\n\Z", error_of("check", *arguments)
        )
        assert sorted(Path().iterdir()) == before

    def test_pruning_needs_a_baseline(self) -> None:
        write({"a.py": CODE})
        done = run("check", "--prune-baseline", code=2)
        assert "Error: --prune-baseline requires a baseline: " in done.stderr
        assert done.stdout == ""

    def test_pruning_can_be_combined_with_reports(self) -> None:
        write({"a.py": CODE})
        accept()
        arguments = ("--baseline=known.json", "--prune-baseline", "--format=json", "--report=junit=j.xml")
        assert json.loads(run("check", *arguments, code=0).stdout)["statistics"]["baseline"] == 2


class TestShowSuppressed:
    def result(self, *arguments: str) -> Result:
        text = CODE.replace("makedirs(out)", "makedirs(out)  # noqa: FSR101 -- one process")
        write({"a.py": text})
        accept()
        return run("check", "--baseline=known.json", "--show-suppressed", *arguments, code=0)

    def test_text_output(self) -> None:
        assert self.result().stdout == dedent(
            """\
            a.py:8:9: suppressed: comment: FSR101 check-then-mkdir: directory `out` is created by multiple callers after a separate existence check (one process)
            a.py:13:9: suppressed: baseline: FSR103 check-then-delete: `out` is deleted by multiple callers after a separate existence check

            No new filesystem races found in 1 file; 1 suppressed by comments; 1 in the baseline.
            """  # noqa: E501  # lines of a report
        )

    def test_json_output(self) -> None:
        document = json.loads(self.result("--format=json").stdout)
        jsonschema.Draft202012Validator(SCHEMA).validate(document)
        rows = [(row["finding"]["code"], row["by"], row["reason"]) for row in document["suppressed"]]
        assert rows == [("FSR101", "comment", "one process"), ("FSR103", "baseline", None)]
        assert "suppressed" not in json.loads(run("check", "--format=json", code=1).stdout)

    def test_other_formats_are_refused(self) -> None:
        write({"a.py": CODE})
        assert (
            "--show-suppressed requires --output-format full, concise, grouped, trace, or json\n"
            in error_of("check", "--show-suppressed", "--format=sarif")
        )

    def test_show_silenced_lists_baseline_findings(self) -> None:
        write({"a.py": CODE})
        accept()
        done = run("check", "--baseline=known.json", "--show-silenced", code=0).stdout
        assert "not reported: baseline: os.makedirs(out): FSR101 is in the baseline\n" in done


def test_help_lists_the_baseline_options() -> None:
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


class TestAdoptingPage:
    def test_documented_commands_run(self) -> None:
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

    def test_documented_ratchet(self) -> None:
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
        assert "no longer match a finding" in run("check", code=0).stderr
        run("check", "--prune-baseline", code=0)
        assert entries("fsrace-baseline.json") == []
        write({"a.py": CODE})
        run("check", code=1)

    def test_documented_noqa_comment(self) -> None:
        write({"a.py": CODE})
        (command,) = [line for line in COMMANDS if "--reason" in line]
        run(*shlex.split(command)[1:], code=0)
        assert "os.makedirs(out)  # noqa: FSR101 -- one process only\n" in Path("a.py").read_text()
