"""Checks with projects that stay loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fsrace_lint import rules
from fsrace_lint.config import settings
from fsrace_lint.pipeline import check as checking
from fsrace_lint.pipeline.warm import WarmProjects

if TYPE_CHECKING:
    from fsrace_lint.pipeline.run import Checked, Run


def check(*paths: str, warm: WarmProjects | None = None) -> tuple[Run, Checked]:
    named = [Path(path) for path in paths]
    ((run, found),) = checking.check(named, lambda _: settings.load(Path.cwd(), rules.names()), warm=warm)
    return run, found


def keeping(path: str) -> WarmProjects:
    """Load the project of a file, and do not load any other project afterward."""
    warm = WarmProjects()
    warm.loads = True
    check(path, warm=warm)
    warm.loads = False
    return warm
