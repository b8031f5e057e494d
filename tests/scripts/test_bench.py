"""The benchmark script: its measurements and its tables."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import SCRIPTS
from support.cli import HAZARD, write

from fsrace_lint.integrations.server import analysis
from fsrace_lint.integrations.server.analysis import Analysis

if TYPE_CHECKING:
    import argparse
    from types import ModuleType

pytestmark = pytest.mark.usefixtures("here")

SCRIPT = SCRIPTS / "bench.py"
TRUE = (sys.executable, "-c", "")
CHANGED = ("one file", "comment", "any file", "editor", "one file by daemon", "any file by daemon")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table(script: ModuleType, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[list[str]]:
    """Return the cells of the table that the script prints for these arguments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["bench.py", "--pairs=2", *arguments])
        script.main()
    rows = [text.split("|") for text in capsys.readouterr().out.splitlines()]
    assert all(row[0] == row[-1] == "" for row in rows)
    assert {cell.strip() for cell in rows[1][1:-1]} == {"---"}
    return [[cell.strip() for cell in row[1:-1]] for row in (rows[0], *rows[2:])]


class TestRow:
    def pairs(self, script: ModuleType, *numbers: tuple[float, float, float]) -> list[Any]:
        return [script.Pair(script.Usage(theirs, 5), script.Usage(ours, mb)) for theirs, ours, mb in numbers]

    def test_medians(self, script: ModuleType) -> None:
        found = self.pairs(script, (1, 3, 40), (2, 2, 50), (4, 4, 45.6))
        assert script.row("t", "cold", found) == [
            *("t", "cold", "2.00 s (1.00 to 4.00)", "3.00 s (2.00 to 4.00)", "1.00 (1.00 to 3.00)", "50 MB")
        ]

    def test_ratio_is_computed_per_pair(self, script: ModuleType) -> None:
        """One slow pair does not affect the median ratio."""
        found = self.pairs(script, (1, 2, 1), (10, 20, 1), (3, 6, 1))
        assert script.row("t", "cold", found)[4] == "2.00 (2.00 to 2.00)"

    def test_one_pair(self, script: ModuleType) -> None:
        assert script.row("t", "cold", self.pairs(script, (1, 2, 3)))[2:] == [
            "1.00 s",
            "2.00 s",
            "2.00",
            "3 MB",
        ]

    def test_no_reference(self, script: ModuleType) -> None:
        found = [script.Pair(None, script.Usage(1.5, 3))]
        assert script.row("t", "cold", found)[2:] == ["-", "1.50 s", "-", "3 MB"]

    def test_growth(self, script: ModuleType) -> None:
        found = [script.Pair(script.Usage(1, 5), script.Usage(each, 10 * each)) for each in (3, 1, 2)]
        assert script.growth_row(2, "b", 400_000, found) == [
            "2: + b",
            "400,000",
            "1.00 s (1.00 to 1.00)",
            "2.00 s (1.00 to 3.00)",
            "2.00 (1.00 to 3.00)",
            "30 MB",
            "0.50",
        ]
        assert script.growth_row(1, "a", 0, found)[-1] == "-"

    def test_rooms(self, script: ModuleType) -> None:
        assert script.room_row("t", {"find": 1.0, "read": 3.0}) == ["t", "1.00 s (25%)", "3.00 s (75%)"]
        assert script.room_row("t", {"find": 0.0}) == ["t", "0.00 s (0%)"]

    def test_table_escapes_pipes(self, script: ModuleType) -> None:
        assert list(script.table(["a", "b"], [["1", "x|y"]])) == [
            "| a | b |",
            "| --- | --- |",
            "| 1 | x&#124;y |",
        ]


class TestRun:
    def test_memory_is_that_of_largest_process(self, here: Path) -> None:
        """Measured from a small parent process, because the size of the parent is counted too."""
        large = "x = b'x' * 150_000_000"
        nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {large!r}])"
        measure = f"import sys; sys.path.insert(0, {os.fspath(SCRIPT.parent)!r}); import bench, pathlib"
        found = []
        for text in ("", large, nested):
            command = (
                f"{measure}; print(bench.run((sys.executable, '-c', {text!r}), pathlib.Path()).megabytes)"
            )
            found.append(float(subprocess.check_output([sys.executable, "-c", command])))
        assert found[0] < 50
        assert 150 < found[1] < 250
        assert 150 < found[2] < 250

    def test_failing_command_is_an_error(self, script: ModuleType, here: Path) -> None:
        with pytest.raises(RuntimeError, match="exited with code 3: oh no"):
            script.run(
                (sys.executable, "-c", "import sys; print('oh no', file=sys.stderr); sys.exit(3)"), here
            )

    def test_findings_exit_code_is_not_a_failure(self, script: ModuleType, here: Path) -> None:
        assert script.run((sys.executable, "-c", "raise SystemExit(1)"), here).seconds > 0


@pytest.mark.exhaustive(4)
class TestTables:
    def test_situations(self, script: ModuleType, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write({"tree/a.py": HAZARD, "tree/b/c.py": HAZARD})
        before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
        rows = table(script, capsys, "tree", "--reference", f"{sys.executable} -c pass")
        assert tuple(rows[0]) == script.COLUMNS
        warm = ["warm"] if script.has_cache() else []
        assert [row[1] for row in rows[1:]] == ["cold", *warm, *CHANGED, "import click"]
        assert {row[0] for row in rows[1:-1]} == {"tree, 8 lines"}
        assert all(" s (" in row[3] for row in rows[1:-1])
        assert [row[1] for row in rows[1:-1] if " s (" not in row[2]] == ["any file", "editor"]
        assert before == {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}

    def test_growth(self, script: ModuleType, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Trees are sorted by size; sizes that hardly grew are not measured, except the last."""
        write({"large/a.py": HAZARD * 3, "small/a.py": HAZARD})
        rows = table(script, capsys, "--growth", "large", "small")
        assert tuple(rows[0]) == script.GROWTH
        assert [row[:2] for row in rows[1:]] == [["1: + small", "4"], ["2: + large", "16"]]
        for many, sizes in ((5, ["4", "8", "12", "20"]), (4, ["4", "8", "12", "16"])):
            rows = table(script, capsys, "--pairs=1", "--growth", *["small"] * many)
            assert [row[1] for row in rows[1:]] == sizes

    def test_rooms(self, script: ModuleType, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write({"tree/a.py": HAZARD})
        rows = table(script, capsys, "--rooms", "tree")
        assert {"find", "read", "extract", "link", "query"} < {*rows[0]}
        assert [row[0] for row in rows[1:]] == ["tree"]
        assert len({len(row) for row in rows}) == 1

    def test_installed_packages(
        self, script: ModuleType, here: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Installed packages are copied, because a check skips site-packages."""
        rows = table(script, capsys, "--growth", "--installed", "iniconfig")
        assert rows[1][0] == "1: + iniconfig"
        assert int(rows[1][1].replace(",", "")) == script.lines(script.installed("iniconfig")) > 100


class TestEditor:
    def test_each_file_is_checked_unchanged_and_with_an_added_statement(
        self, script: ModuleType, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write({"a.py": HAZARD, "b/c.py": ""})
        checked: list[tuple[str, str, list[str]]] = []

        class Watched(Analysis):
            def update(self, buffers: Any, *rest: Any) -> None:
                self.shown = buffers
                super().update(buffers, *rest)

            def judge(self, file: Path, *rest: Any) -> Any:
                found = super().judge(file, *rest)
                checked.append((file.name, self.shown[file], [finding.code for finding in found]))
                return found

        monkeypatch.setattr(analysis, "Analysis", Watched)
        *seconds, megabytes = script.edits(here)
        assert len(seconds) == 2
        assert megabytes > min(seconds) > 0
        assert checked == [
            ("a.py", HAZARD, ["FSR101"]),
            ("a.py", HAZARD + "\nchanged = 1\n", ["FSR101"]),
            ("c.py", "", []),
            ("c.py", "\nchanged = 1\n", []),
        ]

    def test_server_failure_is_an_error(self, script: ModuleType, here: Path) -> None:
        write({"pyproject.toml": "[tool.fsrace-lint]\nunknown = 1\n", "a.py": ""})
        with pytest.raises(RuntimeError, match=r"exited with code 1: (.|\n)*unknown"):
            script.in_editor(here)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no daemon on Windows")
@pytest.mark.usefixtures("runtime")
class TestDaemon:
    @pytest.mark.exhaustive(4)
    def test_daemon_is_measured_and_stopped(self, script: ModuleType, here: Path) -> None:
        write({"pyproject.toml": "", "a.py": HAZARD, "b.py": HAZARD})
        one, two = (Path(name).resolve() for name in ("a.py", "b.py"))
        found = script.by_daemon(here.resolve(), [[one, one], [one, two]])
        assert [len(each) for each in found] == [2, 2]
        assert all(pair.reference.seconds > 0 < pair.ours.seconds for each in found for pair in each)
        assert {path.read_text() for path in here.glob("*.py")} == {HAZARD}
        assert script.daemon_output("status", "No daemon is running") == "No daemon is running"

    @pytest.mark.exhaustive(4)
    def test_unresponsive_daemon_is_an_error(
        self, script: ModuleType, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write({"pyproject.toml": "", "a.py": HAZARD})
        ask = script.daemon_output
        monkeypatch.setattr(
            script, "daemon_output", lambda verb, wanted: "0" if "served" in wanted else ask(verb, wanted)
        )
        with pytest.raises(RuntimeError, match="does not answer"):
            script.by_daemon(here.resolve(), [[Path("a.py").resolve()]])

    def test_daemon_that_does_not_start_is_an_error(
        self, script: ModuleType, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(script, "PATIENCE", 0.0)
        monkeypatch.setattr(script, "daemon_output", lambda *_: "")
        with pytest.raises(RuntimeError, match="has not loaded"):
            script.wait_for_daemon(here)


class TestOneFile:
    def test_different_file_is_changed_each_time_and_restored(self, script: ModuleType, here: Path) -> None:
        write({"copy/small.py": "", "copy/middle.py": "x = 1\n", "copy/large.py": "x = 1\n" * 9})
        keep = "import sys; open(sys.argv[2], 'a').write(open(sys.argv[1]).read() + '---')"
        ours = [sys.executable, "-c", keep]
        seen = here / "seen"
        real = script.pairs

        def pairs(reference: Any, command: list[str], directory: Path, count: int) -> Any:
            return real(reference, [*command, os.fspath(seen)], directory, count)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(script, "pairs", pairs)
            assert len(script.one_file(None, ours, here / "copy", 2, "# changed %d")) == 2
        assert seen.read_text() == "x = 1\n\n# changed 0\n---x = 1\n\n# changed 1\n---"
        assert (here / "copy" / "middle.py").read_text() == "x = 1\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "pass a directory"),
        (["nowhere"], "no Python files below nowhere"),
        (["--pairs=0", "a"], "must be at least 1"),
        (["--installed", "no_such_package"], "no package 'no_such_package' is installed"),
        (["--installed", "six.moves"], "no package 'six.moves' is installed"),
        (["a", "--reference", f"{sys.executable} -c 'raise SystemExit(3)'"], "exited with code 3"),
        (["a", "--reference", "no-such-program"], "no-such-program"),
    ],
)
def test_invalid_arguments_are_rejected(
    script: ModuleType,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write({"a/a.py": ""})
    monkeypatch.setattr(sys, "argv", ["bench.py", *arguments])
    with pytest.raises(SystemExit) as ended:
        script.main()
    assert message in capsys.readouterr().err + str(ended.value.code)


def test_reference_is_ruff_if_installed(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    write({"a/a.py": ""})
    monkeypatch.setattr(sys, "argv", ["bench.py", "a"])
    wanted: argparse.Namespace = script.options()
    assert " ".join(wanted.reference).endswith(script.REFERENCE.removeprefix("ruff"))
    assert "--output-format concise" in script.REFERENCE  # without it, ruff prints source code
    monkeypatch.setattr(script.shutil, "which", lambda *_, **__: None)
    assert script.options().reference is None
