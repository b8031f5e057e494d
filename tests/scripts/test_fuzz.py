"""The fuzzer finds, minimizes, and reproduces defects; regression tests for defects it has found."""

from __future__ import annotations

import shutil
from random import Random
from typing import TYPE_CHECKING

import fuzz
import fuzz_inputs
import fuzz_targets
import pytest

from fsrace_lint import rules
from fsrace_lint.config.settings import Settings
from fsrace_lint.files import source
from fsrace_lint.findings import suppressions
from fsrace_lint.pipeline import comments
from fsrace_lint.pipeline.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module", autouse=True)
def remove_scratch_directory() -> Iterator[None]:
    yield
    shutil.rmtree(fuzz_targets.FOLDER, ignore_errors=True)


@pytest.mark.parametrize("name", ["extract", "suppress", "settings", "catalog", "link", "fixes"])
def test_targets_have_no_defects(name: str, tmp_path: Path) -> None:
    target = fuzz_targets.TARGETS[name]
    run = fuzz.Fuzz(name, target.check, tmp_path, 60)
    for data in fuzz.made(target.make, 20, 15):
        run.feed(data)
    assert (run.inputs, run.found) == (15, {})


def test_defect_is_saved_and_minimized(tmp_path: Path) -> None:
    def check(data: bytes) -> None:
        if b"x" in data and b"y" in data:
            raise ValueError(f"not {len(data)} of these")

    run = fuzz.Fuzz("extract", check, tmp_path, 10)
    for data in (b"a = 1\nb = x\nc = 3\nd = y + 4\n", b"y = x", b"x"):
        run.feed(data)
    assert [*run.found.values()] == [2]
    assert (tmp_path / "extract" / "001.txt").read_bytes() == b"xy"


def test_timeout_is_a_defect(tmp_path: Path) -> None:
    def check(_data: bytes) -> None:
        while True:
            try:
                sum(range(1000))
            except Exception:  # noqa: BLE001, PERF203  # a broad handler must not prevent the timeout
                continue

    run = fuzz.Fuzz("extract", check, tmp_path, 0.05)
    assert "takes more than" in (run.defect(b"") or "")


def test_same_seed_makes_the_same_inputs() -> None:
    make = fuzz_inputs.module
    first = [*fuzz.made(make, 3, 20)]
    assert first == [*fuzz.made(make, 3, 20)]
    assert first != [*fuzz.made(make, 4, 20)]
    assert len({*first}) > 15


def test_project_text_is_split_into_files() -> None:
    text = fuzz_inputs.joined([("main.py", "a"), ("pkg/io.py", "b\n")])
    assert fuzz_inputs.split(text.encode()) == {"main.py": b"a\n", "pkg/io.py": b"b\n"}
    assert fuzz_inputs.split(b"x\n") == {"main.py": b"x\n"}
    assert fuzz_inputs.project(Random(1))


FOUND = {
    "main.py": b"import shutil\nshutil.rmtree('out')\n",
    "pkg.py": b"import main\nif rank == 0:\n    pass\n",
    "start.py": b"import main\nfor x in get_rank():\n    pass\n",
}


def test_file_order_does_not_change_findings(tmp_path: Path) -> None:
    """If several places show that a line runs on every rank, the report names the first by file name."""
    run = Run(Settings(tmp_path, profile="strict"), [], whole=True)
    read = [source.decode(data, tmp_path / name, tmp_path) for name, data in FOUND.items()]
    sources = [one for one in read if isinstance(one, source.Source)]
    findings = [run.with_sources(*order).check().outcome.findings for order in (sources, sources[::-1])]
    assert findings[0] == findings[1]
    assert findings[0][0].related[0].place.path.endswith("pkg.py")


@pytest.mark.parametrize(
    ("text", "is_made"),
    [
        ("x = 1  # noqa: FSR101\n", True),
        ("# noqa:FSR101__all__# flake8=noqa:FSR2", False),
        ("# noqa:check-then-mkdir noqa:FSR101", False),
        ("  \\\n# noqa: FSR101\nx = 1\n", False),
    ],
)
def test_code_is_removed_only_if_comment_suppresses_nothing_new(
    text: str, is_made: bool, tmp_path: Path
) -> None:
    read = source.decode(text.encode(), tmp_path / "a.py", tmp_path)
    assert isinstance(read, source.Source)
    unused = suppressions.apply(read, (), lambda _code: True, rules.codes()).unused
    assert (comments.alone(read, unused[0]) is not None) is is_made
