"""The count of calls and ranks that no library model describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import missing_models

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CODE = """\
import json
import os

import archives
import torch
from mine.files import save_all


def run(model, folder, job_rank, rank, lora):
    archives.download(folder)
    archives.Reader(folder).extract()
    os.makedirs(folder)
    torch.save(model, folder)
    model.save_weights(folder)
    json.dump({}, open(folder))
    save_all(folder)
    if job_rank == 0 or rank == 0 or lora == 0 or job_rank == folder:
        archives.look(folder)
"""


def test_unknown_names_are_counted_by_codebase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for codebase in ("first", "second"):
        (tmp_path / codebase / "mine").mkdir(parents=True)
        (tmp_path / codebase / "main.py").write_text(CODE)
        (tmp_path / codebase / "mine" / "files.py").write_text("def other():\n    pass\n")
    (tmp_path / "second" / "more.py").write_text("import archives\n\narchives.download('a')\n")
    folders = [str(tmp_path / "first"), str(tmp_path / "second")]
    monkeypatch.setattr("sys.argv", ["missing_models.py", *folders])
    missing_models.main()
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[:3] for row in rows if row[:1] == ["2"]] == [
        ["2", "3", "archives.download"],
        ["2", "2", "*.save_weights"],
        ["2", "2", "archives.Reader.extract"],
        ["2", "2", "job_rank"],
    ]


def test_no_more_rows_than_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "main.py").write_text(CODE)
    monkeypatch.setattr("sys.argv", ["missing_models.py", "--most", "1", str(tmp_path)])
    missing_models.main()
    assert "Reader" not in capsys.readouterr().out
