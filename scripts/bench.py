"""How fast a check is beside another command, on any tree: pairs of runs, medians, peak memory, in Markdown.

    python scripts/bench.py FOLDER...
    python scripts/bench.py --installed transformers scipy
    python scripts/bench.py --growth FOLDER...
    python scripts/bench.py --rooms FOLDER...

The two commands run in turns, so that what else the machine does hits both. Memory is that of the largest
process of a run. Each tree is copied first, so it is a project of its own and stays as it is.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

OURS: Final = (sys.executable, "-m", "fsrace_lint", "check", "--quiet")
BARE: Final = (sys.executable, "-c", "import click")
REFERENCE: Final = "ruff check --isolated --no-cache --preview --select ALL -q ."
UNCOMPILED: Final = "PYTHONDONTWRITEBYTECODE"
"""What has Python compile all modules in each run, where they were not compiled when they were installed."""
ENDS: Final = (0, 1)
"""The exit codes of a command that did its work."""
MARKERS: Final = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
COLUMNS: Final = ("tree", "situation", "reference", "fsrace-lint", "ratio", "memory")
UNIT: Final = 1 if sys.platform == "darwin" else 1024
"""In what the system counts memory, in bytes."""
FILES: Final = 40
"""How many files are changed one by one."""
PAUSE: Final = 2.0
"""The seconds between two changes: a daemon that has answered prepares for the next, and frees memory."""
PATIENCE: Final = 600.0
"""The seconds within which a daemon knows a project."""
GROWTH: Final = ("trees", "lines", "reference", "fsrace-lint", "ratio", "memory", "seconds for 100 k lines")
STEP: Final = 1.5
"""By how much joined trees have grown where they are measured again."""


class Usage(NamedTuple):
    """What one run of a command took."""

    seconds: float
    megabytes: float


class Pair(NamedTuple):
    """One run of the reference, where there is one, and the run of ours after it."""

    reference: Usage | None
    ours: Usage


def run(command: Sequence[str], folder: Path) -> Usage:
    """Run a command, and measure it with all that it starts.

    Raises:
        RuntimeError: It failed, or there is no such command.
    """
    since = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=said
            )
        except OSError as error:
            raise RuntimeError(f"{shlex.join(command)}: {error.strerror}") from error
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - since
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        words = said.read().decode(errors="replace").strip()
    if process.returncode not in ENDS:
        raise RuntimeError(f"{shlex.join(command)} ended with {process.returncode}: {words}")
    return Usage(seconds, usage.ru_maxrss * UNIT / 1e6)


def answered(command: Sequence[str], folder: Path, ends: Sequence[int]) -> Any:
    """Run a command that prints JSON, and give that.

    Raises:
        RuntimeError: It ended with another code than it may.
    """
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, check=False)
    if done.returncode not in ends:
        raise RuntimeError(f"{shlex.join(command)} ended with {done.returncode}: {done.stderr.decode()}")
    return json.loads(done.stdout)


def environment() -> dict[str, str]:
    """Give the environment of what is measured."""
    return {name: value for name, value in os.environ.items() if name != UNCOMPILED}


def pairs(reference: Sequence[str] | None, ours: Sequence[str], folder: Path, count: int) -> list[Pair]:
    """Run two commands in turns."""
    return [Pair(run(reference, folder) if reference else None, run(ours, folder)) for _ in range(count)]


def row(tree: str, situation: str, found: Sequence[Pair]) -> list[str]:
    """Give the cells of a table: medians, the least and the most in brackets, and the largest process."""
    ours = [pair.ours.seconds for pair in found]
    known = [(pair.reference.seconds, pair.ours.seconds) for pair in found if pair.reference is not None]
    reference = spread([there for there, _ in known], " s") if known else "-"
    ratio = spread([here / there for there, here in known], "") if known else "-"
    memory = f"{max(pair.ours.megabytes for pair in found):.0f} MB"
    return [tree, situation, reference, spread(ours, " s"), ratio, memory]


def spread(numbers: Sequence[float], unit: str) -> str:
    """Spell a median, and between what it lies."""
    found = (statistics.median(numbers), min(numbers), max(numbers))
    middle, least, most = (f"{number:.2f}" for number in found)
    return f"{middle}{unit} ({least} to {most})" if len(numbers) > 1 else f"{middle}{unit}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Give the lines of a table in Markdown."""
    yield line(columns)
    yield line(["---"] * len(columns))
    yield from map(line, rows)


def line(cells: Iterable[str]) -> str:
    """Give one line of a table."""
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def sources(tree: Path) -> list[Path]:
    """Give the Python files of a tree in order."""
    return sorted(path for path in tree.rglob("*.py") if path.is_file())


def lines(tree: Path) -> int:
    """Count the lines of the Python files of a tree."""
    return sum(path.read_bytes().count(b"\n") for path in sources(tree))


def copied(tree: Path, target: Path) -> Path:
    """Copy the Python files of a tree, and what says that it is a project."""
    for path in sources(tree):
        place = target / path.relative_to(tree)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    for name in ("pyproject.toml", ".gitignore"):
        if (tree / name).is_file():
            shutil.copyfile(tree / name, target / name)
    if not any((target / name).exists() for name in MARKERS):
        target.mkdir(parents=True, exist_ok=True)
        (target / "pyproject.toml").touch()
    return target


def installed(name: str) -> Path:
    """Find the folder of an installed package by the name that is imported.

    Raises:
        RuntimeError: There is no such package, or it is one file.
    """
    found = importlib.util.find_spec(name) if name.isidentifier() else None
    places = [*(found.submodule_search_locations or ())] if found is not None else []
    if not places:
        raise RuntimeError(f"no package {name!r} is installed; it is the name that is imported")
    return Path(places[0])


def has_cache() -> bool:
    """Tell whether this fsrace-lint keeps what it read."""
    return "--cache-dir" in subprocess.check_output([*OURS, "--help"], text=True)


def situation_rows(tree: Path, name: str, wanted: argparse.Namespace, scratch: Path) -> Iterator[list[str]]:
    """Measure a tree in all situations."""
    reference: Sequence[str] | None = wanted.reference
    count, is_kept = wanted.pairs, has_cache()
    without = ["--no-cache"] if is_kept else []
    copy = copied(tree, scratch / "copy")
    run([*OURS, *without, os.fspath(middle(copy).relative_to(copy))], copy)  # it may have to be compiled
    yield row(name, "cold", pairs(reference, [*OURS, *without, "."], copy, count))
    kept = [f"--cache-dir={scratch / 'cache'}"] if is_kept else []
    if is_kept:
        run([*OURS, *kept, "."], copy)
        yield row(name, "warm", pairs(reference, [*OURS, *kept, "."], copy, count))
    for situation, change in (("one file", "changed = %d"), ("comment", "# changed %d")):
        if is_kept:
            run([*OURS, *kept, "."], copy)
        yield row(name, situation, one_file(reference, [*OURS, *kept], copy, count, change))
    yield row(name, "any file", any_file([*OURS, *kept], copy))
    yield row(name, "editor", in_editor(copy))
    if os.name == "posix":
        middles, others = by_daemon(copy, [[middle(copy)] * count, from_all_over(copy)])
        yield row(name, "one file by daemon", middles)
        yield row(name, "any file by daemon", others)


def one_file(
    reference: Sequence[str] | None, ours: Sequence[str], copy: Path, count: int, change: str
) -> list[Pair]:
    """Check one file, at whose end another line stands each time; it is that of middle size."""
    changes = ((middle(copy), change % number) for number in range(count))
    return [changed_pair(reference, ours, copy, *each) for each in changes]


def any_file(ours: Sequence[str], copy: Path) -> list[Pair]:
    """Check files from all over a tree, one after the other, at whose end another statement stands."""
    return [changed_pair(None, ours, copy, file, "changed = 1") for file in from_all_over(copy)]


def from_all_over(tree: Path) -> list[Path]:
    """Choose files of a tree."""
    files = sources(tree)
    return files[:: max(len(files) // FILES, 1)][:FILES]


def in_editor(copy: Path) -> list[Pair]:
    """Have the same files judged by what a language server does, in one process that knows the project."""
    command = (sys.executable, __file__, "--edits", os.fspath(copy))
    *seconds, megabytes = answered(command, copy, (0,))
    return [Pair(None, Usage(each, megabytes)) for each in seconds]


def edits(tree: Path) -> Iterator[float]:
    """Open files from all over a tree as in an editor, and measure a statement that is added to each.

    Yields:
        The seconds that each change takes, and at the end the memory of this process in megabytes.
    """
    from fsrace_lint.integrations.server.analysis import Analysis, Where  # noqa: PLC0415  # not what else is measured

    analysis = Analysis(Where(tree))

    def show(file: Path, text: str) -> None:
        analysis.update({file: text}, (), lambda: None)
        analysis.judge(file, lambda: None)

    for file in from_all_over(tree):
        text = file.read_text(encoding="utf-8", errors="replace")
        show(file, text)
        since = time.perf_counter()
        show(file, f"{text}\nchanged = 1\n")
        yield time.perf_counter() - since
    yield resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT / 1e6


def by_daemon(copy: Path, wanted: Sequence[Sequence[Path]]) -> list[list[Pair]]:
    """Have a daemon check files, in turns with a program that does nothing.

    Raises:
        RuntimeError: It does not answer.
    """
    asking = [*OURS, "--daemon"]
    # its own place: the daemon of whoever runs this is left alone
    with (
        tempfile.TemporaryDirectory(prefix="fsr-") as folder,
        mock.patch.dict(os.environ, XDG_RUNTIME_DIR=folder),
    ):
        try:
            run([*asking, os.fspath(wanted[0][0].relative_to(copy))], copy)
            wait_for_daemon(copy)
            found: list[list[Pair]] = []
            for files in wanted:
                found.append([])
                for file in files:
                    found[-1].append(changed_pair(BARE, asking, copy, file, "changed = 1"))
                    run([*asking, os.fspath(file.relative_to(copy))], copy)  # as it was
                    time.sleep(PAUSE)
            if int(told_by_daemon("status", r"(\d+) requests? served")) < sum(map(len, wanted)):
                raise RuntimeError("the daemon does not answer")
            memory = float(told_by_daemon("status", r"peak (\d+) MB"))
            return [
                [Pair(one.reference, one.ours._replace(megabytes=memory)) for one in each] for each in found
            ]
        finally:
            told_by_daemon("stop", "")


def wait_for_daemon(root: Path) -> None:
    """Wait until it knows a project, and has followed all of it.

    Raises:
        RuntimeError: That takes too long.
    """
    end = time.monotonic() + PATIENCE
    while not told_by_daemon("status", rf"(?m)(?:projects: |, ){re.escape(os.fspath(root))}(?:,|$)"):
        if time.monotonic() > end:
            raise RuntimeError(f"the daemon does not know {root} after {PATIENCE:.0f} s")
        time.sleep(0.1)


def told_by_daemon(verb: str, wanted: str) -> str:
    """Give what the daemon says that matches, the first group if there is one; empty if nothing does."""
    command = [sys.executable, "-m", "fsrace_lint", "daemon", verb]
    # from elsewhere, as the checks: where this is run from, another version may lie
    how: dict[str, Any] = {"cwd": tempfile.gettempdir(), "env": environment()}
    said = subprocess.run(command, **how, capture_output=True, text=True, check=True).stdout
    found = re.search(wanted, said)
    return "" if found is None else found[found.re.groups and 1]


def changed_pair(
    reference: Sequence[str] | None, ours: Sequence[str], copy: Path, file: Path, line: str
) -> Pair:
    """Check a file at whose end another line stands; afterwards it is as it was."""
    before = file.read_bytes()
    try:
        file.write_bytes(before + f"\n{line}\n".encode())
        (pair,) = pairs(reference, [*ours, os.fspath(file.relative_to(copy))], copy, 1)
    finally:
        file.write_bytes(before)
    return pair


def middle(tree: Path) -> Path:
    """Give the file of middle size."""
    files = sorted(sources(tree), key=lambda path: path.stat().st_size)
    return files[len(files) // 2]


def growth_rows(
    trees: Sequence[tuple[str, Path]], scratch: Path, reference: Sequence[str] | None, count: int
) -> Iterator[list[str]]:
    """Measure trees that are joined one by one, the smallest first, and all together."""
    ours = [*OURS, *(["--no-cache"] if has_cache() else []), "."]
    joined = scratch / "joined"
    joined.mkdir()
    (joined / "pyproject.toml").touch()
    total = measured = 0
    by_size = sorted((lines(tree), name, tree) for name, tree in trees)
    for number, (more, name, tree) in enumerate(by_size, 1):
        copied(tree, joined / f"{number}-{name}")
        total += more
        if total >= measured * STEP or number == len(trees):
            yield growth_row(number, name, total, pairs(reference, ours, joined, count))
            measured = total


def growth_row(number: int, name: str, total: int, found: Sequence[Pair]) -> list[str]:
    """Give the cells of one size."""
    seconds = statistics.median(pair.ours.seconds for pair in found)
    per = f"{seconds / total * 100_000:.2f}" if total else "-"
    return [*row(f"{number}: + {name}", f"{total:,}", found), per]


def rooms(tree: Path) -> dict[str, float]:
    """Tell what each room takes, in one process."""
    without = ["--no-cache"] if has_cache() else []
    command = [*OURS, *without, "--jobs=1", "--statistics", "--format=json", "."]
    found: dict[str, float] = answered(command, tree, ENDS)["statistics"]["seconds"]
    return found


def room_row(name: str, seconds: dict[str, float]) -> list[str]:
    """Give the cells of one tree: seconds, and the part of the whole."""
    total = sum(seconds.values())
    return [name, *(f"{spent:.2f} s ({spent / (total or 1):.0%})" for spent in seconds.values())]


def options() -> argparse.Namespace:
    """Read the command line."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("trees", nargs="*", type=Path, help="folders with Python files")
    parser.add_argument("--installed", nargs="+", default=[], metavar="NAME", help="installed packages too")
    parser.add_argument("--reference", help=f"what to run beside it in each tree; by default {REFERENCE}")
    parser.add_argument("--pairs", type=int, default=5, help="how often each is run (5)")
    parser.add_argument(
        "--growth", action="store_true", help="join the trees one by one, and measure what has grown by half"
    )
    parser.add_argument("--rooms", action="store_true", help="show where the time goes")
    parser.add_argument("--edits", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.edits is not None:
        return wanted
    if wanted.reference is None:
        folders = os.pathsep.join((os.fspath(Path(sys.executable).parent), os.environ.get("PATH", "")))
        found = shutil.which("ruff", path=folders)
        wanted.reference = found and shlex.quote(found) + REFERENCE.removeprefix("ruff")
    wanted.reference = wanted.reference and shlex.split(wanted.reference)
    for tree in wanted.trees:
        if not sources(tree):
            parser.error(f"no Python files below {tree}")
    if wanted.pairs < 1:
        parser.error("--pairs must be at least 1")
    if not wanted.trees and not wanted.installed:
        parser.error("name a folder, or --installed with a package")
    return wanted


def report(wanted: argparse.Namespace, scratch: Path) -> Iterator[str]:
    """Give the lines of what was asked for."""
    trees = [(tree.resolve().name, tree.resolve()) for tree in wanted.trees]
    trees += [(name, copied(installed(name), scratch / "installed" / name)) for name in wanted.installed]
    if wanted.growth:
        yield from table(GROWTH, growth_rows(trees, scratch, wanted.reference, wanted.pairs))
    elif wanted.rooms:
        found = {name: rooms(copied(tree, scratch / "rooms" / name)) for name, tree in trees}
        columns = ("tree", *next(iter(found.values())))
        yield from table(columns, (room_row(name, seconds) for name, seconds in found.items()))
    else:
        yield from table(COLUMNS, every_row(trees, wanted, scratch))


def every_row(
    trees: Sequence[tuple[str, Path]], wanted: argparse.Namespace, scratch: Path
) -> Iterator[list[str]]:
    """Measure all trees in all situations, and a program that does nothing."""
    for number, (name, tree) in enumerate(trees):
        title = f"{name}, {lines(tree):,} lines"
        yield from situation_rows(tree, title, wanted, scratch / str(number))
    yield row("-", "import click", pairs(None, BARE, scratch, wanted.pairs))


def main() -> None:
    """Print the table, line by line."""
    wanted = options()
    if wanted.edits is not None:
        print(json.dumps(list(edits(wanted.edits))))
        return
    with tempfile.TemporaryDirectory() as scratch:
        try:
            for text in report(wanted, Path(scratch).resolve()):
                print(text, flush=True)
        except RuntimeError as error:
            sys.exit(f"bench.py: {error}")


if __name__ == "__main__":
    main()
