"""Code that multiple test modules use: small projects, ways to run the program, and parsers of its output."""

from __future__ import annotations

from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent.parent
ROOT: Final = TESTS.parent
FIXTURES: Final = TESTS / "fixtures"
CASE_DOCUMENTS: Final = TESTS / "cases"
EXAMPLES: Final = ROOT / "examples"
SCRIPTS: Final = ROOT / "scripts"
