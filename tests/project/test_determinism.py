"""Output does not depend on the hash seed, jobs, locale, time zone, umask, or order of files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from shuffled import surroundings
from support import ROOT, SCRIPTS
from support.cli import HAZARD, write
from support.linking import project

from fsrace_lint import rules
from fsrace_lint.report import FORMATS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("here")


WAYS = [
    ["--jobs=1", "--no-cache", "."],
    ["--jobs=3", "."],
    ["--jobs=2", "."],
    ["b.py", "pkg", "a.py", "é.py", "start.py"],
    ["start.py", "é.py", "a.py", "b.py", "pkg"],
]


@pytest.mark.parametrize("form", ["full", "trace", "json", "sarif"])
def test_output_does_not_depend_on_the_environment(
    form: str, here: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert form in FORMATS
    around = surroundings(tmp_path_factory.mktemp("site"))
    write(dict.fromkeys(("a.py", "b.py", "é.py", "pkg/__init__.py", "pkg/io.py"), HAZARD))
    write({"start.py": "import a, b, pkg.io\nimport torch.distributed as dist\ndist.init_process_group()\n"})
    outputs = set()
    for number, arguments in enumerate(WAYS):
        done = subprocess.run(
            [sys.executable, "-m", "fsrace_lint", "check", f"--format={form}", *arguments],
            capture_output=True,
            env=next(around),
            umask=(0o022, 0o077, 0)[number % 3],
            check=False,
        )
        assert done.returncode == 1, done.stderr
        outputs.add(done.stdout)
    assert len(outputs) == 1


BRANCH = "    if kind == {0}:\n        with open(path, 'wb') as file:\n            file.write(data)\n"
SEVERAL = (
    "import os\n\ndef put(path, data, kind):\n"
    + "".join(map(BRANCH.format, range(40)))
    + "\ndef save(data, kind):\n    if int(os.environ['LOCAL_RANK']) == 0:\n"
    + "        put('/shared/out.bin', data, kind)\n"
)


def test_first_of_multiple_writes_in_a_call_is_reported() -> None:
    linked = project({"main.py": SEVERAL})
    (module,) = linked.flows.table.modules
    about = linked.about(module)
    found = [finding for rule in rules.load() if rule.check for finding in rule.check(about)]
    lines = [finding.related[0].place.span.line for finding in found if finding.code == "FSR405"]
    assert lines == [SEVERAL[: SEVERAL.index("open(")].count("\n") + 1]


def test_output_does_not_depend_on_memory_addresses(here: Path) -> None:
    shutil.copytree(ROOT / "examples", here / "examples")
    write({"several.py": SEVERAL, "hazard.py": HAZARD})
    ends = ["check", "--profile=strict", "--show-silenced", "--jobs=1", "--no-cache", "."]
    programs = [["-m", "fsrace_lint"], *([str(SCRIPTS / "displaced.py"), str(salt)] for salt in range(4))]
    runs = [
        subprocess.run([sys.executable, *program, *ends], capture_output=True, check=False)
        for program in programs
    ]
    assert [done.returncode for done in runs] == [1] * len(programs), runs[0].stderr
    assert b"FSR405" in runs[0].stdout
    assert b"examples/" in runs[0].stdout
    assert len({done.stdout for done in runs}) == 1
