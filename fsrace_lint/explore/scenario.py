"""What is explored, and within which bounds."""

from __future__ import annotations

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
    """A program for several processes, and what must hold of it.

    Attributes:
        function: What each process runs: it is given the root and its rank.
        processes: How many there are.
        setup: Makes what is there before.
        check: Raises where the tree is not as it must be.
        agree: Whether all must give the same result.
        expected: Exceptions that are no failure.
        filesystem: "posix" or "nfs".
        crash: "none", "kill" for kill -9, or "power" for a machine that goes down.
        distributed: Whether `torch.distributed` is stood in for.
        step_timeout: How many seconds a process may take between two calls.
        most_moves: How many calls a run may have.
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
        """Refuse what makes no sense.

        Returns:
            This scenario.

        Raises:
            ExploreError: A value is out of its range.
        """
        if not 1 <= self.processes <= MOST_PROCESSES:
            raise ExploreError(f"{self.processes} processes: from 1 to {MOST_PROCESSES} can be explored")
        if self.filesystem not in FILESYSTEMS:
            raise ExploreError(
                f"no filesystem is called {self.filesystem!r}: choose one of {', '.join(FILESYSTEMS)}"
            )
        if self.crash not in CRASHES:
            raise ExploreError(f"no crash is called {self.crash!r}: choose one of {', '.join(CRASHES)}")
        if not 0 < self.step_timeout <= LONGEST_STEP:
            raise ExploreError(f"a time-out of {self.step_timeout} s: up to a day makes sense")
        return self


class Bounds(NamedTuple):
    """How far to look.

    Attributes:
        schedules: How many schedules to run systematically.
        preemptions: How often a process may be interrupted that could go on, or None for as often as there
        are orders.
        samples: How many random schedules to run where the systematic search did not come to its end.
        seed: What makes these the same again.
    """

    schedules: int = 10_000
    preemptions: int | None = None
    samples: int = 0
    seed: int = 0
