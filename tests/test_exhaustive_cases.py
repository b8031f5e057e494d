"""Relevance filters do not change the findings: all cases, compared with an exhaustive run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import CASE_DOCUMENTS
from support.linking import all_results
from support.mdtest import collect

if TYPE_CHECKING:
    from support.mdtest import Case

DOCUMENTS: dict[str, list[Case]] = {}
for _case in collect(CASE_DOCUMENTS):
    DOCUMENTS.setdefault(_case.document.relative_to(CASE_DOCUMENTS).as_posix(), []).append(_case)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_exhaustive_run_finds_the_same(document: str) -> None:
    """In both profiles, with the reasons for calls not reported, and in targeted and full runs."""
    for case in DOCUMENTS[document]:
        expected = all_results(case.sources, exhaustive=True)
        assert all_results(case.sources) == expected, case.title
        assert all_results(case.sources, targeted=True) == expected, case.title
