"""The corpus script: report invariants on real code, and comparison with recorded findings."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import corpus
import holding
import pytest
from support.cli import HAZARD, write

pytestmark = pytest.mark.usefixtures("here")


if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WIDE = 'import os\nx = "ü"\nif not os.path.exists("é"): os.mkdir("é")\n'


def git(*arguments: str, directory: Path) -> str:
    """Run git with a fixed identity, independent of the machine's configuration."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.check_output(["git", *who, *arguments], cwd=directory, text=True).strip()


@pytest.fixture
def clones(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with one clone of two commits, limited to one profile and one report format."""
    monkeypatch.setattr(corpus, "PROFILES", {"default": ()})
    monkeypatch.setattr(corpus, "REPORTED", ("json",))
    made = here / "clones" / "owner" / "name"
    made.mkdir(parents=True)
    git("init", "--quiet", directory=made)
    (made / "a.py").write_text(HAZARD)
    (made / "notes.txt").write_text("not wanted")
    git("add", ".", directory=made)
    git("commit", "--quiet", "-m", "one", directory=made)
    (made / "b.py").write_text(HAZARD)
    git("add", ".", directory=made)
    git("commit", "--quiet", "-m", "two", directory=made)
    return here / "clones"


@pytest.fixture
def records(here: Path, clones: Path) -> Path:
    """A directory whose list of codebases pins the first commit."""
    directory = here / "records"
    directory.mkdir()
    pin(directory, clones, "HEAD~1")
    return directory


def pin(records: Path, clones: Path, revision: str) -> None:
    commit = git("rev-parse", revision, directory=clones / "owner" / "name")
    (records / corpus.LIST).write_text(f'[codebases]\n"owner/name" = "{commit}"\n')


def run(command: str, records: Path, clones: Path, *names: str) -> int:
    return corpus.main([command, *names, f"--clones={clones}", f"--records={records}"])


def recorded_before(records: Path, clones: Path) -> None:
    assert run("record", records, clones) == 0
    pin(records, clones, "HEAD")


class TestPinned:
    def test_record_contains_only_locations_and_codes(self, records: Path, clones: Path) -> None:
        assert run("record", records, clones) == 0
        first, *lines = (records / "owner+name.txt").read_text().splitlines()
        assert first.startswith("# owner/name ")
        assert lines == ["a.py:4:5 FSR101"]

    def test_compare_prints_added_and_removed_findings(
        self, records: Path, clones: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("record", records, clones) == 0
        assert run("compare", records, clones) == 0
        capsys.readouterr()
        file = records / "owner+name.txt"
        file.write_text(file.read_text().replace("a.py:4:5", "a.py:9:5"))
        assert run("compare", records, clones) == 1
        lines = capsys.readouterr().out.splitlines()
        assert lines[1:] == ["  + a.py:4:5 FSR101", "  - a.py:9:5 FSR101"]

    def test_clone_is_not_modified(self, records: Path, clones: Path) -> None:
        tree = clones / "owner" / "name"
        (tree / "a.py").write_text("changed\n")
        before = git("status", "--porcelain", directory=tree)
        assert run("record", records, clones) == 0
        assert (tree / "a.py").read_text() == "changed\n"
        assert git("status", "--porcelain", directory=tree) == before
        assert "a.py:4:5 FSR101" in (records / "owner+name.txt").read_text()

    def test_only_analyzed_files_are_checked_out(self, here: Path, records: Path, clones: Path) -> None:
        scratch = here / "scratch"
        scratch.mkdir()
        tree = corpus.checked_out(corpus.codebases(records, ())[0], clones, scratch)
        assert sorted(path.name for path in tree.iterdir()) == ["a.py", "pyproject.toml"]

    @pytest.mark.parametrize("spelled", ["owner+name", "name", "owner+name/repo"])
    def test_bare_clone_may_have_another_directory_name(
        self, records: Path, clones: Path, spelled: str
    ) -> None:
        others = clones.parent / "others"
        git(
            "clone",
            "--quiet",
            "--bare",
            str(clones / "owner" / "name"),
            str(others / spelled),
            directory=clones,
        )
        scratch = clones.parent / "scratch"
        scratch.mkdir()
        tree = corpus.checked_out(corpus.codebases(records, ())[0], others, scratch)
        assert (tree / "a.py").read_text() == HAZARD

    @pytest.mark.parametrize(
        ("spoil", "message"),
        [
            (lambda records, clones: None, "no record owner+name.txt"),
            (recorded_before, "for a different commit"),
            (lambda records, clones: (records / corpus.LIST).write_text("[codebases]\n"), "not in codebases"),
        ],
    )
    def test_compare_without_matching_record_is_an_error(
        self,
        records: Path,
        clones: Path,
        capsys: pytest.CaptureFixture[str],
        spoil: Callable[[Path, Path], object],
        message: str,
    ) -> None:
        spoil(records, clones)
        capsys.readouterr()
        assert run("compare", records, clones, "owner/name") == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert "findings" not in captured.out, "it is said before anything is run"

    def test_missing_clone_is_an_error(
        self, here: Path, records: Path, clones: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("record", records, here / "nowhere") == 2
        assert "no clone of owner/name" in capsys.readouterr().err

    def test_records_in_the_repository_are_complete(self) -> None:
        """Every codebase has a sorted record of its pinned commit."""
        listed = corpus.codebases(corpus.RECORDS, ())
        assert len(listed) >= 20
        names = {path.name for path in corpus.RECORDS.iterdir()} - {corpus.LIST}
        assert names == {codebase.record for codebase in listed}
        for codebase in listed:
            first, *lines = (corpus.RECORDS / codebase.record).read_text("utf-8").splitlines()
            assert first.startswith(f"# {codebase.name} {codebase.commit}, Python 3.")
            assert lines == sorted(lines, key=corpus.order_of)
            assert all(holding.RULE_FAILURE not in line for line in lines)


class TestDirectory:
    def test_directory_is_checked(self, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(
            {"code/a.py": HAZARD, "code/wide.py": WIDE, "code/bad.py": "x = (\n", "code/tests/b.py": HAZARD}
        )
        (here / "code" / "latin.py").write_bytes(b'# \xe4\nprint("x")\n')
        assert corpus.main(["check", "code"]) == 0
        assert capsys.readouterr().out.startswith("code: 5 files; findings: 4 default, 5 strict;")

    def test_broken_invariant_is_reported(
        self, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write({"code/a.py": HAZARD})
        monkeypatch.setattr(corpus, "REPORTED", ("json",))
        monkeypatch.setattr(holding, "broken", lambda tree, reports: ["this"])
        assert corpus.main(["check", "code"]) == 1
        assert capsys.readouterr().out.splitlines()[1:] == ["  ! default: this", "  ! strict: this"]

    @pytest.mark.parametrize(
        ("program", "message"),
        [
            ("import sys; sys.exit('Traceback')", "exited with code 1: Traceback"),
            ("import sys; sys.exit(2)", "exited with code 2:"),
            ("import time; time.sleep(60)", "timed out after 1 s"),
        ],
    )
    def test_failing_run_is_reported(
        self,
        here: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        program: str,
        message: str,
    ) -> None:
        write({"code/a.py": HAZARD})
        monkeypatch.setattr(corpus, "OURS", (sys.executable, "-c", program))
        monkeypatch.setattr(corpus, "SECONDS", 1)
        assert corpus.main(["check", "code"]) == 1
        assert f"  ! default: {message}" in capsys.readouterr().out

    def test_missing_directory_is_an_error(self, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as left:
            corpus.main(["check", "nowhere"])
        assert left.value.code == 2
        assert "no such directory: nowhere" in capsys.readouterr().err


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The reports on a small tree, in all formats."""
    tree = tmp_path_factory.mktemp("tree")
    (tree / "pyproject.toml").touch()
    (tree / "a.py").write_text(HAZARD)
    (tree / "wide.py").write_text(WIDE, "utf-8")
    return tree, corpus.run(tree, "default", tmp_path_factory.mktemp("reports")).reports


class TestInvariants:
    """Every invariant holds for real reports, and a report that breaks it is flagged."""

    def test_real_reports_keep_all_invariants(self, reports: tuple[Path, dict[str, str]]) -> None:
        tree, texts = reports
        assert set(texts) == {"json", "full", "html", *holding.FORMATS}
        assert json.loads(texts["json"])["findings"]
        assert holding.broken(tree, texts) == []

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"path": "b.py"}, "no such file in the tree"),
            ({"path": "../a.py"}, "no such file in the tree"),
            ({"line": 40, "end_line": 40}, "no such location in the file"),
            ({"column": 0}, "no such location in the file"),
            ({"end_column": 19}, "no such location in the file"),
            ({"end_column": 2}, "no such location in the file"),
            ({"end_column": 15}, "not a call: 'os.mkdir(\"'"),
            ({"line": 3, "end_line": 3, "column": 4, "end_column": 7}, "not a call: 'not'"),
        ],
    )
    def test_finding_at_wrong_location_is_flagged(
        self, reports: tuple[Path, dict[str, str]], change: dict[str, Any], message: str
    ) -> None:
        assert message in self.changed(reports, lambda finding: finding.update(change))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"line": 40, "end_line": 40}, "no such location in the file"),
            ({"end_column": 20}, "not an expression or statement: 'os.path.isdi'"),
        ],
    )
    def test_related_location_that_is_wrong_is_flagged(
        self, reports: tuple[Path, dict[str, str]], change: dict[str, Any], message: str
    ) -> None:
        assert message in self.changed(reports, lambda finding: finding["related"][0].update(change))

    def test_rule_failure_is_flagged(self, reports: tuple[Path, dict[str, str]]) -> None:
        assert "a.py:4:5-4:18: directory `'d'` is created" in self.changed(
            reports, lambda finding: finding.update(code="FSR002")
        )

    def changed(
        self, reports: tuple[Path, dict[str, str]], change: Callable[[dict[str, Any]], object]
    ) -> str:
        """Return the invariants that break when the first finding of the JSON report is changed."""
        tree, texts = reports
        document = json.loads(texts["json"])
        assert document["findings"][0]["path"] == "a.py"
        change(document["findings"][0])
        return "\n".join(holding.broken(tree, {"json": json.dumps(document)}))

    @pytest.mark.parametrize("name", holding.FORMATS)
    def test_format_with_different_line_is_flagged(
        self, reports: tuple[Path, dict[str, str]], name: str
    ) -> None:
        tree, texts = reports
        document = json.loads(texts["json"])
        document["findings"][0].update(line=3, end_line=3)
        found = holding.broken(tree, {"json": json.dumps(document), name: texts[name]})
        assert any(line.startswith(f"{name}: ") for line in found)

    @pytest.mark.parametrize("name", holding.FORMATS)
    def test_format_with_missing_finding_is_flagged(
        self, reports: tuple[Path, dict[str, str]], name: str
    ) -> None:
        tree, texts = reports
        document = json.loads(texts["json"])
        count = len(document["findings"])
        document["findings"] *= 2
        found = holding.broken(tree, {"json": json.dumps(document), name: texts[name]})
        assert found == [f"{name}: {count} findings, but {2 * count} in json"]

    def test_fix_outside_its_file_is_flagged(self, reports: tuple[Path, dict[str, str]]) -> None:
        tree, texts = reports
        log = json.loads(texts["sarif"])
        change = log["runs"][0]["results"][0]["fixes"][0]["artifactChanges"][0]
        change["replacements"][0]["deletedRegion"].update(startLine=70, endLine=70)
        found = holding.broken(tree, {"json": texts["json"], "sarif": json.dumps(log)})
        assert len(found) == 1
        assert "sarif: a fix: no such location in the file" in found[0]

    def test_skipped_call_with_wrong_name_is_flagged(self, here: Path) -> None:
        write({"a.py": 'import os\n\nos.makedirs("d", exist_ok=True)\n'})
        place = {"path": "a.py", "line": 3, "column": 1, "end_line": 3, "end_column": 32}
        skipped = {**place, "reason": "tolerant", "call": "os.makedirs('d', exist_ok=True)", "cause": None}
        document: dict[str, Any] = {"findings": [], "errors": [], "silenced": [skipped]}
        assert holding.broken(here, {"json": json.dumps(document)}) == []
        skipped["call"] = "os.make…"
        assert holding.broken(here, {"json": json.dumps(document)}) == []
        skipped["call"] = "os.mkdir('d')"
        [found] = holding.broken(here, {"json": json.dumps(document)})
        assert found.endswith("the call at this location is to os.makedirs")
