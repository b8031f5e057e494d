"""Unusual files: deeply nested, very long, oddly encoded or named, or changed during the run."""

from __future__ import annotations

import ast
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from click.testing import CliRunner
from support.bad_input import GOOD, check, posix
from support.cli import HAZARD

from fsrace_lint.cli import main
from fsrace_lint.files import atomic_write, source
from fsrace_lint.fixes import apply
from fsrace_lint.pipeline import discover
from fsrace_lint.report import FORMATS
from fsrace_lint.syntax.extract import extract
from fsrace_lint.syntax.model import FileFacts

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("one_good_file")

TERMS: Final = 20_000
LONG: Final = 5000
TOO_DEEP: Final = "FSR001 code is nested too deeply to analyze"
FIXED: Final = 'import os\n\nos.makedirs("d", exist_ok=True)\n'
FLAT: Final = {
    "and": "x = a" + " and a" * 1000,
    "compared": "x = a" + " < a" * LONG,
    "strings": "x = " + "'a' " * LONG,
    "items": "x = [" + "a, " * LONG + "]",
    "keys": "x = {" + "1: a, " * LONG + "}",
    "arguments": "f(" + "a, " * LONG + ")",
    "targets": "x = " * 1000 + "a",
    "parts": 'x = f"' + "{a}" * 1000 + '"',
    "decorators": "@a\n" * 1000 + "def f(): pass",
    "handlers": "try: pass\n" + "except a: pass\n" * 500,
    "cases": "match a:\n" + "    case 1: pass\n" * 500,
    "entered": "with " + "a, " * 400 + "a: pass",
    "names": "a0 = 'd'\n" + "".join(f"a{i + 1} = a{i}\n" for i in range(300)) + "import os\nos.mkdir(a300)",
    "calls": "def f0(): pass\n" + "".join(f"def f{i + 1}(): f{i}()\n" for i in range(300)),
    "classes": "class C0: pass\n" + "".join(f"class C{i + 1}(C{i}): pass\n" for i in range(300)),
    "long name": "a" * 100_000 + " = 1",
}
"""Long code that is not deeply nested."""
DEEP: Final = {
    "sum": "x = 1" + " + 1" * TERMS,
    "texts": "x = 'a'" + " + 'a'" * TERMS,
    "attributes": "x = a" + ".b" * TERMS,
    "called": "x = a" + "()" * TERMS,
    "subscripts": "x = a" + "[0]" * TERMS,
    "elif": "if a: pass\n" + "elif a: pass\n" * TERMS,
    "not": "x = " + "not " * TERMS + "a",
    "minus": "x = " + "-" * TERMS + "a",
    "lambda": "x = " + "lambda: " * TERMS + "a",
    "conditional": "x = " + "a if a else " * TERMS + "a",
    "parentheses": "x = " + "(" * TERMS + ")" * TERMS,
    "lists": "x = " + "[" * TERMS + "]" * TERMS,
    "dicts": "x = " + "{1: " * TERMS + "a" + "}" * TERMS,
    "nested calls": "x = " + "f(" * TERMS + ")" * TERMS,
    "walrus": "x = " + "(y := " * TERMS + "a" + ")" * TERMS,
    "awaits": "async def f():\n    " + "await " * TERMS + "a",
    "f-strings": "x = " + 'f"{' * 200 + "a" + '}"' * 200,
    "comprehensions": "x = " + "[" * 300 + "a" + " for a in b]" * 300,
    "blocks": "".join(" " * i + "if a:\n" for i in range(120)) + " " * 120 + "pass",
    "with": "".join(" " * i + "with a:\n" for i in range(120)) + " " * 120 + "pass",
    "functions": "".join(" " * i + "def f():\n" for i in range(120)) + " " * 120 + "pass",
    "entered": "import os\nwith " + "a, " * TERMS + "a: os.mkdir('d')",
}
"""Code that some Python version, or fsrace-lint, cannot parse."""


def run(*arguments: str, code: int) -> str:
    result = CliRunner().invoke(main.main, arguments)
    assert result.exit_code == code, (result.output, result.exc_info)
    assert "Traceback" not in result.output
    assert "internal error" not in result.output
    return result.stderr


class TestNesting:
    def test_long_code_is_checked(self) -> None:
        for name, text in FLAT.items():
            Path(f"{name}.py").write_text(f"{HAZARD}{text}\n")
        result_lines = check("--jobs=1", ".")
        assert (result_lines.code, result_lines.errors) == (1, [])
        found = {row.partition(":")[0] for row in result_lines.findings if " FSR101 " in row}
        assert found == {"good.py", *(f"{name}.py" for name in FLAT)}
        assert not [row for row in result_lines.findings if "FSR00" in row]

    def test_long_code_is_fixed(self) -> None:
        for name in ("names", "entered"):
            Path(f"{name}.py").write_text(f"{HAZARD}{FLAT[name]}\n")
        run("fix", code=0)
        for name in ("names", "entered"):
            text = Path(f"{name}.py").read_text()
            assert text.startswith(FIXED)
            ast.parse(text)

    @pytest.mark.parametrize("text", ["x = a" + " and a" * TERMS, "import a" + ".b" * TERMS])
    def test_code_that_crashes_libcst_is_not_parsed(self, text: str) -> None:
        """libcst overflows the stack, which kills the process and cannot be caught."""
        Path("chain.py").write_text(f"{HAZARD}{text}\n")
        program = """
from pathlib import Path
from fsrace_lint import catalog, fixes
from fsrace_lint.files import source
from fsrace_lint.findings.finding import Applicability, Finding, Fix, Idiom, Severity
from fsrace_lint.files.spans import Place, Span
span = Span(4, 5, 4, 18)
fix = Fix("exist-ok", span, Applicability.SAFE, "", api="os.makedirs")
finding = Finding("FSR101", "x", "x", Place("chain.py", span), "f", Severity.ERROR, "evident", fix=fix)
surroundings = fixes.Surroundings(lambda span: Idiom(), lambda span: (), catalog.load)
made, = fixes.alone(source.read(Path("chain.py"), Path.cwd()), [finding], surroundings)
print(made.refusal)
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "the code is nested too deeply\n"), done.stderr

    def test_deep_code_is_reported_and_the_rest_is_fixed(self) -> None:
        """One deeply nested line per file; hazards in other files are found and fixed."""
        for name, text in DEEP.items():
            Path(f"{name}.py").write_text(f"{HAZARD}{text}\n")
        result_lines = check("--jobs=1", "--show-silenced", "--statistics", ".")
        assert (result_lines.code, result_lines.errors) == (1, [])
        assert GOOD in result_lines.findings
        paths = [
            row.partition(":")[0] for row in result_lines.findings if " FSR001 " in row or " FSR101 " in row
        ]
        assert sorted(paths) == sorted({"good.py", *(f"{name}.py" for name in DEEP)})
        assert not [row for row in result_lines.findings if "FSR002" in row]
        for name in ("attributes", "elif", "not", "conditional", "entered"):
            assert any(row == f"{name}.py:1:1 {TOO_DEEP}" for row in result_lines.findings)
        run("fix", code=1)
        assert Path("good.py").read_text() == FIXED

    @pytest.mark.parametrize("terms", [470])
    @pytest.mark.parametrize("text", ["a / 'b'", "not a", "1 if rank == 0 else a", "elif a: os.mkdir('d')"])
    def test_code_that_parses_is_analyzed(self, text: str, terms: int) -> None:
        """Later stages use more stack frames per level than extraction, and have a larger limit."""
        if text.startswith("elif"):
            code = "import os\nif rank == 0: pass\n" + f"{text}\n" * terms
        else:
            first, _, last = text.rpartition("a") if text.endswith("a") else ("", "", text[1:])
            path = first * terms + "a" + last * (terms if not first else 0)
            code = f"import os\na = 'd'\nif not os.path.isdir({path}):\n    os.mkdir({path})\n"
        Path("edge.py").write_text(code)
        result_lines = check("--show-silenced", "--profile=strict", ".")
        assert result_lines.errors == []
        assert not [row for row in result_lines.findings if "FSR00" in row]

    @pytest.mark.parametrize("standing", [0, 300, 900])
    def test_depth_limit_does_not_depend_on_the_call_stack(self, standing: int) -> None:
        def extracts(terms: int, frames: int) -> bool:
            if frames:
                return extracts(terms, frames - 1)
            text = "x = " + "not " * terms + "a"
            return isinstance(extract(source.of_text(text, Path("a.py"), Path())), FileFacts)

        before = sys.getrecursionlimit()
        sys.setrecursionlimit(2000)
        try:
            assert extracts(450, standing)
            assert not extracts(550, standing)
        finally:
            sys.setrecursionlimit(before)

    @pytest.mark.parametrize(("size", "code"), [(4_900_000, "FSR101"), (10_000_000, "FSR001")])
    def test_file_size_limit(self, size: int, code: str) -> None:
        Path("big.py").write_text("x = '" + "a" * size + "'\n" + HAZARD)
        rows = json.loads(CliRunner().invoke(main.main, ["check", "--format=json", "--no-cache"]).stdout)
        assert [(row["path"], row["code"]) for row in rows["findings"]] == [
            ("big.py", code),
            ("good.py", "FSR101"),
        ]


class TestEncodings:
    @pytest.mark.parametrize("cookie", ["idna", "unicode_escape", "utf-7", "raw_unicode_escape", "cp1252"])
    @pytest.mark.parametrize("options", [("--diff",), ()])
    def test_fix_continues_after_an_odd_encoding(self, cookie: str, options: tuple[str, ...]) -> None:
        """A codec may not round-trip, and may raise unusual exceptions."""
        data = f"# coding: {cookie}\n{HAZARD}".encode()
        Path("odd.py").write_bytes(data)
        assert check(".").findings[-1].startswith("odd.py:5:5 FSR101")
        fixable = cookie != "unicode_escape"
        stderr = run("fix", *options, code=0 if fixable and not options else 1)
        assert ("odd.py:5:5: FSR101 not fixed: " in stderr) is not fixable
        if not options:
            assert Path("good.py").read_text() == FIXED
        assert fixable or Path("odd.py").read_bytes() == data

    def test_decoding_error_is_one_line(self) -> None:
        """A codec may quote a newline in its error, and flake8 prints the message as is."""
        Path("odd.py").write_text("# coding: punycode\nx = 1\n")
        message = check(".").findings[-1]
        assert re.search("FSR001 (cannot decode the file: |file is not encoded as )", message)
        assert "\n" not in message
        command = [sys.executable, "-m", "flake8", "--isolated", "--select=FSR", "odd.py"]
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        assert len(shown.splitlines()) == 1, shown

    def test_form_feed_in_the_indentation_is_not_fixed(self) -> None:
        text = HAZARD.replace("    os.mkdir", "    \f    os.mkdir")
        Path("feed.py").write_text(text)
        assert "feed.py:4:10: FSR101 not fixed: the indentation contains a form feed\n" in run("fix", code=1)
        assert (Path("feed.py").read_text(), Path("good.py").read_text()) == (text, FIXED)

    @pytest.mark.parametrize("end", ["\f", "\x0b", "\x1c", "\x85", "\u2028"])
    def test_unusual_line_separators_do_not_shift_lines(self, end: str) -> None:
        """`str.splitlines` splits at more characters than the parser; lines and columns follow the parser."""
        Path("odd.py").write_bytes(f"x = 'a{end}b'  #{end} c\n{HAZARD}".encode())
        assert check(".").findings[-1].startswith("odd.py:5:5 FSR101")
        run("fix", code=0)
        data = Path("odd.py").read_bytes()
        assert f"x = 'a{end}b'  #{end} c\n".encode() in data
        assert data.endswith(b'os.makedirs("d", exist_ok=True)\n')

    def test_soft_keywords_as_names(self) -> None:
        Path("soft.py").write_text(
            "import os\nmatch = case = type = _ = 'd'\nmatch[0]\nprint(match, case)\ntype: str = 'd'\n"
            "if not os.path.isdir(match):\n    os.mkdir(match)\n"
        )
        assert check(".").findings[-1].startswith("soft.py:7:5 FSR101")
        run("fix", code=0)
        assert "os.makedirs(match, exist_ok=True)" in Path("soft.py").read_text()


@posix
class TestNames:
    NAMES = (
        *(
            "new\nline.py",
            "esc\x1b[31m.py",
            " sp ace .py",
            "-dash.py",
            "é日.py",
            "q'u\"ote.py",
            "bidi\u202e.py",
        ),
        *(
            "[x].py",
            "#.py",
            "~.py",
            "$HOME.py",
            "a:b.py",
            "%s.py",
            "x" * 200 + ".py",
            os.fsdecode(b"\xff.py"),
        ),
    )

    @pytest.fixture(autouse=True)
    def odd(self, one_good_file: None) -> None:
        if sys.platform != "linux":
            pytest.skip("names are text here")
        for number, name in enumerate(self.NAMES):  # `full` lists few of the files with equal findings
            Path(name).write_text(HAZARD.replace('"d"', f'"d{number}"'))
        deep = Path(*["d" * 100] * 30)
        deep.mkdir(parents=True)
        (deep / "deep.py").write_text(HAZARD)

    def test_check_reports_every_file(self) -> None:
        result_lines = check(".")
        assert (result_lines.code, len(result_lines.findings), result_lines.errors) == (
            1,
            len(self.NAMES) + 2,
            [],
        )

    @pytest.mark.parametrize("form", sorted(FORMATS))
    def test_report_escapes_names(self, form: str) -> None:
        run("check", f"--format={form}", f"--output-file=report.{form}", code=1)
        text = Path(f"report.{form}").read_bytes().decode("utf-8")
        assert "\x1b" not in text
        assert "deep.py" in text

    def test_fix_writes_every_file(self) -> None:
        run("fix", "--diff", code=1)
        stderr = run("fix", code=0)
        assert stderr.splitlines()[-1].startswith(f"Fixed {len(self.NAMES) + 2} findings")
        for number, name in enumerate(self.NAMES):
            assert Path(name).read_text() == FIXED.replace('"d"', f'"d{number}"')


@posix
class TestSpecialFiles:
    @pytest.fixture(autouse=True)
    def odd(self, one_good_file: None) -> None:
        Path("folder.py").mkdir()
        Path("folder.py/inner.py").write_text(HAZARD)
        Path("one.py").symlink_to("two.py")
        Path("two.py").symlink_to("one.py")
        Path("null.py").symlink_to("/dev/null")
        Path("inside").mkdir()
        for name in ("..", "."):
            Path("inside", f"link{name}").symlink_to(name, target_is_directory=True)
        os.mkfifo("pipe.py")
        # the path of a socket may not be long
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("socket.py")

    def test_discovery_skips_special_files(self) -> None:
        assert [row.partition(":")[0] for row in check(".").findings] == [
            "folder.py/inner.py",
            "good.py",
        ]

    @pytest.mark.parametrize("name", ["pipe.py", "socket.py", "null.py"])
    @pytest.mark.parametrize("command", [("check",), ("fix",), ("fix", "--diff")])
    def test_special_file_named_on_the_command_line(self, name: str, command: tuple[str, ...]) -> None:
        result = CliRunner().invoke(main.main, [*command, name, "good.py"])
        assert result.exit_code == 1, result.output
        if command == ("check",):
            reason = "path is a pipe, socket, or device, not a regular file"
            assert f"warning[FSR001]: {reason}\n --> {name}:1:1\n" in result.stdout
            assert " --> good.py:4:5\n" in result.stdout
        if command == ("fix",):
            assert Path("good.py").read_text() == FIXED

    @pytest.mark.parametrize("name", ["one.py", "socket.py"])
    def test_special_file_as_output_file_is_an_error(self, name: str) -> None:
        result = CliRunner().invoke(main.main, ["check", f"--output-file={name}", "good.py"])
        assert result.exit_code == 2
        assert f"Error: cannot write {name}: " in result.stderr
        assert "internal error" not in result.stderr

    @pytest.mark.parametrize("name", ["one.py", "pipe.py", "socket.py"])
    def test_special_file_as_vendor_target_is_an_error(self, name: str) -> None:
        assert run("vendor", name, code=2).startswith(f"Error: {name}: ")

    @pytest.mark.parametrize("name", ["one.py", "pipe.py", "socket.py", "folder.py"])
    def test_special_file_as_scenario_is_an_error(self, name: str) -> None:
        kind = "a directory" if name == "folder.py" else "not a regular file"
        message = f"Error: {name}: is {kind}; name a Python file\n"
        assert run("prove", f"{name}::f", code=2).endswith(message)


class TestScenarios:
    @pytest.mark.parametrize(
        "data", [b"x = 1\0", b"# coding: klingon\n", b"\xff", b"x = " + b"-" * TERMS + b"1", b"("]
    )
    def test_scenario_that_is_not_python(self, data: bytes) -> None:
        """The file is at fault, so the error shows no frames of fsrace-lint."""
        Path("odd.py").write_bytes(data)
        stderr = run("prove", "odd.py::f", code=2)
        assert stderr.startswith("Error: cannot import odd.py\n")
        assert "fsrace_lint" not in stderr


def _gone(file: Path) -> None:
    file.unlink()


def _directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _loop(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


def _emptied(file: Path) -> None:
    file.write_bytes(b"")


def _other(file: Path) -> None:
    file.write_bytes(b"\xff")


CHANGES: Final = (_gone, _directory, _pipe, _loop, _emptied, _other)


@posix
class TestChangedDuringRun:
    @pytest.mark.parametrize("change", CHANGES)
    @pytest.mark.parametrize("command", [("check",), ("check", "--no-cache"), ("fix", "--diff"), ("fix",)])
    def test_change_between_discovery_and_reading(
        self, change: Callable[[Path], None], command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        target = Path("target.py").absolute()
        target.write_text(HAZARD)
        look = discover.look

        def looked(*arguments: object, **options: object) -> object:
            found = look(*arguments, **options)  # type: ignore[arg-type]
            if target.is_file() and target.read_text() == HAZARD:
                change(target)
            return found

        monkeypatch.setattr(discover, "look", looked)
        result = CliRunner().invoke(main.main, [*command])
        assert result.exit_code == 1 or (command == ("fix",) and change is _emptied and result.exit_code == 0)
        assert "Traceback" not in result.output
        if command[0] == "check":
            assert " --> good.py:4:5\n" in result.stdout
            assert ("\n --> target.py:1:1\n" in result.stdout) is (change is not _emptied)
        if command == ("fix",):
            assert Path("good.py").read_text() == FIXED

    @pytest.mark.parametrize("change", CHANGES)
    def test_change_between_reading_and_fixing(
        self, change: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        target = Path("target.py").absolute()
        target.write_text(HAZARD)
        exchange = atomic_write.exchange

        def late(file: Path, before: bytes, after: bytes, *, below: Path | None = None) -> None:
            if file == target:
                change(target)
            exchange(file, before, after, below=below)

        monkeypatch.setattr(apply, "exchange", late)
        stderr = run("fix", code=1)
        assert "target.py:4:5: FSR101 not fixed: " in stderr
        assert Path("good.py").read_text() == FIXED
        assert not [name for name in Path().iterdir() if name.suffix == ".tmp"]
        assert change is not _emptied or target.read_bytes() == b""
