"""A stub for `torch.distributed`, whose processes meet at the scheduler."""

from __future__ import annotations

import pickle
import sys
import types
from typing import TYPE_CHECKING, Any

from fsrace_lint.explore.messages import Meet

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore.process.gate import Gate
    from fsrace_lint.instrument.model import Answer
    from fsrace_lint.instrument.recorder import Recorder


class Collectives:
    """The collective calls of one process.

    Args:
        gate: The gate where the calls stop.
        size: The number of processes.
    """

    def __init__(self, gate: Gate, size: int) -> None:
        self._gate = gate
        self._size = size

    def install(self) -> None:
        """Put the calls into `torch.distributed`, or into a stub module if torch is not loaded."""
        module = sys.modules.get("torch.distributed")
        if module is None:
            module = types.ModuleType("torch.distributed")
            torch = types.ModuleType("torch")
            torch.distributed = module  # type: ignore[attr-defined]
            torch.__path__ = []
            sys.modules["torch"], sys.modules["torch.distributed"] = torch, module
        for name, replacement in self.all().items():
            setattr(module, name, replacement)

    def all(self) -> dict[str, Callable[..., Any]]:
        """Return the calls by name."""
        return {
            "is_available": lambda: True,
            "is_initialized": lambda: True,
            "init_process_group": lambda *_, **__: None,
            "destroy_process_group": lambda *_, **__: None,
            "get_rank": lambda *_, **__: self._gate.rank,
            "get_world_size": lambda *_, **__: self._size,
            "barrier": self.barrier,
            "broadcast_object_list": self.broadcast_object_list,
            "all_gather_object": self.all_gather_object,
            "gather_object": self.gather_object,
        }

    def barrier(self, group: Any = None, **_: Any) -> None:
        """Wait for all processes."""
        self._meet("barrier", None, group)

    def broadcast_object_list(
        self, object_list: list[Any], src: int = 0, group: Any = None, **_: Any
    ) -> None:
        """Send the objects of one process to all."""
        brought = list(object_list) if self._gate.rank == src else None
        object_list[:] = self._meet(f"broadcast_object_list from {src}", brought, group)[src]

    def all_gather_object(self, object_list: list[Any], obj: Any, group: Any = None) -> None:
        """Send the objects of all processes to all."""
        object_list[:] = self._meet("all_gather_object", obj, group)

    def gather_object(
        self, obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: Any = None, **_: Any
    ) -> None:
        """Send the objects of all processes to one."""
        gathered = self._meet(f"gather_object to {dst}", obj, group)
        if self._gate.rank == dst and object_gather_list is not None:
            object_gather_list[:] = gathered

    def _meet(self, kind: str, brought: Any, group: Any) -> list[Any]:
        if group is not None:
            text = f"cannot explore {kind} of a group; only collectives of all processes are supported"
            # the program can ignore the error
            self._gate.note(text)
            raise NotImplementedError(text)

        def act(_: Recorder, __: Answer | None) -> list[Any]:
            return [pickle.loads(each) for each in self._gate.gathered]

        return self._gate.wait(kind, "", act, Meet(kind, pickle.dumps(brought)))
