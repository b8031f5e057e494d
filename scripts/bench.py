"""Compare the speed and memory of `fsrace-lint check` with another command, and print a Markdown table.

    python scripts/bench.py DIRECTORY...
    python scripts/bench.py --installed transformers scipy
    python scripts/bench.py --growth DIRECTORY...
    python scripts/bench.py --rooms DIRECTORY...

The two commands run alternately, so other load on the machine affects both. Times are medians of all pairs,
and memory is that of the largest process of a run. Each tree is copied first, so the copy is a separate
project and the original is not modified.
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
REFERENCE: Final = "ruff check --isolated --no-cache --preview --select ALL -q --output-format concise ."
UNCOMPILED: Final = "PYTHONDONTWRITEBYTECODE"
"""A variable that makes Python compile modules in every run, if installation did not compile them."""
ENDS: Final = (0, 1)
"""The exit codes of a command that succeeded, with or without findings."""
MARKERS: Final = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
COLUMNS: Final = ("tree", "situation", "reference", "fsrace-lint", "ratio", "memory")
UNIT: Final = 1 if sys.platform == "darwin" else 1024
"""The unit of `ru_maxrss`, in bytes."""
FILES: Final = 40
"""The maximum number of files that are changed one by one."""
PAUSE: Final = 2.0
"""Seconds between two changes, in which the daemon prepares for the next request and frees memory."""
PATIENCE: Final = 600.0
"""Seconds to wait until the daemon has loaded a project."""
GROWTH: Final = ("trees", "lines", "reference", "fsrace-lint", "ratio", "memory", "seconds for 100 k lines")
STEP: Final = 1.5
"""The growth factor after which joined trees are measured again."""


class Usage(NamedTuple):
    """The time and peak memory of one run of a command."""

    seconds: float
    megabytes: float


class Pair(NamedTuple):
    """One run of the reference command, or None without one, and the run of fsrace-lint after it."""

    reference: Usage | None
    ours: Usage


def run(command: Sequence[str], folder: Path) -> Usage:
    """Run a command, and measure it together with its child processes.

    Raises:
        RuntimeError: The command failed or does not exist.
    """
    since = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=output
            )
        except OSError as error:
            raise RuntimeError(f"{shlex.join(command)}: {error.strerror}") from error
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - since
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        words = output.read().decode(errors="replace").strip()
    if process.returncode not in ENDS:
        raise RuntimeError(f"{shlex.join(command)} exited with code {process.returncode}: {words}")
    return Usage(seconds, usage.ru_maxrss * UNIT / 1e6)


def answered(command: Sequence[str], folder: Path, ends: Sequence[int]) -> Any:
    """Run a command that prints JSON, and return the parsed output.

    Raises:
        RuntimeError: The exit code is not in `ends`.
    """
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, check=False)
    if done.returncode not in ends:
        raise RuntimeError(
            f"{shlex.join(command)} exited with code {done.returncode}: {done.stderr.decode()}"
        )
    return json.loads(done.stdout)


def environment() -> dict[str, str]:
    """Return the environment of measured commands."""
    return {name: value for name, value in os.environ.items() if name != UNCOMPILED}


def pairs(reference: Sequence[str] | None, ours: Sequence[str], folder: Path, count: int) -> list[Pair]:
    """Run two commands alternately."""
    return [Pair(run(reference, folder) if reference else None, run(ours, folder)) for _ in range(count)]


def row(tree: str, situation: str, found: Sequence[Pair]) -> list[str]:
    """Return the cells of a row: medians with minimum and maximum, and the memory of the largest process."""
    ours = [pair.ours.seconds for pair in found]
    known = [(pair.reference.seconds, pair.ours.seconds) for pair in found if pair.reference is not None]
    reference = spread([there for there, _ in known], " s") if known else "-"
    ratio = spread([here / there for there, here in known], "") if known else "-"
    memory = f"{max(pair.ours.megabytes for pair in found):.0f} MB"
    return [tree, situation, reference, spread(ours, " s"), ratio, memory]


def spread(numbers: Sequence[float], unit: str) -> str:
    """Format the median, followed by the minimum and maximum if there are multiple numbers."""
    found = (statistics.median(numbers), min(numbers), max(numbers))
    middle, least, most = (f"{number:.2f}" for number in found)
    return f"{middle}{unit} ({least} to {most})" if len(numbers) > 1 else f"{middle}{unit}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield line(columns)
    yield line(["---"] * len(columns))
    yield from map(line, rows)


def line(cells: Iterable[str]) -> str:
    """Return one line of a Markdown table, with pipes escaped."""
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def sources(tree: Path) -> list[Path]:
    """Return the Python files of a tree, sorted by path."""
    return sorted(path for path in tree.rglob("*.py") if path.is_file())


def lines(tree: Path) -> int:
    """Count the lines of the Python files of a tree."""
    return sum(path.read_bytes().count(b"\n") for path in sources(tree))


def copied(tree: Path, target: Path) -> Path:
    """Copy the Python files of a tree with its `pyproject.toml` and `.gitignore`, and return the copy.

    The copy gets an empty `pyproject.toml` if nothing else marks it as a project.
    """
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
    """Return the directory of an installed package by its import name.

    Raises:
        RuntimeError: The package does not exist, or it is a single module.
    """
    found = importlib.util.find_spec(name) if name.isidentifier() else None
    places = [*(found.submodule_search_locations or ())] if found is not None else []
    if not places:
        raise RuntimeError(f"no package {name!r} is installed; pass its import name")
    return Path(places[0])


def has_cache() -> bool:
    """Return whether this version of fsrace-lint has a cache."""
    return "--cache-dir" in subprocess.check_output([*OURS, "--help"], text=True)


def situation_rows(tree: Path, name: str, wanted: argparse.Namespace, scratch: Path) -> Iterator[list[str]]:
    """Measure a tree in all situations, and yield a row for each."""
    reference: Sequence[str] | None = wanted.reference
    count, is_kept = wanted.pairs, has_cache()
    without = ["--no-cache"] if is_kept else []
    copy = copied(tree, scratch / "copy")
    run([*OURS, *without, os.fspath(middle(copy).relative_to(copy))], copy)  # compile modules if necessary
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
    """Check the file of median size repeatedly, each time with a different line appended."""
    changes = ((middle(copy), change % number) for number in range(count))
    return [changed_pair(reference, ours, copy, *each) for each in changes]


def any_file(ours: Sequence[str], copy: Path) -> list[Pair]:
    """Check a sample of the files of a tree one after the other, each with a statement appended."""
    return [changed_pair(None, ours, copy, file, "changed = 1") for file in from_all_over(copy)]


def from_all_over(tree: Path) -> list[Path]:
    """Return a sample of the files of a tree, evenly spaced in path order."""
    files = sources(tree)
    return files[:: max(len(files) // FILES, 1)][:FILES]


def in_editor(copy: Path) -> list[Pair]:
    """Check the same sample of files in one process with the analysis of the language server."""
    command = (sys.executable, __file__, "--edits", os.fspath(copy))
    *seconds, megabytes = answered(command, copy, (0,))
    return [Pair(None, Usage(each, megabytes)) for each in seconds]


def edits(tree: Path) -> Iterator[float]:
    """Open a sample of files as in an editor, append a statement to each, and measure the analysis.

    Yields:
        The seconds for each change, and finally the peak memory of this process in megabytes.
    """
    from fsrace_lint.integrations.server.analysis import Analysis, Where  # noqa: PLC0415  # only needed in this mode

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
    """Check files with a daemon, alternately with a program that only imports `click`.

    Raises:
        RuntimeError: The daemon does not answer.
    """
    asking = [*OURS, "--daemon"]
    # a separate runtime directory, so that the daemon of the current user is not used
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
                    run([*asking, os.fspath(file.relative_to(copy))], copy)  # the restored file
                    time.sleep(PAUSE)
            if int(daemon_output("status", r"(\d+) requests? served")) < sum(map(len, wanted)):
                raise RuntimeError("the daemon does not answer")
            memory = float(daemon_output("status", r"peak (\d+) MB"))
            return [
                [Pair(one.reference, one.ours._replace(megabytes=memory)) for one in each] for each in found
            ]
        finally:
            daemon_output("stop", "")


def wait_for_daemon(root: Path) -> None:
    """Wait until the daemon has loaded and analyzed a project.

    Raises:
        RuntimeError: The daemon takes longer than `PATIENCE`.
    """
    end = time.monotonic() + PATIENCE
    while not daemon_output("status", rf"(?m)(?:projects: |, ){re.escape(os.fspath(root))}(?:,|$)"):
        if time.monotonic() > end:
            raise RuntimeError(f"the daemon has not loaded {root} after {PATIENCE:.0f} s")
        time.sleep(0.1)


def daemon_output(verb: str, wanted: str) -> str:
    """Run a `daemon` command, and search its output.

    Args:
        verb: The command, such as `status`.
        wanted: A regular expression.

    Returns:
        The first group of the match, the whole match if the expression has no groups, or an empty string
        if nothing matches.
    """
    command = [sys.executable, "-m", "fsrace_lint", "daemon", verb]
    # not in the current directory, which can contain another version of fsrace-lint
    how: dict[str, Any] = {"cwd": tempfile.gettempdir(), "env": environment()}
    output = subprocess.run(command, **how, capture_output=True, text=True, check=True).stdout
    found = re.search(wanted, output)
    return "" if found is None else found[found.re.groups and 1]


def changed_pair(
    reference: Sequence[str] | None, ours: Sequence[str], copy: Path, file: Path, line: str
) -> Pair:
    """Run a pair of commands with a line appended to a file, and restore the file."""
    before = file.read_bytes()
    try:
        file.write_bytes(before + f"\n{line}\n".encode())
        (pair,) = pairs(reference, [*ours, os.fspath(file.relative_to(copy))], copy, 1)
    finally:
        file.write_bytes(before)
    return pair


def middle(tree: Path) -> Path:
    """Return the file of median size."""
    files = sorted(sources(tree), key=lambda path: path.stat().st_size)
    return files[len(files) // 2]


def growth_rows(
    trees: Sequence[tuple[str, Path]], scratch: Path, reference: Sequence[str] | None, count: int
) -> Iterator[list[str]]:
    """Join trees one by one, smallest first, and measure the result after each growth by `STEP`.

    All trees together are always measured.
    """
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
    """Return the cells of the row for one size."""
    seconds = statistics.median(pair.ours.seconds for pair in found)
    per = f"{seconds / total * 100_000:.2f}" if total else "-"
    return [*row(f"{number}: + {name}", f"{total:,}", found), per]


def rooms(tree: Path) -> dict[str, float]:
    """Return the seconds that each stage of a check takes in one process."""
    without = ["--no-cache"] if has_cache() else []
    command = [*OURS, *without, "--jobs=1", "--statistics", "--format=json", "."]
    found: dict[str, float] = answered(command, tree, ENDS)["statistics"]["seconds"]
    return found


def room_row(name: str, seconds: dict[str, float]) -> list[str]:
    """Return the cells of the row for one tree: seconds and percentage of each stage."""
    total = sum(seconds.values())
    return [name, *(f"{spent:.2f} s ({spent / (total or 1):.0%})" for spent in seconds.values())]


def options() -> argparse.Namespace:
    """Read the command line."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("trees", nargs="*", type=Path, help="directories with Python files")
    parser.add_argument(
        "--installed", nargs="+", default=[], metavar="NAME", help="also measure installed packages"
    )
    parser.add_argument("--reference", help=f"command to compare with (default: {REFERENCE})")
    parser.add_argument("--pairs", type=int, default=5, help="runs of each command (default: 5)")
    parser.add_argument(
        "--growth",
        action="store_true",
        help="join the trees one by one, and measure after each growth by half",
    )
    parser.add_argument("--rooms", action="store_true", help="show the time of each stage of a check")
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
        parser.error("pass a directory, or --installed with a package")
    return wanted


def report(wanted: argparse.Namespace, scratch: Path) -> Iterator[str]:
    """Yield the lines of the requested table."""
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
    """Measure all trees in all situations, and a program that only imports `click`."""
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
