"""Fixes of one file do not depend on failures in other files, and may leave weaker findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.mdtest import run

from fsrace_lint import fixes
from fsrace_lint.analysis.queries.project import Project
from fsrace_lint.engine.parallel.progress import Observer
from fsrace_lint.pipeline import project_link, repair

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.files.source import Source

HAZARD = "import os\nif not os.path.isdir('d'):\n    os.makedirs('d')\n"


def write(root: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (root / name).write_text(text, "utf-8")


def test_failure_in_one_file_keeps_the_other_fixes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.py": HAZARD, "b.py": HAZARD})
    found, checked = run(tmp_path)
    made = fixes.repair

    def broken(source: Source, *rest: Any) -> fixes.Patch:
        if source.relative == "a.py":
            raise KeyError("oops")
        return made(source, *rest)

    monkeypatch.delenv("FSRACE_DEBUG", raising=False)
    monkeypatch.setattr(fixes, "repair", broken)
    first, second = repair.repair(found, checked, unsafe=False)
    assert first.before == first.after
    assert [refusal.reason for refusal in first.refused] == ["fixing this file failed: KeyError: 'oops'"]
    assert second.applied
    assert second.before != second.after
    monkeypatch.setenv("FSRACE_DEBUG", "1")
    with pytest.raises(KeyError):
        repair.repair(found, checked, unsafe=False)


@pytest.mark.parametrize("setup", ["", "import torch.distributed as dist\ndist.init_process_group()\n"])
def test_fix_may_leave_a_weaker_finding_of_the_access(tmp_path: Path, setup: str) -> None:
    """Strict also reports `makedirs(exist_ok=True)`, which can fail on NFS."""
    write(tmp_path, {"a.py": setup + HAZARD, "pyproject.toml": '[tool.fsrace-lint]\nprofile = "strict"\n'})
    found, checked = run(tmp_path)
    (patch,) = repair.repair(found, checked, unsafe=False)
    assert not patch.refused
    assert b"exist_ok=True" in patch.after


LOCK = "import filelock\nwith filelock.FileLock('l'):\n    pass\n"
STRICT = {"pyproject.toml": '[tool.fsrace-lint]\nprofile = "strict"\n'}


class Count:
    """How often a project is linked, for how many files at once, and which files are judged."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.judged: list[str] = []
        self.linked: list[bool] = []
        judged, project = project_link.judged, Project

        def count_judged(run: Any, relative: str, problems: list[Any]) -> Any:
            self.judged.append(relative)
            return judged(run, relative, problems)

        def count_linked(*arguments: Any, **options: Any) -> Any:
            self.linked.append(options["targeted"])
            return project(*arguments, **options)

        monkeypatch.setattr(project_link, "judged", count_judged)
        monkeypatch.setattr(project_link, "Project", count_linked)


class TestCost:
    """Work is counted, because times depend on the machine."""

    NAMES = tuple(f"m{number}.py" for number in range(50))

    def test_clean_fixes_are_verified_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(tmp_path, dict.fromkeys(self.NAMES, LOCK) | STRICT)
        count = Count(monkeypatch)
        patches = repair.repair(*run(tmp_path), unsafe=True)
        assert len(patches) == 50
        assert sorted(count.judged) == sorted([*self.NAMES, *self.NAMES])
        assert count.linked == [False, False]

    def test_safe_fixes_are_verified_in_their_files(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(tmp_path, dict.fromkeys(self.NAMES, "x = 1\n") | {"m7.py": HAZARD})
        found, checked = run(tmp_path)
        count = Count(monkeypatch)
        assert len(repair.repair(found, checked, unsafe=False)) == 1
        assert count.judged == ["m7.py"]

    def test_refused_fixes_are_searched_where_the_problems_are(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only the file of a fix that does nothing is fixed again; then all files are judged once more."""
        write(tmp_path, dict.fromkeys(self.NAMES, LOCK) | STRICT)
        found, checked = run(tmp_path)
        made = fixes.repair

        def idle(source: Source, findings: Any, verify: fixes.Verify, *rest: Any) -> fixes.Patch:
            if source.relative != "m7.py":
                return made(source, findings, verify, *rest)
            reason = verify(source, tuple(findings))
            if reason is None:
                return fixes.Patch(
                    source.file, source.path, source.data, source.data + b"#\n", tuple(findings), ()
                )
            refused = tuple(fixes.Refusal(finding, reason) for finding in findings)
            return fixes.Patch(source.file, source.path, source.data, source.data, (), refused)

        monkeypatch.setattr(fixes, "repair", idle)
        count = Count(monkeypatch)
        patches = repair.repair(found, checked, unsafe=True)
        refused = [refusal.reason for patch in patches for refusal in patch.refused]
        assert [reason.partition(" ")[2] for reason in refused] == ["would still be reported after the fix"]
        assert len(count.judged) == len(self.NAMES) + 1 + len(self.NAMES)

    def test_progress_counts_verification(self, tmp_path: Path) -> None:
        write(tmp_path, dict.fromkeys(self.NAMES, LOCK) | STRICT)

        class Seen(Observer):
            def __init__(self) -> None:
                self.stages: list[list[Any]] = []

            def stage(self, title: str, total: int) -> None:
                self.stages.append([title, total, 0])

            def step(self) -> None:
                self.stages[-1][2] += 1

        found, checked = run(tmp_path)
        found.observer = seen = Seen()
        repair.repair(found, checked, unsafe=True, comments=False)
        assert [(title, total, done) for title, total, done in seen.stages if title != "Extracting"] == [
            ("Repairing", 50, 50),
            ("Verifying", 50, 50),
        ]
