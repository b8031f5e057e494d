"""Fuzz the parts of fsrace-lint with generated inputs, and save the inputs that reveal defects.

    python scripts/fuzz.py                              # 1,000 inputs for each target
    python scripts/fuzz.py extract link --runs 100000 --seed 7
    python scripts/fuzz.py fixes --source hypothesmith  # pip install hypothesmith
    python scripts/fuzz.py extract --source atheris     # pip install atheris; guided by code coverage
    python scripts/fuzz.py link --replay FILE...

An input reveals a defect if the target raises an exception, exceeds the time limit, or violates a check in
`fuzz_targets.py`. For each defect, one input is minimized and saved in the directory of the target. The same
seed generates the same inputs. The exit code is 1 if a defect was found.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import re
import signal
import sys
import time
import traceback
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOM: Final = "fsrace_lint"
NAMES: Final = ("extract", "suppress", "settings", "catalog", "link", "fixes")
SOURCES: Final = ("grammar", "hypothesmith", "atheris")
_TRIES: Final = 600
"""The maximum number of attempts to minimize an input."""


class OverdueError(BaseException):
    """An input exceeded its time limit. Not an `Exception`, so that no handler in the program catches it."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Limit the processor time of a block, which other load on the machine does not affect.

    Without `signal.setitimer`, there is no limit.

    Raises:
        OverdueError: The block exceeded the limit.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return

    def end(*_: object) -> None:
        raise OverdueError(f"takes more than {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Fuzz:
    """A target and the defects found in it."""

    def __init__(self, name: str, check: Callable[[bytes], None], folder: Path, limit: float) -> None:
        """Initialize without defects.

        Args:
            name: The name of the target.
            check: A function that raises an exception if an input reveals a defect.
            folder: The directory in which each target has a directory of saved inputs.
            limit: The maximum processor time for one input, in seconds.
        """
        self.name, self.check, self.folder, self.limit = name, check, folder / name, limit
        self.inputs = 0
        self.found: dict[str, int] = {}
        """The number of inputs that reveal each defect."""

    def defect(self, data: bytes) -> str | None:
        """Return a description of the defect that an input reveals, or None.

        Inputs that reveal the same defect have the same description.
        """
        try:
            with limited(self.limit):
                self.check(data)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # any exception is a defect
            return _named(error)
        return None

    def feed(self, data: bytes) -> None:
        """Run an input, and save and minimize it if it reveals a new defect."""
        self.inputs += 1
        defect = self.defect(data)
        if defect is None:
            return
        self.found[defect] = self.found.get(defect, 0) + 1
        if self.found[defect] > 1:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{len(self.found):03}.txt"
        file.write_bytes(data)
        smaller = reduced(data, lambda one: self.defect(one) == defect)
        file.write_bytes(smaller)
        print(f"{self.name}: {file}: {defect}", file=sys.stderr, flush=True)


def _named(error: BaseException) -> str:
    """Describe a defect: the exception, its message without names and numbers, and its location."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"/{ROOM}/" in frame.filename] or frames
    overdue = isinstance(error, (OverdueError, RecursionError))
    where = "" if overdue else f" ({Path(ours[-1].filename).name}:{ours[-1].lineno})"
    said = re.sub(r"'[^']*'|\"[^\"]*\"|\S+\.py\b|\w+\([^()]*\)|\d+", "…", " ".join(str(error).split()))
    return f"{type(error).__name__}: {said[:80]}{where}"


def reduced(data: bytes, is_bad: Callable[[bytes], bool], tries: int = _TRIES) -> bytes:
    """Minimize an input: remove lines, then tokens.

    Args:
        data: The input.
        is_bad: A function that returns whether an input reveals the defect.
        tries: The maximum number of calls of `is_bad`.

    Returns:
        The smallest input found that reveals the defect.
    """
    for pattern in (rb"[^\n]*\n|[^\n]+", rb"\w+|\s+|[^\w\s]"):
        pieces = re.findall(pattern, data)
        size = len(pieces) // 2
        while size and tries > 0:
            start = 0
            while start < len(pieces) and tries > 0:
                shorter = pieces[:start] + pieces[start + size :]
                tries -= 1
                if is_bad(b"".join(shorter)):
                    pieces = shorter
                else:
                    start += size
            size //= 2
        data = b"".join(pieces)
    return data


def made(make: Callable[[Random], bytes], seed: int, runs: int) -> Iterator[bytes]:
    """Generate inputs. Each has its own seed, so that it can be generated without those before it."""
    for number in range(runs):
        yield make(Random(seed * 1_000_003 + number))  # noqa: S311  # nothing secret


def by_hypothesmith(name: str, seed: int, runs: int) -> Iterator[bytes]:
    """Generate programs from the grammar of Python and from nodes of libcst."""
    if name not in {"extract", "suppress", "link", "fixes"}:
        raise SystemExit(f"hypothesmith cannot generate inputs for {name}")
    try:
        hypothesmith = importlib.import_module("hypothesmith")
        hypothesis = importlib.import_module("hypothesis")
    except ModuleNotFoundError as error:
        raise SystemExit(f"{error.name} is not installed: pip install hypothesmith") from None
    chunk = 50
    gathered: list[str] = []

    def gather(text: str) -> None:
        gathered.append(text)

    for part in range(0, runs, chunk):
        strategy = (hypothesmith.from_grammar, hypothesmith.from_node)[part // chunk % 3 == 2]()
        gathered.clear()
        settings = hypothesis.settings(
            max_examples=min(chunk, runs - part),
            database=None,
            deadline=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        settings(hypothesis.seed(seed * 1_000_003 + part)(hypothesis.given(strategy)(gather)))()
        yield from (text.encode("utf-8", "surrogatepass") for text in gathered[: runs - part])


def by_atheris(
    fuzz: Fuzz, make: Callable[[Random], bytes], seed: int, runs: int, done: Callable[[], None]
) -> None:
    """Fuzz a target with libFuzzer, which mutates the inputs that reach new code.

    Args:
        fuzz: The target.
        make: A function that generates new inputs.
        seed: The seed.
        runs: The number of inputs.
        done: A function that is called after `runs` inputs and ends the process.
    """
    atheris = importlib.import_module("atheris")
    inputs = importlib.import_module("fuzz_inputs")

    def change(data: bytes, most: int, chosen: int) -> bytes:
        random = Random(chosen)  # noqa: S311  # nothing secret
        if random.random() < 0.1 or not data:
            return make(random)[:most]
        text = data.decode("utf-8", "surrogateescape")
        kind = "toml" if fuzz.name in {"settings", "catalog"} else "py"
        words = "toml" if kind == "toml" else "tokens"
        for _ in range(random.randint(1, 3)):
            text = inputs.mutated(text, random, inputs.cases(kind), words)
        changed: bytes = text.encode("utf-8", "surrogateescape" if random.random() < 0.5 else "replace")[
            :most
        ]
        return changed

    def feed(data: bytes) -> None:
        fuzz.feed(data)
        if fuzz.inputs >= runs:
            done()

    atheris.Setup(
        [
            sys.argv[0],
            f"-seed={seed + 1}",
            "-max_len=4096",
            "-timeout=600",
            "-report_slow_units=600",
            "-rss_limit_mb=0",
            "-verbosity=0",
        ],
        feed,
        custom_mutator=change,
    )
    atheris.Fuzz()


def _loaded(source: str) -> Any:  # a module imported by name has no static type
    """Import the targets. For atheris, instrument fsrace-lint during the import."""
    if source != "atheris":
        return importlib.import_module("fuzz_targets")
    try:
        atheris = importlib.import_module("atheris")
    except ModuleNotFoundError:
        raise SystemExit("atheris is not installed: pip install atheris") from None
    with atheris.instrument_imports(include=[ROOM]):
        return importlib.import_module("fuzz_targets")


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"{', '.join(NAMES)} (default: all)")
    parser.add_argument("--runs", type=int, default=1000, help="inputs for each target (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the inputs (default: 0)")
    parser.add_argument("--source", choices=SOURCES, default="grammar", help="generator (default: grammar)")
    parser.add_argument(
        "--limit", type=float, default=10, help="processor seconds for an input (default: 10)"
    )
    parser.add_argument("--folder", type=Path, default=Path("fuzz-found"), help="directory for saved inputs")
    parser.add_argument(
        "--replay", type=Path, nargs="+", default=(), help="run these inputs and print their defects"
    )
    given = parser.parse_args(arguments)
    for name in given.targets:
        if name not in NAMES:
            parser.error(f"unknown target {name}; choose from {', '.join(NAMES)}")
    return given


def _told(fuzz: Fuzz, given: argparse.Namespace, begun: float) -> None:
    """Print the result of a target as one line of JSON."""
    row = {"target": fuzz.name, "source": given.source, "seed": given.seed, "inputs": fuzz.inputs}
    row |= {"processor seconds": round(time.process_time() - begun, 1), "defects": fuzz.found}
    print(json.dumps(row), flush=True)


def main(arguments: Sequence[str]) -> int:
    """Fuzz the requested targets.

    Returns:
        1 if an input revealed a defect, else 0.
    """
    given = options(arguments)
    loaded = _loaded(given.source)
    bad = 0
    for name in given.targets or NAMES:
        target = loaded.TARGETS[name]
        fuzz = Fuzz(name, target.check, given.folder, given.limit)
        begun = time.process_time()
        if given.replay:
            bad += sum(_replayed(fuzz, file) for file in given.replay)
            continue
        if given.source == "atheris":

            def done(fuzz: Fuzz = fuzz, begun: float = begun) -> None:
                _told(fuzz, given, begun)
                loaded.clean()
                os._exit(bool(fuzz.found))  # libFuzzer does not return

            by_atheris(fuzz, target.make, given.seed, given.runs, done)
        by = by_hypothesmith(name, given.seed, given.runs) if given.source == "hypothesmith" else None
        for data in by or made(target.make, given.seed, given.runs):
            fuzz.feed(data)
        _told(fuzz, given, begun)
        bad += len(fuzz.found)
    loaded.clean()
    return int(bad > 0)


def _replayed(fuzz: Fuzz, file: Path) -> bool:
    defect = fuzz.defect(file.read_bytes())
    print(f"{fuzz.name}: {file}: {defect or 'no defect'}")
    return defect is not None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
