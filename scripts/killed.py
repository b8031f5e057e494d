"""Kill `fsrace-lint fix` at every system call that it writes with, and check the files (Linux, strace).

    python scripts/killed.py
    python scripts/killed.py --error ENOSPC

Each run fixes a fresh copy of a small project. It is killed when it enters one system call or, with
`--error`, that call fails. The script tries every call from the creation of the first temporary file to the
last access of the project. Afterwards, every file must have its old or new content and its mode, and links
must still be links. The next run must finish the fixes and leave no temporary files.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

CALLS: Final = (
    "openat,write,pwrite64,fsync,fdatasync,close,rename,renameat,renameat2,link,linkat,unlink,unlinkat,"
    "chmod,fchmod,chown,fchown,fsetxattr,fremovexattr,newfstatat,fstat,getdents64"
)
FAILING: Final = frozenset(
    {
        "openat",
        "write",
        "fsync",
        "close",
        "rename",
        "renameat2",
        "fchmod",
        "fchown",
        "fsetxattr",
        "newfstatat",
    }
)
OLD: Final = b'import os\n\nif not os.path.exists("d"):\n    os.mkdir("d")\n'
NEW: Final = b'import os\n\nPath("d").mkdir(exist_ok=True)\n'
FILES: Final = {"a.py": 0o644, "pkg/b.py": 0o751, "pkg/c.py": 0o600}
_CALL: Final = re.compile(r"^(?:\[pid +\d+\] |\d+ +)?(\w+)\((.*)")


class Call(NamedTuple):
    """A system call: its name, and its 1-based position among the calls with that name."""

    name: str
    number: int


def project(folder: Path) -> None:
    """Create the project, and delete an earlier copy."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, mode in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(OLD)
        file.chmod(mode)
    (folder / "pyproject.toml").touch()
    (folder / "pkg" / "link.py").symlink_to("c.py")


def fix(folder: Path, *inject: str, log: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `fsrace-lint fix`, under strace if a fault is injected or calls are logged.

    Args:
        folder: The project.
        *inject: Options of strace that inject a fault.
        log: The file for the log of strace.
    """
    command = [sys.executable, "-m", "fsrace_lint", "fix", "--no-cache", "--quiet", "."]
    if inject or log:
        out = os.fspath(log or Path(os.devnull))
        command = ["strace", "-f", "-o", out, "-e", f"trace={CALLS}", *inject, *command]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def writing(log: Path) -> list[Call]:
    """Return the calls from the first temporary file to the last access of the project, and one more."""
    counts: collections.Counter[str] = collections.Counter()
    found: list[Call] = []
    end = 0
    for line in log.read_text(errors="replace").splitlines():
        match = _CALL.match(line)
        if match is None:
            continue
        counts[match[1]] += 1
        if found or ".fsrace-lint." in match[2]:
            found.append(Call(match[1], counts[match[1]]))
        if ".fsrace-lint." in match[2] or "/project" in match[2]:
            end = len(found) + 1
    return found[:end]


def state(folder: Path, new: dict[str, bytes]) -> tuple[list[str], list[str]]:
    """Check the files of the project.

    Args:
        folder: The project.
        new: The fixed content of each file.

    Returns:
        The problems, and the files that do not belong to the project.
    """
    wrong = []
    for name, mode in FILES.items():
        file = folder / name
        if not file.is_file():
            wrong.append(f"{name} is missing")
        elif file.read_bytes() not in (OLD, new[name]):
            wrong.append(f"{name} has unexpected content")
        elif stat.S_IMODE(file.stat().st_mode) != mode:
            wrong.append(f"{name} has a different mode")
    if not (folder / "pkg" / "link.py").is_symlink():
        wrong.append("pkg/link.py is not a symbolic link")
    known = {*FILES, "pyproject.toml", "pkg/link.py"}
    every = (str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())
    return wrong, sorted(set(every) - known)


def main() -> int:
    """Try every call, and return 1 if there are problems."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--error", help="make the call fail with this error instead of killing the process")
    parser.add_argument("--calls", help="only try these calls (comma-separated names)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder, log = Path(scratch, "project"), Path(scratch, "log")
        project(folder)
        done = fix(folder, log=log)
        new = {name: (folder / name).read_bytes() for name in FILES}
        if done.returncode != 0 or OLD in new.values():
            sys.exit(f"the project was not fixed: {done.stderr}")
        calls = writing(log)
        if chosen.error:
            calls = [call for call in calls if call.name in FAILING]
        if chosen.calls:
            calls = [call for call in calls if call.name in chosen.calls.split(",")]
        how = f"error={chosen.error}" if chosen.error else "signal=KILL"
        bad = left = 0
        codes: collections.Counter[int] = collections.Counter()
        for call in calls:
            if sys.stderr.isatty():
                print(call.name, call.number, file=sys.stderr)
            project(folder)
            done = fix(folder, "-e", f"inject={call.name}:{how}:when={call.number}")
            codes[done.returncode] += 1
            wrong, beside = state(folder, new)
            left += bool(beside)
            again = fix(folder)
            more, beside = state(folder, new)
            if again.returncode != 0 or any((folder / name).read_bytes() != new[name] for name in FILES):
                more.append(
                    f"the next run did not fix the project (exit code {again.returncode}): {again.stderr}"
                )
            if beside:
                more.append(f"the next run left {', '.join(beside)}")
            if "Traceback" in done.stderr or "internal error" in done.stderr:
                wrong.append(done.stderr.strip())
            for problem in (*wrong, *more):
                bad += 1
                print(f"{call.name} {call.number}: {problem}", flush=True)
        told = ", ".join(f"{code}: {number}" for code, number in sorted(codes.items()))
        print(
            f"{len(calls)} calls; exit codes {told}; temporary files left after {left} calls; {bad} problems"
        )
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
