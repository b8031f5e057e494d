"""Proof of the safe helpers: all interleavings of two processes, random ones of four, crashes, and NFS."""

from __future__ import annotations

import errno
import io
import json
import os
import tarfile
import time
from typing import TYPE_CHECKING, NamedTuple

import pytest
from support.sampling import bound

from fsrace_lint import safe
from fsrace_lint.explore import explore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fsrace_lint.explore import Result


class Proof(NamedTuple):
    """A scenario for one helper and the invariants that it must keep.

    Attributes:
        function: Runs in each process.
        setup: Creates the initial tree.
        check: Asserts what must hold at the end, even if all processes are killed.
        agree: Whether all ranks must return the same result.
        collective: Whether the helper is a collective.
        syncs: Whether the helper promises that its result survives a power failure.
    """

    function: Callable[[Path, int], object]
    setup: Callable[[Path], object] | None = None
    check: Callable[[Path], object] | None = None
    agree: bool = False
    collective: bool = False
    syncs: bool = False


def ensure_dir(root: Path, rank: int) -> None:
    safe.ensure_dir(root / "a" / "b")
    (root / "a" / "b" / f"{rank}").touch()


def make_old_state(root: Path) -> None:
    (root / "state").write_text('{"rank": -1}')


def read(path: Path) -> str:
    """Read a file; on NFS, if another process replaced it after the open, open it again."""
    try:
        return path.read_text()
    except OSError as error:
        if error.errno != errno.ESTALE:
            raise
        return path.read_text()


def is_whole(root: Path) -> None:
    assert json.loads(read(root / "state"))["rank"] in range(-1, 4)
    assert [name for name in os.listdir(root) if not name.startswith(".")] == ["state"]


def atomic_write(root: Path, rank: int) -> None:
    with safe.atomic_write(root / "state") as stream:
        json.dump({"rank": rank}, stream)


def atomic_path(root: Path, rank: int) -> None:
    with safe.atomic_path(root / "state") as path:
        path.write_text(json.dumps({"rank": rank}))


def read_while_written(root: Path, rank: int) -> None:
    if rank == 0:
        atomic_write(root, rank)
    else:
        is_whole(root)


def replace(root: Path, rank: int) -> None:
    (root / f".{rank}").write_text(json.dumps({"rank": rank}))
    safe.replace(root / f".{rank}", root / "state")


def remove(root: Path, rank: int) -> None:
    safe.remove(root / "state")
    with pytest.raises(FileNotFoundError):
        open(root / "state")  # noqa: SIM115  # the call raises


def make_tree(root: Path) -> None:
    (root / "tree" / "in").mkdir(parents=True)
    (root / "tree" / "in" / "x").touch()


def is_whole_tree(root: Path) -> None:
    assert os.listdir(root / "tree" / "in") == ["x"] if os.path.lexists(root / "tree") else True


def remove_tree(root: Path, rank: int) -> None:
    safe.remove_tree(root / "tree")


def make_old_link(root: Path) -> None:
    (root / "link").symlink_to("old")


def is_link(root: Path) -> None:
    assert os.readlink(root / "link") in ("old", "new")


def publish_symlink(root: Path, rank: int) -> None:
    safe.publish_symlink("new", root / "link")


def make_archive(root: Path) -> None:
    with tarfile.open(root / "a.tar", "w") as bundle:
        for name in ("d/x", "d/y"):
            member = tarfile.TarInfo(name)
            member.size = 3
            bundle.addfile(member, io.BytesIO(b"abc"))


def is_extracted(root: Path) -> None:
    if (root / "out").exists():
        assert [(root / "out" / "d" / name).read_text() for name in "xy"] == ["abc", "abc"]


def extract_once(root: Path, rank: int) -> list[str]:
    return sorted(os.listdir(safe.extract_once(root / "a.tar", root / "out") / "d"))


def fetch(path: Path) -> None:
    with open(path, "w") as stream:
        for part in ("one", "two"):
            stream.write(part)
            stream.flush()


def is_fetched(root: Path) -> None:
    if (root / "cache" / "file").exists():
        assert (root / "cache" / "file").read_text() == "onetwo"


def download_once(root: Path, rank: int) -> str:
    return read(safe.download_once(fetch, root / "cache" / "file"))


def barrier(root: Path, rank: int) -> str:
    if rank == 0:
        (root / "state").write_text("made")
    safe.barrier()
    return (root / "state").read_text()


def run_on_main(root: Path, rank: int) -> str:
    def make() -> str:
        os.mkdir(root / "made")
        return "made"

    return safe.run_on_main(make)


def run_on_main_that_fails(root: Path, rank: int) -> str:
    try:
        return safe.run_on_main(lambda: os.listdir(root / "not there"))[0]
    except FileNotFoundError as error:
        return str(error.errno)


def decide_on_main(root: Path, rank: int) -> bool:
    if rank == 1:
        (root / "state").touch()
    return safe.decide_on_main(lambda: os.path.exists(root / "state"))


def write_once_per_filesystem(root: Path, rank: int) -> None:
    if safe.is_main_on_this_filesystem(root):
        os.mkdir(root / "made")


def wait_for_path(root: Path, rank: int) -> str:
    if rank == 0:
        time.sleep(1)
        with safe.atomic_write(root / "state") as stream:
            stream.write("made")
    return safe.wait_for_path(root / "state").read_text()


PROOFS = {
    "ensure_dir": Proof(ensure_dir, syncs=True),
    "remove": Proof(remove, make_old_state, syncs=True),
    "remove_tree": Proof(remove_tree, make_tree, is_whole_tree, syncs=True),
    "atomic_write": Proof(atomic_write, make_old_state, is_whole, syncs=True),
    "atomic_write read": Proof(read_while_written, make_old_state, is_whole, syncs=True),
    "atomic_path": Proof(atomic_path, make_old_state, is_whole, syncs=True),
    "replace": Proof(replace, make_old_state, is_whole),
    "publish_symlink": Proof(publish_symlink, make_old_link, is_link, syncs=True),
    "extract_once": Proof(extract_once, make_archive, is_extracted, agree=True, syncs=True),
    "download_once": Proof(download_once, None, is_fetched, agree=True, syncs=True),
    "barrier": Proof(barrier, agree=True, collective=True),
    "run_on_main": Proof(run_on_main, agree=True, collective=True),
    "run_on_main failing": Proof(run_on_main_that_fails, agree=True, collective=True),
    "decide_on_main": Proof(decide_on_main, agree=True, collective=True),
    "is_main_on_this_filesystem": Proof(write_once_per_filesystem, collective=True),
    "wait_for_path": Proof(wait_for_path, agree=True),
}
helpers = pytest.mark.parametrize("name", PROOFS)


def proved(name: str, **options: object) -> Result:
    proof = PROOFS[name]
    return explore(
        proof.function,
        setup=proof.setup,
        check=proof.check,
        agree=proof.agree,
        distributed=proof.collective,
        # the other rank may be slower than any timeout
        expected=TimeoutError if name == "wait_for_path" else (),
        **options,  # type: ignore[arg-type]
    )


def test_every_helper_has_a_proof() -> None:
    proved_names = {name.split()[0] for name in PROOFS}
    # `is_main_process` makes no filesystem call and does not wait
    assert proved_names | {"is_main_process"} == set(safe.__all__)


def assert_holds(name: str, most: int = 10_000, **options: object) -> None:
    """Assert that no interleaving fails, up to the limit of this run."""
    limit = bound(min(most, 20), most)
    result = proved(name, max_schedules=limit, **options)
    result.assert_ok()
    assert result.exhaustive or result.schedules == limit < 10_000


@helpers
@pytest.mark.parametrize("filesystem", ["posix", "nfs"])
def test_every_interleaving_of_two_processes_passes(name: str, filesystem: str) -> None:
    assert_holds(name, filesystem=filesystem)


@helpers
def test_random_interleavings_of_four_processes_pass(name: str) -> None:
    proved(name, processes=4, max_schedules=0, samples=bound(2, 12), seed=1).assert_ok()


@helpers
def test_kill_at_any_call_leaves_no_partial_result(name: str) -> None:
    assert_holds(name, crash="kill")


@pytest.mark.parametrize("crash", ["power", "power-unordered"])
@pytest.mark.parametrize("name", [name for name, proof in PROOFS.items() if proof.syncs])
def test_power_failure_leaves_no_partial_result(name: str, crash: str) -> None:
    assert_holds(name, crash=crash, processes=1)


RESULTS: dict[str, Callable[[Path], bool]] = {
    "atomic_write": lambda root: json.loads((root / "state").read_text()) == {"rank": 0},
    "atomic_path": lambda root: json.loads((root / "state").read_text()) == {"rank": 0},
    "extract_once": lambda root: (root / "out" / "d" / "y").read_text() == "abc",
    "download_once": lambda root: (root / "cache" / "file").read_text() == "onetwo",
    "publish_symlink": lambda root: os.readlink(root / "link") == "new",
}


@pytest.mark.parametrize("name", RESULTS)
def test_result_of_a_helper_that_has_returned_survives_a_power_failure(name: str) -> None:
    proof = PROOFS[name]

    def function(root: Path, rank: int) -> None:
        proof.function(root, rank)
        (root / ".mark").mkdir()

    def check(root: Path) -> None:
        if (root / ".mark").exists():
            assert RESULTS[name](root)

    def setup(root: Path) -> None:
        # a missing directory is created, but not synced
        (root / "cache").mkdir()
        if proof.setup is not None:
            proof.setup(root)

    result = explore(function, setup=setup, check=check, crash="power-unordered", processes=1)
    result.assert_ok()
    assert result.exhaustive


def test_unsynced_helper_does_not_survive_power_failure() -> None:
    result = proved("replace", crash="power", processes=1)
    assert result.failure is not None
    assert result.failure.kind == "crash"


@pytest.mark.parametrize(
    ("name", "broken", "by", "options"),
    [
        ("ensure_dir", "_look", lambda path, folder=False: os.stat(path), {"filesystem": "nfs"}),
        ("atomic_write", "_sync", lambda path, inner=True: None, {"crash": "power", "processes": 1}),
        ("remove_tree", "_sync", lambda path, inner=True: None, {"crash": "power-unordered", "processes": 1}),
        ("atomic_write", "_beside", lambda target: target, {"crash": "kill", "processes": 1}),
        ("barrier", "barrier", lambda: None, {}),
        ("remove", "_patiently", lambda call, path: os.path.exists(path) and call(path), {}),
    ],
)
def test_helper_without_its_safeguard_fails(
    name: str, broken: str, by: object, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "remove":
        monkeypatch.setattr(safe, "suppress", lambda *_: open(os.devnull))  # noqa: SIM115  # suppresses nothing
    monkeypatch.setattr(safe, broken, by)
    assert not proved(name, **options).ok
