"""Findings are identical to the byte for any number of jobs, with a cache, and in flake8."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import identical
import pytest
from support import EXAMPLES
from support.cli import start, write
from support.large import HAZARD

pytestmark = pytest.mark.usefixtures("here")


LISTINGS = ((), ("--profile=strict", "--show-silenced"), ("--show-suppressed",), ("--ignore=FSR101",))


@pytest.mark.parametrize("options", LISTINGS)
def test_large_project_is_reported_identically(large_project: Path, options: tuple[str, ...]) -> None:
    first = identical.check(large_project, "--jobs=1", *options)
    assert b'"FSR' in first.report
    assert identical.different(large_project, *options) == []


def test_baselines_are_identical(large_project: Path) -> None:
    for jobs in identical.JOBS:
        assert start("check", f"--jobs={jobs}", f"--write-baseline=b{jobs}.json").returncode == 0
    one, two, four = (Path(f"b{jobs}.json").read_bytes() for jobs in identical.JOBS)
    assert one == two == four
    assert one.count(b"FSR101") == 12
    write({"pkg0/m0.py": HAZARD.format(n="new")})
    assert identical.different(large_project, "--baseline=b1.json") == []


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="file names are text there")
def test_undecodable_names_are_reported_identically(large_project: Path) -> None:
    shutil.copy("pkg0/m0.py", os.fsdecode(b"pkg0/m\xff.py"))
    assert b"udcff" in identical.check(large_project, "--jobs=1").report
    assert identical.different(large_project) == []


def test_flake8_reports_the_same_findings(large_project: Path) -> None:
    ours = identical.by_us(large_project)
    assert len(ours) > 20
    assert identical.by_flake8(large_project, 2) == ours


def test_examples_are_reported_identically(here: Path) -> None:
    tree = Path(shutil.copytree(EXAMPLES, here / "examples"))
    assert identical.different(tree) == []
    assert identical.by_flake8(tree, 2) == identical.by_us(tree)


def test_difference_is_detected(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write({"a.py": ""})
    real = identical.check

    def check(tree: Path, *options: str, **around: Any) -> identical.Way:
        way = real(tree, *options, **around)
        return way._replace(report=b"") if "--jobs=2" in options else way

    monkeypatch.setattr(identical, "check", check)
    found = identical.different(here)
    assert found
    assert all("--jobs=2" in options for options in found)
