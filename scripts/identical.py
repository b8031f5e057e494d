"""Check a tree in many configurations. The findings must be identical.

    python scripts/identical.py DIRECTORY...

The configurations:

* one, two, and four processes, each without a cache, with an empty cache, and with a full cache; each run has
  another hash seed, locale, time zone, and order of directory entries;
* other identity hashes of objects (`displaced.py`);
* all code analyzed, not only code that can be relevant (`exhaustive.py`);
* flake8 with two processes;
* the daemon, and flake8 with and without the daemon, for files that are changed one after the other.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from shuffled import surroundings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROGRAMS: Final = Path(sys.executable).parent
PROGRAM: Final = (os.fspath(PROGRAMS / "fsrace-lint"),)
DISPLACED: Final = (sys.executable, os.fspath(Path(__file__).with_name("displaced.py")))
EXHAUSTIVE: Final = (sys.executable, os.fspath(Path(__file__).with_name("exhaustive.py")))
JOBS: Final = (1, 2, 4)
CHANGED: Final = 40
"""The minimum number of files to change, if the tree has that many. Every second file keeps its content."""
BY_FLAKE8: Final = 8
"""The interval at which changed files are also checked with flake8."""
SALTS: Final = ("1", "2")
ROW: Final = re.compile(r"(?P<path>.+):(?P<line>\d+):(?P<column>\d+): (?P<code>FSR\d{3}) (?P<message>.*)")


class Way(NamedTuple):
    """A configuration: the options, and the output and exit code of a check."""

    options: tuple[str, ...]
    report: bytes


def check(
    tree: Path,
    *options: str,
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] = PROGRAM,
) -> Way:
    """Check a tree with the command line, and record both output streams and the exit code.

    Raises:
        RuntimeError: The check failed.
    """
    command = [*program, "check", "--format=json", *options, "."]
    done = subprocess.run(command, cwd=tree, capture_output=True, check=False, env=environment)
    if done.returncode not in {0, 1, 2} or b"Traceback" in done.stderr:
        raise RuntimeError(f"{tree}: {command}: {done.returncode}: {done.stderr.decode(errors='replace')}")
    return Way(
        (*program[1:], *options), done.stdout + b"\n" + done.stderr + b"\nexit code %d\n" % done.returncode
    )


def ways(tree: Path, *options: str) -> list[Way]:
    """Check a tree in all configurations of the command line. The first is one process without a cache."""
    with tempfile.TemporaryDirectory() as site:
        around = surroundings(Path(site))

        def checked(*chosen: str) -> Way:
            return check(tree, *chosen, *options, environment=next(around))

        found = [checked(f"--jobs={jobs}", "--no-cache") for jobs in JOBS]
        alone = ("--jobs=1", "--no-cache", *options)
        found += [check(tree, *alone, program=(*DISPLACED, salt)) for salt in SALTS]
        found.append(check(tree, *alone, program=EXHAUSTIVE))
        for jobs in JOBS:
            with tempfile.TemporaryDirectory() as folder:
                # the first run fills the cache
                found += [checked(f"--jobs={jobs}", f"--cache-dir={folder}") for _ in range(2)]
        return found


def different(tree: Path, *options: str) -> list[tuple[str, ...]]:
    """Return the options of the configurations whose output differs from the first."""
    first, *others = ways(tree, *options)
    return [way.options for way in others if way.report != first.report]


def by_flake8(
    tree: Path, jobs: int, *options: str, named: str = ".", around: Mapping[str, str] | None = None
) -> list[tuple[str, ...]]:
    """Check a tree, or a file in it, with flake8.

    Args:
        tree: The directory in which flake8 runs.
        jobs: The number of processes.
        *options: Additional options of flake8.
        named: The file or directory to check.
        around: The environment, or None for the current one.

    Returns:
        The path, line, column, code, and message of each finding, sorted.

    Raises:
        RuntimeError: flake8 failed.
    """
    command = [
        sys.executable,
        "-m",
        "flake8",
        "--isolated",
        "--select=FSR",
        f"--jobs={jobs}",
        *options,
        named,
    ]
    done = subprocess.run(command, cwd=tree, env=around, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1} or done.stderr:
        raise RuntimeError(f"{tree}: {command}: {done.stderr}")
    rows = [ROW.fullmatch(line) for line in done.stdout.splitlines()]
    return sorted(_plain(row.groupdict()) for row in rows if row is not None)


def by_us(tree: Path, *options: str) -> list[tuple[str, ...]]:
    """Check a tree with the command line, and return the findings as `by_flake8` does."""
    document = json.JSONDecoder().raw_decode(check(tree, "--jobs=2", *options).report.decode())[0]
    # flake8 itself reports files that do not parse, and does not run plugins on them
    known = [row for row in document["findings"] if row["code"] != "FSR001"]
    return sorted(_plain({key: str(value) for key, value in row.items()}) for row in known)


def by_daemon(tree: Path, profile: str) -> list[str]:
    """Rewrite files of a copy of a tree, and check each with and without the daemon.

    Some of the files are also checked with flake8, with and without the daemon.

    Returns:
        The files for which the outputs differ, and a note if the daemon answered too few requests.
    """
    with tempfile.TemporaryDirectory(prefix="fsr-") as scratch:
        copy, around = Path(scratch) / "copy", {**os.environ, "XDG_RUNTIME_DIR": scratch}
        shutil.copytree(tree, copy, symlinks=True)
        (copy / "pyproject.toml").touch()  # the copy is one project
        files = sorted(path for path in copy.rglob("*.py") if path.is_file() and not path.is_symlink())
        files = files[:: max(len(files) // CHANGED, 1)]
        daemon = [*PROGRAM, "daemon"]

        def told(*command: str, file: Path) -> tuple[bytes, int]:
            line = [*PROGRAM, "check", "--format=json", f"--profile={profile}", *command, named(file)]
            done = subprocess.run(line, cwd=copy, env=around, capture_output=True, check=False)
            return done.stdout + done.stderr, done.returncode

        def named(file: Path) -> str:
            return os.fspath(file.relative_to(copy))

        def told_by_flake8(*options: str, file: Path) -> list[tuple[str, ...]]:
            chosen = (f"--fsrace-profile={profile}", *options)
            return by_flake8(copy, 1, *chosen, named=named(file), around=around)

        try:
            told("--daemon", file=files[0])
            known = re.compile(rb"(?m)(?:projects: |, )" + re.escape(os.fsencode(copy)) + b"(?:,|$)")
            while not known.search(subprocess.check_output([*daemon, "status"], env=around)):
                time.sleep(0.2)
            wrong = []
            for number, file in enumerate(files):
                file.write_bytes(file.read_bytes() + b"\nchanged = 1\n"[number % 2 * 13 :])
                if told("--daemon", file=file) != told("--no-cache", file=file):
                    wrong.append(named(file))
                if number % BY_FLAKE8 == 0:
                    told_of = [told_by_flake8(*more, file=file) for more in (("--fsrace-daemon",), ())]
                    wrong += [] if told_of[0] == told_of[1] else [f"{named(file)} by flake8"]
            asked = len(files) + len(files[::BY_FLAKE8])
            return [
                *wrong,
                *(
                    ["the daemon answered too few requests"]
                    if _answered(daemon, around) < asked * 3 / 4
                    else []
                ),
            ]
        finally:
            subprocess.run([*daemon, "stop"], env=around, capture_output=True, check=False)


def _answered(daemon: Sequence[str], around: Mapping[str, str]) -> int:
    said = subprocess.check_output([*daemon, "status"], env=around, text=True)
    found = re.search(r"(\d+) requests? served", said)
    return 0 if found is None else int(found[1])


def _plain(row: dict[str, str]) -> tuple[str, ...]:
    path = row["path"].removeprefix("./")
    return path, row["line"], row["column"], row["code"], row["message"]


def main() -> None:
    """Print whether the findings are identical in all configurations of each tree."""
    failed = False
    for name in sys.argv[1:]:
        tree = Path(name)
        for options in ((), ("--profile=strict", "--show-silenced")):
            wrong = different(tree, *options)
            failed |= bool(wrong)
            print(f"{name} {' '.join(options)}: {wrong or 'identical in all configurations'}", flush=True)
        ours, theirs = by_us(tree), by_flake8(tree, 2)
        failed |= ours != theirs
        only = [row[:4] for row in {*ours} ^ {*theirs}]
        print(f"{name} flake8: {len(ours)} findings, {sorted(only) or 'identical'}", flush=True)
        for profile in ("default", "strict"):
            others = by_daemon(tree, profile)
            failed |= bool(others)
            print(f"{name} daemon, {profile}: {others or 'identical'}", flush=True)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
