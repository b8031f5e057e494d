"""`prove --finding` and `check --prove`, which run the code of findings."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from fsrace_lint.cli.commands import proving
from fsrace_lint.files.spans import Place, Span
from fsrace_lint.findings.finding import Finding, Proof, Severity

if TYPE_CHECKING:
    from pathlib import Path

RACES = """
    import os
    import sys
    import uncommon_module

    print("{ imported", "}")

    def prepare(out: str):
        if not os.path.isdir(out):
            os.mkdir(out)

    def later(out: str, thing):
        if not os.path.isdir(out):
            os.mkdir(out)
        raise KeyError(thing)

    def earlier(out: str):
        os.path.exists(out)
        {}[out]
        if not os.path.isdir(out):
            os.mkdir(out)

    def never(out: str, n: int):
        os.path.exists(out)
        if n > 5 and not os.path.isdir(out):
            os.mkdir(out)

    async def waiting(out: str):
        if not os.path.isdir(out):
            os.mkdir(out)

    def stopping(out: str):
        if not os.path.isdir(out):
            os.mkdir(out)
        sys.exit(3)
"""
TOLERANT = """
import os

import torch.distributed as dist

def tolerant(out: str):
    dist.barrier()
    if not os.path.isdir(out):
        os.makedirs(out, exist_ok=True)
"""
ARGUMENTS = ("--max-schedules", "300")


def line_of(function: str) -> int:
    lines = textwrap.dedent(RACES).splitlines()
    start = next(number for number, line in enumerate(lines) if f"def {function}(" in line)
    return (
        next(
            number
            for number in range(start, len(lines))
            if "mkdir(" in lines[number] or "makedirs(" in lines[number]
        )
        + 1
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    (folder / "main.py").write_text(textwrap.dedent(RACES))
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own, because it imports the code of the project."""
    command = [sys.executable, "-m", "fsrace_lint", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


def prove(folder: Path, function: str, *options: str) -> subprocess.CompletedProcess[str]:
    place = f"main.py:{line_of(function)}"
    return run(folder, "prove", "--finding", place, "--no-cache", *ARGUMENTS, *options)


def test_race_is_proven(project: Path) -> None:
    done = prove(project, "prepare")
    assert done.returncode == 1
    assert "mkdir out -> FileExistsError" in done.stdout
    assert done.stdout.endswith(f"\nproven: FSR101 at main.py:{line_of('prepare')} is proven\n")
    file = f"prove_main_{line_of('prepare')}.py"
    assert f"Wrote {file}\n" in done.stderr
    assert "note: `uncommon_module` is not installed; its functions do nothing here\n" in done.stderr
    assert not (project / ".fsrace_cache").exists()


def test_written_scenario_runs_again(project: Path) -> None:
    prove(project, "later")
    written = project / f"prove_main_{line_of('later')}.py"
    text = written.read_text()
    assert 'later(out=str(root / "out"), thing=StandIn())' in text
    again = prove(project, "later")
    assert (again.returncode, written.read_text()) == (1, text)


def test_race_before_an_exception_is_proven(project: Path) -> None:
    done = prove(project, "later")
    assert done.returncode == 1
    assert "is proven, before KeyError, which one process also raises" in done.stdout
    assert "note: nothing shows what `thing` is; an object without attributes is passed\n" in done.stderr


def test_code_without_failures_passes(project: Path) -> None:
    (project / "ranks.py").write_text(TOLERANT)
    done = run(project, "prove", "--finding", "ranks.py:9", "--no-cache")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == (
        "passes: every interleaving of `tolerant` with these arguments passes on posix"
    )


@pytest.mark.parametrize(
    ("function", "status", "reason"),
    [
        ("never", "failed", "`never` does not reach main.py:"),
        ("earlier", "failed", "`earlier` fails with these arguments in one process: KeyError in process 0"),
    ],
)
def test_code_that_does_not_run_the_place_fails(
    project: Path, function: str, status: str, reason: str
) -> None:
    done = prove(project, function)
    assert done.returncode == 2
    assert done.stdout.splitlines()[-1].startswith(f"{status}: {reason}")


def test_function_that_cannot_be_called(project: Path) -> None:
    done = prove(project, "waiting")
    place = f"main.py:{line_of('waiting')}"
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Error: no scenario for {place}: `waiting` is an `async` function\n" in done.stderr
    assert not (project / f"prove_main_{line_of('waiting')}.py").exists()


def test_line_without_finding_names_those_with_findings(project: Path) -> None:
    done = run(project, "prove", "--finding", "main.py:1", "--no-cache")
    assert done.returncode == 2
    assert f"no finding at main.py:1; this file has findings at lines {line_of('prepare')}, " in done.stderr


@pytest.mark.parametrize("place", ["main.py", "main.py:x", ":3", "main.py:"])
def test_place_must_be_a_file_and_a_line(project: Path, place: str) -> None:
    done = run(project, "prove", "--finding", place)
    assert done.returncode == 2
    assert f"`{place}` is not a place; use FILE:LINE" in done.stderr


def test_missing_file_is_named(project: Path) -> None:
    done = run(project, "prove", "--finding", "none.py:3")
    assert done.returncode == 2
    assert "Error: none.py: no such file" in done.stderr


def test_other_file_is_not_overwritten(project: Path) -> None:
    (project / "mine.py").write_text("mine\n")
    done = prove(project, "prepare", "--scenario", "mine.py")
    assert done.returncode == 2
    assert "mine.py already exists and differs; run `fsrace-lint prove mine.py::run`, or name" in done.stderr
    assert (project / "mine.py").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--finding", "main.py:1", "main.py::f"], "--finding cannot be used with FILE::FUNCTION"),
        (["--finding", "main.py:1", "--replay", "x"], "--finding cannot be used with --replay"),
        (["--finding", "main.py:1", "--html", "x"], "--finding cannot be used with --html"),
        (["main.py::f", "--scenario", "x.py"], "--scenario requires --finding"),
        (["main.py::f", "--no-cache"], "--no-cache requires --finding"),
        ([], "name FILE::FUNCTION, or use --finding FILE:LINE"),
    ],
)
def test_options_that_exclude_each_other(project: Path, options: list[str], message: str) -> None:
    done = run(project, "prove", *options)
    assert done.returncode == 2
    assert message in done.stderr


def test_json(project: Path) -> None:
    done = prove(project, "prepare", "--output-format", "json")
    data = json.loads(done.stdout[done.stdout.index("\n{\n") :])
    assert (data["code"], data["status"]) == ("FSR101", "proven")
    assert data["result"]["failure"]["text"].startswith("FileExistsError in process ")


def test_finding_is_found_from_another_directory(project: Path) -> None:
    place = f"project/main.py:{line_of('prepare')}"
    done = run(project.parent, "prove", "--finding", place, "--scenario", "s.py", "--no-cache", *ARGUMENTS)
    assert done.stdout.endswith(f"\nproven: FSR101 at {place} is proven\n")


def checked(folder: Path, *options: str) -> list[dict[str, Any]]:
    done = run(folder, "check", "--no-cache", "--output-format", "json", *options)
    assert done.returncode == 1, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return found


def test_check_proves_the_first_findings(project: Path) -> None:
    rows = checked(project, "--prove", "3", "--min-severity", "note")
    proofs = {row["line"]: row.get("proof") for row in rows}
    assert len(proofs) > 3
    shown = {line: proof["status"] for line, proof in proofs.items() if proof is not None}
    assert shown == {line_of("prepare"): "proven", line_of("later"): "proven", line_of("earlier"): "failed"}
    assert sorted(path.name for path in project.iterdir()) == ["main.py", "pyproject.toml"]


def test_check_without_prove_runs_nothing(project: Path) -> None:
    assert [row for row in checked(project) if "proof" in row] == []


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("full", "  = note: proven by a run: FileExistsError in process "),
        ("trace", "  = note: proven by a run: FileExistsError in process "),
        ("concise", " confidence] [proven]\n"),
        ("grouped", " confidence] [proven]\n"),
        ("html", "proven by a run: FileExistsError in process "),
        ("sarif", '"proof": {'),
    ],
)
def test_reports_show_proofs(project: Path, form: str, shown: str) -> None:
    done = run(project, "check", "--no-cache", "--prove", "1", "--output-format", form)
    assert done.stdout.count(shown) == 1
    assert "Running the code of 1 finding\n" in done.stderr


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--prove", "0"], "0 is not in the range x>=1"),
        (["--prove", "1", "--diff"], "--diff cannot be used with --prove"),
        (["--prove", "1", "--daemon"], "--prove cannot be used with --daemon"),
        (["--prove", "1", "--stdin-filename", "main.py", "-"], "--prove cannot be used with standard input"),
    ],
)
def test_check_options_that_exclude_each_other(project: Path, options: list[str], message: str) -> None:
    done = run(project, "check", *options)
    assert done.returncode == 2
    assert message in done.stderr


def finding(line: int, severity: Severity, confidence: str, code: str = "FSR101") -> Finding:
    place = Place("main.py", Span(line, 1, line, 2))
    return Finding(code, "n", "m", place, "f", severity, "evident", confidence=confidence)


def test_most_severe_findings_are_first_and_each_line_is_run_once() -> None:
    findings = [
        finding(1, Severity.WARNING, "medium"),
        finding(2, Severity.WARNING, "high"),
        finding(3, Severity.ERROR, "high"),
        finding(3, Severity.NOTE, "low", "FSR201"),
        finding(4, Severity.NOTE, "low"),
    ]
    assert [each.place.span.line for each in proving.first(findings, 3)] == [3, 2, 1]
    assert [each.place.span.line for each in proving.first(findings, 9)] == [3, 2, 1, 4]
    assert proving.first(findings, 1)[0].code == "FSR101"


def test_run_that_takes_too_long_is_ended(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    proof = proving.proof_of(finding(line_of("prepare"), Severity.ERROR, "high"), limit=0.01)
    assert proof == Proof("failed", "the run did not end within 0.01 s")


def test_reason_of_a_run_without_result(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    proof = proving.proof_of(finding(line_of("waiting"), Severity.ERROR, "high"), ["--no-cache"])
    assert proof.status == "failed"
    assert proof.text.endswith("`waiting` is an `async` function")


def test_proof_of_another_rule_is_not_taken(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    proof = proving.proof_of(finding(line_of("prepare"), Severity.ERROR, "high", "FSR999"), ["--no-cache"])
    assert proof == Proof("failed", "the run was about FSR101, which is at the same line")
