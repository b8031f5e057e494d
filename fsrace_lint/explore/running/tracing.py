"""What a traced run collects for the report: stacks of processes that hang, and the output of all."""

from __future__ import annotations

import contextlib
import re
import time
from typing import TYPE_CHECKING, Final

from fsrace_lint.explore import code_places
from fsrace_lint.explore.code_places import OWN

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.explore.code_places import Frame
    from fsrace_lint.explore.running.rank_process import RankProcess
    from fsrace_lint.explore.running.stage import Stage
    from fsrace_lint.explore.scenario import Scenario

STACK_TIMEOUT: Final = 2.0
"""The maximum number of seconds to wait for the stack of a process that makes no call."""
MOST_OUTPUT: Final = 20
"""The maximum number of lines of output of a process that a report shows."""
_MOST_BYTES: Final = 65_536
_FRAME: Final = re.compile(r'  File "(.*)", line (\d+) in (.*)')


class Tracing:
    """Collects evidence of one run.

    Args:
        scenario: The scenario.
        stage: The scratch directory.
        patience: The maximum number of seconds between two calls; None for that of the scenario.
    """

    def __init__(self, scenario: Scenario, stage: Stage, patience: float | None = None) -> None:
        self.step_timeout = scenario.step_timeout if patience is None else patience
        self._folder = stage.top.parent
        self._processes = scenario.processes
        for rank in range(scenario.processes):
            for kind in ("output", "stack"):
                self._file(kind, rank).unlink(missing_ok=True)

    def _file(self, kind: str, rank: int) -> Path:
        return self._folder / f"{kind}.{rank}"

    def stacks(self, ranks: list[RankProcess]) -> str:
        """Return the stack of every process; those that make no call write theirs on a signal."""
        return "\n".join(self._stack(number, rank) for number, rank in enumerate(ranks))

    def _stack(self, number: int, rank: RankProcess) -> str:
        if rank.is_over:
            return f"process {number} has exited"
        if rank.request is not None:
            call = f"{rank.request.name} {rank.request.target}".rstrip()
            return f"process {number}, in {call}:\n{code_places.listed(rank.request.stack)}".rstrip()
        rank.process.signal_stack()
        frames = self._written(number)
        return f"process {number}, between two calls:\n{code_places.listed(frames)}".rstrip()

    def _written(self, number: int) -> list[Frame]:
        deadline = time.monotonic() + STACK_TIMEOUT
        text, before = "", None
        while time.monotonic() < deadline and not (text and text == before):
            time.sleep(0.02)
            before = text
            with contextlib.suppress(FileNotFoundError):
                text = self._file("stack", number).read_text(errors="replace")
        return _frames(text)

    def outputs(self) -> tuple[str, ...]:
        """Return the last lines that each process has printed."""
        return tuple(map(self._output, range(self._processes)))

    def _output(self, rank: int) -> str:
        try:
            with self._file("output", rank).open("rb") as stream:
                stream.seek(max(0, stream.seek(0, 2) - _MOST_BYTES))
                lines = stream.read().decode(errors="backslashreplace").splitlines()
        except FileNotFoundError:
            return ""
        return "\n".join(lines[-MOST_OUTPUT:])


def _frames(text: str) -> list[Frame]:
    """Parse what `faulthandler` writes; the main thread comes last."""
    threads: list[list[Frame]] = [[]]
    is_inside = True
    for line in text.splitlines():
        found = _FRAME.fullmatch(line)
        if found is None:
            threads.append([])
            is_inside = True
        elif not found[1].startswith(OWN):
            threads[-1] += [(found[1], int(found[2]), found[3])] if is_inside else []
        elif found[3] == "live":
            is_inside = False  # the frames of the process itself
    return next((frames for frames in reversed(threads) if frames), [])
