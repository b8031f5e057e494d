"""Compare the reduced search with plain enumeration on random programs.

    python scripts/programs_against_enumeration.py --count 1000 --seed 1
    python scripts/programs_against_enumeration.py --count 1000 --feature "retry loops" --orders 100

Each program has two or three processes with a few calls, and a random choice of features: data in parts,
captured functions, other programs, processes that see and kill each other, kills, restarts, faults, retry
loops, nodes, and levels of NFS. Threads are left out, because the explorer does not control them. The reduced
search must find exactly the outcomes of all orders. A program with too many orders is skipped.

The script prints each difference with the seed of its program, and the number of compared programs by
feature. It fails if there is a difference.
"""

from __future__ import annotations

import argparse
import collections
import math
import os
import random
import sys
import time
import unittest.mock
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
sys.path[:0] = [os.fspath(ROOT), os.fspath(ROOT / "tests")]

from support.exploring import directed  # noqa: E402  # needs the path
from support.programs import (  # noqa: E402
    ACTIONS,
    CALLS,
    CAPTURED_CALLS,
    HELD_CALLS,
    MUCH_CALLS,
    OPAQUE_CALLS,
    PROCESS_CALLS,
    RETRIES,
    Program,
    outcomes_of_all_orders,
    reduced,
    scenario_of,
)

from fsrace_lint.explore.errors import ExploreError  # noqa: E402
from fsrace_lint.explore.running.retry_detector import RetryDetector  # noqa: E402
from fsrace_lint.explore.scenario import FILESYSTEMS  # noqa: E402
from fsrace_lint.explore.search.director import onward  # noqa: E402

POOLS: Final = {
    "parts": MUCH_CALLS,
    "captured functions": list(CAPTURED_CALLS),
    "other programs": list(OPAQUE_CALLS),
    "processes that see each other": list(PROCESS_CALLS),
    "retry loops": [*RETRIES, *ACTIONS],
    "open files": list(HELD_CALLS),
}
"""The calls that each feature adds."""
BASE: Final = [name for name in CALLS if name not in MUCH_CALLS]
FAULTS: Final = (("ENOSPC",), ("EIO", "EINTR"), ("EMFILE",))


class Case(NamedTuple):
    """A random program, the options of its scenario, and its features."""

    program: Program
    options: dict[str, Any]
    features: frozenset[str]


def drawn(seed: int) -> Case:
    """Return the program of a seed."""
    rng = random.Random(seed)  # noqa: S311  # not used for security
    features = set(rng.sample(sorted(POOLS), rng.choice((0, 1, 1, 2))))
    pool = [name for feature in sorted(features) for name in rng.sample(POOLS[feature], 3)]
    pool += rng.sample(BASE, 3)
    size = rng.choice((2, 2, 2, 3))
    longest = 2 if size == 2 else 1
    program = [[rng.choice(pool) for _ in range(rng.randint(1, longest))] for _ in range(size)]
    options: dict[str, Any] = {}
    if rng.random() < 0.35:
        options["crash"] = "kill"
        options["kills"] = rng.choice((1, 1, 2))
        if rng.random() < 0.4:
            options |= {"restarts": 1, "same_pids": rng.random() < 0.5}
    sees = any(name in PROCESS_CALLS for calls in program for name in calls)
    options["lifetimes"] = sees or "restarts" in options
    if rng.random() < 0.3:
        options["filesystem"] = rng.choice(sorted(set(FILESYSTEMS) - {"posix"}))
    if rng.random() < 0.25:
        options["faults"] = rng.choice([*FAULTS, ("ESTALE",)] if "filesystem" in options else FAULTS)
    if size == 2 and rng.random() < 0.1:
        options["nodes"] = 2
    return Case(program, options, frozenset(_features(program, options)))


def _features(program: Program, options: dict[str, Any]) -> set[str]:
    """Return what a program really has, which can be less than what it was drawn from."""
    called = {name for calls in program for name in calls}
    found = {feature for feature, names in POOLS.items() if called & {*names} - {*BASE, *ACTIONS}}
    found |= {key for key in ("restarts", "faults", "nodes") if key in options}
    found |= {options.get("filesystem", "posix"), f"{len(program)} processes"}
    return found | ({"kills"} if "crash" in options else set())


def expected_orders(case: Case) -> int:
    """Return the number of orders of the calls that the processes make in a first run."""
    with directed(scenario_of(case.program, **case.options)) as director:
        run = director.play(onward)
    made = collections.Counter(move.choice.rank for move in run.trace.moves)
    return math.factorial(sum(made.values())) // math.prod(map(math.factorial, made.values()))


def compared(case: Case, most: int) -> tuple[set[object], set[object]] | None:
    """Return the outcomes of both searches, or None if a program has more orders than `most`."""
    if expected_orders(case) > most:
        return None
    scenario = scenario_of(case.program, **case.options)
    # all orders include those in which a process in a retry loop does not wait for the others
    never = property(lambda _: False)
    with unittest.mock.patch.object(RetryDetector, "gives_way", never):
        every = outcomes_of_all_orders(scenario, most)
    return None if every is None else (reduced(scenario), every)


def _differs(seed: int, case: Case, most: int) -> bool | None:
    """Compare the searches on one program, print a difference, and return whether there is one."""
    try:
        found = compared(case, most)
    except (ExploreError, AssertionError) as error:
        print(f"seed {seed}: {case.program} {case.options}: {type(error).__name__}: {error}", flush=True)
        return True
    if found is None:
        return None
    is_wrong = found[0] != found[1]
    if is_wrong:
        print(f"seed {seed}: {case.program} {case.options}")
        print(f"  lost: {sorted(map(str, found[1] - found[0]))}")
        print(f"  invented: {sorted(map(str, found[0] - found[1]))}", flush=True)
    return is_wrong


def main(arguments: list[str] | None = None) -> int:
    """Compare programs, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=100, help="the number of programs (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first program (default: 0)")
    parser.add_argument(
        "--orders", type=int, default=400, help="skip programs with more orders (default: 400)"
    )
    parser.add_argument("--feature", help="leave out programs without this feature")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after this time")
    given = parser.parse_args(arguments)
    began, counts = time.monotonic(), collections.Counter[str]()
    same = different = skipped = 0
    for seed in range(given.seed, given.seed + given.count):
        if time.monotonic() - began > given.seconds:
            break
        case = drawn(seed)
        if given.feature and given.feature not in case.features:
            continue
        differs = _differs(seed, case, given.orders)
        if differs is None:
            skipped += 1
            continue
        counts.update(case.features)
        same += not differs
        different += differs
    print(f"{same + different} programs compared, {different} differ, {skipped} skipped (too many orders)")
    for feature, number in sorted(counts.items()):
        print(f"{number:6} {feature}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
