"""The fuzzer finds what is wrong, makes it smaller, and makes the same again; and what it has found."""

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
def folder() -> Iterator[None]:
    yield
    shutil.rmtree(fuzz_targets.FOLDER, ignore_errors=True)


@pytest.mark.parametrize("name", ["extract", "suppress", "settings", "catalog", "link", "fixes"])
def test_nothing_is_wrong(name: str, tmp_path: Path) -> None:
    target = fuzz_targets.TARGETS[name]
    run = fuzz.Fuzz(name, target.check, tmp_path, 60)
    for data in fuzz.made(target.make, 20, 15):
        run.feed(data)
    assert (run.inputs, run.found) == (15, {})


def test_a_defect_is_kept_and_made_smaller(tmp_path: Path) -> None:
    def check(data: bytes) -> None:
        if b"x" in data and b"y" in data:
            raise ValueError(f"not {len(data)} of these")

    run = fuzz.Fuzz("extract", check, tmp_path, 10)
    for data in (b"a = 1\nb = x\nc = 3\nd = y + 4\n", b"y = x", b"x"):
        run.feed(data)
    assert [*run.found.values()] == [2]
    assert (tmp_path / "extract" / "001.txt").read_bytes() == b"xy"


def test_what_takes_too_long_is_a_defect(tmp_path: Path) -> None:
    def check(_data: bytes) -> None:
        while True:
            try:
                sum(range(1000))
            except Exception:  # noqa: BLE001, PERF203  # no handler for exceptions may keep it from ending
                continue

    run = fuzz.Fuzz("extract", check, tmp_path, 0.05)
    assert "takes more than" in (run.defect(b"") or "")


def test_a_seed_makes_the_same_inputs() -> None:
    make = fuzz_inputs.module
    first = [*fuzz.made(make, 3, 20)]
    assert first == [*fuzz.made(make, 3, 20)]
    assert first != [*fuzz.made(make, 4, 20)]
    assert len({*first}) > 15


def test_a_project_is_taken_apart() -> None:
    text = fuzz_inputs.joined([("main.py", "a"), ("pkg/io.py", "b\n")])
    assert fuzz_inputs.split(text.encode()) == {"main.py": b"a\n", "pkg/io.py": b"b\n"}
    assert fuzz_inputs.split(b"x\n") == {"main.py": b"x\n"}
    assert fuzz_inputs.project(Random(1))


FOUND = {
    "main.py": b"import shutil\nshutil.rmtree('out')\n",
    "pkg.py": b"import main\nif rank == 0:\n    pass\n",
    "start.py": b"import main\nfor x in get_rank():\n    pass\n",
}


def test_the_order_of_files_says_nothing(tmp_path: Path) -> None:
    """Of several signs that many processes run a line, the first is told: in the order of the names."""
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
def test_a_comment_says_nothing_new_without_a_code(text: str, is_made: bool, tmp_path: Path) -> None:
    read = source.decode(text.encode(), tmp_path / "a.py", tmp_path)
    assert isinstance(read, source.Source)
    unused = suppressions.apply(read, (), lambda _code: True, rules.codes()).unused
    assert (comments.alone(read, unused[0]) is not None) is is_made
