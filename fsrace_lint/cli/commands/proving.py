"""`check --prove`: runs the scenarios of the first findings, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from fsrace_lint.findings.finding import Proof
from fsrace_lint.report.words import count

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.pipeline.run import Checked

LIMIT: Final = 120
"""The maximum number of seconds for one finding."""
_GRACE: Final = 5
"""How many seconds a process has to remove its temporary directory."""
_STATUSES: Final = ("proven", "differs", "passes", "failed")
PROGRAM: Final = (
    "import sys; sys.path[:] = filter(None, sys.path); from fsrace_lint.cli.main import main; main()"
)
"""Runs the program. Modules in the current directory do not replace its own."""


def first(findings: Collection[Finding], number: int) -> list[Finding]:
    """Return the most severe and most certain findings, one for each line.

    Args:
        findings: The findings.
        number: The maximum number.

    Returns:
        The findings that `prove --finding` selects at their lines.
    """
    by_line: dict[tuple[str, int], Finding] = {}
    for finding in sorted(findings, key=lambda each: (each.certainty_key(), each.sort_key())):
        by_line.setdefault((finding.place.path, finding.place.span.line), finding)
    return list(by_line.values())[:number]


def prove_first(checked: Checked, number: int, *, no_cache: bool, quiet: bool) -> Checked:
    """Run the scenarios of the first findings.

    Args:
        checked: The merged result.
        number: The maximum number of findings.
        no_cache: Whether the cache is neither read nor written.
        quiet: Whether to not say what is run.

    Returns:
        The result with the proofs.
    """
    chosen = first(checked.outcome.findings, number)
    if chosen and not quiet:
        click.echo(f"Running the code of {count(len(chosen), 'finding')}", err=True)
    options = ["--no-cache"] if no_cache else []
    proofs = {finding: proof_of(finding, options) for finding in chosen}
    findings = tuple(
        msgspec.structs.replace(each, proof=proofs.get(each)) for each in checked.outcome.findings
    )
    return msgspec.structs.replace(
        checked, outcome=msgspec.structs.replace(checked.outcome, findings=findings)
    )


def proof_of(finding: Finding, options: Sequence[str] = (), limit: float = LIMIT) -> Proof:
    """Run the scenario of one finding in a process of its own.

    Args:
        finding: The finding.
        options: Further options of `prove`.
        limit: The maximum number of seconds.

    Returns:
        What the process has shown, or why it failed.
    """
    place = f"{finding.place.path}:{finding.place.span.line}"
    with tempfile.TemporaryDirectory(prefix="fsrace-prove-") as folder:
        scenario = str(Path(folder, "scenario.py"))
        command = [sys.executable, "-c", PROGRAM, "prove", "--finding", place, "--scenario", scenario]
        process = subprocess.Popen(  # noqa: S603  # the command is this program
            [*command, "--output-format", "json", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            output, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return Proof("failed", f"the run did not end within {limit:g} s")
        finally:
            _end(process)
    return _read(finding, output.decode("utf-8", "replace"), errors.decode("utf-8", "replace"))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, and the processes that it has started."""
    if process.poll() is None:
        process.terminate()
        try:
            process.communicate(timeout=_GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _read(finding: Finding, output: str, errors: str) -> Proof:
    """Read the last JSON object of an output, which can begin with what modules print on import."""
    try:
        data = json.loads(output[f"\n{output}".rfind("\n{\n") :])
        status, text = data["status"], data["text"]
    except (ValueError, KeyError, TypeError):
        said = [line for line in errors.splitlines() if line.startswith("Error: ")]
        return Proof("failed", said[-1].removeprefix("Error: ") if said else "the run ended without a result")
    if data["code"] != finding.code or status not in _STATUSES:
        return Proof("failed", f"the run was about {data['code']}, which is at the same line")
    return Proof(status, data["result"]["failure"]["text"] if status == "proven" else text)
