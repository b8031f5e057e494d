"""A file on standard input is checked as a part of its project, and no file on disk is changed."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from support import template

if TYPE_CHECKING:
    from pathlib import Path

HAZARD = b'import os\n\nif not os.path.isdir("d"):\n    os.mkdir("d")\n'
FIXED = b'import os\n\nos.makedirs("d", exist_ok=True)\n'
WORK = b"import os\n\n\ndef prepare(out):\n    if not os.path.isdir(out):\n        os.makedirs(out)\n"
GUARDED = b"""import torch.distributed as dist

from work import prepare


def main(out):
    if dist.get_rank() == 0:
        prepare(out)
    dist.barrier()


main("out")
"""
UNSAFE = b"""import os
import torch.distributed as dist

dist.init_process_group("nccl")
os.rename("a", "b")
dist.barrier()
"""
UNGUARDED = GUARDED.replace(b"if dist.get_rank() == 0:", b"if print(dist.get_rank()) is None:")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def contents(directory: Path) -> dict[Path, bytes]:
    """Return the content of all files of a project, except its cache."""
    files = [path for path in directory.rglob("*") if path.is_file() and path.parent.name != ".fsrace_cache"]
    return {path: path.read_bytes() for path in files}


def run(directory: Path, *arguments: str, data: bytes, code: int) -> subprocess.CompletedProcess[bytes]:
    before = contents(directory)
    done = subprocess.run(
        [*template.command("fsrace_lint"), *arguments],
        cwd=directory,
        input=data,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode == code, done.stderr
    assert contents(directory) == before
    return done


def codes(directory: Path, *arguments: str, data: bytes, code: int = 1) -> list[str]:
    done = run(directory, "check", "--format=json", *arguments, data=data, code=code)
    return [
        f"{row['path']}:{row['line']}:{row['column']} {row['code']}"
        for row in json.loads(done.stdout)["findings"]
    ]


class TestCheck:
    @pytest.mark.parametrize("arguments", [("--stdin-filename=a.py", "-"), ("--stdin-filename", "a.py")])
    def test_stdin_filename_does_not_have_to_exist(self, here: Path, arguments: tuple[str, ...]) -> None:
        assert codes(here, *arguments, data=HAZARD) == ["a.py:4:5 FSR101"]

    def test_dash_without_a_file_name(self, here: Path) -> None:
        assert codes(here, "-", data=HAZARD) == ["-:4:5 FSR101"]

    def test_stdin_replaces_the_file_on_disk(self, here: Path) -> None:
        (here / "a.py").write_bytes(HAZARD)
        assert codes(here, "--stdin-filename=a.py", "-", data=b"x = 1\n", code=0) == []
        (here / "a.py").write_bytes(b"x = 1\n")
        assert codes(here, "--stdin-filename=a.py", "-", data=HAZARD) == ["a.py:4:5 FSR101"]

    def test_rank_checks_in_other_files_apply_to_stdin(self, here: Path) -> None:
        (here / "train.py").write_bytes(GUARDED)
        assert codes(here, "--stdin-filename=work.py", "-", data=WORK, code=0) == []
        (here / "train.py").write_bytes(UNGUARDED)
        assert codes(here, "--stdin-filename=work.py", "-", data=WORK) == ["work.py:6:9 FSR101"]

    def test_only_stdin_is_reported(self, here: Path) -> None:
        (here / "work.py").write_bytes(WORK)
        (here / "other.py").write_bytes(HAZARD)
        assert codes(here, "--stdin-filename=train.py", "-", data=UNGUARDED, code=0) == []

    def test_settings_come_from_the_project_of_the_file(self, here: Path) -> None:
        (here / "inner").mkdir()
        (here / "inner" / "pyproject.toml").write_text('[tool.fsrace-lint]\nignore = ["FSR101"]\n')
        assert codes(here, "--stdin-filename=inner/a.py", "-", data=HAZARD, code=0) == []
        assert codes(here, "--stdin-filename=a.py", "-", data=HAZARD) == ["a.py:4:5 FSR101"]

    def test_stdin_filename_outside_any_project(self, tmp_path: Path) -> None:
        assert codes(tmp_path, "--stdin-filename=no/such/a.py", data=HAZARD) == ["no/such/a.py:4:5 FSR101"]

    def test_per_file_ignores_and_noqa_comments_apply(self, here: Path) -> None:
        table = '[tool.fsrace-lint.per-file-ignores]\n"tools/" = ["ALL"]\n'
        (here / "pyproject.toml").write_text(table)
        assert codes(here, "--stdin-filename=tools/a.py", data=HAZARD, code=0) == []
        quiet = HAZARD.replace(b'mkdir("d")', b'mkdir("d")  # noqa: FSR101')
        assert codes(here, "--stdin-filename=a.py", data=quiet, code=0) == []

    def test_exclusions_apply_only_with_force_exclude(self, here: Path) -> None:
        name = "--stdin-filename=tests/test_a.py"
        assert codes(here, name, data=HAZARD) == ["tests/test_a.py:4:5 FSR101"]
        assert codes(here, name, "--force-exclude", data=HAZARD, code=0) == []

    def test_symlink_is_reported_as_its_target(self, here: Path) -> None:
        (here / "real.py").write_bytes(b"x = 1\n")
        (here / "link.py").symlink_to("real.py")
        assert codes(here, "--stdin-filename=link.py", data=HAZARD) == ["real.py:4:5 FSR101"]

    @pytest.mark.parametrize("form", ["text", "github", "sarif", "gitlab", "junit"])
    def test_every_format_matches_that_of_a_file(self, here: Path, form: str) -> None:
        (here / "a.py").write_bytes(HAZARD)
        of_file = run(here, "check", f"--format={form}", "a.py", data=b"", code=1).stdout
        of_text = run(here, "check", f"--format={form}", "--stdin-filename=a.py", "-", data=HAZARD, code=1)
        assert of_text.stdout == of_file
        assert b"FSR101" in of_file

    @pytest.mark.parametrize(
        ("data", "found"),
        [
            (b"", []),
            (b"\xef\xbb\xbf" + HAZARD, ["a.py:4:5 FSR101"]),
            (HAZARD.replace(b"\n", b"\r\n"), ["a.py:4:5 FSR101"]),
            (HAZARD.replace(b"\n", b"\r"), ["a.py:4:5 FSR101"]),
            (b"# coding: latin-1\nx = '\xe9'; " + HAZARD, ["a.py:5:5 FSR101"]),
            (b"x = '\xe9'\n" + HAZARD, ["a.py:1:6 FSR001"]),
            (b"# coding: klingon\n" + HAZARD, ["a.py:1:1 FSR001"]),
            (b"x = '\0'\n", ["a.py:1:6 FSR001"]),
            (b"def f(:\n", ["a.py:1:7 FSR001"]),
        ],
    )
    def test_encodings_and_line_endings(self, here: Path, data: bytes, found: list[str]) -> None:
        code = 1 if any("FSR101" in row for row in found) else 0
        assert codes(here, "--stdin-filename=a.py", "-", data=data, code=code) == found


class TestFix:
    def test_fixed_source_is_printed(self, here: Path) -> None:
        (here / "a.py").write_bytes(HAZARD)
        done = run(here, "fix", "--stdin-filename=a.py", "-", data=HAZARD, code=0)
        assert done.stdout == FIXED
        assert done.stderr == b"Fixed 1 finding in 1 file. 0 remaining.\n"

    def test_clean_source_is_printed_unchanged(self, here: Path) -> None:
        data = b"x = 1 \r\ny = 2"
        assert run(here, "fix", "-", data=data, code=0).stdout == data

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (b"\xef\xbb\xbf" + HAZARD, b"\xef\xbb\xbf" + FIXED),
            (HAZARD.replace(b"\n", b"\r\n"), FIXED.replace(b"\n", b"\r\n")),
            (b"# coding: latin-1\n# \xe9\n" + HAZARD, b"# coding: latin-1\n# \xe9\n" + FIXED),
            ("# \U0001f525\n".encode() + HAZARD, "# \U0001f525\n".encode() + FIXED),
        ],
    )
    def test_encoding_and_line_endings_are_preserved(self, here: Path, before: bytes, after: bytes) -> None:
        assert run(here, "fix", "--stdin-filename=a.py", "-", data=before, code=0).stdout == after

    @pytest.mark.parametrize("data", [b"", b"\xff\n", b"def f(:\n", b"x = 1\0"])
    def test_malformed_source_is_printed_unchanged(self, here: Path, data: bytes) -> None:
        done = run(here, "fix", "--stdin-filename=a.py", "-", data=data, code=1 if data else 0)
        assert done.stdout == data

    def test_excluded_source_is_printed_unchanged(self, here: Path) -> None:
        name = "--stdin-filename=tests/test_a.py"
        assert run(here, "fix", name, "--force-exclude", "-", data=HAZARD, code=0).stdout == HAZARD
        assert run(here, "fix", name, "-", data=HAZARD, code=0).stdout == FIXED

    def test_unsafe_fixes_require_the_option(self, here: Path) -> None:
        done = run(here, "fix", "-", data=UNSAFE, code=1)
        assert done.stdout == UNSAFE
        assert done.stderr.endswith(b" 1 remaining (up to 1 fixable with `--unsafe-fixes`).\n")
        fixed = run(here, "fix", "--unsafe-fixes", "-", data=UNSAFE, code=0).stdout
        assert b"if dist.get_rank() == 0:\n    os.rename" in fixed

    def test_diff_matches_that_of_a_file(self, here: Path) -> None:
        (here / "a.py").write_bytes(HAZARD)
        of_file = run(here, "fix", "--diff", "a.py", data=b"", code=1).stdout
        done = run(here, "fix", "--diff", "--stdin-filename=a.py", "-", data=HAZARD, code=1)
        assert done.stdout == of_file
        assert of_file.startswith(b"--- a/a.py\n+++ b/a.py\n")
        assert run(here, "fix", "--diff", "-", data=b"x = 1\n", code=0).stdout == b""


class TestUsageErrors:
    @pytest.mark.parametrize("command", ["check", "fix"])
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("-", "b.py"), "standard input cannot be combined with b.py"),
            (("--stdin-filename=a.py", "b.py"), "standard input cannot be combined with b.py"),
            (("--stdin-filename=.", "-"), "--stdin-filename: . is not a file name"),
            (("--stdin-filename=", "-"), "--stdin-filename: . is not a file name"),
        ],
    )
    def test_usage_error_is_one_line(
        self, here: Path, command: str, arguments: tuple[str, ...], message: str
    ) -> None:
        done = run(here, command, *arguments, data=HAZARD, code=2)
        assert done.stdout == b""
        assert done.stderr.decode().splitlines()[-1] == f"Error: {message}"

    @pytest.mark.parametrize("command", ["check", "fix"])
    def test_invalid_settings_are_an_error(self, here: Path, command: str) -> None:
        (here / "pyproject.toml").write_text("[tool.fsrace-lint]\nprofil = 1\n")
        done = run(here, command, "--stdin-filename=a.py", "-", data=HAZARD, code=2)
        assert b"unknown key `profil`" in done.stderr
        assert FIXED not in done.stdout
        assert HAZARD not in done.stdout
