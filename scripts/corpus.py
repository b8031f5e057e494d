"""Run the program over real code: what must hold everywhere, and what a change gains and loses.

    python scripts/corpus.py check FOLDER...
    python scripts/corpus.py compare [NAME...] [--clones FOLDER]
    python scripts/corpus.py record [NAME...] [--clones FOLDER]

`check` takes any folders: the files of an installed Python, unpacked wheels, a checkout. `compare` and
`record` take the codebases of `tests/corpus/codebases.toml`, each at one commit. They are cloned, or taken
from a folder with a clone of each: `OWNER/NAME`, `OWNER+NAME` or `NAME`, with a work tree or bare.

Only the Python files are copied into a temporary folder, with the settings and what git ignores. There the
program runs twice: in the default profile, and in the strict one with tests and documentation. Whatever the
code is, it ends with 0 or 1 and says nothing on standard error, and what `holding.py` says holds of its
reports.

A record has one line for each finding of the default profile: its place and its code. FSR001 is not in it,
because the running Python decides what it can parse.
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
"""What tells of a project which files it has, and how it is checked."""
REPORTED: Final = ("json", *holding.FORMATS, "full", "html")
"""The formats that are made; places in the last two are not compared: `full` groups findings of one cause."""
EACH_FIX: Final = ("sarif", "html")
"""The formats that make each fix alone to show it: of the default profile, for want of time."""
UNREADABLE: Final = "FSR001"
ENDS: Final = {False: 0, True: 1}
"""How the program ends, by whether it has found something."""
SECONDS: Final = 3600
SHOWN: Final = 50


class Broken(Exception):  # noqa: N818  # it is no error of this script
    """The program did not do its work; the message says how."""


class Run(NamedTuple):
    """One run of the program on a tree: every report by its format, and the seconds."""

    reports: dict[str, str]
    seconds: float

    @property
    def findings(self) -> list[dict[str, object]]:
        """The findings as data."""
        found: list[dict[str, object]] = json.loads(self.reports["json"])["findings"]
        return found


class Codebase(NamedTuple):
    """A public codebase at one commit."""

    name: str
    commit: str

    @property
    def record(self) -> str:
        """The name of the file with its findings."""
        return f"{self.name.replace('/', '+')}.txt"


def codebases(records: Path, names: Sequence[str]) -> list[Codebase]:
    """Read the list of codebases.

    Args:
        records: The folder of the list.
        names: Those that are wanted, or none for all.

    Returns:
        The codebases in the order of the list.

    Raises:
        Broken: One is not in the list.
    """
    with (records / LIST).open("rb") as file:
        listed = [Codebase(name, commit) for name, commit in tomllib.load(file)["codebases"].items()]
    missing = set(names) - {codebase.name for codebase in listed}
    if missing:
        raise Broken(f"not in {LIST}: {', '.join(sorted(missing))}")
    return [codebase for codebase in listed if not names or codebase.name in names]


def wanted(path: str) -> bool:
    """Tell whether a file is one that the program reads."""
    name = path.rpartition("/")[2]
    return name in ALSO or name.endswith(SUFFIXES)


def copied(tree: Path, target: Path) -> Path:
    """Copy what the program reads of a folder; the copy is a project of its own."""
    for folder, _, names in os.walk(tree):
        for name in filter(wanted, names):
            path = Path(folder, name)
            if path.is_file():
                place = target / path.relative_to(tree)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
    return project(target)


def project(tree: Path) -> Path:
    """Make sure that a folder is a project, whatever lies above it."""
    tree.mkdir(parents=True, exist_ok=True)
    (tree / "pyproject.toml").touch()
    return tree


def git(*arguments: str, data: bytes = b"", **environment: str) -> bytes:
    """Run git.

    Raises:
        Broken: It failed.
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
        clones: A folder of clones, or None to fetch it.
        scratch: An empty folder.

    Returns:
        The git directory.

    Raises:
        Broken: There is none, or it could not be fetched.
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
    """Write what the program reads of a codebase into a folder; the clone stays as it is."""
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
    """Run the program in a tree, with reports in all formats that its profile is worth.

    Args:
        tree: The folder.
        profile: One of `PROFILES`.
        scratch: A folder for the reports.

    Returns:
        What it reported.

    Raises:
        Broken: It failed, said something on standard error, or did not end.
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
        raise Broken(f"{profile}: not done after {SECONDS} s") from error
    seconds = time.perf_counter() - since
    said = done.stderr.decode(errors="replace").strip()
    if said or done.returncode not in ENDS.values():
        raise Broken(f"{profile}: ended with {done.returncode}: {said}")
    found = Run({name: file.read_text("utf-8") for name, file in files.items()}, seconds)
    if done.returncode != ENDS[bool(found.findings)]:
        raise Broken(f"{profile}: ended with {done.returncode} and {len(found.findings)} findings")
    return found


def looked_at(name: str, tree: Path, scratch: Path) -> tuple[list[str], Counter[str]]:
    """Check what must hold of a tree, and print a line about it.

    Returns:
        What does not hold, and the lines of the record, each with how often it stands there.
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
    """Give the findings that a record has."""
    return (finding for finding in findings if finding["code"] != UNREADABLE)


def line_of(finding: dict[str, object]) -> str:
    """Spell a finding as a record does."""
    return f"{finding['path']}:{finding['line']}:{finding['column']} {finding['code']}"


def title(codebase: Codebase) -> str:
    """Give the first line of a record: what it is of, and by which Python."""
    python = ".".join(map(str, sys.version_info[:2]))
    return f"# {codebase.name} {codebase.commit}, Python {python}"


def read_record(codebase: Codebase, records: Path) -> Counter[str]:
    """Read the record of a codebase: its lines, each with how often it stands there.

    Raises:
        Broken: There is no record, or it is of another commit.
    """
    file = records / codebase.record
    try:
        first, *lines = file.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise Broken(f"no record {file.name}: make one with `record {codebase.name}`") from error
    if first.partition(", ")[0] != title(codebase).partition(", ")[0]:
        raise Broken(f"{file.name} is of another commit: {first}")
    if first != title(codebase):
        print(f"{file.name} was recorded by another Python: {first.partition(', ')[2]}")
    return Counter(lines)


def write_record(codebase: Codebase, now: Counter[str], records: Path) -> None:
    """Write the record of a codebase."""
    text = "\n".join([title(codebase), *sorted(now.elements(), key=order_of)])
    (records / codebase.record).write_text(f"{text}\n", "utf-8")


def order_of(line: str) -> tuple[str, int, int, str]:
    """Give the key by which the lines of a record are sorted."""
    place, _, code = line.rpartition(" ")
    path, row, column = place.rsplit(":", 2)
    return path, int(row), int(column), code


def check(folders: Sequence[Path]) -> bool:
    """Check what must hold of folders; tell whether it does."""
    held = True
    for folder in folders:
        with tempfile.TemporaryDirectory() as scratch:
            tree = copied(folder, Path(scratch).resolve() / "tree")
            held &= not looked_at(folder.resolve().name, tree, Path(scratch))[0]
    return held


def pinned(chosen: argparse.Namespace) -> bool:
    """Record or compare codebases; tell whether all is as it was, and what must hold does."""
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
    folders = commands.add_parser("check", help="check what must hold of any folders")
    folders.add_argument("folders", nargs="+", type=Path)
    for name, told in (("compare", "print what was gained and lost"), ("record", "write the records anew")):
        command = commands.add_parser(name, help=told)
        command.add_argument("names", nargs="*", metavar="NAME", help="OWNER/NAME; by default all")
        command.add_argument("--clones", type=Path, help=f"a folder of clones, in the place of {HOST}")
        command.add_argument("--records", type=Path, default=RECORDS, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    for folder in getattr(chosen, "folders", ()):
        if not folder.is_dir():
            parser.error(f"no such folder: {folder}")
    return chosen


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for.

    Returns:
        0 if all holds and nothing was gained or lost, 1 if not, 2 if that could not be found out.
    """
    chosen = options(arguments)
    try:
        return not (check(chosen.folders) if chosen.command == "check" else pinned(chosen))
    except Broken as error:
        print(f"corpus.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
