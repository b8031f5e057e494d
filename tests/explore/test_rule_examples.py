"""Rule examples under the explorer: bad ones fail in some interleaving, good and fixed ones in none."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from support import explored
from support.explored import Case, Proof, failing, fixed, fixture, text
from support.rule_pages import LOADED
from support.sampling import bound

from fsrace_lint.fixes.recipes import RECIPES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the explorer needs `os.fork()`"),
]

NAMES = sorted(loaded.rule.name for loaded in LOADED)
OUTSIDE = {loaded.rule.name for loaded in LOADED if loaded.check is None}
HAZARDS = [name for name in NAMES if name not in OUTSIDE]
CASES = [
    pytest.param(recipe, case, id=f"{recipe}-{number}")
    for recipe in sorted(explored.names("recipes"))
    for number, case in enumerate(fixture("recipes", recipe).CASES, 1)
]


def assert_safe(program: str, proof: Proof) -> None:
    limit = bound(20, 10_000)
    result = explored.explored(program, proof, limit)
    assert result.ok, str(result)
    assert result.exhaustive or result.schedules == limit < 10_000, str(result)
    assert result.notes == ()


class TestRules:
    def test_every_rule_has_a_fixture(self) -> None:
        assert explored.names("rules") == set(NAMES)

    @pytest.mark.parametrize("name", sorted(OUTSIDE))
    def test_rule_without_check_gives_a_reason(self, name: str) -> None:
        assert fixture("rules", name).OUTSIDE

    @pytest.mark.exhaustive(3)
    @pytest.mark.parametrize("name", HAZARDS)
    def test_bad_example_fails(self, name: str) -> None:
        proof: Proof = fixture("rules", name).PROOF
        assert failing(text(name, "Bad"), proof) == proof.fails

    @pytest.mark.exhaustive(3)
    @pytest.mark.parametrize("name", HAZARDS)
    def test_good_example_never_fails(self, name: str) -> None:
        assert_safe(text(name, "Good"), fixture("rules", name).PROOF)


class TestRecipes:
    def test_every_recipe_has_cases(self) -> None:
        assert explored.names("recipes") == set(RECIPES)
        assert all(fixture("recipes", recipe).CASES for recipe in RECIPES)

    @pytest.mark.parametrize(("recipe", "case"), CASES)
    def test_input_fails(self, recipe: str, case: Case) -> None:
        assert failing(case.bad, case.proof) == case.proof.fails

    @pytest.mark.parametrize(("recipe", "case"), CASES)
    def test_fixed_code_never_fails(self, recipe: str, case: Case, tmp_path: Path) -> None:
        assert_safe(fixed(case, recipe, tmp_path), case.proof)
