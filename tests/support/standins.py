"""Stand-ins for the libraries of the examples, with only their file operations and synchronization."""

from __future__ import annotations

import contextlib
import os
import sys
import types
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Where = str | os.PathLike[str]

LIBRARIES: Final = ("accelerate", "numpy", "speechbrain", "torch")


class Torn(Exception):  # noqa: N818  # the state of a file
    """A file contains less or more than one process wrote."""


class Overlap(Exception):  # noqa: N818  # the relation of two processes
    """Two processes run a block at the same time that only one may run."""


def write(path: Where, value: object) -> None:
    """Write a file in two identical parts, as large files are written in parts."""
    with Path(path).open("w") as stream:
        stream.write(f"{value}\n")
        stream.flush()
        stream.write(f"{value}\n")


def read(path: Where) -> str:
    """Read a file that `write` wrote.

    Raises:
        Torn: The file is incomplete or mixes two writes.
    """
    parts = Path(path).read_text().split("\n")
    if len(parts) != 3 or parts[0] != parts[1]:
        raise Torn(f"{Path(path).name} holds {parts[:-1]}")
    return parts[0]


@contextlib.contextmanager
def alone(root: Path) -> Iterator[None]:
    """Run a block that two processes must not run at the same time.

    Raises:
        Overlap: Another process is in the block.
    """
    mark = root / "alone"
    try:
        mark.mkdir()
    except FileExistsError:
        raise Overlap("two processes are in here at once") from None
    yield
    mark.rmdir()


class Model:
    """A model whose state is one word."""

    def __init__(self, state: str) -> None:
        self.state = state

    def state_dict(self) -> str:
        return self.state

    def load_state_dict(self, state: str) -> None:
        self.state = state


def install() -> None:
    """Install the stand-ins in `sys.modules`; only a process of an exploration may do this."""
    if "torch.distributed" not in sys.modules:
        _put("torch.distributed")
    dist = sys.modules["torch.distributed"]
    _put("torch", distributed=dist, nn=types.SimpleNamespace(Module=Model), Tensor=Model)
    vars(sys.modules["torch"]).update(save=lambda state, path: write(path, state), load=read)
    _put("numpy", save=lambda path, rows: write(_npy(path), rows), load=read, cumsum=list, ndarray=list)
    _put("accelerate", Accelerator=_accelerator(dist))
    for name in ("speechbrain", "speechbrain.utils"):
        _put(name)
    _put("speechbrain.utils.distributed", run_on_main=_run_on_main(dist))
    vars(urllib.request).update(urlretrieve=lambda url, path: write(path, url), urlopen=_Answer)


def _put(module: str, **names: Any) -> None:
    sys.modules[module] = types.ModuleType(module)
    vars(sys.modules[module]).update(names)


def _npy(path: Where) -> str:
    name = os.fspath(path)
    return name if name.endswith(".npy") else f"{name}.npy"


def _accelerator(dist: Any) -> type:
    class Accelerator:
        @contextlib.contextmanager
        def main_process_first(self) -> Iterator[None]:
            if dist.get_rank() != 0:
                dist.barrier()
            yield
            if dist.get_rank() == 0:
                dist.barrier()

    return Accelerator


def _run_on_main(dist: Any) -> Callable[..., None]:
    def run_on_main(func: Callable[..., object], args: Any = (), kwargs: Any = None) -> None:
        if dist.get_rank() == 0:
            func(*args, **(kwargs or {}))
        dist.barrier()

    return run_on_main


class _Answer(contextlib.AbstractContextManager["_Answer"]):
    """The response of a server: its URL twice, in two parts."""

    def __init__(self, url: str, timeout: float) -> None:
        self.headers: dict[str, str] = {}
        self._parts = [f"{url}\n".encode()] * 2

    def read(self, size: int) -> bytes:
        return self._parts.pop() if self._parts else b""

    def __exit__(self, *_: object) -> None:
        return
