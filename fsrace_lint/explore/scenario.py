"""The scenario to explore, and the bounds of the search."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.explore.errors import ExploreError
from fsrace_lint.explore.faults import FAULTS, NETWORK_ONLY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILESYSTEMS: Final = {
    "posix": frozenset[str](),
    "nfs-attributes": frozenset({"attributes"}),
    "nfs-names": frozenset({"attributes", "names"}),
    "nfs-data": frozenset({"data"}),
    "nfs-handles": frozenset({"handles"}),
    "nfs-nolock": frozenset({"locks"}),
    "nfs": frozenset({"attributes", "names", "data", "handles"}),
}
"""The filesystems, each with what its clients do not share: see docs/filesystems.md."""
CRASHES: Final = ("none", "kill", "power", "power-unordered")
MOST_PROCESSES: Final = 26
LONGEST_STEP: Final = 86_400.0


class Scenario(NamedTuple):
    """A program that runs in multiple processes, and the properties that must hold.

    Attributes:
        function: The function that each process runs. It gets the root and its rank.
        processes: The number of processes.
        setup: Creates the initial tree.
        check: Raises if the tree is wrong.
        agree: Whether all processes must return the same result.
        expected: Exceptions that are not failures.
        filesystem: "posix", or some of the other `FILESYSTEMS`, with commas between them.
        crash: "none", "kill" for kill -9, "power" for a power failure, or "power-unordered" for one that can
            undo a call on a name without undoing later ones.
        kills: The maximum number of processes that are killed in a run.
        restarts: The number of times that each process starts again after a kill.
        same_pids: Whether a process that starts again has the process id that it had before.
        nodes: The number of nodes that the processes are divided among.
        lifetimes: Whether the start and the end of a process are moves, because another process can see them.
        distributed: Whether to replace `torch.distributed` with a stub.
        step_timeout: The maximum number of seconds between two calls of a process.
        allow_outside: Whether the processes may change files outside of the temporary directory.
        most_moves: The maximum number of calls in a run.
        faults: Names of errors that one call in a run can get.
    """

    function: Callable[[Path, int], object]
    processes: int = 2
    setup: Callable[[Path], object] | None = None
    check: Callable[[Path], object] | None = None
    agree: bool = False
    expected: tuple[type[BaseException], ...] = ()
    filesystem: str = "posix"
    crash: str = "none"
    distributed: bool = False
    step_timeout: float = 10.0
    allow_outside: bool = False
    most_moves: int = 5000
    kills: int = 1
    restarts: int = 0
    same_pids: bool = False
    nodes: int = 1
    lifetimes: bool = False
    faults: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The module and the name of the function."""
        function = self.function
        name = getattr(function, "__qualname__", type(function).__qualname__)
        return f"{getattr(function, '__module__', '')}.{name}"

    @property
    def caches(self) -> frozenset[str]:
        """What the processes, as clients of a network filesystem, do not share."""
        return frozenset().union(*(FILESYSTEMS[name] for name in self.filesystem.split(",")))

    def validated(self) -> Scenario:
        """Check all values.

        Returns:
            This scenario.

        Raises:
            ExploreError: A value is out of range, or a function cannot be called.
        """
        if not 1 <= self.processes <= MOST_PROCESSES:
            raise ExploreError(
                f"cannot explore {self.processes} processes: choose from 1 to {MOST_PROCESSES}"
            )
        for name in self.filesystem.split(","):
            if name not in FILESYSTEMS:
                raise ExploreError(f"unknown filesystem {name!r}: choose from {', '.join(FILESYSTEMS)}")
        if self.crash not in CRASHES:
            raise ExploreError(f"unknown crash {self.crash!r}: choose one of {', '.join(CRASHES)}")
        self._check_lifetimes()
        self._check_faults()
        if not 0 < self.step_timeout <= LONGEST_STEP:
            raise ExploreError(
                f"invalid timeout of {self.step_timeout} s: choose more than 0 s, and at most one day"
            )
        if self.most_moves < 1:
            raise ExploreError(f"cannot explore at most {self.most_moves} calls: choose at least 1")
        _check_call("function", self.function, "root", "rank")
        for part, function in (("setup", self.setup), ("check", self.check)):
            if function is not None:
                _check_call(part, function, "root")
        return self

    def _check_lifetimes(self) -> None:
        if not 1 <= self.nodes <= self.processes or self.processes % self.nodes:
            raise ExploreError(
                f"cannot divide {self.processes} processes among {self.nodes} nodes: each node needs the same"
                " number of processes"
            )
        if self.kills < 1 or self.restarts < 0:
            raise ExploreError("invalid number of kills or restarts: choose at least 1 kill and 0 restarts")
        if self.crash == "none" and (self.kills > 1 or self.restarts or self.same_pids):
            raise ExploreError('kills and restarts need crashes: choose `crash="kill"` or `crash="power"`')
        if self.distributed and self.restarts:
            raise ExploreError(
                "cannot explore collectives with restarts: a launcher restarts all processes together"
            )

    def _check_faults(self) -> None:
        for name in self.faults:
            if name not in FAULTS:
                raise ExploreError(f"unknown fault {name!r}: choose from {', '.join(FAULTS)}")
            if name in NETWORK_ONLY and self.filesystem == "posix":
                raise ExploreError(f"{name} occurs only on network filesystems: choose the filesystem 'nfs'")


def _check_call(part: str, function: Callable[..., object], *given: str) -> None:
    """Reject a function that fails when it is called, or that runs nothing."""
    name = getattr(function, "__name__", type(function).__name__)
    is_generator = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    if is_generator or inspect.iscoroutinefunction(function):
        kind = "a generator" if is_generator else "an `async` function"
        raise ExploreError(
            f"`{name}` is {kind}, so a call runs none of its code: pass a function that runs it to its end"
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function in C can have no signature
        return
    try:
        signature.bind(*given)
    except TypeError as error:
        raise ExploreError(
            f"the {part} is called as `{name}({', '.join(given)})`, but it is defined as"
            f" `{name}{_parameters(signature)}` ({error}): write a function with the parameters"
            f" `({', '.join(given)})` that calls it"
        ) from None


def _parameters(signature: inspect.Signature) -> str:
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    return str(inspect.Signature(plain))


class Bounds(NamedTuple):
    """The bounds of the search.

    Attributes:
        schedules: The number of schedules to run systematically.
        preemptions: The number of times that a process which can continue may be interrupted; None for no
            bound.
        samples: The number of random schedules to run if the systematic search is incomplete.
        seed: The seed of the random schedules.
        shrink_runs: The maximum number of runs that minimize a failing schedule.
    """

    schedules: int = 10_000
    preemptions: int | None = None
    samples: int = 0
    seed: int = 0
    shrink_runs: int = 150
