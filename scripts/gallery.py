"""Run the gallery: filesystem races in released libraries, and the page that shows them.

python scripts/gallery.py                run every scenario whose library is installed
python scripts/gallery.py NAME ...       run these scenarios
python scripts/gallery.py --record ...   also write the reports to gallery/recorded/
python scripts/gallery.py --page         write docs/gallery.md and gallery/requirements.txt
python scripts/gallery.py --list         print the scenarios, and whether their libraries are installed

A scenario holds if `broken` fails, ten replays of its schedule fail in the same way, and all interleavings
of `repaired` pass. Install the libraries with `pip install -r gallery/requirements.txt`, in an environment of
their own.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

ROOT: Final = Path(__file__).resolve().parent.parent
GALLERY: Final = ROOT / "gallery"
INDEX: Final = GALLERY / "index.toml"
REQUIREMENTS: Final = GALLERY / "requirements.txt"
RECORDED: Final = GALLERY / "recorded"
PAGE: Final = ROOT / "docs" / "gallery.md"
REPLAYS: Final = 10
PARTS: Final = ("Promise", "Failure", "Harm", "Fix")
"""The paragraphs of the docstring of each scenario."""
STANDARD: Final = "CPython"
"""The library of scenarios of the standard library; its version is that of Python."""
LONGEST: Final = 900
"""The maximum number of seconds for one scenario."""
MODELS: Final = {
    "posix": {},
    "kill": {"crash": "kill"},
    "power": {"crash": "power"},
    "nfs": {"filesystem": "nfs"},
}
"""The models, and the options that select them."""
INTRODUCTION: Final = """\
Each entry is a function of a released library that documents, or is clearly meant for, use by multiple
processes at once. `fsrace-lint prove` runs the function of the library itself. Each entry has a schedule
that fails, and a repaired version that passes in all distinct interleavings.

To run an entry, install its library in an environment of its own:

```console
$ pip install -r gallery/requirements.txt
$ python scripts/gallery.py parso_cache
```

The script searches for a failing schedule, replays it ten times, and explores the repaired version. The
column *found after* is the number of schedules until the first failure. The models are:

- `posix`: a local filesystem;
- `kill`: one process, or all of them, can be killed at any call;
- `power`: the machine can also lose power;
- `nfs`: lookups can return stale results.

See [Prove a race](prove.md) for their exact meaning."""


class Entry(NamedTuple):
    """One scenario of the gallery.

    Attributes:
        name: The name of its file, without `.py`.
        library: The library on the registry, or `CPython`.
        version: The version that the scenario was written for.
        function: The function that fails.
        source: File and line of the function, below the directory of the installed packages.
        model: What can happen: see `MODELS`.
        options: Further options of `prove`.
        extra: Further requirements.
        limit: A word of the note on why not all of `repaired` can be explored, or an empty text.
    """

    name: str
    library: str
    version: str
    function: str
    source: str
    model: str
    options: dict[str, Any]
    extra: tuple[str, ...]
    limit: str

    @property
    def path(self) -> Path:
        """The file of the scenario."""
        return GALLERY / f"{self.name}.py"

    @property
    def recorded(self) -> Path:
        """The file of its recorded reports."""
        return RECORDED / f"{self.name}.txt"

    def docstring(self) -> str:
        """Return the docstring of the file, without importing it."""
        return ast.get_docstring(ast.parse(self.path.read_text("utf-8"))) or ""

    def missing(self) -> str:
        """Return why the scenario cannot run here, or an empty text."""
        if self.library == STANDARD:
            running = platform.python_version()
            is_same = running.split(".")[:2] == self.version.split(".")[:2]
            return "" if is_same else f"this is Python {running}, not {self.version}"
        try:
            found = importlib.metadata.version(self.library)
        except importlib.metadata.PackageNotFoundError:
            return f"{self.library}=={self.version} is not installed"
        return "" if found.split("+")[0] == self.version else f"{self.library} is {found}, not {self.version}"

    def command(self, function: str) -> str:
        """Return the command line that explores a function of the scenario."""
        words = [f"fsrace-lint prove gallery/{self.name}.py::{function}"]
        words += {"kill": ["--crash"], "power": ["--power-loss"], "nfs": ["--filesystem nfs"]}.get(
            self.model, []
        )
        for option, value in self.options.items():
            given = {"expected": "expect", "max_schedules": "max-schedules"}.get(option, option)
            shown = ",".join(value) if isinstance(value, list) else value
            words.append(f"--{given}" if value is True else f"--{given} {shown}")
        return " ".join(words)


class Outcome(NamedTuple):
    """What running a scenario gave.

    Attributes:
        problem: Why the scenario does not hold, or an empty text.
        broken: The report on `broken`.
        repaired: The report on `repaired`.
        seconds: The duration.
    """

    problem: str
    broken: str
    repaired: str
    seconds: float


def entries() -> list[Entry]:
    """Return all scenarios, in the order of the index."""
    index = tomllib.loads(INDEX.read_text("utf-8"))
    return [
        Entry(
            name,
            known["library"],
            known["version"],
            known["function"],
            known["source"],
            known["model"],
            known.get("options", {}),
            tuple(known.get("extra", ())),
            known.get("limit", ""),
        )
        for name, known in index.items()
    ]


def run(entry: Entry, *, shrink: bool = False) -> Outcome:
    """Run a scenario in a process of its own, because each library changes the process that imports it.

    Args:
        entry: The scenario.
        shrink: Whether to minimize the failing schedule, as for a report that is recorded.

    Returns:
        The outcome.
    """
    options = [] if shrink else ["--no-shrink"]
    code, said, error = _finished([sys.executable, __file__, "--inside", entry.name, *options])
    if code:
        return Outcome(f"the process ended with {code}: {error.strip()[-2000:]}", "", "", 0.0)
    return Outcome(**json.loads(said.splitlines()[-1]))


def _finished(command: list[str]) -> tuple[int, str, str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    with tempfile.TemporaryDirectory() as home:
        environment["HOME"] = home
        try:
            done = subprocess.run(
                command,
                env=environment,
                cwd=home,
                capture_output=True,
                text=True,
                timeout=LONGEST,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return 124, "", f"it did not finish within {LONGEST} s"
    return done.returncode, done.stdout, done.stderr


def explored(entry: Entry, *, shrink: bool) -> Outcome:
    """Run a scenario in this process."""
    from fsrace_lint.explore import explore  # noqa: PLC0415  # not needed for the page

    module = _imported(entry)
    options = {**MODELS[entry.model], **entry.options}
    options["expected"] = tuple(
        getattr(module, name, None) or getattr(builtins, name) for name in options.get("expected", ())
    )
    common = {
        "setup": getattr(module, "setup", None),
        "check": getattr(module, "check", None),
        "step_timeout": 60.0,
        **options,
    }
    broken = explore(module.broken, shrink=shrink, **common)
    seconds, problem = broken.seconds, ""
    if broken.failure is None:
        problem = f"no schedule fails: {broken}"
    elif broken.failure.fails_alone:
        problem = f"a process fails alone: {broken}"
    else:
        for number in range(1, REPLAYS + 1):
            again = explore(module.broken, replay=broken.failure.token, **common)
            seconds += again.seconds
            if again.failure is None or _shape(again.failure.text) != _shape(broken.failure.text):
                problem = f"replay {number} of {REPLAYS} differs: {again}"
                break
    repaired = explore(module.repaired, **common)
    is_limited = bool(entry.limit) and any(entry.limit in note for note in repaired.notes)
    if not problem and not (repaired.ok and (repaired.exhaustive or is_limited)):
        problem = f"not all interleavings of the repaired version pass: {repaired}"
    return Outcome(problem, str(broken), str(repaired), seconds + repaired.seconds)


def _shape(text: str) -> str:
    """Return a text without its numbers, such as the time in the name of a file."""
    return re.sub(r"\d+", "0", text)


def _imported(entry: Entry) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fsrace_scenario_{entry.name}", entry.path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{entry.path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def record(entry: Entry, outcome: Outcome) -> None:
    """Write the reports of a scenario."""
    RECORDED.mkdir(exist_ok=True)
    broken, repaired = entry.command("broken"), entry.command("repaired")
    text = f"$ {broken}\n{outcome.broken}\n\n$ {repaired}\n{outcome.repaired}\n"
    for folder in (ROOT, *map(Path, sysconfig.get_paths().values())):
        text = text.replace(f"{folder}/", "")
    entry.recorded.write_text(text, "utf-8")


def page() -> str:
    """Return the page of the gallery."""
    known = entries()
    parts = [
        "<!-- Generated by scripts/gallery.py from gallery/; do not edit. -->",
        "# Gallery: races in released libraries",
        INTRODUCTION,
        _table(known),
        *(part for entry in known for part in _section(entry)),
    ]
    return "\n\n".join(parts) + "\n"


def _table(known: Iterable[Entry]) -> str:
    rows = ["| library | function | model | found after | repaired |", "| --- | --- | --- | --- | --- |"]
    for entry in known:
        found = re.search(r"^Found after (\d+) ", entry.recorded.read_text("utf-8"), re.MULTILINE)
        passed = re.search(r"^OK: (?:(\d+) of|the only)", entry.recorded.read_text("utf-8"), re.MULTILINE)
        after = found[1] if found else "?"
        all_pass = f"{passed[1] or 1} of {passed[1] or 1} pass" if passed else "not all explored"
        link = f"[`{entry.function}`](#{_anchor(entry)})"
        rows.append(f"| `{entry.library}` {entry.version} | {link} | {entry.model} | {after} | {all_pass} |")
    return "\n".join(rows)


def _anchor(entry: Entry) -> str:
    title = _title(entry).lower().replace("`", "")
    return re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-")


def _title(entry: Entry) -> str:
    return entry.docstring().split("\n", 1)[0].rstrip(".")


def _section(entry: Entry) -> Iterator[str]:
    _, *paragraphs = entry.docstring().split("\n\n")
    yield f"## {_title(entry)}"
    function = f"`{entry.library}` {entry.version}, `{entry.function}` (`{entry.source}`)"
    yield f"{function}. Scenario: `gallery/{entry.name}.py`."
    for paragraph in paragraphs:
        part, _, text = paragraph.partition(": ")
        yield f"**{part}.** {text}"
    yield f"```console\n{entry.recorded.read_text('utf-8').rstrip()}\n```"


def requirements() -> str:
    """Return the pinned requirements of all scenarios."""
    pinned = {
        requirement
        for entry in entries()
        for requirement in (*entry.extra, f"{entry.library}=={entry.version}")
        if not requirement.startswith(STANDARD)
    }
    lines = ["# Generated by scripts/gallery.py --page from gallery/index.toml; do not edit."]
    return "\n".join([*lines, *sorted(pinned, key=str.lower)]) + "\n"


def main() -> int:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--record", action="store_true", help="write the reports to gallery/recorded/")
    parser.add_argument(
        "--page", action="store_true", help="write docs/gallery.md and gallery/requirements.txt"
    )
    parser.add_argument("--list", action="store_true", help="print the scenarios")
    parser.add_argument("--inside", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--no-shrink", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    known = {entry.name: entry for entry in entries()}
    if given.inside:
        print(json.dumps(explored(known[given.inside], shrink=not given.no_shrink)._asdict()))
        return 0
    if given.list:
        for entry in known.values():
            print(f"{entry.name:<30} {entry.missing() or 'installed'}")
        return 0
    if given.page:
        PAGE.write_text(page(), "utf-8")
        REQUIREMENTS.write_text(requirements(), "utf-8")
        return 0
    unknown = sorted(set(given.names) - set(known))
    if unknown:
        parser.error(f"unknown scenario: {', '.join(unknown)}")
    chosen = [known[name] for name in given.names or known]
    return _run_all(chosen, is_recording=given.record)


def _run_all(chosen: list[Entry], *, is_recording: bool) -> int:
    wrong = skipped = 0
    for entry in chosen:
        if missing := entry.missing():
            print(f"skipped  {entry.name}: {missing}", flush=True)
            skipped += 1
            continue
        outcome = run(entry, shrink=is_recording)
        wrong += bool(outcome.problem)
        print(
            f"{'FAILED  ' if outcome.problem else 'holds   '} {entry.name} ({outcome.seconds:.1f} s)",
            flush=True,
        )
        if outcome.problem:
            print(outcome.problem, flush=True)
        elif is_recording:
            record(entry, outcome)
    print(f"{len(chosen) - wrong - skipped} hold, {wrong} do not, {skipped} skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
