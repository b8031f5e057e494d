"""Rule pages, as text and as JSON."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from support import FIXTURES, ROOT
from support.cli import read_terminal, run, start
from support.explored import fixture
from support.mdtest import Case, parse
from support.mdtest import run as check
from support.rule_pages import CASES, HAZARDS, LOADED, code, example, shown

from fsrace_lint import rules
from fsrace_lint.cli import manual
from fsrace_lint.config import settings
from fsrace_lint.config.tables import KEYS
from fsrace_lint.findings.finding import Applicability
from fsrace_lint.pipeline import check as checking
from fsrace_lint.rules.references import CWES, Promise
from fsrace_lint.rules.remedies import HELPED, NAMED

if TYPE_CHECKING:
    from fsrace_lint.rules import LoadedRule

pytestmark = pytest.mark.usefixtures("here")

DOCS = ROOT / "docs"
SCHEMA = json.loads((DOCS / "rules.schema.json").read_text("utf-8"))
INCIDENTS = FIXTURES / "explore" / "incidents"
LABELS = ["Bad", "Interleaving", "Good", "Fix", "Not reported when", "Severity", "Settings", "References"]
HARMS = {
    "FileExistsError": "FileExistsError|already exists|in every process|waits for another",
    "FileNotFoundError": "FileNotFoundError|` fails|do not find|hold the lock",
    "Torn": "partial|truncated|incomplete|too early|replaces the result",
    "JSONDecodeError": "partial|truncated|is lost",
    "AssertionError": "partial|truncated|are lost|own it|rewriting|only one process|in every process|missing",
    "Overlap": "two processes hold|run the locked code",
    "deadlock": "hang|wait forever",
    "disagreement": "unknown to",
}
"""Patterns that an interleaving must match, by the failure of its proof."""


def labels(page: str) -> list[str]:
    return re.findall(r"^([A-Z][a-z ]+):(?= |$)", page, re.MULTILINE)


class TestPages:
    @pytest.mark.parametrize("loaded", HAZARDS, ids=code)
    def test_page_has_every_section(self, loaded: LoadedRule) -> None:
        assert labels(manual.page(loaded)) == LABELS
        markdown = (DOCS / "rules" / f"{loaded.rule.name}.md").read_text("utf-8")
        assert re.findall(r"^\*\*([A-Z][a-z ]+):\*\*", markdown, re.MULTILINE) == [
            label for label in LABELS if label != "Severity"
        ]
        assert f"CWE-{loaded.rule.cwe}" in manual.page(loaded)
        assert CWES[loaded.rule.cwe] in markdown

    @pytest.mark.parametrize("loaded", [one for one in LOADED if one not in HAZARDS], ids=code)
    def test_page_of_a_tool_error_has_only_a_severity(self, loaded: LoadedRule) -> None:
        assert labels(manual.page(loaded)) == ["Severity"]

    @pytest.mark.parametrize("loaded", LOADED, ids=code)
    def test_page_lines_fit_the_width(self, loaded: LoadedRule) -> None:
        assert max(map(len, manual.page(loaded).splitlines())) <= 110

    @pytest.mark.parametrize("loaded", LOADED, ids=code)
    def test_sections_keep_every_word_of_the_page(self, loaded: LoadedRule) -> None:
        parts = manual.sections(loaded)
        words = " ".join(msgspec.structs.astuple(parts)).split()
        lost = {"Bad:", "Good:", "Fix:", "Not", "reported", "when:"}
        assert [word for word in loaded.page.split() if word not in lost] == [
            word for word in words if word not in lost
        ]
        if loaded in HAZARDS:
            assert f"{parts.bad}\n" == example(loaded, "Bad")
            assert f"{parts.good}\n" == example(loaded, "Good")
            assert parts.why
            assert parts.silent_when


class TestInterleaving:
    @pytest.mark.parametrize("loaded", HAZARDS, ids=code)
    def test_interleaving_matches_the_finding(self, loaded: LoadedRule, tmp_path: Path) -> None:
        """A check of the example reports the same interleaving."""
        _, checked = check(shown(loaded, "Bad", tmp_path))
        (found,) = checked.outcome.findings
        assert manual.witness(loaded) == found.witness

    @pytest.mark.parametrize("loaded", HAZARDS, ids=code)
    def test_interleaving_matches_the_proof(self, loaded: LoadedRule) -> None:
        """The interleaving describes the failure that the explorer finds in the example."""
        witness = manual.witness(loaded)
        assert witness is not None
        kind, _, error = fixture("rules", loaded.rule.name).PROOF.fails.partition(": ")
        text = " ".join([witness.outcome, *(step.result for step in witness.steps)])
        assert re.search(HARMS[error or kind], text)

    @pytest.mark.parametrize("loaded", HAZARDS, ids=code)
    def test_page_shows_every_process(self, loaded: LoadedRule) -> None:
        witness = manual.witness(loaded)
        assert witness is not None
        drawn = manual.page(loaded).partition("\nInterleaving:\n")[2].partition("\n\nGood:\n")[0]
        squeezed = re.sub(r"[\s|]", "", drawn)
        assert re.sub(r"\s", "", witness.outcome) in squeezed
        for process in {step.process for step in witness.steps}:
            assert f"process{process}" in squeezed
        assert all(line.startswith("    ") for line in drawn.splitlines())


class TestReferences:
    def test_every_rule_has_references_and_all_are_used(self) -> None:
        assert {loaded.rule.cwe for loaded in HAZARDS} == set(CWES)
        assert {each for loaded in HAZARDS for each in loaded.rule.promises} == {*Promise}
        assert all(loaded.rule.promises for loaded in HAZARDS)

    def test_incidents_match_the_incidents_page(self) -> None:
        sections = re.findall(r"^## (.+)$", (DOCS / "incidents.md").read_text("utf-8"), re.MULTILINE)
        assert {name for loaded in HAZARDS for name in loaded.rule.incidents} == set(sections)

    @pytest.mark.parametrize(
        ("file", "named"),
        [
            ("sagemaker_environment_broken.py", "FSR101"),
            ("lingua.py", "FSR106"),
            ("olmo.py", "FSR407"),
        ],
    )
    def test_rule_finds_its_incident(self, file: str, named: str, tmp_path: Path) -> None:
        """The re-enactments of the other incidents use their own calls for archives and locks."""
        (tmp_path / file).write_bytes((INCIDENTS / file).read_bytes())
        (tmp_path / "pyproject.toml").write_text('[tool.fsrace-lint]\nprofile = "strict"\n')
        _, checked = check(tmp_path)
        assert named in {finding.code for finding in checked.outcome.findings}

    def test_links_of_pages_resolve(self) -> None:
        heads = {
            page.name: {
                re.sub(r"[^\w -]", "", head).lower().replace(" ", "-")
                for head in re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
            }
            for page in (DOCS / "settings.md", DOCS / "incidents.md")
        }
        links = [
            link
            for page in (DOCS / "rules").glob("*.md")
            for link in re.findall(r"\(\.\./(\w+\.md)#([\w-]+)\)", page.read_text("utf-8"))
        ]
        assert len(links) > 60
        assert [anchor for name, anchor in links if anchor not in heads[name]] == []


def storage(case: Case, directory: Path, filesystem: str) -> set[tuple[object, ...]]:
    """Return the findings and fixes of a case on a filesystem of this kind."""
    root = case.write(directory / filesystem)
    chosen = msgspec.structs.replace(
        settings.load(root, rules.names()), filesystem=filesystem, profile="strict"
    )
    ((_, checked),) = checking.check([root], lambda _: chosen)
    return {
        (found.code, found.place.span, Path(found.place.path).name, found.strict, found.fix)
        for found in checked.outcome.findings
    }


class TestSettings:
    @pytest.mark.parametrize("document", sorted(CASES.glob("*.md")), ids=lambda path: path.stem)
    @pytest.mark.exhaustive(4)
    def test_filesystem_setting_affects_only_rules_that_list_it(self, document: Path, tmp_path: Path) -> None:
        changed: set[object] = set()
        for number, case in enumerate(parse(document)):
            found = [storage(case, tmp_path / str(number), kind) for kind in ("auto", "shared", "local")]
            changed |= {row[0] for row in (found[0] ^ found[1]) | (found[0] ^ found[2])}
        named = {loaded.rule.code for loaded in HAZARDS if "filesystem" in loaded.rule.settings}
        own = {loaded.rule.code for loaded in LOADED if loaded.rule.name == document.stem}
        assert changed <= named
        assert own & named <= changed

    def test_helper_module_setting_affects_recipes_that_call_helpers(self) -> None:
        """The imports of the recipes show which of them can call a helper."""
        directory = Path(rules.__file__).parent.parent / "fixes" / "recipes"
        calling, naming = set(), set()
        for file in directory.glob("*.py"):
            names = {
                alias.name
                for node in ast.walk(ast.parse(file.read_text("utf-8")))
                if isinstance(node, ast.ImportFrom) and node.module == "fsrace_lint.fixes.coordination"
                for alias in node.names
            }
            if names & {"helper", "own_helper", "rank_test", "barrier_line"}:
                calling.add(file.stem.replace("_", "-"))
            if names - {"refuse_collectives", "Spelled"}:
                naming.add(file.stem.replace("_", "-"))
        assert calling | {"barrier-before"} == HELPED
        assert naming | {"barrier-before"} == NAMED
        assert "barrier import" in (directory / "barrier_before.py").read_text("utf-8")

    @pytest.mark.parametrize("loaded", LOADED, ids=code)
    def test_listed_settings_exist(self, loaded: LoadedRule) -> None:
        assert set(manual.settings(loaded)) <= set(KEYS)


class TestData:
    def document(self, *arguments: str) -> list[dict[str, Any]]:
        data = json.loads(run(*arguments, "--format=json", code=0).stdout)
        Draft202012Validator(SCHEMA).validate(data)
        found: list[dict[str, Any]] = data["rules"]
        return found

    def test_json_of_all_rules(self) -> None:
        Draft202012Validator.check_schema(SCHEMA)
        rows = self.document("rules")
        assert [row["code"] for row in rows] == [code(loaded) for loaded in LOADED]
        assert rows == self.document("explain", "--all")

    def test_json_of_one_rule(self) -> None:
        (row,) = self.document("explain", "missing-barrier")
        assert (row["code"], row["cwe"]["id"], row["evidence"]) == ("FSR401", 362, "plausible")
        assert [fix["applicability"] for fix in row["fixes"]] == ["unsafe", "unsafe", "sketch"]
        (poll,) = self.document("explain", "polling-for-path")
        assert (row["references"]["incidents"], poll["references"]["incidents"]) == ([], ["OLMo"])
        assert "barrier" in row["good"]
        assert "barrier" not in row["bad"]

    def test_every_hazard_has_a_fix(self) -> None:
        for row in self.document("rules"):
            assert bool(row["fixes"]) == bool(row["cwe"]) == bool(row["interleaving"])
            assert {fix["applicability"] for fix in row["fixes"]} <= {kind.value for kind in Applicability}

    def test_every_schema_property_has_a_description(self) -> None:
        def walk(schema: dict[str, Any]) -> None:
            for key, value in schema.get("properties", {}).items():
                assert value.get("description"), key
                walk(value)
            for inner in (schema.get("items"), *schema.get("oneOf", ())):
                if isinstance(inner, dict):
                    walk(inner)

        walk(SCHEMA)


class TestExplain:
    def test_explain_multiple_rules(self) -> None:
        text = run("explain", "fsr504", "Check-Then-Mkdir,FSR40", code=0).stdout
        heads = re.findall(r"^(FSR\d{3}) [a-z-]+$", text, re.MULTILINE)
        wanted = {"FSR101", "FSR504"} | {code(one) for one in LOADED if code(one).startswith("FSR40")}
        assert heads == sorted(wanted)

    def test_explain_all_rules(self) -> None:
        text = run("explain", "--all", code=0).stdout
        assert all(f"\n{code(one)} {one.rule.name}\n\n{one.title}\n" in f"\n{text}" for one in LOADED)

    @pytest.mark.parametrize("arguments", [(), ("--all", "FSR101")])
    def test_no_rule_or_a_rule_with_all_is_an_error(self, arguments: tuple[str, ...]) -> None:
        assert "--all" in run("explain", *arguments, code=2).stderr

    def test_color_adds_only_escape_sequences(self) -> None:
        plain = run("explain", "--all", code=0).stdout
        colored = start("explain", "--all", "--color").stdout.decode()
        assert "\x1b[1mBad:\x1b[0m" in colored
        assert re.sub(r"\x1b\[\d+m", "", colored) == plain
        for wish in ({"FORCE_COLOR": "1"}, {}):
            done = start("explain", "FSR101", env={**os.environ, **wish})
            assert (b"\x1b" in done.stdout) == bool(wish)

    @pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX")
    def test_terminal_wraps_prose_but_not_code(self) -> None:
        ours, theirs = os.openpty()
        environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "60"}
        start("explain", "FSR101", stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)
        shown = read_terminal(ours)
        text = shown.decode().replace("\r\n", "\n")
        plain = run("explain", "FSR101", code=0).stdout
        assert text.split() == plain.split()
        assert text != plain
        prose = [line for line in text.splitlines() if not line.startswith("    ")]
        assert max(map(len, prose)) <= 60
        assert "\n    def prepare(out: str) -> None:\n        os.makedirs(out, exist_ok=True)\n" in text
