"""Reports for other programs: SARIF, GitLab Code Quality, and JUnit; multiple reports from one run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, unquote_to_bytes
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cli import HAZARD, write
from support.outcomes import OUTCOMES, finding, fix, source
from support.sarif import SCHEMA, VALIDATOR, sarif

from fsrace_lint import __version__, report, rules
from fsrace_lint.cli import main
from fsrace_lint.files.spans import Place, Span
from fsrace_lint.findings.finding import Applicability, Finding, Related, Severity, Witness, WitnessStep
from fsrace_lint.report import FORMATS, Options, Outcome, Problem, RuleInfo, Tool, render
from fsrace_lint.report.fingerprints import fingerprints
from fsrace_lint.report.lines import Lines
from fsrace_lint.report.pages import paragraphs

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("here")

NEW: Final = ("gitlab", "junit", "sarif")
TRAIN: Final = """\
import os
import shutil
import torch.distributed as dist


def prepare(out):
    if not os.path.exists(out):
        os.makedirs(out)
    if os.path.exists("old"):
        shutil.rmtree("old")


prepare("runs")
print(dist.get_rank())
"""
HERE: Final = Place("a.py", Span(1, 1, 1, 2))
PAIR: Final = Witness(
    (
        WitnessStep(0, "os.path.exists(out)", "False"),
        WitnessStep(1, "os.path.exists(out)", "False"),
        WitnessStep(0, "os.makedirs(out)", "done"),
        WitnessStep(1, "os.makedirs(out)", "FileExistsError"),
    ),
    "process 1 dies with FileExistsError",
)


def run(*arguments: str, code: int) -> Result:
    result = CliRunner().invoke(main.main, ("check", *arguments), prog_name="fsrace-lint")
    assert result.exit_code == code, result.output
    return result


def gitlab(text: str) -> Any:
    """Return the issues, after checking the fields that GitLab requires."""
    assert text.isascii()
    assert text.endswith("]\n")
    issues = json.loads(text)
    for issue in issues:
        assert sorted(issue) == ["check_name", "description", "fingerprint", "location", "severity"]
        assert re.fullmatch("[0-9a-f]{40}", issue["fingerprint"])
        assert issue["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert issue["location"]["lines"]["begin"] >= 1
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    return issues


def junit(text: str) -> ET.Element:
    """Return the only suite, after checking its counts."""
    assert text.isascii()
    root = ET.fromstring(text)
    (suite,) = root
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    for each in (root, suite):
        assert each.get("tests") == str(len(suite.findall("testcase")))
        assert each.get("failures") == str(len(suite.findall("testcase/failure")))
        assert each.get("errors") == str(len(suite.findall("testcase/error")))
    named = [(case.get("classname"), case.get("name")) for case in suite]
    assert len(set(named)) == len(named)
    return suite


READERS: Final[Any] = {"sarif": sarif, "gitlab": gitlab, "junit": junit}


def shown(form: str, *findings: Finding, sources: dict[str, str] | None = None, **options: Any) -> Any:
    known = {path: source(path, text) for path, text in (sources or {}).items()}
    return READERS[form](render(form, Outcome(findings), known, Options(**options)))


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


class TestFromRealFindings:
    def test_sarif_report(self) -> None:
        write({"train.py": TRAIN})
        only = sarif(run("--format=sarif", code=1).stdout)
        first, second = only["results"]
        assert (first["ruleId"], second["ruleId"]) == ("FSR101", "FSR103")
        assert first["level"] == "warning"
        assert first["message"]["text"] == (
            "directory `out` is created by multiple ranks after a separate existence check."
            " Outcome: the slower process fails with `FileExistsError`."
        )
        (place,) = first["locations"]
        assert place["physicalLocation"] == {
            "artifactLocation": {"uri": "train.py", "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": 8, "startColumn": 9, "endLine": 8, "endColumn": 25},
        }
        assert place["logicalLocations"] == [{"fullyQualifiedName": "prepare", "kind": "function"}]
        tested, *_, sign = first["relatedLocations"]
        assert tested["message"]["text"] == "multiple processes can find it missing"
        assert tested["physicalLocation"]["region"]["startLine"] == 7
        assert sign["physicalLocation"]["region"]["startLine"] == 14
        assert [row["id"] for row in first["relatedLocations"]] == [1, 2, 3]
        assert first["properties"]["evidence"] == "likely"
        assert first["properties"]["confidence"] == "medium"
        assert only["columnKind"] == "unicodeCodePoints"
        assert only["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]

    def test_sarif_trace_has_one_thread_flow_per_process(self) -> None:
        write({"train.py": TRAIN})
        for row in sarif(run("--format=sarif", code=1).stdout)["results"]:
            (flow,) = row["codeFlows"]
            assert [thread["id"] for thread in flow["threadFlows"]] == ["process 0", "process 1"]
            orders = [[at["executionOrder"] for at in thread["locations"]] for thread in flow["threadFlows"]]
            assert orders == [[1, 3], [2, 4]]
            act = row["locations"][0]["physicalLocation"]["region"]["startLine"]
            lines = [
                [at["location"]["physicalLocation"]["region"]["startLine"] for at in thread["locations"]]
                for thread in flow["threadFlows"]
            ]
            assert lines == [[act - 1, act]] * 2
        (flow,) = sarif(run("--format=sarif", code=1).stdout)["results"][1]["codeFlows"]
        first = flow["threadFlows"][1]["locations"][0]["location"]["message"]["text"]
        assert first == "process 1: os.path.exists('old') -> True"

    def test_gitlab_report(self) -> None:
        write({"lib/train.py": TRAIN})
        first, second = gitlab(run("--format=gitlab", code=1).stdout)
        assert first["description"] == (
            "FSR101 check-then-mkdir: directory `out` is created by multiple ranks after a separate "
            "existence check. Outcome: the slower process fails with `FileExistsError`. Confidence: medium."
        )
        assert (first["check_name"], first["severity"]) == ("FSR101", "minor")
        assert first["location"] == {"path": "lib/train.py", "lines": {"begin": 8, "end": 8}}
        assert second["location"]["lines"]["begin"] == 10

    def test_junit_report(self) -> None:
        write({"train.py": TRAIN})
        suite = junit(run("--format=junit", code=1).stdout)
        assert [case.get("name") for case in suite] == ["FSR101 8:9", "FSR103 10:9"]
        assert {case.get("classname") for case in suite} == {"train.py"}
        (failure,) = suite[0]
        assert (
            failure.get("message")
            == "directory `out` is created by multiple ranks after a separate existence check"
        )
        assert failure.get("type") == "FSR101 check-then-mkdir"
        lines = (failure.text or "").split("\n")
        assert lines[0].startswith("train.py:8:9: FSR101 check-then-mkdir: directory `out` is created")
        assert lines[1] == "  train.py:7:12: multiple processes can find it missing"
        assert lines[-7:] == [
            "  process 0: os.path.exists(out) -> False",
            "  process 1: os.path.exists(out) -> False",
            "  process 0: os.makedirs(out) -> done",
            "  process 1: os.makedirs(out) -> FileExistsError",
            "  outcome: the slower process fails with `FileExistsError`",
            "  severity: warning, confidence: medium",
            "  fix: pass `exist_ok=True`, and remove the check (unsafe: local)",
        ]

    @pytest.mark.parametrize("form", NEW)
    def test_report_is_deterministic(self, form: str) -> None:
        write({"train.py": TRAIN, "b/é.py": TRAIN, "c.py": "if\n"})
        assert run(f"--format={form}", code=1).stdout == run(f"--format={form}", code=1).stdout

    def test_no_findings(self) -> None:
        write({"a.py": "x = 1\n"})
        assert sarif(run("--format=sarif", code=0).stdout)["results"] == []
        assert run("--format=gitlab", code=0).stdout == "[]\n"
        (case,) = junit(run("--format=junit", code=0).stdout)
        assert (case.get("classname"), case.get("name")) == ("fsrace-lint", "no filesystem races found")
        assert len(case) == 0

    def test_unparsable_file_is_a_notification(self) -> None:
        write({"bad.py": "x = 1\nif\n"})
        (invocation,) = sarif(run("--format=sarif", code=0).stdout)["invocations"]
        assert invocation["executionSuccessful"] is True
        (note,) = invocation["toolExecutionNotifications"]
        assert (note["level"], note["associatedRule"]) == ("warning", {"id": "FSR001"})
        assert note["locations"][0]["physicalLocation"]["region"]["startLine"] == 2

    def test_missing_path_is_an_error_in_the_report(self) -> None:
        write({"a.py": TRAIN})
        only = sarif(run("a.py", "missing.py", "--format=sarif", code=2).stdout)
        (invocation,) = only["invocations"]
        assert invocation["executionSuccessful"] is False
        (note,) = invocation["toolExecutionNotifications"]
        assert (note["level"], note["message"]["text"]) == ("error", "no such file or directory")
        assert note["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "missing.py"
        suite = junit(run("a.py", "missing.py", "--format=junit", code=2).stdout)
        (failed,) = [case for case in suite if case.find("error") is not None]
        assert failed.get("classname") == "missing.py"
        assert junit(run("missing.py", "--format=junit", code=2).stdout).get("tests") == "1"

    @pytest.mark.skipif(os.name != "posix", reason="no such names elsewhere")
    @pytest.mark.parametrize("form", NEW)
    def test_special_characters_in_file_names(self, form: str) -> None:
        name = 'a b%&<"]]>#é\x1b[2J\u202e\n{0}[x](1).py'
        write({name: TRAIN})
        text = run(f"--format={form}", code=1).stdout
        read = READERS[form](text)
        assert not set(text) & {"\x1b", "\u202e"}
        if form == "sarif":
            uri = read["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            assert re.fullmatch("[A-Za-z0-9._~/%-]+", uri)
            assert unquote(uri) == name
        elif form == "gitlab":
            assert read[0]["location"]["path"] == name
        else:
            assert read[0].get("file") == name.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e").replace(
                "\n", "\\n"
            )

    @pytest.mark.skipif(os.name != "posix", reason="names are bytes there")
    def test_undecodable_file_name(self) -> None:
        name = os.fsdecode(b"\xff.py")
        try:
            Path(name).write_text(TRAIN)
        except OSError:
            pytest.skip("this filesystem takes no such name")
        for form in NEW:
            READERS[form](run(f"--format={form}", code=1).stdout)
        row = sarif(run("--format=sarif", code=1).stdout)["results"][0]
        uri = row["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert unquote_to_bytes(uri) == b"\xff.py"


class TestSarif:
    def test_schema_rejects_an_incomplete_run(self) -> None:
        VALIDATOR.check_schema(SCHEMA)
        with pytest.raises(jsonschema.ValidationError):
            VALIDATOR.validate({"version": "2.1.0", "runs": [{"tool": {}}]})

    def test_driver_lists_every_rule(self) -> None:
        write({"a.py": "x = 1\n"})
        driver = sarif(run("--format=sarif", code=0).stdout)["tool"]["driver"]
        assert (driver["name"], driver["semanticVersion"]) == ("fsrace-lint", __version__)
        assert "informationUri" not in driver
        assert [rule["id"] for rule in driver["rules"]] == [loaded.rule.code for loaded in rules.load()]
        for rule, loaded in zip(driver["rules"], rules.load(), strict=True):
            assert rule["name"] == loaded.rule.name
            assert rule["shortDescription"]["text"] == loaded.title
            assert "\n" not in rule["fullDescription"]["text"]
            assert rule["help"]["text"] == loaded.page
            assert "helpUri" not in rule

    def test_fields_of_a_rule(self) -> None:
        page = "A title\n\nWhat goes\nwrong.\n\nBad:\n    import os\n\n    x = 1\n\nFix: none.\n"
        tool = Tool("1.2.3", (RuleInfo("FSR101", "a-rule", page, Severity.WARNING, 59, "evident"),))
        (rule,) = shown("sarif", tool=tool)["tool"]["driver"]["rules"]
        assert rule == {
            "id": "FSR101",
            "name": "a-rule",
            "shortDescription": {"text": "A title"},
            "fullDescription": {"text": "What goes wrong."},
            "help": {
                "text": page,
                "markdown": "A title\n\nWhat goes\nwrong.\n\n**Bad:**\n\n```python\nimport os\n\nx = 1\n```"
                "\n\n**Fix:** none.\n",
            },
            "defaultConfiguration": {"level": "warning"},
            "properties": {
                "tags": ["external/cwe/cwe-059"],
                "precision": "high",
                "problem.severity": "warning",
            },
        }

    @pytest.mark.parametrize(
        ("cwe", "evidence", "precision"),
        [
            (362, "evident", "high"),
            (362, "plausible", "medium"),
            (362, "none", "low"),
            (362, "", "low"),
            (0, "plausible", "very-high"),
        ],
    )
    def test_precision_follows_the_evidence(self, cwe: int, evidence: str, precision: str) -> None:
        tool = Tool("", (RuleInfo("FSR101", "a-rule", "Title.", Severity.ERROR, cwe, evidence),))
        (rule,) = shown("sarif", tool=tool)["tool"]["driver"]["rules"]
        assert rule["properties"]["precision"] == precision
        assert ("tags" in rule["properties"]) is bool(cwe)

    @pytest.mark.parametrize(
        ("severity", "level", "problem"),
        [
            (Severity.ERROR, "error", "error"),
            (Severity.WARNING, "warning", "warning"),
            (Severity.NOTE, "note", "recommendation"),
        ],
    )
    def test_severity_sets_the_level(self, severity: Severity, level: str, problem: str) -> None:
        only = shown("sarif", finding(HERE, severity=severity))
        assert only["results"][0]["level"] == level
        (rule,) = only["tool"]["driver"]["rules"]
        assert rule["properties"]["problem.severity"] == problem

    def test_fix_is_a_property_without_changes(self) -> None:
        (row,) = shown("sarif", finding(HERE, fix=fix(Applicability.SAFE)))["results"]
        assert "fixes" not in row
        assert row["properties"]["fix"] == "pass exist_ok=True"
        assert row["properties"]["applicability"] == "safe"

    @pytest.mark.parametrize(
        ("message", "text"),
        [
            ("f'{out}/x'", "f'{out}/x'"),
            ("f'{0}/{12}'", "f'{{0}}/{{12}}'"),
            ("a[0]", "a[0]"),
            ("a[0](out)", "a\\[0\\](out)"),
            ("<b>\x1b[2J\n\u202e", "<b>\\x1b[2J\\n\\u202e"),
        ],
    )
    def test_messages_are_escaped(self, message: str, text: str) -> None:
        related = (Related(HERE, message),)
        witness = Witness((WitnessStep(0, message),), message)
        only = shown("sarif", finding(HERE, message=message, related=related, witness=witness))
        (row,) = only["results"]
        assert row["message"]["text"] == f"{text}. Outcome: {text}."
        assert row["relatedLocations"][0]["message"]["text"] == text
        (flow,) = row["codeFlows"]
        assert flow["message"]["text"] == text
        at = flow["threadFlows"][0]["locations"][0]["location"]
        assert at["message"]["text"] == f"process 0: {text}"

    @pytest.mark.parametrize(
        ("path", "artifact"),
        [
            ("a b/ü:#?.py", {"uri": "a%20b/%C3%BC%3A%23%3F.py", "uriBaseId": "%SRCROOT%"}),
            ("/tmp/a b.py", {"uri": "file:///tmp/a%20b.py"}),
            ("\udcff\ud800.py", {"uri": "%ED%B3%BF%ED%A0%80.py", "uriBaseId": "%SRCROOT%"}),
        ],
    )
    @pytest.mark.skipif(os.name != "posix", reason="paths as POSIX has them")
    def test_paths_become_uris(self, path: str, artifact: dict[str, str]) -> None:
        (row,) = shown("sarif", finding(Place(path, Span(1, 1, 1, 2))))["results"]
        assert row["locations"][0]["physicalLocation"]["artifactLocation"] == artifact

    def test_drives_become_uris(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import ntpath

        monkeypatch.setattr(os.path, "splitdrive", ntpath.splitdrive)
        paths = {
            "C:/a b.py": "file:///C:/a%20b.py",
            "//host/share/a b.py": "file://host/share/a%20b.py",
            "a/b.py": "a/b.py",
        }
        for path, uri in paths.items():
            (row,) = shown("sarif", finding(Place(path, Span(1, 1, 1, 2))))["results"]
            assert row["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri

    def test_steps_are_located_by_their_text(self) -> None:
        text = (
            'if not os.path.exists(\n    "out"\n): os.makedirs("out")\nrun()\nos.link(a, b)\nos.link(c, d)\n'
        )
        related = (
            Related(Place("a.py", Span(1, 8, 3, 2)), "multiple processes can find it missing"),
            Related(Place("a.py", Span(4, 1, 4, 6)), "called here"),
            Related(Place("a.py", Span(5, 1, 5, 14)), "linked"),
            Related(Place("a.py", Span(6, 1, 6, 14)), "linked"),
            Related(Place("gone.py", Span(9, 1, 9, 14)), "not known"),
        )
        steps = {
            "os.path.exists('out')": 1,
            "os.makedirs(...)": 3,
            "run": 3,
            "run(...)": 4,
            "os.link(c, d)": 6,
            "os.link(e, f)": 3,
            "reads it": 3,
            "": 3,
        }
        witness = Witness(tuple(WitnessStep(0, action) for action in steps), "a mixture")
        where = Place("a.py", Span(3, 4, 3, 22))
        (row,) = shown("sarif", finding(where, related=related, witness=witness), sources={"a.py": text})[
            "results"
        ]
        (thread,) = row["codeFlows"][0]["threadFlows"]
        lines = [at["location"]["physicalLocation"]["region"]["startLine"] for at in thread["locations"]]
        assert dict(zip(steps, lines, strict=True)) == steps

    def test_trace_without_process_1_and_trace_without_steps(self) -> None:
        witness = Witness((WitnessStep(2, "a"), WitnessStep(0, "b"), WitnessStep(2, "c")), "a mixture")
        first, second = shown(
            "sarif", finding(HERE, witness=witness), finding(HERE, witness=Witness((), "it hangs"))
        )["results"]
        threads = first["codeFlows"][0]["threadFlows"]
        assert [(t["id"], [at["executionOrder"] for at in t["locations"]]) for t in threads] == [
            ("process 0", [2]),
            ("process 2", [1, 3]),
        ]
        assert "codeFlows" not in second
        assert second["message"]["text"].endswith("Outcome: it hangs.")

    def test_module_code_has_no_function(self) -> None:
        (row,) = shown("sarif", finding(HERE, function="<module>"))["results"]
        assert "logicalLocations" not in row["locations"][0]

    def test_run_errors_are_notifications(self) -> None:
        outcome = Outcome((), (Problem("a b", "no\x1b"), Problem("", "no {0}")))
        (invocation,) = sarif(render("sarif", outcome, {}, Options()))["invocations"]
        named, unnamed = invocation["toolExecutionNotifications"]
        assert named["message"]["text"] == "no\\x1b"
        assert named["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b"
        assert "locations" not in unnamed
        assert unnamed["message"]["text"] == "no {{0}}"


class TestFingerprints:
    @staticmethod
    def marks(text: str, *lines: int, **changes: Any) -> list[str]:
        rows = text.replace("\r\n", "\n").split("\n")
        spans = [Span(line, 1, line, len(rows[line - 1]) + 1) for line in lines]
        found = [finding(Place("a.py", span), **changes) for span in spans]
        marks = fingerprints(found, Lines({"a.py": source("a.py", text)}))
        assert [row["fingerprint"] for row in shown("gitlab", *found, sources={"a.py": text})] == marks
        rows = shown("sarif", *found, sources={"a.py": text})["results"]
        assert [row["partialFingerprints"]["fsraceFinding/v1"] for row in rows] == marks
        return marks

    def test_fingerprint_ignores_lines_above_and_whitespace(self) -> None:
        marks = self.marks("mkdir(d)\nrmtree(d)\n", 1, 2)
        assert marks == self.marks("# new\r\n\r\n\tmkdir( d )\r\nrmtree(d)  \r\n", 3, 4)
        assert len(set(marks)) == 2

    @pytest.mark.parametrize(
        "changes", [{"code": "FSR102"}, {"function": "other"}, {"place": Place("b.py", Span(1, 1, 1, 9))}]
    )
    def test_fingerprint_depends_on_rule_function_path_and_code(self, changes: dict[str, Any]) -> None:
        lines = Lines({path: source(path, "mkdir(d)\n") for path in ("a.py", "b.py")})
        where = Place("a.py", Span(1, 1, 1, 9))
        fields = {"where": where, **changes}
        other = finding(fields.pop("place", fields.pop("where")), **fields)
        assert fingerprints([other], lines) != fingerprints([finding(where)], lines)
        changed = Lines({"a.py": source("a.py", "mkdir(e)\n")})
        assert fingerprints([finding(where)], changed) != fingerprints([finding(where)], lines)

    def test_fingerprint_ignores_message_and_evidence(self) -> None:
        text = "mkdir(d)\n"
        assert self.marks(text, 1) == self.marks(text, 1, message="on line 99", evidence="plausible")

    def test_identical_lines_are_numbered_from_the_top(self) -> None:
        first, second, third = self.marks("mkdir(d)\nmkdir(d)\nmkdir(d)\n", 1, 2, 3)
        assert len({first, second, third}) == 3
        assert [first, second] == self.marks("\n\n\nmkdir(d)\nmkdir(d)\n", 4, 5)

    def test_unknown_sources_get_distinct_fingerprints(self) -> None:
        assert len(set(fingerprints([finding(HERE), finding(HERE)], Lines({})))) == 2
        assert Lines({"a.py": source("a.py", "x")}).first(Place("a.py", Span(9, 1, 9, 2))) == ""


class TestGitlab:
    @pytest.mark.parametrize(
        ("severity", "level"),
        [(Severity.ERROR, "critical"), (Severity.WARNING, "minor"), (Severity.NOTE, "info")],
    )
    def test_severity_sets_the_gitlab_severity(self, severity: Severity, level: str) -> None:
        (issue,) = shown("gitlab", finding(Place("a.py", Span(3, 1, 5, 2)), severity=severity))
        assert issue["severity"] == level
        assert issue["location"]["lines"] == {"begin": 3, "end": 5}

    def test_control_characters_are_escaped(self) -> None:
        where = Place("a\udcff\n.py", Span(1, 1, 1, 2))
        (issue,) = shown("gitlab", finding(where, message="x\x1b\r\n\u202e\udcff"))
        assert issue["description"] == "FSR101 check-then-mkdir: x\\x1b\\r\\n\\u202e\\udcff"
        assert issue["location"]["path"] == "a\\udcff\n.py"


class TestJunit:
    def test_characters_invalid_in_xml_are_escaped(self) -> None:
        bad = "\x00\x0b\x1b\x85\ud800\udcff\ufffe\uffff\u202e]]><b>&\"'\U0001f40d"
        plain = "\\x00\\x0b\\x1b\\x85\\ud800\\udcff\\ufffe\\uffff\\u202e]]><b>&\"'\U0001f40d"
        witness = Witness((WitnessStep(0, bad, bad),), bad)
        related = (Related(Place(bad, Span(3, 4, 5, 6)), bad),)
        where = Place(bad, Span(1, 2, 3, 4))
        (case,) = shown(
            "junit",
            finding(where, message=bad, related=related, witness=witness, fix=fix(Applicability.UNSAFE)),
        )
        assert (case.get("classname"), case.get("file"), case.get("line")) == (plain, plain, "1")
        (failure,) = case
        assert failure.get("message") == plain
        assert (failure.text or "").split("\n") == [
            f"{plain}:1:2: FSR101 check-then-mkdir: {plain}",
            f"  {plain}:3:4: {plain}",
            f"  process 0: {plain} -> {plain}",
            f"  outcome: {plain}",
            "  severity: error, confidence: high",
            "  fix: pass exist_ok=True (unsafe: local)",
        ]

    def test_duplicate_case_names_are_numbered(self) -> None:
        suite = shown("junit", finding(HERE), finding(HERE, message="more"), finding(HERE, code="FSR102"))
        assert [case.get("name") for case in suite] == ["FSR101 1:1", "FSR101 1:1 (2)", "FSR102 1:1"]

    def test_run_errors_are_error_cases(self) -> None:
        outcome = Outcome((), (Problem("a", "no"), Problem("a", "no more"), Problem("", "\x00")))
        suite = junit(render("junit", outcome, {}, Options()))
        named = [(case.get("classname"), case.get("name")) for case in suite]
        assert named == [
            ("a", "error"),
            ("a", "error (2)"),
            ("fsrace-lint", "error"),
        ]
        assert [case[0].get("message") for case in suite] == ["no", "no more", "\\x00"]


@given(OUTCOMES, st.text(st.characters(exclude_categories=["Cs"]), max_size=100))
@settings(deadline=None)
def test_every_outcome_is_valid_in_every_format(outcome: Outcome, code: str) -> None:
    sources = {"a.py": source("a.py", code)}
    texts = {form: render(form, outcome, sources, Options()) for form in NEW}
    found = len(outcome.findings)
    log = sarif(texts["sarif"])
    assert len(log["results"]) == found
    assert len(gitlab(texts["gitlab"])) == found
    assert len(junit(texts["junit"]).findall("testcase/failure")) == found
    for text in strings([log, json.loads(texts["gitlab"])]):
        text.encode("utf-8")


def test_title_of_a_rule_page_is_never_a_label() -> None:
    assert paragraphs("Not reported when: no label\n\nFix: a label.") == [
        "Not reported when: no label",
        "**Fix:** a label.",
    ]
    assert paragraphs("Only a title") == ["Only a title"]


class TestMultipleReports:
    def test_each_report_matches_its_output_format(self) -> None:
        write({"train.py": TRAIN})
        wanted = [f"--report={form}=out.{form}" for form in sorted(report.FORMATS)]
        result = run(*wanted, code=1)
        assert result.stdout == run(code=1).stdout
        assert result.stderr == ""
        for form in report.FORMATS:
            alone = run(f"--format={form}", code=1).stdout
            assert Path(f"out.{form}").read_text("utf-8") == alone

    def test_report_option_combines_with_output_file(self) -> None:
        write({"train.py": TRAIN})
        given = ("--output-file=a.json", "--report", "sarif=b=c.sarif", "--format=json", "--color")
        assert run(*given, code=1).output == ""
        assert len(json.loads(Path("a.json").read_text())["findings"]) == 2
        assert len(sarif(Path("b=c.sarif").read_text())["results"]) == 2

    def test_only_stdout_is_colored(self) -> None:
        write({"train.py": TRAIN})
        assert "\x1b[" in run("--color", "--report=text=a.txt", code=1).stdout
        assert "\x1b" not in Path("a.txt").read_text()

    def test_unwritable_report_does_not_stop_other_reports(self) -> None:
        write({"train.py": TRAIN})
        result = run("--report=sarif=missing/a.sarif", "--report=junit=a.xml", code=2)
        assert result.stderr.startswith(
            "Error: cannot write missing/a.sarif: no directory missing; create it first\n"
        )
        assert len(junit(Path("a.xml").read_text())) == 2
        assert "Found 2 warnings" in result.stdout

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_failing_stdout_does_not_stop_report_files(self) -> None:
        write({"train.py": TRAIN})
        command = [sys.executable, "-m", "fsrace_lint", "check", "--report=junit=a.xml"]
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 2
        assert len(junit(Path("a.xml").read_text())) == 2

    @pytest.mark.skipif(os.name != "posix", reason="devices as POSIX has them")
    def test_device_accepts_multiple_reports(self) -> None:
        write({"train.py": TRAIN})
        run("--report=sarif=/dev/null", "--report=junit=/dev/null", code=1)

    def test_show_silenced_requires_one_supporting_format(self) -> None:
        write({"a.py": 'import os\ndef prepare(rank):\n    if rank == 0:\n        os.mkdir("d")\n'})
        run("--format=github", "--report=json=a.json", "--show-silenced", code=0)
        assert len(json.loads(Path("a.json").read_text())["silenced"]) == 1
        stderr = run("--format=github", "--report=sarif=a.sarif", "--show-silenced", code=2).stderr
        assert "--show-silenced requires --output-format full, concise, grouped, trace, or json\n" in stderr

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--report=sarif",), "`sarif` is not of the form FORMAT=FILE, for example `sarif=races.sarif`"),
            (("--report=sarif=",), "`sarif=` is not of the form FORMAT=FILE"),
            (("--report==a",), "`=a` is not of the form FORMAT=FILE"),
            (("--report=",), "`` is not of the form FORMAT=FILE"),
            (
                ("--report=x\x1b=a",),
                f"`x\\x1b` is not one of {', '.join(f'`{form}`' for form in sorted(FORMATS))}",
            ),
            (("--report=sarif=.",), "is a directory"),
            (("--report=sarif=a", "--report=json=./a"), "two reports have the same output file a\n"),
            (("--report=sarif=a", "--output-file=a"), "two reports have the same output file a\n"),
            (
                ("--format=json", "--format=sarif"),
                "--output-format can be used only once; to write another report, use --report FORMAT=FILE\n",
            ),
            (
                ("--output-file=a", "--output-file=b"),
                "--output-file can be used only once; to write another report, use --report FORMAT=FILE\n",
            ),
        ],
    )
    def test_invalid_report_options_are_errors(self, arguments: tuple[str, ...], message: str) -> None:
        write({"train.py": TRAIN})
        result = run(*arguments, code=2)
        assert message in result.stderr
        assert result.stdout == ""
        assert sorted(file.name for file in Path().iterdir()) == ["pyproject.toml", "train.py"]

    def test_symlink_to_the_file_of_another_report_is_an_error(self) -> None:
        write({"a.txt": "", "train.py": TRAIN})
        try:
            Path("b.txt").symlink_to("a.txt")
        except OSError:
            pytest.skip("needs symbolic links")
        assert "two reports" in run("--report=text=a.txt", "--report=json=b.txt", code=2).stderr


class TestInputFiles:
    """A report never overwrites an input of its run."""

    @pytest.mark.parametrize("file", ["a.py", "pyproject.toml", "known.json"])
    @pytest.mark.parametrize("option", ["--output-file={}", "--report=json={}"])
    def test_report_does_not_overwrite_an_input(self, file: str, option: str) -> None:
        write({"a.py": HAZARD, "pyproject.toml": '[tool.fsrace-lint]\nbaseline = "known.json"\n'})
        run("--write-baseline", "known.json", code=0)
        before = Path(file).read_bytes()
        done = run(option.format(file), code=2)
        assert f"a report would overwrite {file}, which is an input of this run\n" in done.stderr
        assert Path(file).read_bytes() == before
