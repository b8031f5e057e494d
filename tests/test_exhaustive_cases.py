"""What is left out for being irrelevant would not have been found: all cases, with everything looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import CASE_DOCUMENTS
from support.linking import all_told
from support.mdtest import collect

if TYPE_CHECKING:
    from support.mdtest import Case

DOCUMENTS: dict[str, list[Case]] = {}
for _case in collect(CASE_DOCUMENTS):
    DOCUMENTS.setdefault(_case.document.relative_to(CASE_DOCUMENTS).as_posix(), []).append(_case)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_everything_looked_at_finds_the_same(document: str) -> None:
    """In both profiles, with the reasons why the rest is silent; few files asked about or many."""
    for case in DOCUMENTS[document]:
        files = {path: file.text for path, file in case.files.items() if path.endswith(".py")}
        expected = all_told(files, exhaustive=True)
        assert all_told(files) == expected, case.title
        assert all_told(files, targeted=True) == expected, case.title
