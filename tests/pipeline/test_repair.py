"""Fixes of one file do not depend on failures in other files, and may leave weaker findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.mdtest import run

from fsrace_lint import fixes
from fsrace_lint.pipeline import repair

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
