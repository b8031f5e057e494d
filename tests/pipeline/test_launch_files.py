"""The files with launch commands in a run: their cache, changes, and files that cannot be read."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.cli import reported, run, write
from support.warm import check, keeping

from fsrace_lint import rules
from fsrace_lint.config import settings
from fsrace_lint.engine import store
from fsrace_lint.launches import reading
from fsrace_lint.pipeline import discover
from fsrace_lint.pipeline.launch_files import LaunchFiles
from fsrace_lint.pipeline.run import Run

if TYPE_CHECKING:
    from fsrace_lint.pipeline.run import Checked

pytestmark = pytest.mark.usefixtures("here", "thawed")

MAIN = 'if __name__ == "__main__":\n    open("config.json", "w").write("x")\n'
FILES = {"train.py": MAIN, "scripts/run.sh": "torchrun --nproc_per_node 8 train.py\n"}
ONE = {"scripts/run.sh": "python train.py\n"}
FOUND = ["train.py:2 FSR201"]


def launch_files() -> LaunchFiles:
    """Find the launch files of the project in the current directory."""
    chosen = settings.load(Path.cwd(), rules.names())
    found = discover.look([Path.cwd()], chosen)
    return LaunchFiles(
        chosen, [item for item in found if isinstance(item, discover.Found) and item.is_launch]
    )


def codes(found: Checked) -> list[str]:
    return [finding.code for finding in found.outcome.findings]


class TestCache:
    def results(self, here: Path) -> store.Results:
        version = store.Version.of()
        assert version is not None
        return store.Results(store.Folder(here / "cache"), version, "launches.bin")

    def test_commands_from_the_cache_are_the_same(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write({**FILES, "setup.cfg": "[options.entry_points]\nconsole_scripts =\n    work = train:main\n"})
        first = launch_files().commands(self.results(here))
        assert [launch.reported for launch in first.launches] == ["scripts/run.sh"]
        assert first.installed == {"work": "train:main"}
        monkeypatch.delattr(reading, "read_launches")
        assert launch_files().commands(self.results(here)) == first

    def test_damaged_cache_is_ignored(self, here: Path) -> None:
        write(FILES)
        first = launch_files().commands(None)
        cached = self.results(here)
        cached.put(launch_files().digest, b"\xc1 damaged")
        assert launch_files().commands(cached) == first

    def test_cache_that_cannot_be_written_is_ignored(self, here: Path) -> None:
        write(FILES)
        (here / "cache").write_text("not a directory")
        assert launch_files().commands(self.results(here)) == launch_files().commands(None)

    def test_irrelevant_files_do_not_change_the_digest(self) -> None:
        write(FILES)
        before = launch_files().digest
        write({"values.yaml": "a: 1\n", "notes.md": "Nothing to start here.\n"})
        assert launch_files().digest == before
        write({"notes.md": "`torchrun train.py`\n"})
        assert launch_files().digest != before

    def test_settings_change_the_digest(self, here: Path) -> None:
        write({"train.py": MAIN})
        configured = 'profile = "strict"\n{}[[tool.fsrace-lint.programs]]\nfile = "train.py"\n'
        write({"pyproject.toml": f"[tool.fsrace-lint]\n{configured.format('')}"})
        before = launch_files()
        assert "pyproject.toml" in before.paths
        assert [(launch.reported, launch.line) for launch in before.commands(None).launches] == [
            ("pyproject.toml", 3)
        ]
        write({"pyproject.toml": f"[tool.fsrace-lint]\n{configured.format('# a comment' + chr(10))}"})
        assert launch_files().digest != before.digest


class TestChanges:
    def test_changed_script_changes_the_findings(self) -> None:
        write(FILES)
        assert reported() == FOUND
        write(ONE)
        assert reported(code=0) == []
        assert reported("--no-cache", code=0) == []
        write(FILES)
        assert reported() == reported("--no-cache") == FOUND

    def test_new_and_deleted_scripts_change_the_findings(self) -> None:
        write({"train.py": MAIN})
        assert reported(code=0) == []
        write(FILES)
        assert reported() == FOUND
        Path("scripts/run.sh").unlink()
        assert reported(code=0) == []

    def test_daemon_sees_a_changed_script(self) -> None:
        write(FILES)
        warm = keeping("train.py")
        assert codes(check("train.py", warm=warm)[1]) == ["FSR201"]
        write(ONE)
        assert codes(check("train.py", warm=warm)[1]) == []
        write(FILES)
        assert codes(check("train.py", warm=warm)[1]) == ["FSR201"]

    def test_project_is_shared_until_a_script_changes(self) -> None:
        write(FILES)
        chosen = settings.load(Path.cwd(), rules.names())
        before = Run(chosen, [Path("train.py")])
        linked = before.link()
        assert Run(chosen, [Path("train.py")], before=before).link() is linked
        write(ONE)
        after = Run(chosen, [Path("train.py")], before=before)
        assert not after.is_launched_as(before)
        assert after.link() is not linked
        assert codes(after.check()) == []


class TestBadFiles:
    @pytest.mark.parametrize(
        "files",
        [
            {"broken.yaml": "a: [torchrun train.py\n"},
            {"broken.ipynb": '{"cells": [torchrun train.py'},
            {"broken.sh": "torchrun 'train.py\n"},
            {"noxfile.py": "session.run('torchrun' train.py\n"},
            {"setup.cfg": "torchrun = [\n"},
            {"deep.yaml": "[" * 5000 + "torchrun train.py"},
        ],
        ids=lambda files: next(iter(files)),
    )
    def test_broken_file_is_not_fatal(self, files: dict[str, str]) -> None:
        write({**FILES, **files})
        assert FOUND[0] in reported()
        assert "scripts/run.sh:1: 8 ranks: " in run("programs", code=0).stdout

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
    def test_files_that_cannot_be_read_are_skipped(self, here: Path) -> None:
        write(FILES)
        (here / "loop.sh").symlink_to("loop.sh")
        os.mkfifo(here / "pipe.sh")
        (here / "big.sh").write_bytes(b"torchrun train.py\n" * 100_000)
        (here / "odd.sh").write_bytes(b"\xff\xfe torchrun \0 train.py\n")
        assert reported() == FOUND
        assert [launch.path for launch in launch_files().commands(None).launches][-1] == "scripts/run.sh"

    @pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
    def test_name_that_does_not_decode_is_no_error(self) -> None:
        write({"train.py": MAIN})
        Path(os.fsdecode(b"run\xff.sh")).write_text("torchrun train.py\n")
        assert reported() == reported() == FOUND
        assert "  run\\udcff.sh:1: multiple ranks: " in run("programs", code=0).stdout
        (program,) = json.loads(run("programs", "--format=json", code=0).stdout)["programs"]
        assert program["launches"][0]["path"] == "run\\udcff.sh"

    def test_excluded_script_is_not_read(self) -> None:
        write({**FILES, "pyproject.toml": '[tool.fsrace-lint]\nextend-exclude = ["scripts/"]\n'})
        assert reported(code=0) == []
