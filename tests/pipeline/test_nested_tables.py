"""Tables below the root: their patterns, and their changes in the daemon and in the language server."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import HAZARD, reported, run, write
from support.warm import check, keeping

from fsrace_lint.config.settings import Settings
from fsrace_lint.config.validation import SettingsError
from fsrace_lint.integrations.server.analysis import Analysis, Where
from fsrace_lint.integrations.server.sessions import place
from fsrace_lint.pipeline.discover import find
from fsrace_lint.pipeline.warm import NotWarmError

TABLE = "[tool.fsrace-lint]\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(here: Path, *names: str) -> list[str]:
    files = find([Path(name) for name in names or (".",)], Settings(root=here), force_exclude=True)
    return [file.relative_to(here).as_posix() for file in files if isinstance(file, Path)]


class TestFiles:
    def test_patterns_are_relative_to_the_table(self, here: Path) -> None:
        write(dict.fromkeys(("a/x/y.py", "a/z.py", "b/x/y.py", "b/a/x/y.py", "a/build/y.py"), ""))
        write({"a/pyproject.toml": f'{TABLE}exclude = ["x/y.py", "a/"]\n'})
        assert found(here) == ["a/build/y.py", "a/z.py", "b/a/x/y.py", "b/x/y.py"]
        assert found(here, "a/x/y.py", "a/z.py", "a/build") == ["a/build/y.py", "a/z.py"]

    def test_patterns_of_the_command_line_are_relative_to_the_root(self) -> None:
        files = ("a/x.py", "a/y.py", "a/a/x.py", "a/build/z.py", "x.py")
        write(dict.fromkeys(files, HAZARD))
        write({"a/pyproject.toml": f'{TABLE}extend-exclude = ["y.py"]\n'})
        assert reported("--extend-exclude=a/x.py") == ["a/a/x.py:4 FSR101", "x.py:4 FSR101"]
        assert reported("--exclude=a/a/,/x.py") == ["a/build/z.py:4 FSR101", "a/x.py:4 FSR101"]
        skipped = run("check", "--verbose", "--exclude=a/a/,/x.py", code=1).stderr
        assert "skipped: a/a: excluded by `--exclude`" in skipped
        assert "skipped: a/y.py: excluded by `extend-exclude`" in skipped

    def test_tests_of_one_table_are_included(self, here: Path) -> None:
        write(dict.fromkeys(("a/tests/x.py", "b/tests/x.py"), ""))
        write({"a/pyproject.toml": f"{TABLE}include-tests = true\n"})
        assert found(here) == found(here, "a/tests", "b/tests") == ["a/tests/x.py"]

    @pytest.mark.parametrize("in_a", [True, False])
    def test_gitignore_of_one_table_is_ignored(self, here: Path, *, in_a: bool) -> None:
        write(dict.fromkeys(("a/x.py", "a/b/y.py", "a/b/z.py", "y.py"), ""))
        write({".gitignore": "y.py\n", "a/b/.gitignore": "z.py\n"})
        no, yes = (f"{TABLE}respect-gitignore = {word}\n" for word in ("false", "true"))
        write({"a/pyproject.toml": no, "a/b/pyproject.toml": no if in_a else yes})
        expected = ["a/b/y.py", *["a/b/z.py"] * in_a, "a/x.py"]
        assert found(here) == found(here, "y.py", "a") == expected
        assert found(here, "a/b/y.py", "a/b/z.py") == expected[:-1]

    def test_table_of_an_excluded_directory_applies_only_to_named_files(self) -> None:
        write({"a.py": HAZARD, "build/b.py": HAZARD, "build/pyproject.toml": f'{TABLE}ignore = ["ALL"]\n'})
        assert reported() == ["a.py:4 FSR101"]
        assert reported("build", code=0) == reported("build/b.py", code=0) == []

    def test_other_repository_is_checked_with_its_own_settings(self) -> None:
        write({"a.py": HAZARD, "in/a.py": HAZARD, "in/.git/HEAD": ""})
        assert reported() == ["a.py:4 FSR101", "in/a.py:4 FSR101"]
        write({"in/pyproject.toml": f'{TABLE}ignore = ["ALL"]\n'})
        assert reported() == reported(".", "in") == ["a.py:4 FSR101"]
        assert "2 projects" not in run("check", "--verbose", code=1).stderr


class TestChanges:
    def test_changed_table_changes_cached_findings(self) -> None:
        write({"a/a.py": HAZARD})
        assert reported() == reported() == ["a/a.py:4 FSR101"]
        write({"a/pyproject.toml": f'{TABLE}ignore = ["ALL"]\n'})
        assert reported(code=0) == []
        write({"a/pyproject.toml": TABLE})
        assert reported() == ["a/a.py:4 FSR101"]

    def test_daemon_refuses_after_a_change_and_loads_the_project_again(self) -> None:
        write({"a/a.py": HAZARD, "b.py": HAZARD})
        warm = keeping("a/a.py")
        write({"a/pyproject.toml": f'{TABLE}ignore = ["ALL"]\n'})
        with pytest.raises(NotWarmError, match=r"the settings of .* changed"):
            check("a/a.py", warm=warm)
        warm.loads = True
        assert check("a/a.py", warm=warm)[1].outcome.findings == ()
        write({"a/pyproject.toml": "# fsrace-lint: none\n"})
        with pytest.raises(NotWarmError):
            check("a/a.py", warm=warm)

    def test_server_follows_changes(self, here: Path) -> None:
        write({"a/a.py": HAZARD, "pyproject.toml": ""})
        file, analysis = here / "a" / "a.py", Analysis(Where(here))

        def codes(*, rescan: bool = True) -> list[str]:
            analysis.update({file: HAZARD}, None if rescan else set(), lambda: None)
            return [finding.code for finding in analysis.judge(file, lambda: None)]

        assert codes() == ["FSR101"]
        write({"a/pyproject.toml": f'{TABLE}ignore = ["ALL"]\n'})
        assert codes() == codes(rescan=False) == []
        write({"a/pyproject.toml": f"{TABLE}ignor = []\n"})
        for rescan in (True, False):
            with pytest.raises(SettingsError, match="did you mean `ignore`"):
                codes(rescan=rescan)
        write({"a/pyproject.toml": f'{TABLE}baseline = "known.json"\n'})
        with pytest.raises(SettingsError, match=r"known\.json: baseline not found"):
            codes()
        run("check", "--no-baseline", "--write-baseline", "a/known.json", code=0)
        assert codes(rescan=False) == []
        assert analysis.baselines == [here / "a" / "known.json"]
        (here / "a" / "pyproject.toml").unlink()
        assert codes() == ["FSR101"]


def test_place_of_a_document(here: Path) -> None:
    write({"a/b/pyproject.toml": f'{TABLE}root = ".."\n', "a/b/x.py": "", "y.py": ""})
    assert place(here / "a" / "b" / "x.py", [here]) == Where(here / "a")
    assert place(here / "y.py", []) == Where(here)
    (here / ".git").rmdir()
    assert place(here / "a" / "b" / "x.py", []) == Where(here / "a")
    assert place(here / "y.py", []) == Where(here, alone=True)
    assert place(here / "y.py", [here, here.parent]) == Where(here.parent)
