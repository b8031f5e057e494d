"""Unreadable and malformed input: a clear message, the documented exit code, and other files checked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from support.bad_input import GOOD, CheckResult, check, posix
from support.cli import HAZARD

from fsrace_lint.cli import main
from fsrace_lint.files import source

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("one_good_file")


class TestContent:
    @pytest.mark.parametrize(
        ("data", "finding"),
        [
            (b"x = 1\nname = '\xe9'\n", "2:9 FSR001 file is not encoded as UTF-8: byte 0xe9"),
            (b"# coding: latin-1\nx = '\xe9'\n", None),
            (b"# coding: ascii\nx = '\xc3\xa9'\n", "2:6 FSR001 file is not encoded as ASCII: byte 0xc3"),
            (b"# coding: klingon\n", "1:1 FSR001 cannot decode the file: unknown encoding: klingon"),
            (b"# coding: rot13\nvzcbeg bf\n", "1:1 FSR001 cannot decode the file: "),
            (b"# coding: hex\n", "1:1 FSR001 cannot decode the file: "),
            (
                b"\xef\xbb\xbf# coding: latin-1\n",
                "1:1 FSR001 cannot decode the file: encoding problem: utf-8",
            ),
            (b"\xef\xbb\xbfx = '\xe9'\n", "1:6 FSR001 file is not encoded as UTF-8: byte 0xe9"),
            (b"\xff\xfex\x00", "1:1 FSR001 file is not encoded as UTF-8: byte 0xff"),
            (b"x = 1\ny = '\0'\n", "2:6 FSR001 file contains a NUL character"),
            (b"\0" * 1000, "1:1 FSR001 file contains a NUL character"),
            (b"def f(:\n", "1:7 FSR001 "),
            (b"if x:\n\ty\n        z\n", "3:"),
            (b"print 'old'\n", "1:1 FSR001 "),
            (b"'''never closed", "1:1 FSR001 "),
            (b"x = (\n", "1:5 FSR001 "),
            (b"\\", "1:"),
            (b"return 1\n", None),
            (b"x = " + b"(" * 5000 + b")" * 5000, "1:"),
            (b"x = " + b"-" * 100_000 + b"1\n", "1:1 FSR001 code is nested too deeply to analyze"),
            # the parsers of Python 3.10 and 3.14 accept it, and a long sum is stored flat
            (
                b"x = 1" + b" + 1" * 20_000,
                "1:1 FSR001 code is nested too deeply to analyze"
                if (3, 11) <= sys.version_info < (3, 14)
                else None,
            ),
            # these used to be parsed, and then every rule failed in every file
            (b"if x: pass\n" + b"elif y: z()\n" * 1200, "1:1 FSR001 code is nested too deeply"),
            (b"if " + b"not " * 1200 + b"x: y()\n", "1:1 FSR001 code is nested too deeply"),
            (b"f(x" + b".a" * 1200 + b")\n", "1:1 FSR001 code is nested too deeply"),
            (b"with " + b"f(), " * 800 + b"f():\n    x()\n", "1:1 FSR001 code is nested too deeply"),
            (b"x = a" + b" + a" * 900 + b"\n", None),
            (b"if x: y()\n" * 1001, "1:1 FSR001 module-level code has 2002 statements and 1001 tests; "),
            (b"#" * 5_000_001, "1:1 FSR001 file is 5.0 MB; the limit is 5 MB"),
            (b"x = " + b"9" * 5000 + b"\n", "1:"),
            (b"", None),
            (b"\xef\xbb\xbf", None),
            (b"\x0c\n\r\r\n", None),
            (b"\x1a", "1:1 FSR001 "),
        ],
        ids=lambda value: repr(value[:24]) if isinstance(value, bytes) else "",
    )
    def test_malformed_source_is_reported(self, data: bytes, finding: str | None) -> None:
        Path("bad.py").write_bytes(data)
        outcome = check(".")
        assert outcome.code == 1
        assert outcome.findings[-1] == GOOD
        assert len(outcome.findings) == (1 if finding is None else 2)
        if finding is not None:
            assert outcome.findings[0].startswith(f"bad.py:{finding}")
            assert " FSR001 " in outcome.findings[0]
        assert outcome.errors == []

    def test_fix_repairs_other_files(self) -> None:
        Path("bad.py").write_bytes(b"\xff")
        result = CliRunner().invoke(main.main, ["fix"])
        assert result.exit_code == 1
        assert result.stderr == "Fixed 1 finding in 1 file. 1 remaining.\n"
        assert Path("bad.py").read_bytes() == b"\xff"

    def test_undecodable_file_name_is_escaped(self) -> None:
        if sys.platform != "linux":
            pytest.skip("file names are text here")
        Path(os.fsdecode(b"\xff.py")).write_text(HAZARD)
        assert [row.partition(":")[0] for row in check(".").findings] == ["good.py", "\\udcff.py"]


class TestFiles:
    def test_missing_path_is_an_error(self) -> None:
        outcome = check("good.py", "missing.py", "missing/")
        assert outcome.code == 2
        assert outcome.findings == [GOOD]
        assert outcome.errors == [
            "missing.py: no such file or directory",
            "missing: no such file or directory",
        ]

    def test_only_a_missing_path_prints_no_report(self) -> None:
        outcome = check("missing")
        assert (outcome.code, outcome.findings) == (2, [])
        assert outcome.stderr == "Error: missing: no such file or directory\n"
        result = CliRunner().invoke(main.main, ["check", "missing"])
        assert result.stdout == ""

    def test_fix_continues_after_a_missing_path(self) -> None:
        result = CliRunner().invoke(main.main, ["fix", "missing.py", "good.py"])
        assert result.exit_code == 2
        assert result.stderr.splitlines() == [
            "Fixed 1 finding in 1 file. 0 remaining.",
            "Error: missing.py: no such file or directory",
        ]

    def test_empty_directory_is_a_warning(self) -> None:
        Path("empty").mkdir()
        outcome = check("empty")
        assert (outcome.code, outcome.findings, outcome.errors) == (0, [], [])
        assert outcome.stderr == f"Warning: no Python files to check in {Path('empty').absolute()}\n"
        assert check("empty", "good.py") == CheckResult(1, [GOOD], [], "")

    def test_directory_without_python_is_a_warning(self) -> None:
        Path("texts").mkdir()
        Path("texts/a.txt").write_text(HAZARD)
        assert "no Python files to check in" in check("texts").stderr

    def test_directory_named_like_a_module_is_searched(self) -> None:
        Path("folder.py").mkdir()
        Path("folder.py/inner.py").write_text(HAZARD)
        assert [row.partition(":")[0] for row in check(".").findings] == ["folder.py/inner.py", "good.py"]
        assert check("folder.py").code == 1

    @posix
    def test_pipe_is_not_read(self) -> None:
        os.mkfifo("pipe.py")
        assert check(".").findings == [GOOD]
        outcome = check("pipe.py", "good.py")
        assert (outcome.code, outcome.findings[0]) == (1, GOOD)
        assert (
            outcome.findings[1] == "pipe.py:1:1 FSR001 path is a pipe, socket, or device, not a regular file"
        )

    @posix
    def test_symlink_loops_and_dangling_symlinks(self) -> None:
        Path("loop.py").symlink_to("loop.py")
        Path("folder").mkdir()
        Path("folder/round").symlink_to(".", target_is_directory=True)
        Path("dangling.py").symlink_to("nowhere.py")
        assert check(".") == CheckResult(1, [GOOD], [], "")
        outcome = check("loop.py", "dangling.py", "good.py", "folder/round")
        assert outcome.code == 1
        assert outcome.findings == [
            "dangling.py:1:1 FSR001 file does not exist",
            GOOD,
            "loop.py:1:1 FSR001 cannot read the file: Too many levels of symbolic links",
        ]

    @posix
    def test_file_without_read_permission(self) -> None:
        if os.geteuid() == 0:
            pytest.skip("root may read everything; the next test pretends")
        Path("secret.py").touch(0o000)
        assert check(".").findings[1] == "secret.py:1:1 FSR001 cannot read the file: Permission denied"

    @pytest.mark.parametrize(
        ("error", "reason"),
        [
            (PermissionError(13, "Permission denied"), "cannot read the file: Permission denied"),
            (FileNotFoundError(2, "No such file or directory"), "file does not exist"),
            (OSError(5, "Input/output error"), "cannot read the file: Input/output error"),
            (IsADirectoryError(21, "Is a directory"), "cannot read the file: Is a directory"),
        ],
    )
    def test_read_error_is_reported(
        self, error: OSError, reason: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """This includes a file that was deleted after its directory was listed."""
        Path("secret.py").write_text(HAZARD)
        read_bytes = Path.read_bytes

        def failing(file: Path) -> bytes:
            if file.name == "secret.py":
                raise error
            return read_bytes(file)

        monkeypatch.setattr(Path, "read_bytes", failing)
        outcome = check(".")
        assert (outcome.code, outcome.errors) == (1, [])
        assert outcome.findings == [GOOD, f"secret.py:1:1 FSR001 {reason}"]

    def test_unlistable_directory_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("secret").mkdir()
        scandir = os.scandir

        def failing(directory: str) -> object:
            if directory.endswith("secret"):
                raise PermissionError(13, "Permission denied")
            return scandir(directory)

        monkeypatch.setattr(os, "scandir", failing)
        outcome = check(".")
        assert outcome.code == 1
        assert outcome.findings == [GOOD, "secret:1:1 FSR001 cannot list the directory: Permission denied"]

    def test_file_deleted_before_it_is_read_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("gone.py").write_text(HAZARD)
        read = source.read_bytes

        def vanish(names: source.PathNames) -> bytes | source.Unreadable:
            Path("gone.py").unlink(missing_ok=True)
            return read(names)

        monkeypatch.setattr(source, "read_bytes", vanish)
        result = CliRunner().invoke(main.main, ["check", "."])
        assert result.exit_code == 1
        assert result.stdout.startswith(
            "warning[FSR001]: file does not exist\n --> gone.py:1:1\n\nwarning[FSR101]: "
        )
        assert " --> good.py:4:5\n" in result.stdout

    @posix
    def test_deleted_current_directory_does_not_crash(self) -> None:
        leave = "import os; os.mkdir('x'); os.chdir('x'); os.rmdir('../x')"
        program = f"{leave}; from fsrace_lint.cli.main import main; main()"
        for arguments in (["check", str(Path("good.py").absolute())], ["check"]):
            done = subprocess.run(
                [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
            )
            assert done.returncode in (0, 1, 2)
            assert "Traceback" not in done.stderr

    def test_overlong_path_is_an_error(self) -> None:
        long = "x" * 5000
        assert check("good.py", long).errors == [f"{long}: no such file or directory"]


class TestSettings:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("[tool.fsrace-lint\n", ":1: not valid TOML: "),
            ("x = 1\nx = 2\n", ": not valid TOML: "),
            (
                "[tool.fsrace-lint]\nprofil = 'strict'\n",
                "unknown key `profil` in [tool.fsrace-lint]; did you mean `profile`?",
            ),
            ("[tool.fsrace-lint]\nextend_select = []\n", "did you mean `extend-select`?"),
            ("[tool.fsrace-lint]\nignore = 'FSR101'\n", ": `ignore`: expected array, found string"),
            ("[tool.fsrace-lint]\ninclude-tests = 1\n", ": `include-tests`: expected boolean, found integer"),
            ("[tool.fsrace-lint]\nselect = ['FSR999']\n", ": `select`: unknown rule `FSR999`"),
            ("[tool.fsrace-lint]\nignore = ['check-then-mkdri']\n", "did you mean `check-then-mkdir`?"),
            ("[tool.fsrace-lint]\nprofile = 'strickt'\n", "did you mean `strict`?"),
            ("[tool]\nfsrace-lint = 3\n", ": `tool.fsrace-lint`: expected a table, found int"),
            (
                "[tool.fsrace-lint]\nroot = 'nowhere'\n",
                ": `root`: `nowhere` is not the directory of this file, or one above it",
            ),
            ("[tool.fsrace-lint]\nextend = 'nowhere'\n", ": `extend`: `nowhere` is not an existing file"),
            ("[tool.fsrace-lint.per-file-ignores]\n'a.py' = ['nope']\n", "per-file-ignores.a.py"),
        ],
    )
    def test_invalid_settings_are_an_error(self, text: str, message: str) -> None:
        Path("broken/.git").mkdir(parents=True)
        Path("broken/pyproject.toml").write_text(text)
        Path("broken/a.py").write_text(HAZARD)
        outcome = check("broken/a.py", "good.py", "broken")
        assert outcome.code == 2
        assert outcome.findings == [GOOD]
        assert len(outcome.errors) == 1
        assert outcome.errors[0].startswith(str(Path("broken/pyproject.toml").absolute()))
        assert message in outcome.errors[0]

    @pytest.mark.parametrize("make", [Path.mkdir, lambda file: file.write_bytes(b"x = '\xff'\n")])
    def test_unreadable_pyproject_is_an_error(self, make: Callable[[Path], object]) -> None:
        Path("broken/.git").mkdir(parents=True)
        make(Path("broken/pyproject.toml"))
        outcome = check("broken", "good.py")
        assert (outcome.code, outcome.findings, len(outcome.errors)) == (2, [GOOD], 1)

    @pytest.mark.parametrize("names", [["."], ["good.py"], ["broken/a.py"]])
    def test_invalid_settings_below_the_root_are_an_error(self, names: list[str]) -> None:
        Path("broken").mkdir()
        Path("broken/pyproject.toml").write_text("[tool.fsrace-lint]\nprofil = 'strict'\n")
        Path("broken/a.py").write_text(HAZARD)
        outcome = check(*names)
        assert (outcome.code, outcome.findings, len(outcome.errors)) == (2, [], 1)
        assert outcome.errors[0].startswith(str(Path("broken/pyproject.toml").absolute()))
        assert "unknown key `profil`" in outcome.errors[0]

    def test_fix_with_invalid_settings_writes_nothing(self) -> None:
        Path("pyproject.toml").write_text("[tool.fsrace-lint]\nfix = true\n")
        result = CliRunner().invoke(main.main, ["fix"])
        assert result.exit_code == 2
        assert "unknown key `fix`" in result.stderr
        assert "Fixed" not in result.stderr
        assert Path("good.py").read_text() == HAZARD


def test_many_malformed_files_are_all_reported(tmp_path: Path) -> None:
    for number in range(50):
        Path(f"bad{number:02}.py").write_bytes(b"\xff" if number % 2 else b"def")
    outcome = check(".")
    assert (outcome.code, len(outcome.findings), outcome.errors) == (1, 51, [])


def test_bad_input_in_a_subprocess() -> None:
    """A subprocess gives the same results as the click test runner."""
    shutil.copy("good.py", "other.py")
    Path("bad.py").write_bytes(b"\0")
    command = [sys.executable, "-m", "fsrace_lint", "check", "missing.py", "bad.py", "good.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "Error: missing.py: no such file or directory\n"
    assert "warning[FSR001]: file contains a NUL character\n --> bad.py:1:1\n" in done.stdout
    assert "existence check\n --> good.py:4:5\n" in done.stdout
