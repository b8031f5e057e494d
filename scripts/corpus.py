"""Run fsrace-lint on real code: check the invariants of its reports, and compare findings with records.

    python scripts/corpus.py check DIRECTORY...
    python scripts/corpus.py compare [NAME...] [--clones DIRECTORY]
    python scripts/corpus.py record [NAME...] [--clones DIRECTORY]

`check` accepts any directories: the files of an installed Python, unpacked wheels, a checkout. `compare` and
`record` use the codebases of `tests/corpus/codebases.toml`, each at one commit. The codebases are fetched
from GitHub, or read from a directory with a clone of each: `OWNER/NAME`, `OWNER+NAME`, or `NAME`, with a
work tree or bare.

Only Python files, `pyproject.toml`, and `.gitignore` are copied to a temporary directory. fsrace-lint runs
there twice: with the default profile, and with the strict profile, including tests and documentation. It must
exit with code 0 or 1 and print nothing to standard error. Its reports must have the invariants of
`holding.py`.

A record has one line for each finding of the default profile: its location and its code. Records do not
include FSR001, because it depends on what the running Python can parse.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import holding

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

RECORDS: Final = Path(__file__).parent.parent / "tests" / "corpus"
LIST: Final = "codebases.toml"
HOST: Final = "https://github.com"
OURS: Final = (sys.executable, "-m", "fsrace_lint", "check", "--quiet", "--no-cache", ".")
PROFILES: Final = {"default": (), "strict": ("--profile=strict", "--include-tests", "--show-silenced")}
SUFFIXES: Final = (".py", ".pyw")
ALSO: Final = ("pyproject.toml", ".gitignore")
"""The files that decide which files a project has and how they are checked."""
REPORTED: Final = ("json", *holding.FORMATS, "full", "html")
"""The formats of the reports.

The last two are only written, not compared with the JSON report. `full` groups findings with one cause.
"""
EACH_FIX: Final = ("sarif", "html")
"""The formats that compute each fix separately; to save time, only the default profile writes them."""
UNREADABLE: Final = "FSR001"
ENDS: Final = {False: 0, True: 1}
"""The expected exit code, by whether there are findings."""
SECONDS: Final = 3600
SHOWN: Final = 50


class Broken(Exception):  # noqa: N818  # an expected outcome, not an error
    """A run failed, or a codebase, clone, or record is unusable. The message explains why."""


class Run(NamedTuple):
    """One run of fsrace-lint on a tree: the reports by format, and the seconds that it took."""

    reports: dict[str, str]
    seconds: float

    @property
    def findings(self) -> list[dict[str, object]]:
        """The findings of the JSON report."""
        found: list[dict[str, object]] = json.loads(self.reports["json"])["findings"]
        return found


class Codebase(NamedTuple):
    """A public codebase at one commit."""

    name: str
    commit: str

    @property
    def record(self) -> str:
        """The name of the file that records its findings."""
        return f"{self.name.replace('/', '+')}.txt"


def codebases(records: Path, names: Sequence[str]) -> list[Codebase]:
    """Read the list of codebases.

    Args:
        records: The directory of the list.
        names: The names of the codebases to return, or none for all.

    Returns:
        The codebases in the order of the list.

    Raises:
        Broken: A name is not in the list.
    """
    with (records / LIST).open("rb") as file:
        listed = [Codebase(name, commit) for name, commit in tomllib.load(file)["codebases"].items()]
    missing = set(names) - {codebase.name for codebase in listed}
    if missing:
        raise Broken(f"not in {LIST}: {', '.join(sorted(missing))}")
    return [codebase for codebase in listed if not names or codebase.name in names]


def wanted(path: str) -> bool:
    """Return whether fsrace-lint reads a file with this path."""
    name = path.rpartition("/")[2]
    return name in ALSO or name.endswith(SUFFIXES)


def copied(tree: Path, target: Path) -> Path:
    """Copy the files of a directory that fsrace-lint reads, and return the copy as a separate project."""
    for folder, _, names in os.walk(tree):
        for name in filter(wanted, names):
            path = Path(folder, name)
            if path.is_file():
                place = target / path.relative_to(tree)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
    return project(target)


def project(tree: Path) -> Path:
    """Create `pyproject.toml` in a directory, so that it is a project whatever its parents contain."""
    tree.mkdir(parents=True, exist_ok=True)
    (tree / "pyproject.toml").touch()
    return tree


def git(*arguments: str, data: bytes = b"", **environment: str) -> bytes:
    """Run git, and return its standard output.

    Args:
        *arguments: The command line.
        data: The standard input.
        **environment: Additional environment variables.

    Raises:
        Broken: The command failed.
    """
    command = ["git", *arguments]
    try:
        return subprocess.run(
            command, input=data, capture_output=True, check=True, env={**os.environ, **environment}
        ).stdout
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise Broken(f"git failed: {said}") from error


def clone(codebase: Codebase, clones: Path | None, scratch: Path) -> Path:
    """Find the git directory of a codebase, or fetch its commit.

    Args:
        codebase: The codebase.
        clones: A directory of clones, or None to fetch the commit.
        scratch: An empty directory.

    Returns:
        The git directory.

    Raises:
        Broken: The clone does not exist, or the commit could not be fetched.
    """
    if clones is None:
        folder = scratch / "clone"
        git("init", "--quiet", "--bare", os.fspath(folder))
        remote = f"{HOST}/{codebase.name}"
        git(f"--git-dir={folder}", "fetch", "--quiet", "--depth=1", remote, codebase.commit)
        return folder
    owner, _, name = codebase.name.rpartition("/")
    for spelled in (codebase.name, f"{owner}+{name}", name):
        for inside in (".git", "repo/.git", "repo", ""):
            if (clones / spelled / inside / "HEAD").is_file():
                return clones / spelled / inside
    raise Broken(f"no clone of {codebase.name} in {clones}")


def checked_out(codebase: Codebase, clones: Path | None, scratch: Path) -> Path:
    """Check out the files of a codebase that fsrace-lint reads, without modifying the clone.

    Args:
        codebase: The codebase.
        clones: A directory of clones, or None to fetch the commit.
        scratch: An empty directory, in which the files are written.

    Returns:
        The directory of the files.

    Raises:
        Broken: The clone does not exist, or git failed.
    """
    directory = f"--git-dir={clone(codebase, clones, scratch)}"
    listed = git(directory, "ls-tree", "-r", "-z", "--name-only", codebase.commit)
    files = b"".join(path + b"\0" for path in listed.split(b"\0") if wanted(os.fsdecode(path)))
    tree = project(scratch / "tree")
    index = os.fspath(scratch / "index")
    git(directory, "read-tree", codebase.commit, GIT_INDEX_FILE=index)
    to = (f"--work-tree={tree}", "checkout-index", "--force", "-z", "--stdin", f"--prefix={tree}/")
    git(directory, *to, data=files, GIT_INDEX_FILE=index)
    return tree


def run(tree: Path, profile: str, scratch: Path) -> Run:
    """Run fsrace-lint in a tree, and write a report in each format of the profile.

    Args:
        tree: The directory.
        profile: A name in `PROFILES`.
        scratch: A directory for the reports.

    Returns:
        The reports and the duration.

    Raises:
        Broken: The run failed, timed out, or printed to standard error.
    """
    formats = [name for name in REPORTED if name not in EACH_FIX or profile == "default"]
    files = {name: scratch / f"{profile}.{name}" for name in formats}
    reports = [f"--report={name}={file}" for name, file in files.items()]
    since = time.perf_counter()
    try:
        done = subprocess.run(
            [*OURS, *PROFILES[profile], *reports], cwd=tree, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise Broken(f"{profile}: timed out after {SECONDS} s") from error
    seconds = time.perf_counter() - since
    said = done.stderr.decode(errors="replace").strip()
    if said or done.returncode not in ENDS.values():
        raise Broken(f"{profile}: exited with code {done.returncode}: {said}")
    found = Run({name: file.read_text("utf-8") for name, file in files.items()}, seconds)
    if done.returncode != ENDS[bool(found.findings)]:
        raise Broken(f"{profile}: exited with code {done.returncode} and {len(found.findings)} findings")
    return found


def looked_at(name: str, tree: Path, scratch: Path) -> tuple[list[str], Counter[str]]:
    """Check the invariants of the reports on a tree, and print a summary.

    Returns:
        The violations, and the lines of the record with their counts.
    """
    broken: list[str] = []
    findings: dict[str, list[dict[str, object]]] = {}
    seconds = 0.0
    for profile in PROFILES:
        try:
            done = run(tree, profile, scratch)
        except Broken as error:
            broken.append(str(error))
            continue
        findings[profile] = done.findings
        seconds += done.seconds
        broken += [f"{profile}: {what}" for what in holding.broken(tree, done.reports)]
    count = sum(1 for path in tree.rglob("*") if path.suffix in SUFFIXES)
    numbers = ", ".join(f"{len(found)} {profile}" for profile, found in findings.items()) or "none"
    print(f"{name}: {count} files; findings: {numbers}; {seconds:.0f} s", flush=True)
    for line in broken[:SHOWN]:
        print(f"  ! {line}")
    if len(broken) > SHOWN:
        print(f"  ! and {len(broken) - SHOWN} more")
    return broken, Counter(map(line_of, recorded(findings.get("default", ()))))


def recorded(findings: Iterable[dict[str, object]]) -> Iterator[dict[str, object]]:
    """Yield the findings that a record includes."""
    return (finding for finding in findings if finding["code"] != UNREADABLE)


def line_of(finding: dict[str, object]) -> str:
    """Return the line of a record for a finding."""
    return f"{finding['path']}:{finding['line']}:{finding['column']} {finding['code']}"


def title(codebase: Codebase) -> str:
    """Return the first line of a record: the codebase, its commit, and the Python version."""
    python = ".".join(map(str, sys.version_info[:2]))
    return f"# {codebase.name} {codebase.commit}, Python {python}"


def read_record(codebase: Codebase, records: Path) -> Counter[str]:
    """Return the lines of the record of a codebase with their counts.

    Raises:
        Broken: The record does not exist, is empty, or is for a different commit.
    """
    file = records / codebase.record
    try:
        first, *lines = file.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise Broken(f"no record {file.name}: create it with `record {codebase.name}`") from error
    if first.partition(", ")[0] != title(codebase).partition(", ")[0]:
        raise Broken(f"{file.name} is for a different commit: {first}")
    if first != title(codebase):
        print(f"{file.name} was recorded with a different Python version: {first.partition(', ')[2]}")
    return Counter(lines)


def write_record(codebase: Codebase, now: Counter[str], records: Path) -> None:
    """Write the record of a codebase."""
    text = "\n".join([title(codebase), *sorted(now.elements(), key=order_of)])
    (records / codebase.record).write_text(f"{text}\n", "utf-8")


def order_of(line: str) -> tuple[str, int, int, str]:
    """Return the key that sorts the lines of a record."""
    place, _, code = line.rpartition(" ")
    path, row, column = place.rsplit(":", 2)
    return path, int(row), int(column), code


def check(folders: Sequence[Path]) -> bool:
    """Check the invariants of the reports on each directory, and return whether they hold."""
    held = True
    for folder in folders:
        with tempfile.TemporaryDirectory() as scratch:
            tree = copied(folder, Path(scratch).resolve() / "tree")
            held &= not looked_at(folder.resolve().name, tree, Path(scratch))[0]
    return held


def pinned(chosen: argparse.Namespace) -> bool:
    """Record codebases, or compare them with their records.

    Returns:
        Whether the invariants hold and a comparison found no differences.
    """
    same, wanted_ones = True, codebases(chosen.records, chosen.names)
    before = {one: read_record(one, chosen.records) for one in wanted_ones if chosen.command == "compare"}
    for codebase in wanted_ones:
        with tempfile.TemporaryDirectory() as scratch:
            tree = checked_out(codebase, chosen.clones, Path(scratch).resolve())
            broken, now = looked_at(codebase.name, tree, Path(scratch))
        same &= not broken
        if chosen.command == "record":
            write_record(codebase, now, chosen.records)
            continue
        difference = {"+": now - before[codebase], "-": before[codebase] - now}
        for mark, lines in difference.items():
            for line in sorted(lines.elements(), key=order_of):
                print(f"  {mark} {line}")
        same &= not any(difference.values())
    return same


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    commands = parser.add_subparsers(dest="command", required=True)
    folders = commands.add_parser("check", help="check the invariants of the reports on any directories")
    folders.add_argument("folders", nargs="+", type=Path)
    for name, told in (("compare", "print added and removed findings"), ("record", "rewrite the records")):
        command = commands.add_parser(name, help=told)
        command.add_argument("names", nargs="*", metavar="NAME", help="OWNER/NAME (default: all)")
        command.add_argument("--clones", type=Path, help=f"directory of clones to use instead of {HOST}")
        command.add_argument("--records", type=Path, default=RECORDS, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    for folder in getattr(chosen, "folders", ()):
        if not folder.is_dir():
            parser.error(f"no such directory: {folder}")
    return chosen


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the requested command.

    Returns:
        0 if all invariants hold and findings are unchanged, 1 if not, and 2 if a clone or a record is
        unusable.
    """
    chosen = options(arguments)
    try:
        return not (check(chosen.folders) if chosen.command == "check" else pinned(chosen))
    except Broken as error:
        print(f"corpus.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
