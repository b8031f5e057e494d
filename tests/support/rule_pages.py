"""The rules, and the examples on their pages."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

from fsrace_lint import rules
from support import CASE_DOCUMENTS
from support.mdtest import Case, File

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.rules import LoadedRule


CASES = CASE_DOCUMENTS / "rules"


LOADED = rules.load()
HAZARDS = [loaded for loaded in LOADED if loaded.check is not None]


def code(loaded: LoadedRule) -> str:
    return loaded.rule.code


def example(loaded: LoadedRule, label: str) -> str:
    """Return the indented block after `Bad:` or `Good:`."""
    found = re.search(rf"^{label}:\n((?:    .*\n|\n)+)", f"{loaded.page}\n", re.MULTILINE)
    assert found, f"{loaded.rule.name} has no {label}: example"
    return textwrap.dedent(found[1]).strip("\n") + "\n"


def project(directory: Path, text: str, profile: str = "default", more: str = "") -> Path:
    toml = f'[tool.fsrace-lint]\nprofile = "{profile}"\n{more}'
    case = Case(directory / "doc.md", "example", 1, 1, {"main.py": File("main.py", 1, text, ())}, toml)
    return case.write(directory / "project")


def shown(loaded: LoadedRule, label: str, directory: Path) -> Path:
    """Write an example as a project, with the strict profile only if the rule requires it."""
    profile = "strict" if loaded.rule.default_from is None else "default"
    return project(directory, example(loaded, label), profile)
