"""Real code: what must hold of the reports on it, and what a change gains and loses."""

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


def git(*arguments: str, folder: Path) -> str:
    """Run git as somebody, whatever the machine says of him."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.check_output(["git", *who, *arguments], cwd=folder, text=True).strip()


@pytest.fixture
def clones(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one clone, which has two commits; one run and one report are enough for it."""
    monkeypatch.setattr(corpus, "PROFILES", {"default": ()})
    monkeypatch.setattr(corpus, "REPORTED", ("json",))
    made = here / "clones" / "owner" / "name"
    made.mkdir(parents=True)
    git("init", "--quiet", folder=made)
    (made / "a.py").write_text(HAZARD)
    (made / "notes.txt").write_text("not wanted")
    git("add", ".", folder=made)
    git("commit", "--quiet", "-m", "one", folder=made)
    (made / "b.py").write_text(HAZARD)
    git("add", ".", folder=made)
    git("commit", "--quiet", "-m", "two", folder=made)
    return here / "clones"


@pytest.fixture
def records(here: Path, clones: Path) -> Path:
    """A folder with a list that pins the first commit."""
    folder = here / "records"
    folder.mkdir()
    pin(folder, clones, "HEAD~1")
    return folder


def pin(records: Path, clones: Path, revision: str) -> None:
    commit = git("rev-parse", revision, folder=clones / "owner" / "name")
    (records / corpus.LIST).write_text(f'[codebases]\n"owner/name" = "{commit}"\n')


def run(command: str, records: Path, clones: Path, *names: str) -> int:
    return corpus.main([command, *names, f"--clones={clones}", f"--records={records}"])


def recorded_before(records: Path, clones: Path) -> None:
    assert run("record", records, clones) == 0
    pin(records, clones, "HEAD")


class TestPinned:
    def test_a_record_has_places_and_codes_alone(self, records: Path, clones: Path) -> None:
        assert run("record", records, clones) == 0
        first, *lines = (records / "owner+name.txt").read_text().splitlines()
        assert first.startswith("# owner/name ")
        assert lines == ["a.py:4:5 FSR101"]

    def test_what_a_change_gains_and_loses(
        self, records: Path, clones: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("record", records, clones) == 0
        assert run("compare", records, clones) == 0
        capsys.readouterr()
        file = records / "owner+name.txt"
        file.write_text(file.read_text().replace("a.py:4:5", "a.py:9:5"))
        assert run("compare", records, clones) == 1
        said = capsys.readouterr().out.splitlines()
        assert said[1:] == ["  + a.py:4:5 FSR101", "  - a.py:9:5 FSR101"]

    def test_the_clone_stays_as_it_is(self, records: Path, clones: Path) -> None:
        tree = clones / "owner" / "name"
        (tree / "a.py").write_text("changed\n")
        before = git("status", "--porcelain", folder=tree)
        assert run("record", records, clones) == 0
        assert (tree / "a.py").read_text() == "changed\n"
        assert git("status", "--porcelain", folder=tree) == before
        assert "a.py:4:5 FSR101" in (records / "owner+name.txt").read_text()

    def test_only_what_the_program_reads_is_checked_out(
        self, here: Path, records: Path, clones: Path
    ) -> None:
        scratch = here / "scratch"
        scratch.mkdir()
        tree = corpus.checked_out(corpus.codebases(records, ())[0], clones, scratch)
        assert sorted(path.name for path in tree.iterdir()) == ["a.py", "pyproject.toml"]

    @pytest.mark.parametrize("spelled", ["owner+name", "name", "owner+name/repo"])
    def test_a_bare_clone_by_another_name(self, records: Path, clones: Path, spelled: str) -> None:
        others = clones.parent / "others"
        git(
            "clone", "--quiet", "--bare", str(clones / "owner" / "name"), str(others / spelled), folder=clones
        )
        scratch = clones.parent / "scratch"
        scratch.mkdir()
        tree = corpus.checked_out(corpus.codebases(records, ())[0], others, scratch)
        assert (tree / "a.py").read_text() == HAZARD

    @pytest.mark.parametrize(
        ("spoil", "said"),
        [
            (lambda records, clones: None, "no record owner+name.txt"),
            (recorded_before, "of another commit"),
            (lambda records, clones: (records / corpus.LIST).write_text("[codebases]\n"), "not in codebases"),
        ],
    )
    def test_what_cannot_be_compared(
        self,
        records: Path,
        clones: Path,
        capsys: pytest.CaptureFixture[str],
        spoil: Callable[[Path, Path], object],
        said: str,
    ) -> None:
        spoil(records, clones)
        capsys.readouterr()
        assert run("compare", records, clones, "owner/name") == 2
        captured = capsys.readouterr()
        assert said in captured.err
        assert "findings" not in captured.out, "it is said before anything is run"

    def test_there_is_no_clone(
        self, here: Path, records: Path, clones: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("record", records, here / "nowhere") == 2
        assert "no clone of owner/name" in capsys.readouterr().err

    def test_what_is_recorded_in_the_repository(self) -> None:
        """Each codebase has its record, of the commit that is pinned, in order."""
        listed = corpus.codebases(corpus.RECORDS, ())
        assert len(listed) >= 20
        there = {path.name for path in corpus.RECORDS.iterdir()} - {corpus.LIST}
        assert there == {codebase.record for codebase in listed}
        for codebase in listed:
            first, *lines = (corpus.RECORDS / codebase.record).read_text("utf-8").splitlines()
            assert first.startswith(f"# {codebase.name} {codebase.commit}, Python 3.")
            assert lines == sorted(lines, key=corpus.order_of)
            assert all(holding.RULE_FAILURE not in line for line in lines)


class TestFolder:
    def test_a_folder(self, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write(
            {"code/a.py": HAZARD, "code/wide.py": WIDE, "code/bad.py": "x = (\n", "code/tests/b.py": HAZARD}
        )
        (here / "code" / "latin.py").write_bytes(b'# \xe4\nprint("x")\n')
        assert corpus.main(["check", "code"]) == 0
        assert capsys.readouterr().out.startswith("code: 5 files; findings: 4 default, 5 strict;")

    def test_what_does_not_hold_is_told(
        self, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write({"code/a.py": HAZARD})
        monkeypatch.setattr(corpus, "REPORTED", ("json",))
        monkeypatch.setattr(holding, "broken", lambda tree, reports: ["this"])
        assert corpus.main(["check", "code"]) == 1
        assert capsys.readouterr().out.splitlines()[1:] == ["  ! default: this", "  ! strict: this"]

    @pytest.mark.parametrize(
        ("program", "said"),
        [
            ("import sys; sys.exit('Traceback')", "ended with 1: Traceback"),
            ("import sys; sys.exit(2)", "ended with 2:"),
            ("import time; time.sleep(60)", "not done after 1 s"),
        ],
    )
    def test_a_run_that_fails(
        self,
        here: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        program: str,
        said: str,
    ) -> None:
        write({"code/a.py": HAZARD})
        monkeypatch.setattr(corpus, "OURS", (sys.executable, "-c", program))
        monkeypatch.setattr(corpus, "SECONDS", 1)
        assert corpus.main(["check", "code"]) == 1
        assert f"  ! default: {said}" in capsys.readouterr().out

    def test_no_such_folder(self, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as left:
            corpus.main(["check", "nowhere"])
        assert left.value.code == 2
        assert "no such folder: nowhere" in capsys.readouterr().err


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The reports on a small tree in all formats."""
    tree = tmp_path_factory.mktemp("tree")
    (tree / "pyproject.toml").touch()
    (tree / "a.py").write_text(HAZARD)
    (tree / "wide.py").write_text(WIDE, "utf-8")
    return tree, corpus.run(tree, "default", tmp_path_factory.mktemp("reports")).reports


class TestHolding:
    """Each invariant holds of real reports, and a report that breaks it is told of."""

    def test_it_holds(self, reports: tuple[Path, dict[str, str]]) -> None:
        tree, told = reports
        assert set(told) == {"json", "html", *holding.FORMATS}
        assert json.loads(told["json"])["findings"]
        assert holding.broken(tree, told) == []

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"path": "b.py"}, "no such file here"),
            ({"path": "../a.py"}, "no such file here"),
            ({"line": 40, "end_line": 40}, "no such place in the file"),
            ({"column": 0}, "no such place in the file"),
            ({"end_column": 19}, "no such place in the file"),
            ({"end_column": 2}, "no such place in the file"),
            ({"end_column": 15}, "no call, but 'os.mkdir(\"'"),
            ({"line": 3, "end_line": 3, "column": 4, "end_column": 7}, "no call, but 'not'"),
        ],
    )
    def test_a_finding_elsewhere(
        self, reports: tuple[Path, dict[str, str]], change: dict[str, Any], said: str
    ) -> None:
        assert said in self.changed(reports, lambda finding: finding.update(change))

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"line": 40, "end_line": 40}, "no such place in the file"),
            ({"end_column": 20}, "no expression or statement, but 'os.path.exis'"),
        ],
    )
    def test_a_related_place_elsewhere(
        self, reports: tuple[Path, dict[str, str]], change: dict[str, Any], said: str
    ) -> None:
        assert said in self.changed(reports, lambda finding: finding["related"][0].update(change))

    def test_a_rule_that_failed(self, reports: tuple[Path, dict[str, str]]) -> None:
        assert "a.py:4:5-4:18: another" in self.changed(
            reports, lambda finding: finding.update(code="FSR002")
        )

    def changed(
        self, reports: tuple[Path, dict[str, str]], change: Callable[[dict[str, Any]], object]
    ) -> str:
        """What does not hold any more once the first finding of the data is another one."""
        tree, told = reports
        document = json.loads(told["json"])
        assert document["findings"][0]["path"] == "a.py"
        change(document["findings"][0])
        return "\n".join(holding.broken(tree, {"json": json.dumps(document)}))

    @pytest.mark.parametrize("name", holding.FORMATS)
    def test_a_format_that_tells_of_another_line(
        self, reports: tuple[Path, dict[str, str]], name: str
    ) -> None:
        tree, told = reports
        document = json.loads(told["json"])
        document["findings"][0].update(line=3, end_line=3)
        found = holding.broken(tree, {"json": json.dumps(document), name: told[name]})
        assert any(line.startswith(f"{name}: ") for line in found)

    @pytest.mark.parametrize("name", holding.FORMATS)
    def test_a_format_that_leaves_one_out(self, reports: tuple[Path, dict[str, str]], name: str) -> None:
        tree, told = reports
        document = json.loads(told["json"])
        count = len(document["findings"])
        document["findings"] *= 2
        found = holding.broken(tree, {"json": json.dumps(document), name: told[name]})
        assert found == [f"{name}: {count} findings, and {2 * count} in json"]

    def test_a_fix_outside_of_its_file(self, reports: tuple[Path, dict[str, str]]) -> None:
        tree, told = reports
        log = json.loads(told["sarif"])
        change = log["runs"][0]["results"][0]["fixes"][0]["artifactChanges"][0]
        change["replacements"][0]["deletedRegion"].update(startLine=70, endLine=70)
        found = holding.broken(tree, {"json": told["json"], "sarif": json.dumps(log)})
        assert len(found) == 1
        assert "sarif: a fix: no such place in the file" in found[0]

    def test_what_is_silent_says_another_name(self, here: Path) -> None:
        write({"a.py": 'import os\n\nos.makedirs("d", exist_ok=True)\n'})
        place = {"path": "a.py", "line": 3, "column": 1, "end_line": 3, "end_column": 32}
        silent = {**place, "reason": "tolerant", "call": "os.makedirs('d', exist_ok=True)", "cause": None}
        document: dict[str, Any] = {"findings": [], "errors": [], "silenced": [silent]}
        assert holding.broken(here, {"json": json.dumps(document)}) == []
        silent["call"] = "os.make…"
        assert holding.broken(here, {"json": json.dumps(document)}) == []
        silent["call"] = "os.mkdir('d')"
        [found] = holding.broken(here, {"json": json.dumps(document)})
        assert found.endswith("the call there is that of os.makedirs")
