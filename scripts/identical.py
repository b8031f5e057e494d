"""One tree, checked in every way there is: the findings must be the same to the byte.

    python scripts/identical.py FOLDER...

The ways are: one, two and four processes; without a cache, with an empty and with a full one; each with
another hash seed, locale, time zone and order of the files in folders; objects in other places of
memory; everything looked at, and not what may be relevant alone; flake8 with two processes; and a daemon,
for files that are changed one after the other.
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
"""How many files are changed, every second one in its text."""
BY_FLAKE8: Final = 8
"""Of how many of these one is checked by flake8, too."""
SALTS: Final = ("1", "2")
ROW: Final = re.compile(r"(?P<path>.+):(?P<line>\d+):(?P<column>\d+): (?P<code>FSR\d{3}) (?P<message>.*)")


class Way(NamedTuple):
    """One way to check a tree: the options, and what came of it."""

    options: tuple[str, ...]
    report: bytes


def check(
    tree: Path,
    *options: str,
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] = PROGRAM,
) -> Way:
    """Check a tree with the command line; JSON, and what was listed on standard error."""
    command = [*program, "check", "--format=json", *options, "."]
    done = subprocess.run(command, cwd=tree, capture_output=True, check=False, env=environment)
    if done.returncode not in {0, 1, 2} or b"Traceback" in done.stderr:
        raise RuntimeError(f"{tree}: {command}: {done.returncode}: {done.stderr.decode(errors='replace')}")
    return Way(
        (*program[1:], *options), done.stdout + b"\n" + done.stderr + b"\nexit code %d\n" % done.returncode
    )


def ways(tree: Path, *options: str) -> list[Way]:
    """Check a tree in all ways of the command line; the first is that of one process without a cache."""
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
                # the first fills it
                found += [checked(f"--jobs={jobs}", f"--cache-dir={folder}") for _ in range(2)]
        return found


def different(tree: Path, *options: str) -> list[tuple[str, ...]]:
    """Give the ways that do not come to what the first of them does."""
    first, *others = ways(tree, *options)
    return [way.options for way in others if way.report != first.report]


def by_flake8(
    tree: Path, jobs: int, *options: str, named: str = ".", around: Mapping[str, str] | None = None
) -> list[tuple[str, ...]]:
    """Give what flake8 says of a tree, or of a file in it: path, line, column, code, message."""
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
    """Give the same of the command line, in the order of flake8."""
    document = json.JSONDecoder().raw_decode(check(tree, "--jobs=2", *options).report.decode())[0]
    # of a file that does not parse flake8 says so itself, and asks no plugin
    known = [row for row in document["findings"] if row["code"] != "FSR001"]
    return sorted(_plain({key: str(value) for key, value in row.items()}) for row in known)


def by_daemon(tree: Path, profile: str) -> list[str]:
    """Change files of a copy of a tree, and give those of which a daemon says something else.

    Of some, flake8 is asked as well, with a daemon and without one.
    """
    with tempfile.TemporaryDirectory(prefix="fsr-") as scratch:
        copy, around = Path(scratch) / "copy", {**os.environ, "XDG_RUNTIME_DIR": scratch}
        shutil.copytree(tree, copy, symlinks=True)
        (copy / "pyproject.toml").touch()  # the root of one project, whatever it was
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
                *(["too few were answered"] if _answered(daemon, around) < asked * 3 / 4 else []),
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
    """Say of each tree whether all ways come to the same."""
    failed = False
    for name in sys.argv[1:]:
        tree = Path(name)
        for options in ((), ("--profile=strict", "--show-silenced")):
            wrong = different(tree, *options)
            failed |= bool(wrong)
            print(f"{name} {' '.join(options)}: {wrong or 'the same in all ways'}", flush=True)
        ours, theirs = by_us(tree), by_flake8(tree, 2)
        failed |= ours != theirs
        only = [row[:4] for row in {*ours} ^ {*theirs}]
        print(f"{name} flake8: {len(ours)} findings, {sorted(only) or 'the same'}", flush=True)
        for profile in ("default", "strict"):
            others = by_daemon(tree, profile)
            failed |= bool(others)
            print(f"{name} daemon, {profile}: {others or 'the same'}", flush=True)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
