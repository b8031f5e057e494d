"""Feed each room of the program with made-up inputs, and keep those that it does not stand.

    python scripts/fuzz.py                              # 1,000 inputs for each target
    python scripts/fuzz.py extract link --runs 100000 --seed 7
    python scripts/fuzz.py fixes --source hypothesmith  # pip install hypothesmith
    python scripts/fuzz.py extract --source atheris     # pip install atheris: led by what code is reached
    python scripts/fuzz.py link --replay FILE...

An input is wrong for a target where it raises an exception, takes too long, or where something does not
hold that must (scripts/fuzz_targets.py). It is made smaller, and left in a folder of the target: one for each
defect. The same seed makes the same inputs. It ends with 1 where there was a defect.
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
"""How often an input is tried to be made smaller."""


class OverdueError(BaseException):
    """An input took longer than it may; no handler for exceptions may take it for one of them."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End what takes more processor time, so that other work of the machine does not count.

    Raises:
        OverdueError: It took longer.
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
    """One target, and what was found in it."""

    def __init__(self, name: str, check: Callable[[bytes], None], folder: Path, limit: float) -> None:
        """Prepare for a target.

        Args:
            name: What it is called.
            check: Raises what is wrong with an input.
            folder: Where inputs with a defect are left.
            limit: The seconds that one input may take.
        """
        self.name, self.check, self.folder, self.limit = name, check, folder / name, limit
        self.inputs = 0
        self.found: dict[str, int] = {}
        """How many inputs show each defect."""

    def defect(self, data: bytes) -> str | None:
        """Say what is wrong with an input, so that the same defect says the same; None where all is well."""
        try:
            with limited(self.limit):
                self.check(data)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # whatever it is, it is what this is for
            return _named(error)
        return None

    def feed(self, data: bytes) -> None:
        """Try an input, and keep it where it shows a defect that is new."""
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
    """Name a defect: what was raised, where in the program, and what is said but for names."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"/{ROOM}/" in frame.filename] or frames
    overdue = isinstance(error, (OverdueError, RecursionError))
    where = "" if overdue else f" ({Path(ours[-1].filename).name}:{ours[-1].lineno})"
    said = re.sub(r"'[^']*'|\"[^\"]*\"|\S+\.py\b|\w+\([^()]*\)|\d+", "…", " ".join(str(error).split()))
    return f"{type(error).__name__}: {said[:80]}{where}"


def reduced(data: bytes, is_bad: Callable[[bytes], bool], tries: int = _TRIES) -> bytes:
    """Make an input smaller: lines first, then tokens.

    Args:
        data: The input.
        is_bad: Tells whether an input still shows the defect.
        tries: How often that is asked.

    Returns:
        A smaller input that does.
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
    """Make inputs: each with a seed of its own, so that one is made again without those before it."""
    for number in range(runs):
        yield make(Random(seed * 1_000_003 + number))  # noqa: S311  # nothing secret


def by_hypothesmith(name: str, seed: int, runs: int) -> Iterator[bytes]:
    """Make programs of the grammar of Python and of the nodes of libcst."""
    if name not in {"extract", "suppress", "link", "fixes"}:
        raise SystemExit(f"hypothesmith makes nothing for {name}")
    try:
        hypothesmith = importlib.import_module("hypothesmith")
        hypothesis = importlib.import_module("hypothesis")
    except ModuleNotFoundError as error:
        raise SystemExit(f"{error.name} is missing: pip install hypothesmith") from None
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
    """Feed a target as libFuzzer leads: with changed copies of those inputs that reach new code."""
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


def _loaded(source: str) -> Any:  # a module that is typed where it is imported by its name
    """Load the targets; atheris must see the program being loaded."""
    if source != "atheris":
        return importlib.import_module("fuzz_targets")
    try:
        atheris = importlib.import_module("atheris")
    except ModuleNotFoundError:
        raise SystemExit("atheris is missing: pip install atheris") from None
    with atheris.instrument_imports(include=[ROOM]):
        return importlib.import_module("fuzz_targets")


def options(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(NAMES)} (all)")
    parser.add_argument("--runs", type=int, default=1000, help="inputs for each target (1000)")
    parser.add_argument("--seed", type=int, default=0, help="another one makes other inputs (0)")
    parser.add_argument("--source", choices=SOURCES, default="grammar", help="what makes them (grammar)")
    parser.add_argument("--limit", type=float, default=10, help="seconds of processor time for one (10)")
    parser.add_argument("--folder", type=Path, default=Path("fuzz-found"), help="for what shows a defect")
    parser.add_argument(
        "--replay", type=Path, nargs="+", default=(), help="feed these files, and say what is wrong"
    )
    given = parser.parse_args(arguments)
    for name in given.targets:
        if name not in NAMES:
            parser.error(f"there is no target {name}: there are {', '.join(NAMES)}")
    return given


def _told(fuzz: Fuzz, given: argparse.Namespace, begun: float) -> None:
    """Print what came of a target, in one line."""
    row = {"target": fuzz.name, "source": given.source, "seed": given.seed, "inputs": fuzz.inputs}
    row |= {"processor seconds": round(time.process_time() - begun, 1), "defects": fuzz.found}
    print(json.dumps(row), flush=True)


def main(arguments: Sequence[str]) -> int:
    """Feed the targets.

    Returns:
        1 where an input showed a defect.
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
                os._exit(bool(fuzz.found))  # libFuzzer does not come back

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
    print(f"{fuzz.name}: {file}: {defect or 'nothing is wrong'}")
    return defect is not None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
