"""What a process of a scenario is told when it is started."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class StartMessage(NamedTuple):
    """What a process is told when it is started.

    Attributes:
        function: What to run.
        top: The folder below which calls are watched; the scenario's root is in it.
        rank: Which process this is.
        size: How many there are.
        distributed: Whether `torch.distributed` is stood in for.
    """

    function: Callable[[Path, int], object]
    top: str
    rank: int
    size: int
    distributed: bool

    @property
    def temporary(self) -> str:
        """What `tempfile` uses."""
        return self.top + "/tmp"  # noqa: S108  # below the scratch directory
