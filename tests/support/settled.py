"""Files that count as unchanged immediately, because they were last modified long ago."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fsrace_lint.files.stat_signature import Status

if TYPE_CHECKING:
    import pytest

LONG_AGO: Final = 1_600_000_000


def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore the change time (ctime) of files, which tests cannot set."""
    monkeypatch.setattr(Status, "settled", lambda self, since: self.modified < since - 2_000_000_000)


def write(files: dict[str, str]) -> None:
    """Write files with an old modification time."""
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
        os.utime(name, (LONG_AGO, LONG_AGO))
