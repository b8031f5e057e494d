"""Main-process detection and collectives, with launcher variables and fake frameworks."""

from __future__ import annotations

import os
import pickle
import sys
import types
from typing import Any

import pytest
from support.jobs import environment

from fsrace_lint import safe


@pytest.fixture(autouse=True)
def _no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in set(os.environ) - set(environment()):
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("variables", "is_main", "is_distributed"),
    [
        ({}, True, False),
        ({"RANK": "0", "WORLD_SIZE": "1"}, True, False),
        ({"RANK": "0", "WORLD_SIZE": "4"}, True, True),
        ({"RANK": "3", "WORLD_SIZE": "4"}, False, True),
        ({"RANK": "0"}, True, True),
        ({"RANK": "none"}, True, False),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_RANK": "2"}, False, True),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, False, True),
        ({"PMIX_RANK": "1"}, False, True),
        ({"HOROVOD_RANK": "1", "HOROVOD_SIZE": "2"}, False, True),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, True, False),
        ({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "8"}, False, True),
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "PMIX_RANK": "0"}, True, False),
        ({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "RANK": "0", "WORLD_SIZE": "16"}, True, True),
    ],
)
def test_launcher_variables(
    variables: dict[str, str], is_main: bool, is_distributed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    calls: list[int] = []
    assert safe.is_main_process() is is_main
    for call in (safe.barrier, lambda: safe.run_on_main(calls.append, 1), safe.is_main_on_this_filesystem):
        if is_distributed:
            with pytest.raises(RuntimeError, match="multiple processes, but none of"):
                call()
        else:
            call()
    assert calls == ([] if is_distributed else [1])


def test_shared_filesystem_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "4")
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setenv("FSRACE_SHARED_FILESYSTEM", "1")
    assert not safe.is_main_on_this_filesystem()
    monkeypatch.setenv("FSRACE_SHARED_FILESYSTEM", "0")
    with pytest.raises(RuntimeError, match="needs the local rank: set `LOCAL_RANK`"):
        safe.is_main_on_this_filesystem()
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert safe.is_main_on_this_filesystem()


class Framework(types.SimpleNamespace):
    """A fake framework with two processes, where the other process sends `sent`."""

    def __init__(self, rank: int, sent: bytes = b"") -> None:
        self.calls: list[object] = []
        super().__init__(rank=rank, sent=sent)

    def record_barrier(self, *_: object) -> None:
        self.calls.append("barrier")

    def broadcast(self, data: bytes, root: int = 0) -> bytes:
        self.calls.append(data)
        return data if self.rank == 0 else self.sent

    def broadcast_list(self, box: list[bytes], src: int) -> None:
        box[0] = self.broadcast(box[0])


def modules(kind: str, fake: Framework) -> dict[str, Any]:
    torch = types.SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: fake.rank,
        get_world_size=lambda: 2, barrier=fake.record_barrier, broadcast_object_list=fake.broadcast_list,
    )  # fmt: skip
    world = types.SimpleNamespace(rank=fake.rank, size=2, Barrier=fake.record_barrier, bcast=fake.broadcast)
    mpi = types.SimpleNamespace(Is_initialized=lambda: True, Is_finalized=lambda: False, COMM_WORLD=world)
    horovod = types.SimpleNamespace(
        is_initialized=lambda: True, rank=lambda: fake.rank, size=lambda: 2,
        allgather_object=fake.record_barrier, broadcast_object=fake.broadcast,
    )  # fmt: skip
    found = {
        "torch.distributed": torch,
        "mpi4py.MPI": mpi,
        "horovod.torch": horovod,
        "horovod.tensorflow": horovod,
    }
    return {kind: found[kind]}


@pytest.mark.parametrize("kind", ["torch.distributed", "mpi4py.MPI", "horovod.torch", "horovod.tensorflow"])
def test_framework_collectives(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    main = Framework(0)
    for name, module in modules(kind, main).items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("RANK", "7")
    assert safe.is_main_process()
    assert safe.run_on_main(lambda: "result") == "result"
    with pytest.raises(KeyError, match="lost"):
        safe.run_on_main({}.__getitem__, "lost")
    safe.barrier()
    result, failure, last = main.calls
    assert last == "barrier"
    for sent, expected in ((result, "result"), (failure, KeyError)):
        assert isinstance(sent, bytes)
        other = Framework(1, sent)
        for name, module in modules(kind, other).items():
            monkeypatch.setitem(sys.modules, name, module)
        assert not safe.is_main_process()
        if expected is KeyError:
            with pytest.raises(KeyError, match="lost"):
                safe.run_on_main(pytest.fail, "only the main process runs it")
        else:
            assert safe.decide_on_main(lambda: "something else") == expected
    assert isinstance(result, bytes)
    assert pickle.loads(result) == ("result", None)


def test_uninitialized_frameworks_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    no = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: False)
    alone = types.SimpleNamespace(
        Is_initialized=lambda: True,
        Is_finalized=lambda: False,
        COMM_WORLD=types.SimpleNamespace(size=1, rank=0),
    )
    inner = types.SimpleNamespace(global_state=types.SimpleNamespace(client=None))
    for name, module in (("torch.distributed", no), ("mpi4py.MPI", alone), ("jax._src.distributed", inner)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "horovod.torch", no)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert not safe.is_main_process()
    with pytest.raises(RuntimeError, match="multiple processes, but none of"):
        safe.barrier()
