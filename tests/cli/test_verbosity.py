"""Output other than the report: progress, --verbose, --quiet, --silent, --statistics, color."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support import ROOT
from support.cli import HAZARD, read_terminal, run, start, write

from fsrace_lint import rules
from fsrace_lint.cli.commands import progress_bar
from fsrace_lint.cli.commands.progress_bar import Watch
from fsrace_lint.config import settings
from fsrace_lint.config.settings import Settings
from fsrace_lint.engine.parallel.progress import Observer
from fsrace_lint.pipeline import check, repair
from fsrace_lint.pipeline.discover import find

pytestmark = pytest.mark.usefixtures("here")

SCHEMA = json.loads((ROOT / "docs" / "findings.schema.json").read_text("utf-8"))
PLAIN = {"quiet": False, "silent": False, "verbose": False}
BROKEN = "def broken(:\n"
PHASES = {"find", "read", "extract", "link", "query", "suppress", "report", "cache"}


class Terminal(io.StringIO):
    """A stream whose `isatty()` is true."""

    def isatty(self) -> bool:
        return True


def statistics(*arguments: str, code: int = 1) -> dict[str, Any]:
    document = json.loads(run("check", "--format=json", *arguments, code=code).stdout)
    Draft202012Validator(SCHEMA).validate(document)
    found: dict[str, Any] = document["statistics"]
    return found


class TestQuiet:
    def test_quiet_prints_only_findings(self) -> None:
        write({"a.py": HAZARD})
        loud = run("check", "--output-format=concise", code=1).stdout
        quiet = run("check", "--quiet", code=1).stdout
        assert loud.startswith(quiet)
        assert loud.removeprefix(quiet).startswith("Found 1 warning")
        assert quiet.startswith("a.py:4:5: FSR101")

    def test_quiet_prints_nothing_for_clean_files(self) -> None:
        write({"a.py": ""})
        result = run("check", "-q", code=0)
        assert (result.stdout, result.stderr) == ("", "")
        Path("empty").mkdir()
        assert "Warning" in run("check", "empty", code=0).stderr
        assert run("check", "-q", "empty", code=0).output == ""

    def test_quiet_prints_errors(self) -> None:
        assert run("check", "-q", "nowhere", code=2).stderr == "Error: nowhere: no such file or directory\n"

    def test_quiet_does_not_change_other_formats_and_files(self) -> None:
        write({"a.py": HAZARD})
        for form in ("json", "github", "sarif", "gitlab", "junit"):
            arguments = ("check", f"--format={form}")
            assert run(*arguments, "-q", code=1).stdout == run(*arguments, code=1).stdout
        run("check", "-q", "--output-file=report.txt", code=1)
        assert "Found 1 warning" in Path("report.txt").read_text("utf-8")

    def test_quiet_fix_prints_only_the_diff(self) -> None:
        refused = (
            "import os\n\n\ndef f(cache, unlink):\n    if os.path.islink(cache):\n        os.unlink(cache)\n"
        )
        write({"a.py": HAZARD})
        assert run("fix", "-q", code=0).output == ""
        assert "exist_ok" in Path("a.py").read_text("utf-8")
        write({"a.py": refused})
        loud = run("fix", "--unsafe-fixes", "--diff", code=1)
        assert run("fix", "--unsafe-fixes", "--diff", "-q", code=1).stdout == loud.stdout != ""


class TestSilent:
    @pytest.mark.parametrize("form", ["text", "json"])
    def test_silent_prints_nothing(self, form: str) -> None:
        write({"a.py": HAZARD})
        assert run("check", "--silent", f"--format={form}", code=1).output == ""
        assert run("check", "--silent", f"--format={form}", "nowhere", code=2).output == ""

    def test_silent_writes_reports(self) -> None:
        write({"a.py": HAZARD})
        assert run("check", "--silent", "--report", "json=a.json", code=1).output == ""
        assert len(json.loads(Path("a.json").read_text("utf-8"))["findings"]) == 1

    def test_silent_applies_fixes(self) -> None:
        write({"a.py": HAZARD})
        assert run("fix", "-s", "--diff", code=1).output == ""
        assert run("fix", "-s", code=0).output == ""
        assert "exist_ok" in Path("a.py").read_text("utf-8")

    @pytest.mark.parametrize("command", ["check", "fix"])
    @pytest.mark.parametrize("pair", ["-qs", "-qv", "-sv"])
    def test_conflicting_options_are_an_error(self, command: str, pair: str) -> None:
        assert re.search(
            r"Error: (--\w+) cannot be used with (?!\1)--\w+\n\Z", run(command, pair, code=2).stderr
        )


class TestVerbose:
    def test_verbose_prints_settings_skipped_files_and_timings(self, here: Path) -> None:
        write({"a.py": HAZARD, "b.py": "", ".gitignore": "gone/\n", "gone/c.py": "", "build/d.py": ""})
        write({"tests/e.py": "", "own/pyvenv.cfg": "", "own/f.py": "", "gen/g.py": ""})
        plain = run("check", "--extend-exclude=gen/", code=1)
        verbose = run("check", "--extend-exclude=gen/", "-v", code=1)
        assert verbose.stdout == plain.stdout
        assert plain.stderr == ""
        *lines, last = verbose.stderr.splitlines()
        assert sorted(lines) == [
            f"root: {here}: 2 files to check, 2 files in the project",
            f"settings: {here}/pyproject.toml",
            "skipped: .fsrace_cache: excluded by the default of `exclude`",
            "skipped: build: excluded by the default of `exclude`",
            "skipped: gen: excluded by `extend-exclude`",
            "skipped: gone: excluded by `.gitignore`",
            "skipped: own: virtual environment",
            "skipped: tests: test or documentation (see `--include-tests`)",
        ]
        assert re.fullmatch(r"time: (\w+ \d+\.\d{3} s(, |$))+", last)

    def test_verbose_notes_missing_settings(self, here: Path) -> None:
        (here / "pyproject.toml").unlink()
        write({"setup.py": ""})
        output = run("check", "-v", code=0).stderr.splitlines()[0]
        assert output == f"settings: {here}/pyproject.toml does not exist; using defaults"

    def test_verbose_lists_files_skipped_by_force_exclude(self) -> None:
        write({"build/a.py": ""})
        assert (
            "skipped: build/a.py: excluded by the default of `exclude`"
            in run("check", "-v", "--force-exclude", "build/a.py", code=0).stderr
        )

    def test_verbose_escapes_control_characters(self) -> None:
        write({"build\x1b[31m/a.py": "", "b.py": ""})
        output = run("check", "-v", "--exclude=build*", code=0).stderr
        assert "skipped: build\\x1b[31m: excluded by `exclude`" in output

    def test_verbose_fix_prints_the_fix_time(self) -> None:
        write({"a.py": HAZARD})
        assert ", fix " in run("fix", "-v", code=0).stderr.splitlines()[-1]


def test_every_unchecked_file_is_reported_as_skipped(tmp_path: Path) -> None:
    """Each file is found, or it or a parent directory is reported as skipped."""
    for name in ("a.py", "build/b.py", "x/tests/c.py", "x/y_test.py", "x/z.py", "v/pyvenv.cfg", "v/l.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    skipped: list[str] = []
    found = [
        str(item)
        for item in find([tmp_path], Settings(root=tmp_path), told=lambda path, _: skipped.append(path))
    ]
    for file in map(str, tmp_path.rglob("*.py")):
        assert (file in found) != any(file == path or file.startswith(f"{path}/") for path in skipped)


class TestStatistics:
    def test_json_statistics(self) -> None:
        write({"a.py": HAZARD, "b.py": BROKEN})
        found = statistics("--statistics")
        assert found["rules"] == {"FSR001": 1, "FSR101": 1}
        assert found["evidence"] == {"evident": 1, "likely": 0, "plausible": 1, "none": 0}
        assert set(found["seconds"]) == PHASES
        plain = statistics()
        assert plain == {key: count for key, count in found.items() if key in plain}
        assert plain["files"] == 2

    def test_text_statistics(self) -> None:
        write({"a.py": HAZARD})
        rows = run("check", "--statistics", code=1).stdout.splitlines()
        assert [row.split(maxsplit=1) for row in rows if "FSR101 check" in row][-1] == [
            "1",
            "FSR101 check-then-mkdir",
        ]
        assert {row.split()[-1] for row in rows if " seconds to " in row} == PHASES

    def test_reports_are_deterministic(self) -> None:
        write({"a.py": HAZARD, "b.py": BROKEN})
        for form in ("json", "text", "sarif"):
            first, second = (run("check", f"--format={form}", code=1).stdout for _ in range(2))
            assert first == second

    def test_nested_phases_count_time_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Time in a nested phase counts only for that phase, and a phase can be nested in itself."""
        now = [0.0]
        monkeypatch.setattr(f"{progress_bar.__name__}.perf_counter", lambda: now[0])
        watch = Watch(PLAIN, color=None)
        with watch.phase("fix"):
            now[0] += 1
            with watch.phase("link"), watch.phase("link"):
                now[0] += 10
            now[0] += 100
            assert watch.seconds() == {"fix": 101, "link": 10}
        now[0] += 1000
        with watch.phase("link"):
            now[0] += 10000
        assert watch.seconds() == {"fix": 101, "link": 10010}


class TestProgress:
    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        now = [0.0]
        monkeypatch.setattr(f"{progress_bar.__name__}.monotonic", lambda: now[0])
        monkeypatch.setenv("TERM", "xterm")
        return now

    def shown(
        self,
        clock: list[float],
        seconds: float,
        stream: io.StringIO | None = None,
        color: bool | None = None,
        choice: str = "",
    ) -> str:
        """Return the standard error of a run over three files that takes this many seconds."""
        stream = Terminal() if stream is None else stream
        with contextlib.redirect_stderr(stream):
            watch = Watch({**PLAIN, choice: True}, color=color)
            with watch.progress():
                watch.stage("Reading", 3)
                for _ in range(3):
                    clock[0] += seconds / 3
                    watch.step()
        return stream.getvalue()

    def test_long_run_shows_a_progress_bar(self, clock: list[float]) -> None:
        shown = self.shown(clock, 1.0)
        assert "Reading" in shown
        assert "3/3" in shown
        assert shown.endswith("\x1b[1A\x1b[2K"), "the line is wiped away"
        assert "\x1b[?25h" in shown, "the cursor is there again"

    def test_short_run_shows_no_progress_bar(self, clock: list[float]) -> None:
        assert self.shown(clock, 0.4) == ""

    @pytest.mark.parametrize("name", [*PLAIN])
    def test_verbosity_options_hide_the_progress_bar(self, name: str, clock: list[float]) -> None:
        assert self.shown(clock, 9.0, choice=name) == ""

    def test_dumb_terminal_shows_no_progress_bar(
        self, clock: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TERM", "dumb")
        assert self.shown(clock, 9.0) == ""

    def test_pipe_shows_no_progress_bar(self, clock: list[float]) -> None:
        assert self.shown(clock, 9.0, io.StringIO()) == ""

    def test_progress_bar_follows_color_settings(
        self, clock: list[float], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        colors = re.compile(r"\x1b\[3\d")
        assert colors.search(self.shown(clock, 1.0))
        assert "Reading" in (plain := self.shown(clock, 1.0, color=False))
        assert not colors.search(plain)
        monkeypatch.setenv("NO_COLOR", "1")
        assert "Reading" in (plain := self.shown(clock, 1.0))
        assert not colors.search(plain)

    def test_interrupt_erases_the_progress_bar(self, clock: list[float]) -> None:
        stream = Terminal()

        def run_and_stop() -> None:
            watch = Watch(PLAIN, color=None)
            with watch.progress():
                clock[0] += 1
                watch.stage("Reading", 3)
                raise KeyboardInterrupt

        with contextlib.redirect_stderr(stream), pytest.raises(KeyboardInterrupt):
            run_and_stop()
        assert "Reading" in stream.getvalue()
        assert stream.getvalue().endswith("\x1b[2K")

    def test_observer_is_called_for_every_file(self, here: Path) -> None:
        """The observer gets the number of files in a stage, and then a call for each file."""

        class Counts(Observer):
            def __init__(self) -> None:
                self.stages: list[list[Any]] = []

            def stage(self, title: str, total: int) -> None:
                self.stages.append([title, total, 0])

            def step(self) -> None:
                self.stages[-1][2] += 1

        write({"a.py": HAZARD, "b.py": BROKEN, "lib/c.py": HAZARD})
        (here / "d.py").write_bytes(b"\xff")
        counts = Counts()
        chosen = settings.load(here, rules.names())
        ((ran, checked),) = check.check([here], lambda _: chosen, observer=counts)
        repair.repair(ran, checked, unsafe=False)
        assert counts.stages == [
            ["Reading", 4, 4],
            ["Extracting", 3, 3],
            ["Checking", 3, 3],
            ["Repairing", 2, 2],
            ["Extracting", 1, 1],
            ["Verifying", 2, 2],
        ]


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX")
class TestOnATerminal:
    def on_a_terminal(self, *arguments: str) -> tuple[bytes, bytes]:
        """Run a program with a terminal as standard error, and return that output and standard output."""
        ours, theirs = os.openpty()
        with Path("out").open("wb") as out:
            done = start(*arguments, stdout=out, stderr=theirs, env={**os.environ, "TERM": "xterm"})
        os.close(theirs)
        assert done.returncode == 1
        shown = read_terminal(ours)
        return shown, Path("out").read_bytes()

    def test_report_contains_no_progress_output(self) -> None:
        write({f"lib/m{number}.py": HAZARD for number in range(3)})
        _, out = self.on_a_terminal("check", "--format=json")
        assert out == start("check", "--format=json").stdout
        assert b"\x1b" not in out


class TestColor:
    @pytest.mark.parametrize("wish", [{"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {}])
    def test_errors_are_not_colored(self, wish: dict[str, str]) -> None:
        for arguments in (("check", "nowhere"), ("check", "--select=FSR9"), ("explain", "FSR9"), ("chek",)):
            done = start(*arguments, env={**os.environ, **wish})
            assert done.returncode == 2
            assert b"\x1b" not in done.stderr
            assert b"Error: " in done.stderr

    def test_diffs_follow_color_settings(self) -> None:
        write({"a.py": HAZARD})
        colored = start("fix", "--diff", env={**os.environ, "FORCE_COLOR": "1"}).stdout
        assert b"\x1b[" in colored
        for wish in ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, {}):
            assert b"\x1b[" not in start("fix", "--diff", env={**os.environ, **wish}).stdout
        assert (
            b"\x1b["
            not in start("fix", "--diff", "--no-color", env={**os.environ, "FORCE_COLOR": "1"}).stdout
        )
