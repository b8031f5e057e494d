"""Check random parts of codebases. The findings must be those of the whole.

    python scripts/doors.py [--rounds N] [--seed N] DIRECTORY...

Each round checks some files and directories in the strict profile. The language server and flake8 check a few
of these files in the profile of the settings. flake8 leaves its cache in the directory.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from fsrace_lint.cli.commands.options import settings_of
from fsrace_lint.integrations.server.analysis import Analysis
from fsrace_lint.integrations.server.sessions import place
from fsrace_lint.pipeline import check as checking
from fsrace_lint.pipeline.project_cache import CacheUse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fsrace_lint.findings.finding import Finding

Row: TypeAlias = "tuple[str, int, str, str]"
FEW: Final = 3
"""The number of files for the language server and flake8 in each round."""
STRICT: Final[dict[str, Any]] = {"profile": "strict", "min_severity": "note"}


def main() -> None:
    """Check the codebases, and exit with status 1 if a part differs from the whole."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("directories", nargs="+", type=Path)
    options = parser.parse_args()
    differ = 0
    for directory in [path.resolve() for path in options.directories]:
        os.chdir(directory)
        with tempfile.TemporaryDirectory() as cache:
            chance = random.Random(options.seed)  # noqa: S311  # nothing secret
            differ += compared(chance, options.rounds, cache)
    sys.exit(1 if differ else 0)


def compared(chance: random.Random, rounds: int, cache: str) -> int:
    """Compare random parts of the current directory with the whole, and return how many differ."""
    began = time.monotonic()
    whole, files = checked(["."], cache, STRICT)
    usual, _ = checked(["."], cache, {})
    analyses: dict[Path, Analysis] = {}
    every = sorted(files)
    folders = sorted({str(folder) for name in every for folder in Path(name).parents} - {"."})
    interesting = sorted({row[0] for row in whole} & files)
    differ, seen = 0, 0
    for _ in range(rounds):
        named = chance.sample(every, min(4, len(every))) + chance.sample(folders, min(1, len(folders)))
        named = chance.sample(named, chance.randint(1, len(named)))
        named += chance.sample(interesting, min(2, len(interesting)))
        part, some = checked(named, cache, STRICT)
        seen += len(part)
        few = [name for name in named if name in files][-FEW:]
        ways = {
            "check": (part, {row for row in whole if row[0] in some}),
            "server": (by_server(few, analyses), {row for row in usual if row[0] in few}),
            "flake8": (by_flake8(few) if few else set(), {row for row in usual if row[0] in few}),
        }
        for way, (found, expected) in ways.items():
            differ += found != expected
            for row in sorted(found ^ expected):
                print(f"  {way} {named}: {'more' if row in found else 'less'}: {row}", flush=True)
        if some - files:
            print(f"  {named}: only checked as part: {sorted(some - files)}", flush=True)
    name, seconds = Path.cwd().name, time.monotonic() - began
    told = f"{len(every)} files, {len(whole)} findings, {rounds} parts with {seen} findings"
    print(f"{name}: {told}: {differ} differ ({seconds:.0f} s)", flush=True)
    return differ


def checked(names: Sequence[str], cache: str, changes: dict[str, Any]) -> tuple[set[Row], set[str]]:
    """Check files and directories with cached facts.

    Returns:
        The findings, and the files that were checked.
    """
    chosen, problems = settings_of([Path(name) for name in names], {**changes, "cache_dir": cache})
    if problems:
        sys.exit(f"{Path.cwd()}: {problems}")
    ran = checking.check(list(chosen), chosen.__getitem__, cache=CacheUse.FACTS, force_exclude=True)
    files = {run.files[relative].path for run, _ in ran for relative in run.targets}
    found = (finding for _, one in ran for finding in one.outcome.findings)
    return rows(finding for finding in found if finding.place.path in files), files


def rows(findings: Iterable[Finding]) -> set[Row]:
    """Return findings in a form that can be compared."""
    return {(one.place.path, one.place.span.line, one.code, one.message) for one in findings}


def by_server(names: Sequence[str], analyses: dict[Path, Analysis]) -> set[Row]:
    """Return the findings of the language server, given its projects, which are added."""
    found: set[Row] = set()
    for name in names:
        file = Path(name).absolute()
        where = place(file, [Path.cwd()])
        analysis = analyses.setdefault(where.root, Analysis(where))
        analysis.update({file: file.read_text("utf-8")}, set(), lambda: None)
        found |= rows(analysis.judge(file, lambda: None))
    return found


def by_flake8(names: Sequence[str]) -> set[Row]:
    """Return the findings of flake8."""
    form = "--format=%(path)s\t%(row)d\t%(code)s\t%(text)s"
    options = ("--isolated", "--jobs=1", "--select=FSR", form)
    done = subprocess.run(
        [sys.executable, "-m", "flake8", *options, *names], capture_output=True, encoding="utf-8", check=False
    )
    lines = (line.removeprefix("./").split("\t") for line in done.stdout.splitlines())
    return {(path, int(line), code, message) for path, line, code, message in lines}


if __name__ == "__main__":
    main()
