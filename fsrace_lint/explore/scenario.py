"""The scenario to explore, and the bounds of the search."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.explore.errors import ExploreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILESYSTEMS: Final = ("posix", "nfs")
CRASHES: Final = ("none", "kill", "power")
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
        filesystem: "posix" or "nfs".
        crash: "none", "kill" for kill -9, or "power" for a power failure.
        distributed: Whether to replace `torch.distributed` with a stub.
        step_timeout: The maximum number of seconds between two calls of a process.
        most_moves: The maximum number of calls in a run.
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
    most_moves: int = 5000

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
        if self.filesystem not in FILESYSTEMS:
            raise ExploreError(
                f"unknown filesystem {self.filesystem!r}: choose one of {', '.join(FILESYSTEMS)}"
            )
        if self.crash not in CRASHES:
            raise ExploreError(f"unknown crash {self.crash!r}: choose one of {', '.join(CRASHES)}")
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
    """

    schedules: int = 10_000
    preemptions: int | None = None
    samples: int = 0
    seed: int = 0
