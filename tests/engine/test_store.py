"""The cache: what it avoids recomputing, and that it never changes the findings.

Shows: `engine/store/facts.py`, `engine/store/folder.py`, `engine/store/results.py`, `engine/store/seal.py`,
`engine/store/version.py`
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support import ROOT
from support.imports import MODULES, PACKAGE, reached
from support.sampling import bound
from support.settled import LONG_AGO, settle, write

from fsrace_lint import catalog, rules
from fsrace_lint.cli import main
from fsrace_lint.config import settings
from fsrace_lint.engine import store
from fsrace_lint.engine.parallel import extraction as parallel_extraction
from fsrace_lint.engine.store import Folder, FolderError, PackedFacts, Results, Row, Version
from fsrace_lint.engine.store.version import files_of
from fsrace_lint.explore import explore
from fsrace_lint.files import source
from fsrace_lint.files.atomic_write import stale_temporaries
from fsrace_lint.files.spans import Place
from fsrace_lint.files.stat_signature import Status
from fsrace_lint.findings.finding import Fix
from fsrace_lint.pipeline import check as checking
from fsrace_lint.pipeline import project_cache
from fsrace_lint.pipeline.project_cache import CacheUse, ProjectCache
from fsrace_lint.pipeline.run import Run
from fsrace_lint.syntax import extract as extraction

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.config.settings import Settings
    from fsrace_lint.pipeline.run import Checked

GUARDED = """
import os
import helper
if helper.is_main():
    if not os.path.exists('a'):
        os.makedirs('a')
"""
HELPER = "import torch.distributed as dist\ndef is_main():\n    return dist.get_rank() == 0\n"
HAZARD = "import os\nif not os.path.exists('a'):\n    os.makedirs('a')\n"
SUPPRESSED = f"{HAZARD.rstrip()}  # noqa: FSR101\n"
CLEAN = "import os\nos.makedirs('a', exist_ok=True)\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project in the current directory."""
    directory = tmp_path / "project"
    directory.mkdir()
    monkeypatch.chdir(directory)
    (directory / "pyproject.toml").write_text("")
    return directory


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records the names of parsed files."""
    seen: list[str] = []
    real = extraction.extract

    def extract(read: source.Source) -> Any:
        seen.append(read.relative)
        return real(read)

    monkeypatch.setattr(extraction, "extract", extract)
    monkeypatch.setattr(parallel_extraction, "extract", extract)
    return seen


def load(root: Path) -> Settings:
    return settings.load(root, rules.names())


def checked(*paths: str, cached: CacheUse = CacheUse.RESULTS) -> tuple[Run, Checked]:
    named = [Path(path) for path in paths or (".",)]
    ((run, found),) = checking.check(named, lambda _: load(Path.cwd()), cache=cached, streaming=True)
    return run, found


def opened() -> ProjectCache | None:
    return ProjectCache.of(load(Path.cwd()), CacheUse.RESULTS)


def names_in(directory: Path | str) -> list[str]:
    return sorted(path.name for path in Path(directory).iterdir())


def hits(run: Run) -> tuple[int, int]:
    """The number of facts and of verdicts read from the cache."""
    assert run.memory is not None
    return run.memory.packed.hits, run.verdicts.hits


def check(*arguments: str) -> str:
    result = CliRunner().invoke(main.main, ["check", *arguments], prog_name="fsrace-lint")
    assert "Traceback" not in result.output
    assert result.exit_code in (0, 1), result.output
    return result.stdout


class TestReuse:
    def test_unchanged_files_are_not_parsed(self, parsed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        settle(monkeypatch)
        write({"a.py": HAZARD, "b.py": CLEAN, "broken.py": "def"})
        first, found = checked()
        assert (hits(first), sorted(parsed)) == ((0, 0), ["a.py", "b.py", "broken.py"])
        again, same = checked()
        assert (hits(again), len(parsed)) == ((0, 3), 3)
        assert same.outcome == found.outcome
        assert len(same.outcome.findings) == 2

    def test_unchanged_files_are_not_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        settle(monkeypatch)
        write({"a.py": HAZARD, "b.py": CLEAN})
        checked()
        read: list[str] = []
        real = source.read_bytes

        def read_bytes(names: source.PathNames) -> bytes | source.Unreadable:
            read.append(names[2])
            return real(names)

        monkeypatch.setattr(source, "read_bytes", read_bytes)
        checked()
        # read to show its lines
        assert read == ["a.py"]

    def test_only_the_changed_file_is_parsed(
        self, parsed: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settle(monkeypatch)
        write({"a.py": GUARDED, "helper.py": HELPER, "c.py": CLEAN})
        assert checked()[1].outcome.findings == ()
        parsed.clear()
        write({"helper.py": HELPER.replace("== 0", "!= 3")})
        run, found = checked()
        # the facts of the other files, and the earlier facts of the changed file
        assert (hits(run), parsed) == ((3, 0), ["helper.py"])
        assert [finding.place.path for finding in found.outcome.findings] == ["a.py"]

    @pytest.mark.parametrize(
        ("before", "after", "lines"),
        [
            (HAZARD, f"{HAZARD}# why\n", [("a.py", "FSR101")]),
            (HAZARD, f"{HAZARD}# noqa: FSR204\n", [("a.py", "FSR101"), ("a.py", "FSR003")]),
            (HAZARD, SUPPRESSED, []),
            (SUPPRESSED, HAZARD, [("a.py", "FSR101")]),
            (CLEAN, f"{CLEAN}  # why\n", []),
            (CLEAN, f"{CLEAN}# noqa: FSR101\n", [("a.py", "FSR003")]),
            (f"{CLEAN}# noqa: FSR101\n", CLEAN, []),
        ],
    )
    def test_comment_changes_need_no_linking(
        self, before: str, after: str, lines: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settle(monkeypatch)
        write({"a.py": before, "b.py": HAZARD, "helper.py": HELPER})
        checked()
        write({"a.py": after})
        monkeypatch.setattr(Run, "link", lambda _: pytest.fail("nothing has to be linked"))
        for _ in range(2):
            run, found = checked()
            pairs = [(finding.place.path, finding.code) for finding in found.outcome.findings]
            assert pairs == sorted([*lines, ("b.py", "FSR101")], key=lambda row: (row[0], row[1] != "FSR101"))
            assert run.verdicts.hits == 3

    def test_comment_change_while_checking_another_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        settle(monkeypatch)
        write({"a.py": HAZARD, "b.py": HAZARD})
        checked()
        write({"a.py": SUPPRESSED})
        assert len(checked("b.py")[1].outcome.findings) == 1
        found = checked()[1].outcome.findings
        assert [finding.place.path for finding in found] == ["b.py"]

    @pytest.mark.parametrize(
        "after",
        [
            {"a.py": f"{HAZARD}# why\n", "helper.py": HELPER.replace("== 0", "!= 3")},
            {"a.py": f"\n{HAZARD}"},
            {"a.py": f"{HAZARD}# why\n", "new.py": CLEAN},
            {"broken.py": "def  # why\n"},
            {f"c{number}.py": f"{CLEAN}# why\n" for number in range(project_cache.FEW + 1)},
        ],
        ids=["edited files", "moved", "new", "broken", "many"],
    )
    def test_code_change_discards_verdicts(
        self, after: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settle(monkeypatch)
        several = {f"c{number}.py": CLEAN for number in range(project_cache.FEW + 1)}
        write({"a.py": HAZARD, "helper.py": HELPER, "broken.py": "def", **several})
        checked()
        write(after)
        run, found = checked()
        assert run.verdicts.hits == 0
        assert found.outcome == checked(cached=CacheUse.NOT)[1].outcome

    def test_new_mtime_with_the_same_content(
        self, parsed: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settle(monkeypatch)
        write({"a.py": HAZARD})
        checked()
        os.utime("a.py", (LONG_AGO + 5, LONG_AGO + 5))
        run, _ = checked()
        assert (hits(run), len(parsed)) == ((0, 1), 1)
        monkeypatch.setattr(source, "digest_of", lambda _: pytest.fail("the new times are known"))
        assert Run(load(Path.cwd()), (), memory=opened()).files.keys() == {"a.py"}

    def test_report_with_fixes_parses_nothing(
        self, parsed: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settle(monkeypatch)
        write({"a.py": HAZARD, "b.py": CLEAN})
        first = check("--format=sarif")
        assert len(parsed) == 2
        assert check("--format=sarif") == first
        assert len(parsed) == 2

    def test_partial_run_reuses_the_results_of_a_full_run(self, parsed: list[str]) -> None:
        write({"a.py": HAZARD, "b.py": HAZARD})
        checked()
        run, found = checked("b.py")
        assert (run.verdicts.hits, len(parsed)) == (1, 2)
        assert [finding.place.path for finding in found.outcome.findings] == ["b.py"]

    def test_results_are_kept_per_settings(self) -> None:
        write({"a.py": HAZARD})
        pyproject = Path("pyproject.toml")
        for text in ("", '[tool.fsrace-lint]\nignore = ["FSR1"]\n'):
            pyproject.write_text(text)
            checked()
        for text, number in (("", 1), ('[tool.fsrace-lint]\nignore = ["FSR1"]\n', 0)):
            pyproject.write_text(text)
            run, found = checked()
            assert (hits(run), len(found.outcome.findings)) == ((0, 1), number)

    def test_oldest_result_is_evicted(self, here: Path) -> None:
        version = Version(b"f" * 20)
        results = Results(Folder(here / "c"), version, "results-x.bin")
        for number in range(12):
            results.put(b"%d" % number, b"value %d" % number)
        known = [number for number in range(12) if results.get(b"%d" % number) is not None]
        assert known == [4, 5, 6, 7, 8, 9, 10, 11]

    def test_rewritten_result_becomes_the_newest(self, here: Path) -> None:
        results = Results(Folder(here / "c"), Version(b"f" * 20), "results-x.bin")
        for number in (*range(8), 0, 8):
            results.put(b"%d" % number, b"value")
        assert results.get(b"0") == b"value"
        assert results.get(b"1") is None

    def test_facts_of_deleted_files_are_dropped(self, here: Path) -> None:
        write({"a.py": HAZARD, "b.py": CLEAN})
        checked()
        digest = source.digest_of(CLEAN.encode())
        assert packed(here).holds("b.py", digest)
        Path("b.py").unlink()
        write({"a.py": CLEAN})
        checked()
        assert packed(here).holds("a.py", digest)
        assert not packed(here).holds("b.py", digest)

    def test_damaged_facts_are_recomputed_once(
        self, here: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settle(monkeypatch)
        write({"a.py": HAZARD, "b.py": CLEAN})
        checked(cached=CacheUse.FACTS)
        (file,) = (here / ".fsrace_cache").glob("facts-*")
        data = bytearray(file.read_bytes())
        data[packed(here).entries["a.py"].offset + 5] ^= 1
        file.write_bytes(data)
        parsed.clear()
        for _ in range(3):
            checked(cached=CacheUse.FACTS)
        assert parsed == ["a.py"]

    def test_facts_of_files_in_another_run_are_kept(self, here: Path) -> None:
        write({"a.py": HAZARD, "tests/test_a.py": CLEAN})
        result = CliRunner().invoke(main.main, ["check", "--include-tests"])
        assert result.exit_code == 1
        write({"a.py": CLEAN})
        checked()
        assert packed(here).holds("tests/test_a.py", source.digest_of(CLEAN.encode()))


def packed(root: Path) -> PackedFacts:
    version = Version.of()
    assert version is not None
    (file,) = (root / ".fsrace_cache").glob("facts-*")
    return PackedFacts(Folder(root / ".fsrace_cache"), version, file.name)


class TestSameFindings:
    @pytest.mark.parametrize(
        "options",
        [
            (),
            ("--format=json",),
            ("--format=json", "--profile=strict"),
            ("--format=json", "--show-silenced"),
            ("--format=json", "--show-suppressed"),
            ("--format=sarif",),
            ("--format=gitlab",),
            ("--format=html",),
            ("--format=json", "--select=FSR1,unguarded-write"),
            ("--format=json", "tinytrain/train.py", "--filesystem=shared"),
        ],
        ids=" ".join,
    )
    def test_examples_with_and_without_cache(self, options: tuple[str, ...]) -> None:
        shutil.copytree(ROOT / "examples", "examples")
        os.chdir("examples")
        without = check(*options, "--no-cache")
        assert not Path("../.fsrace_cache").exists()
        first, second = check(*options), check(*options)
        assert Path("../.fsrace_cache").is_dir()
        assert first == without
        assert second == without
        assert check("--profile=strict", "--statistics") != without
        assert check(*options) == without

    def test_paths_follow_the_current_directory(self) -> None:
        write({"src/a.py": HAZARD})
        assert "src/a.py:3" in check()
        os.chdir("src")
        assert "src/a.py" not in check()
        os.chdir("..")
        assert "src/a.py:3" in check()

    def test_changed_baseline_is_applied(self) -> None:
        write({"a.py": HAZARD})
        check("--write-baseline=known.json")
        arguments = ("--baseline=known.json", "--format=json")
        assert json.loads(check(*arguments))["findings"] == []
        assert json.loads(check(*arguments))["findings"] == []
        document = json.loads(Path("known.json").read_text())
        Path("known.json").write_text(json.dumps({**document, "findings": []}))
        assert len(json.loads(check(*arguments))["findings"]) == 1

    def test_retargeted_link_is_checked_again(self) -> None:
        write({"a.py": HAZARD, "c.py": CLEAN})
        Path("b.py").symlink_to("a.py")
        assert "Found 1 warning in 1 file." in check("b.py")
        Path("b.py").unlink()
        Path("b.py").symlink_to("c.py")
        assert check("b.py", "--quiet") == ""
        assert "Found 1 warning in 1 file." in check("a.py")

    def test_file_changed_during_the_check(self, monkeypatch: pytest.MonkeyPatch) -> None:
        settle(monkeypatch)
        write({"a.py": HAZARD, "b.py": CLEAN})
        checked()
        real = Run.check

        def late(run: Run, **options: Any) -> Checked:
            write({"a.py": f"\n\n{HAZARD}"})
            return real(run, **options)

        monkeypatch.setattr(Run, "check", late)
        run, found = checked()
        assert run.memory is None
        (finding,) = found.outcome.findings
        assert finding.place.span.line == 5
        assert found.sources["a.py"].text.startswith("\n\n")

    SNIPPETS = (
        HAZARD,
        CLEAN,
        GUARDED,
        HELPER,
        HELPER.replace("== 0", "> 1"),
        "def",
        "x = '\\ud800'\n",
        f"y = {1 << 70}\n",
        HAZARD.replace("exists('a'):", "exists('a'):  # noqa: FSR101"),
        f"\ufeff{HAZARD}",
        "# -*- coding: latin-1 -*-\n",
    )

    @given(
        states=st.lists(
            st.dictionaries(
                st.sampled_from(["a.py", "helper.py", "p/b.py", "p/helper.py"]),
                st.sampled_from(SNIPPETS),
                max_size=4,
            ),
            min_size=1,
            max_size=4,
        )
    )
    @hypothesis_settings(
        max_examples=bound(10, 40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    def test_any_sequence_of_changes(self, states: list[dict[str, str]]) -> None:
        shutil.rmtree(".fsrace_cache", ignore_errors=True)
        for state in states:
            for name in ("a.py", "helper.py", "p/b.py", "p/helper.py"):
                Path(name).unlink(missing_ok=True)
            write(state)
            _, plain = checked(cached=CacheUse.NOT)
            assert checked()[1].outcome == plain.outcome
            assert checked()[1].outcome == plain.outcome
            assert checked(cached=CacheUse.FACTS)[1].outcome == plain.outcome


class TestUnchangedDetection:
    def test_change_within_the_clock_resolution_is_seen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The file changes right after it was read, with the same size and mtime."""
        monkeypatch.setattr(Status, "of", lambda status: Status(status.st_size, status.st_mtime_ns, 0, 0))
        Path("a.py").write_text(HAZARD)
        time = Path("a.py").stat().st_mtime_ns
        assert len(checked()[1].outcome.findings) == 1
        Path("a.py").write_text(HAZARD.replace("not ", "    "))
        os.utime("a.py", ns=(time, time))
        assert checked()[1].outcome.findings == ()

    def test_old_mtime_is_trusted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Shows that the test above does not pass merely because every file is read."""
        monkeypatch.setattr(Status, "of", lambda status: Status(status.st_size, status.st_mtime_ns, 0, 0))
        write({"a.py": CLEAN})
        checked()
        Path("a.py").write_text(CLEAN.replace("exist_ok", "exist_no"))
        os.utime("a.py", (LONG_AGO, LONG_AGO))
        run, _ = checked()
        assert hits(run) == (0, 1)

    def test_restored_mtime_is_detected(self) -> None:
        write({"a.py": CLEAN})
        checked()
        write({"a.py": HAZARD.ljust(len(CLEAN), "\n")})
        assert len(checked()[1].outcome.findings) == 1

    @pytest.mark.parametrize(("modified", "changed", "settled"), [(1, 1, True), (9, 1, False), (1, 9, False)])
    def test_settled_needs_an_old_mtime_and_ctime(
        self, modified: int, changed: int, settled: bool
    ) -> None:  # a parameter
        since = 10_000_000_000
        assert Status(1, modified * 1_000_000_000, changed * 1_000_000_000, 1).settled(since) is settled


def program(directory: Path) -> Path:
    (directory / "rules").mkdir(parents=True)
    (directory / "explore").mkdir()
    (directory / "a.py").write_text("A = 1\n")
    (directory / "rules" / "b.py").write_text("B = 1\n")
    (directory / "explore" / "c.py").write_text("C = 1\n")
    return directory


class TestVersion:
    def version(self, directory: Path) -> Version:
        found = Version.of(str(directory))
        assert found is not None
        return found

    @pytest.mark.parametrize(
        ("name", "made"), [("a.py", False), ("rules/b.py", False), ("explore/c.py", True)]
    )
    def test_changed_code_changes_the_version(self, here: Path, name: str, made: bool) -> None:  # a parameter
        old = self.version(program(here / "program"))
        content = old.content()
        (here / "program" / name).write_text("D = 2\n")
        os.utime(here / "program" / name, ns=(5, 5))
        assert self.version(here / "program").made(old.files, content) is made

    def test_version_covers_every_module_that_rules_import(self) -> None:
        """Directories are excluded by path, so one of the same name elsewhere is covered."""
        counted = {Path(file) for file in files_of(str(PACKAGE))}
        reaching = reached(module for module in MODULES if module.partition(".")[0] == "rules")
        assert {module for module in reaching if MODULES[module] not in counted} == set()

    def test_nested_directory_with_the_name_of_an_excluded_one_counts(self, here: Path) -> None:
        old = self.version(program(here / "program"))
        content = old.content()
        (here / "program" / "rules" / "explore").mkdir()
        (here / "program" / "rules" / "explore" / "d.py").write_text("")
        assert not self.version(here / "program").made(old.files, content)

    def test_added_rule_changes_the_version(self, here: Path) -> None:
        old = self.version(program(here / "program"))
        content = old.content()
        (here / "program" / "rules" / "new.py").write_text("")
        assert not self.version(here / "program").made(old.files, content)

    def test_copied_code_has_the_same_version(self, here: Path) -> None:
        old = self.version(program(here / "program"))
        other = self.version(
            Path(shutil.copytree(here / "program", here / "other", copy_function=shutil.copyfile))
        )
        assert other.files != old.files
        assert other.made(old.files, old.content())

    def test_cache_of_another_version_is_not_read(
        self, monkeypatch: pytest.MonkeyPatch, parsed: list[str]
    ) -> None:
        write({"a.py": HAZARD})
        checked()
        monkeypatch.setattr(Version, "made", lambda *_: False)
        run, _ = checked()
        assert (hits(run), len(parsed)) == ((0, 0), 2)


class TestDamage:
    """A truncated, corrupt, or foreign cache file is ignored."""

    def files(self, here: Path) -> list[Path]:
        return sorted((here / ".fsrace_cache").glob("*.bin"))

    def test_truncated_files_are_ignored(self, here: Path) -> None:
        """Tests every length near both ends, and a sample in between, where one checksum covers all bytes."""
        step = bound(7, 1)
        write({"a.py": HAZARD})
        _, fresh = checked()
        for file in self.files(here):
            data = file.read_bytes()
            size = len(data)
            lengths = [n for n in range(size) if n < 80 or n % 97 == 0 or n >= size - 8]
            for length in lengths[::step]:
                file.write_bytes(data[:length])
                assert checked()[1].outcome == fresh.outcome, (file, length)
                file.write_bytes(data)
        assert hits(checked()[0]) == (0, 1)

    @given(data=st.data())
    @hypothesis_settings(
        max_examples=bound(20, 150),
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    def test_corrupt_bytes_are_ignored(self, here: Path, data: st.DataObject) -> None:
        write({"a.py": HAZARD, "helper.py": HELPER})
        shutil.rmtree(".fsrace_cache", ignore_errors=True)
        _, fresh = checked()
        for file in self.files(here):
            good = bytearray(file.read_bytes())
            for _ in range(data.draw(st.integers(1, 3))):
                good[data.draw(st.integers(0, len(good) - 1))] ^= data.draw(st.integers(1, 255))
            file.write_bytes(good)
        assert checked()[1].outcome == fresh.outcome
        for file in self.files(here):
            file.write_bytes(data.draw(st.binary(max_size=200)))
        assert checked()[1].outcome == fresh.outcome

    def test_facts_stored_under_another_file_are_ignored(self, here: Path) -> None:
        """The checksum of facts includes the digest of their file."""
        version = Version(b"f" * 20)
        facts = extraction.extract(source.of_text(HAZARD, here / "a.py", here))
        other = extraction.extract(source.of_text(CLEAN, here / "b.py", here))
        store = PackedFacts(Folder(here / "c"), version, "facts-x.bin")
        rows = [
            Row(name, None, digest * 20, one)
            for name, digest, one in (("a", "aa", facts), ("b", "bb", other))
        ]
        store.save(rows, lambda _: False)
        again = PackedFacts(Folder(here / "c"), version, "facts-x.bin")
        assert again.load("a", "aa" * 20) == facts
        assert again.load("b", "bb" * 20) == other
        assert again.load("a", "bb" * 20) is None

    @pytest.mark.parametrize("kind", ["directory", "fifo", "link", "other user"])
    def test_foreign_file_is_ignored(self, here: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        write({"a.py": HAZARD})
        _, fresh = checked()
        outside = here.parent / "outside"
        for file in self.files(here):
            shutil.copy(file, outside)
            file.unlink()
            match kind:
                case "directory":
                    file.mkdir()
                case "fifo":
                    os.mkfifo(file)
                case "link":
                    file.symlink_to(outside)
                case _:
                    shutil.copy(outside, file)
        if kind == "other user":
            monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        before = outside.read_bytes()
        run, found = checked()
        assert (hits(run), found.outcome) == ((0, 0), fresh.outcome)
        assert outside.read_bytes() == before

    def run_with_planted_result(self, change: Callable[[Any], Any]) -> Run:
        """Store a result that no rule could return, with a valid checksum."""
        write({"a.py": HAZARD})
        run, _ = checked()
        judged = run.check_file("a.py", [])
        bad = msgspec.structs.replace(judged, kept=tuple(change(one) for one in judged.kept))
        assert run.memory is not None
        evil = project_cache.CachedResults(run, run.memory.results)
        evil.stored = project_cache.Stored()
        evil.put("a.py", bad)
        assert run.memory.results is not None
        run.memory.results.put(evil.key, b"")
        evil.save()
        return checked()[0]

    @pytest.mark.parametrize(
        "change",
        [
            lambda one: msgspec.structs.replace(one, place=Place("../../etc/passwd", one.place.span)),
            lambda one: msgspec.structs.replace(one, code="\x1b[31mFSR101"),
            lambda one: msgspec.structs.replace(one, name="\x1b]0;title\x07"),
            lambda one: msgspec.structs.replace(one, evidence="\x1b[2J"),
            lambda one: msgspec.structs.replace(one, message="\x1b[31mred"),
            lambda one: msgspec.structs.replace(one, function="\u202efx"),
            lambda one: msgspec.structs.replace(
                one, fix=Fix("..os", one.place.span, one.fix.applicability, "")
            ),
            lambda one: msgspec.structs.replace(
                one, place=Place("a.py", msgspec.structs.replace(one.place.span, line=-4))
            ),
        ],
        ids=["path", "code", "name", "evidence", "message", "function", "recipe", "line"],
    )
    def test_impossible_result_is_rejected(self, change: Callable[[Any], Any]) -> None:
        run = self.run_with_planted_result(change)
        assert run.verdicts.hits == 0
        assert [finding.code for finding in run.check_file("a.py", []).kept] == ["FSR101"]

    def test_possible_result_is_accepted(self) -> None:
        """Shows that the results above are rejected, not just never read."""
        run = self.run_with_planted_result(
            lambda one: msgspec.structs.replace(one, message="it is \\x red, in `é`")
        )
        assert run.verdicts.hits == 1
        assert "it is \\x red, in `é`" in check()


class TestDirectory:
    def test_directory_is_tagged_and_ignored_by_git(self, here: Path) -> None:
        write({"a.py": HAZARD})
        checked()
        directory = here / ".fsrace_cache"
        assert (directory / ".gitignore").read_text() == "*\n"
        assert (
            (directory / "CACHEDIR.TAG")
            .read_text()
            .startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
        )
        assert sorted(name.partition("-")[0] for name in names_in(directory)) == [
            ".gitignore", "CACHEDIR.TAG", "catalog", "facts", "launches", "results",
        ]  # fmt: skip

    def test_directory_without_a_project_has_no_cache(self, here: Path) -> None:
        alone = here.parent / "alone"
        alone.mkdir()
        os.chdir(alone)
        write({"a.py": HAZARD})
        check()
        assert names_in(".") == ["a.py"]
        check("--cache-dir=kept")
        assert names_in(".") == ["a.py", "kept"]

    def test_cache_dir_setting(self, here: Path) -> None:
        write({"a.py": HAZARD, "pyproject.toml": '[tool.fsrace-lint]\ncache-dir = "../kept"\n'})
        check()
        assert (here.parent / "kept" / "CACHEDIR.TAG").exists()
        assert not (here / ".fsrace_cache").exists()

    def test_symbolic_link_is_not_followed(self, here: Path) -> None:
        outside = here.parent / "outside"
        outside.mkdir()
        Path(".fsrace_cache").symlink_to(outside)
        self.assert_not_written("the path is a symbolic link")
        assert names_in(outside) == []

    def test_directory_with_other_files_is_not_used(self, here: Path) -> None:
        (here / ".fsrace_cache").mkdir()
        (here / ".fsrace_cache" / "thesis.tex").write_text("mine")
        self.assert_not_written("the directory contains other files")
        assert names_in(".fsrace_cache") == ["thesis.tex"]

    def test_file_in_place_of_the_directory_is_not_overwritten(self, here: Path) -> None:
        (here / ".fsrace_cache").write_text("mine")
        self.assert_not_written("File exists")
        assert (here / ".fsrace_cache").read_text() == "mine"

    def assert_not_written(self, why: str) -> None:
        """A run without a writable cache finds the same, and `--verbose` prints the reason."""
        write({"a.py": HAZARD})
        fresh = check("--no-cache")
        result = CliRunner().invoke(main.main, ["check", "--verbose"])
        assert result.stdout == fresh
        assert f".fsrace_cache was not written: {why}" in result.stderr
        quiet = CliRunner().invoke(main.main, ["check"])
        assert (quiet.stdout, quiet.stderr) == (fresh, "")

    @pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT])
    def test_unwritable_disk(self, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
        real = os.open

        def refuse(path: Any, flags: int, *rest: Any, **more: Any) -> int:
            if flags & os.O_CREAT and ".fsrace_cache" in str(path):
                raise OSError(code, os.strerror(code), str(path))
            return real(path, flags, *rest, **more)

        monkeypatch.setattr(os, "open", refuse)
        self.assert_not_written(os.strerror(code))

    def test_full_disk(self) -> None:
        """The kernel rejects a write in the middle of the file."""
        write({f"m{number}.py": HAZARD * 30 for number in range(20)})
        fresh = check("--no-cache")
        command = [sys.executable, "-m", "fsrace_lint", "check", "--verbose"]

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (120, 120))

        done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)
        assert done.stdout == fresh
        assert ".fsrace_cache was not written: File too large" in done.stderr
        assert not [name for name in names_in(".fsrace_cache") if name.endswith((".bin", ".tmp"))]

    def test_leftovers_of_killed_runs_are_removed(self, here: Path) -> None:
        write({"a.py": HAZARD})
        checked()
        name = [
            sys.executable,
            "-c",
            "from fsrace_lint.files.atomic_write import stale_temporaries as s; print(s.name())",
        ]
        dead = subprocess.run(name, capture_output=True, text=True, check=True).stdout.strip()
        left, written = here / ".fsrace_cache" / dead, here / ".fsrace_cache" / stale_temporaries.name()
        left.write_text("")
        written.write_text("")
        write({"a.py": CLEAN})
        checked()
        assert (left.exists(), written.exists()) == (False, True)


class TestCacheCommand:
    def run(self, *arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(main.main, ["cache", *arguments], prog_name="fsrace-lint")
        assert result.exit_code == code, result.output
        return result.output

    def test_info_and_clear(self, here: Path) -> None:
        write({"a.py": HAZARD, "src/b.py": HAZARD})
        assert self.run("info") == f"{here}/.fsrace_cache\n  (empty)\n"
        assert self.run("clear") == f"No cache found: {here}/.fsrace_cache\n"
        check()
        lines = self.run("info", "src/b.py").splitlines()
        assert lines[0] == f"{here}/.fsrace_cache"
        assert [line.split("-")[0] for line in lines[1:]] == [
            "  catalog", "  facts", "  launches", "  results",
        ]  # fmt: skip
        assert self.run("clear", "src").startswith("Deleted 4 files (")
        assert not (here / ".fsrace_cache").exists()

    def test_clear_refuses_a_directory_that_is_no_cache(self, here: Path) -> None:
        (here / "mine").mkdir()
        (here / "mine" / "facts-x.bin").write_text("mine")
        message = self.run("clear", "--cache-dir=mine", code=2)
        assert message == f"Error: {here}/mine was not deleted: the directory is not an fsrace-lint cache\n"
        assert (here / "mine" / "facts-x.bin").exists()

    def test_missing_baseline_does_not_matter(self, here: Path) -> None:
        (here / "pyproject.toml").write_text('[tool.fsrace-lint]\nbaseline = "gone.json"\n')
        assert self.run("info") == f"{here}/.fsrace_cache\n  (empty)\n"
        assert self.run("clear") == f"No cache found: {here}/.fsrace_cache\n"

    def test_clear_keeps_other_files(self, here: Path) -> None:
        write({"a.py": HAZARD})
        check()
        (here / ".fsrace_cache" / "mine").write_text("mine")
        self.run("clear")
        assert names_in(".fsrace_cache") == [".gitignore", "CACHEDIR.TAG", "mine"]

    def test_invalid_usage_is_an_error(self, here: Path) -> None:
        assert "no such file or directory" in self.run("info", "missing", code=2)
        (here / "pyproject.toml").write_text("[tool.fsrace-lint]\nprofil = 1\n")
        assert "unknown key `profil`" in self.run("info", code=2)
        result = CliRunner().invoke(main.main, ["check", "--no-cache", "--cache-dir=x"])
        assert (result.exit_code, result.output.splitlines()[-1]) == (
            2,
            "Error: --cache-dir cannot be used with --no-cache",
        )


LOADED = """
import click, sys
before = {*sys.modules}  # click, and what measures coverage, load modules of their own
import runpy
sys.argv = ["fsrace-lint", "check", *sys.argv[1:]]
try:
    runpy.run_module("fsrace_lint", run_name="__main__")
except SystemExit as end:
    print(end.code, *sorted({*sys.modules} - before), file=sys.stderr)
"""


AFTER_A_CHANGE = (
    *("fsrace_lint.catalog.reading", "fsrace_lint.fixes", "fsrace_lint.explore", "importlib.resources"),
    *(
        "configparser",
        "dataclasses",
        "difflib",
        "fsrace_lint.launches.reading",
        "libcst",
        "multiprocessing",
        "rich",
        "secrets",
        "selectors",
        "tempfile",
    ),
)


def test_modules_loaded_after_one_file_changed() -> None:
    write({"a.py": HAZARD, "b.py": CLEAN, "run.sh": "torchrun a.py\n"})
    command = [sys.executable, "-c", LOADED, "--quiet", "a.py"]
    seen: list[set[str]] = []
    for text in (HAZARD, f"{HAZARD}\nprint()\n"):
        write({"a.py": text})
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        ended, *names = done.stderr.split()
        assert int(ended) == 1
        assert "fsrace_lint.rules" in names
        seen.append({name for name in AFTER_A_CHANGE if name in names})
    assert {"fsrace_lint.catalog.reading", "fsrace_lint.launches.reading"} <= seen[0]
    assert seen[1] == set()


class TestCachedCatalog:
    def check_in_new_process(self, monkeypatch: pytest.MonkeyPatch, text: str) -> tuple[list[str], bool]:
        """Check a file as in a new process; return the output and whether the catalog files were read."""
        read: list[str] = []
        files = catalog.files

        def counted() -> dict[str, str]:
            read.extend(files())
            return files()

        with monkeypatch.context() as patch:
            patch.setattr(catalog, "files", counted)
            for known in (catalog.own_rows, catalog.own_catalog, catalog.extended):
                known.cache_clear()
            write({"a.py": text})
            _, found = checked()
        return [finding.code for finding in found.outcome.findings], bool(read)

    def test_cached_rows_equal_the_files(self) -> None:
        kept = catalog.packed()
        one, other = catalog.own_rows(kept), catalog.own_rows(b"")
        assert len(other) > 1000
        assert one is not other
        for kind in catalog.KINDS:
            assert [e for k, e in one if k == kind] == [e for k, e in other if k == kind]

    def test_damaged_catalog_is_read_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found, was_read = self.check_in_new_process(monkeypatch, HAZARD)
        assert was_read
        assert "FSR101" in found
        assert self.check_in_new_process(monkeypatch, f"{HAZARD}y = 1\n") == (found, False)
        (file,) = Path(".fsrace_cache").glob("catalog-*")
        whole = file.read_bytes()
        for number, damaged in enumerate((b"", whole[:-1], whole[:40], whole[:-1] + b"\0", b"x" + whole[1:])):
            file.write_bytes(damaged)
            assert self.check_in_new_process(monkeypatch, f"{HAZARD}x = {number}\n") == (found, True)
            assert self.check_in_new_process(monkeypatch, f"{HAZARD}# {number}.\n") == (found, False)

    @pytest.mark.parametrize(
        "kept", [b"", b"\xc1", b"\x80\x80", msgspec.msgpack.encode({"no-such": []}), b"\x90"]
    )
    def test_invalid_cached_rows_are_read_from_the_files(self, kept: bytes) -> None:
        assert catalog.own_rows(kept) == catalog.own_rows.__wrapped__(b"")

    def test_catalog_of_another_version_is_not_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.check_in_new_process(monkeypatch, HAZARD)
        monkeypatch.setattr(store.version, "FORMAT", store.version.FORMAT + 1)
        monkeypatch.setattr(store.version, "CONTENTS", {})
        assert self.check_in_new_process(monkeypatch, f"{HAZARD}#\n")[1]


@pytest.mark.parametrize(
    ("text", "code", "form"), [(CLEAN, 0, "text"), (CLEAN, 0, "json"), (HAZARD, 1, "json")]
)
def test_modules_loaded_if_everything_is_cached(text: str, code: int, form: str) -> None:
    """The first runs may still update recorded file times, so up to five runs are tried."""
    write({"a.py": text, "b.py": CLEAN})
    command = [sys.executable, "-c", LOADED, f"--format={form}"]
    ours = ("rules", "analysis", "catalog", "syntax", "fixes", "explore")
    heavy = ("libcst", "rich", "flake8", "pathspec", *(f"fsrace_lint.{name}" for name in ours))
    seen: list[list[str]] = []
    while len(seen) < 5 and [] not in seen:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        ended, *names = done.stderr.split()
        assert int(ended) == code
        seen.append([name for name in heavy if name in names])
    assert "fsrace_lint.rules" in seen[0]
    assert seen[-1] == []


FACTS = {
    name: extraction.extract(source.of_text(text, Path("/x") / name, Path("/x")))
    for name, text in {"a.py": HAZARD, "b.py": CLEAN}.items()
}
VERSION = Version(b"f" * 20)


def use_a_cache(root: Path, rank: int) -> None:
    """One of two concurrent runs: read the cache, then write results."""
    directory = Folder(root / "cache")
    facts = PackedFacts(directory, VERSION, "facts-x.bin")
    for name, known in FACTS.items():
        assert facts.load(name, "ab" * 20) in (None, known)
    facts.save([Row(name, None, "ab" * 20, known) for name, known in FACTS.items()], lambda _: True)
    facts.close()
    results = Results(directory, VERSION, "results-x.bin")
    assert results.get(b"0") in (None, b"zero")
    results.put(b"%d" % rank, (b"zero", b"one")[rank])


def write_results(root: Path, rank: int) -> None:
    results = Results(Folder(root / "cache"), VERSION, "results-x.bin")
    results.put(b"%d" % rank, (b"zero", b"one")[rank])
    assert results.get(b"%d" % rank) in (None, (b"zero", b"one")[rank])


def is_whole(root: Path) -> None:
    """Assert that existing cache files are readable and hold what was written."""
    directory = Folder(root / "cache")
    if (root / "cache" / "facts-x.bin").exists():
        facts = PackedFacts(directory, VERSION, "facts-x.bin")
        assert {name: facts.load(name, "ab" * 20) for name in FACTS} == FACTS
        facts.close()
    if (root / "cache" / "results-x.bin").exists():
        results = Results(directory, VERSION, "results-x.bin")
        found = [results.get(b"0"), results.get(b"1")]
        assert found in ([b"zero", None], [None, b"one"], [b"zero", b"one"])


def some_cache(root: Path) -> None:
    Results(Folder(root / "cache"), VERSION, "results-x.bin").put(b"1", b"one")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the explorer needs fork")
class TestConcurrentRuns:
    @pytest.mark.parametrize("setup", [None, some_cache])
    def test_concurrent_writes_of_results(self, setup: Callable[[Path], object] | None) -> None:
        schedules, samples = bound((30, 10), (600, 200))
        explore(
            write_results, setup=setup, check=is_whole, max_schedules=schedules, samples=samples
        ).assert_ok()

    @pytest.mark.parametrize("crash", ["none", "kill"])
    def test_concurrent_runs(self, crash: str) -> None:
        schedules, samples = bound((20, 10), (300, 100))
        explore(
            use_a_cache,
            check=is_whole,
            crash=crash,
            preemptions=1,
            max_schedules=schedules,
            samples=samples,
        ).assert_ok()

    def test_clear_during_a_run(self) -> None:
        schedules, samples = bound((30, 10), (600, 200))
        explore(
            clear_or_write, setup=some_cache, check=is_whole, max_schedules=schedules, samples=samples
        ).assert_ok()


def clear_or_write(root: Path, rank: int) -> None:
    # a run prints these errors under --verbose and continues; clear reports what it could not delete
    with contextlib.suppress(FileNotFoundError, FileExistsError, FolderError):
        if rank == 0:
            Folder(root / "cache").clear()
        else:
            write_results(root, rank)


def test_flake8_finds_the_same_with_a_cache() -> None:
    write({f"m{number}.py": (HAZARD, CLEAN, GUARDED, HELPER)[number % 4] for number in range(8)})
    command = [sys.executable, "-m", "flake8", "--select=FSR", "-j2"]

    def flake8() -> list[str]:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return sorted(done.stdout.splitlines())

    def known() -> bool:
        return Run(load(Path.cwd()), (), memory=opened()).verdicts.know(["m0.py", "m5.py"])

    first = flake8()
    assert Path(".fsrace_cache").is_dir()
    assert len(first) >= 2
    assert flake8() == first
    # If two processes finish at the same time, the results of one may be lost and are recomputed.
    for _ in range(10):
        if known():
            break
        assert flake8() == first
    assert known()
    check()
    assert flake8() == first
    assert store.Version.of() is not None
