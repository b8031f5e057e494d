"""What several test modules use: small projects, ways to run the program, and readers of what it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent.parent
ROOT: Final = TESTS.parent
FIXTURES: Final = TESTS / "fixtures"
CASE_DOCUMENTS: Final = TESTS / "cases"
EXAMPLES: Final = ROOT / "examples"
SCRIPTS: Final = ROOT / "scripts"
