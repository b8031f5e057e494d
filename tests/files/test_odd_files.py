"""Files that are odd: deep, long, strangely encoded, strangely named, or gone in the meantime."""

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
TOO_DEEP: Final = "FSR001 the code is nested too deeply to be analyzed"
FIXED: Final = (
    'import os\nfrom pathlib import Path\n\nif not os.path.exists("d"):\n    Path("d").mkdir(exist_ok=True)\n'
)
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
"""What is long, and not deep."""
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
"""What one version of Python or the other, or this program, cannot take apart."""


def run(*arguments: str, code: int) -> str:
    result = CliRunner().invoke(main.main, arguments)
    assert result.exit_code == code, (result.output, result.exc_info)
    assert "Traceback" not in result.output
    assert "internal failure" not in result.output
    return result.stderr


class TestNesting:
    def test_what_is_long(self) -> None:
        for name, text in FLAT.items():
            Path(f"{name}.py").write_text(f"{HAZARD}{text}\n")
        told = check("--jobs=1", ".")
        assert (told.code, told.errors) == (1, [])
        found = {row.partition(":")[0] for row in told.findings if " FSR101 " in row}
        assert found == {"good.py", *(f"{name}.py" for name in FLAT)}
        assert not [row for row in told.findings if "FSR00" in row]

    def test_what_is_long_is_fixed(self) -> None:
        for name in ("names", "entered"):
            Path(f"{name}.py").write_text(f"{HAZARD}{FLAT[name]}\n")
        run("fix", code=0)
        for name in ("names", "entered"):
            text = Path(f"{name}.py").read_text()
            assert text.startswith(FIXED)
            ast.parse(text)

    @pytest.mark.parametrize("text", ["x = a" + " and a" * TERMS, "import a" + ".b" * TERMS])
    def test_what_ends_the_process_of_whoever_parses_it(self, text: str) -> None:
        """libcst runs out of stack, which no handler notices: so it is not asked."""
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
surroundings = fixes.Surroundings(lambda span: Idiom(), lambda span: (), catalog.load, "helpers")
made, = fixes.alone(source.read(Path("chain.py"), Path.cwd()), [finding], surroundings)
print(made.refusal)
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "the code is nested too deeply\n"), done.stderr

    def test_what_is_deep(self) -> None:
        """One line each; what stands beside it is found, and fixed."""
        for name, text in DEEP.items():
            Path(f"{name}.py").write_text(f"{HAZARD}{text}\n")
        told = check("--jobs=1", "--show-silenced", "--statistics", ".")
        assert (told.code, told.errors) == (1, [])
        assert GOOD in told.findings
        paths = [row.partition(":")[0] for row in told.findings if " FSR001 " in row or " FSR101 " in row]
        assert sorted(paths) == sorted({"good.py", *(f"{name}.py" for name in DEEP)})
        assert not [row for row in told.findings if "FSR002" in row]
        for name in ("attributes", "elif", "not", "conditional", "entered"):
            assert any(row == f"{name}.py:1:1 {TOO_DEEP}" for row in told.findings)
        run("fix", code=1)
        assert Path("good.py").read_text() == FIXED

    @pytest.mark.parametrize("terms", [470])
    @pytest.mark.parametrize("text", ["a / 'b'", "not a", "1 if rank == 0 else a", "elif a: os.mkdir('d')"])
    def test_what_can_be_taken_apart_is_understood(self, text: str, terms: int) -> None:
        """The rooms behind go deeper for a level than the one that takes it apart, and have more room."""
        if text.startswith("elif"):
            code = "import os\nif rank == 0: pass\n" + f"{text}\n" * terms
        else:
            first, _, last = text.rpartition("a") if text.endswith("a") else ("", "", text[1:])
            path = first * terms + "a" + last * (terms if not first else 0)
            code = f"import os\na = 'd'\nif not os.path.exists({path}):\n    os.mkdir({path})\n"
        Path("edge.py").write_text(code)
        told = check("--show-silenced", "--profile=strict", ".")
        assert told.errors == []
        assert not [row for row in told.findings if "FSR00" in row]

    @pytest.mark.parametrize("standing", [0, 300, 900])
    def test_the_limit_is_the_same_wherever_it_is_met(self, standing: int) -> None:
        def taken_apart(terms: int, frames: int) -> bool:
            if frames:
                return taken_apart(terms, frames - 1)
            text = "x = " + "not " * terms + "a"
            return isinstance(extract(source.of_text(text, Path("a.py"), Path())), FileFacts)

        before = sys.getrecursionlimit()
        sys.setrecursionlimit(2000)
        try:
            assert taken_apart(450, standing)
            assert not taken_apart(550, standing)
        finally:
            sys.setrecursionlimit(before)

    @pytest.mark.parametrize(("size", "code"), [(4_900_000, "FSR101"), (10_000_000, "FSR001")])
    def test_megabytes(self, size: int, code: str) -> None:
        Path("big.py").write_text("x = '" + "a" * size + "'\n" + HAZARD)
        rows = json.loads(CliRunner().invoke(main.main, ["check", "--format=json", "--no-cache"]).stdout)
        assert [(row["path"], row["code"]) for row in rows["findings"]] == [
            ("big.py", code),
            ("good.py", "FSR101"),
        ]


class TestEncodings:
    @pytest.mark.parametrize("cookie", ["idna", "unicode_escape", "utf-7", "raw_unicode_escape", "cp1252"])
    @pytest.mark.parametrize("options", [("--diff",), ()])
    def test_fix_goes_on(self, cookie: str, options: tuple[str, ...]) -> None:
        """A codec need not give the bytes back, nor know the usual ways to tell a failure."""
        data = f"# coding: {cookie}\n{HAZARD}".encode()
        Path("odd.py").write_bytes(data)
        assert check(".").findings[-1].startswith("odd.py:5:5 FSR101")
        fixable = cookie != "unicode_escape"
        stderr = run("fix", *options, code=0 if fixable and not options else 1)
        assert ("odd.py:5:5: FSR101 not fixed: " in stderr) is not fixable
        if not options:
            assert Path("good.py").read_text() == FIXED
        assert fixable or Path("odd.py").read_bytes() == data

    def test_the_reason_is_one_line(self) -> None:
        """A codec quotes what it does not like, be it the end of a line; flake8 prints what it is given."""
        Path("odd.py").write_text("# coding: punycode\nx = 1\n")
        message = check(".").findings[-1]
        assert re.search("FSR001 (cannot be decoded: |is not encoded as )", message)
        assert "\n" not in message
        command = [sys.executable, "-m", "flake8", "--isolated", "--select=FSR", "odd.py"]
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        assert len(shown.splitlines()) == 1, shown

    def test_a_form_feed_in_the_indentation(self) -> None:
        text = HAZARD.replace("    os.mkdir", "    \f    os.mkdir")
        Path("feed.py").write_text(text)
        assert "feed.py:4:10: FSR101 not fixed: a form feed stands in the indentation\n" in run("fix", code=1)
        assert (Path("feed.py").read_text(), Path("good.py").read_text()) == (text, FIXED)

    @pytest.mark.parametrize("end", ["\f", "\x0b", "\x1c", "\x85", "\u2028"])
    def test_what_only_python_or_only_others_take_for_a_line_end(self, end: str) -> None:
        """`str.splitlines` knows more line ends than the parser; columns and lines are the parser's."""
        Path("odd.py").write_bytes(f"x = 'a{end}b'  #{end} c\n{HAZARD}".encode())
        assert check(".").findings[-1].startswith("odd.py:5:5 FSR101")
        run("fix", code=0)
        data = Path("odd.py").read_bytes()
        assert f"x = 'a{end}b'  #{end} c\n".encode() in data
        assert data.endswith(b'Path("d").mkdir(exist_ok=True)\n')

    def test_soft_keywords_are_names(self) -> None:
        Path("soft.py").write_text(
            "import os\nmatch = case = type = _ = 'd'\nmatch[0]\nprint(match, case)\ntype: str = 'd'\n"
            "if not os.path.exists(match):\n    os.mkdir(match)\n"
        )
        assert check(".").findings[-1].startswith("soft.py:7:5 FSR101")
        run("fix", code=0)
        assert "Path(match).mkdir(exist_ok=True)" in Path("soft.py").read_text()


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
        for name in self.NAMES:
            Path(name).write_text(HAZARD)
        deep = Path(*["d" * 100] * 30)
        deep.mkdir(parents=True)
        (deep / "deep.py").write_text(HAZARD)

    def test_check(self) -> None:
        told = check(".")
        assert (told.code, len(told.findings), told.errors) == (1, len(self.NAMES) + 2, [])

    @pytest.mark.parametrize("form", sorted(FORMATS))
    def test_a_report(self, form: str) -> None:
        run("check", f"--format={form}", f"--output-file=report.{form}", code=1)
        text = Path(f"report.{form}").read_bytes().decode("utf-8")
        assert "\x1b" not in text
        assert "deep.py" in text

    def test_fix(self) -> None:
        run("fix", "--diff", code=1)
        stderr = run("fix", code=0)
        assert stderr.splitlines()[-1].startswith(f"Fixed {len(self.NAMES) + 2} problems")
        assert {Path(name).read_text() for name in self.NAMES} == {FIXED}


@posix
class TestKinds:
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

    def test_they_are_not_looked_for(self) -> None:
        assert [row.partition(":")[0] for row in check(".").findings] == [
            "folder.py/inner.py",
            "good.py",
        ]

    @pytest.mark.parametrize("name", ["pipe.py", "socket.py", "null.py"])
    @pytest.mark.parametrize("command", [("check",), ("fix",), ("fix", "--diff")])
    def test_named(self, name: str, command: tuple[str, ...]) -> None:
        result = CliRunner().invoke(main.main, [*command, name, "good.py"])
        assert result.exit_code == 1, result.output
        if command == ("check",):
            assert f"{name}:1:1: FSR001 " in result.stdout
            assert "is a pipe, a socket or a device, not a regular file" in result.stdout
            assert "good.py:4:5: FSR101" in result.stdout
        if command == ("fix",):
            assert Path("good.py").read_text() == FIXED

    @pytest.mark.parametrize("name", ["one.py", "socket.py"])
    def test_as_a_report(self, name: str) -> None:
        result = CliRunner().invoke(main.main, ["check", f"--output-file={name}", "good.py"])
        assert result.exit_code == 2
        assert f"Error: {name} cannot be written: " in result.stderr
        assert "internal failure" not in result.stderr

    @pytest.mark.parametrize("name", ["one.py", "pipe.py", "socket.py"])
    def test_as_a_place_for_the_helpers(self, name: str) -> None:
        assert run("vendor", name, code=2).startswith(f"Error: {name}: ")

    @pytest.mark.parametrize("name", ["one.py", "pipe.py", "socket.py", "folder.py"])
    def test_as_a_scenario(self, name: str) -> None:
        assert f"there is no file {name}" in run("prove", f"{name}::f", code=2)


class TestScenarios:
    @pytest.mark.parametrize(
        "data", [b"x = 1\0", b"# coding: klingon\n", b"\xff", b"x = " + b"-" * TERMS + b"1", b"("]
    )
    def test_a_file_that_is_no_python(self, data: bytes) -> None:
        """What is said is the file's own fault, so nothing of this program is shown."""
        Path("odd.py").write_bytes(data)
        stderr = run("prove", "odd.py::f", code=2)
        assert stderr.startswith("Error: odd.py cannot be imported\n")
        assert "fsrace_lint" not in stderr


def _gone(file: Path) -> None:
    file.unlink()


def _folder(file: Path) -> None:
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


CHANGES: Final = (_gone, _folder, _pipe, _loop, _emptied, _other)


@posix
class TestInTheMeantime:
    @pytest.mark.parametrize("change", CHANGES)
    @pytest.mark.parametrize("command", [("check",), ("check", "--no-cache"), ("fix", "--diff"), ("fix",)])
    def test_between_listing_and_reading(
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
            assert "good.py:4:5: FSR101" in result.stdout
            assert ("target.py:1:1: FSR001" in result.stdout) is (change is not _emptied)
        if command == ("fix",):
            assert Path("good.py").read_text() == FIXED

    @pytest.mark.parametrize("change", CHANGES)
    def test_between_reading_and_fixing(
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
