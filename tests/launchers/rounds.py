"""What each process of a job does with the helpers in every round, and what must hold."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from fsrace_lint import safe

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MEMBERS = {"a.txt": b"a" * 3000, "sub/b.bin": bytes(range(256)) * 40, "sub/deep/c.txt": b"c"}
LINE = 4000


class Job(NamedTuple):
    directory: Path
    rank: int
    size: int
    meet: Callable[[], object]
    is_job: bool
    """Whether the helpers that synchronize processes can be used."""


def content(rank: int, number: int) -> bytes:
    """Self-checking content: a line and its digest."""
    line = f"{rank} {number} ".encode() * (LINE // 10 + rank)
    return line + hashlib.sha256(line).hexdigest().encode()


def assert_whole(data: bytes) -> None:
    assert len(data) > 64, f"{len(data)} bytes are not whole"
    assert hashlib.sha256(data[:-64]).hexdigest().encode() == data[-64:], "a file is not whole"


def assert_tree(tree: Path) -> None:
    found = {str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    assert found == MEMBERS, f"a tree is not whole: {sorted(found)}"


def assert_nothing_hidden(directory: Path) -> None:
    hidden = [path.name for path in directory.iterdir() if path.name.startswith(".")]
    assert not hidden, f"left behind: {hidden}"


def make_archive(path: Path) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in MEMBERS.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def directories(job: Job, number: int) -> None:
    top = job.directory / f"tree{number}"
    leaf = safe.ensure_dir(top / "a" / "b")
    assert leaf.is_dir()
    (leaf / str(job.rank)).write_bytes(b"x")
    job.meet()
    safe.remove_tree(top)
    assert not os.path.lexists(top)


def removing(job: Job, number: int) -> None:
    path = job.directory / f"file{number}"
    if job.rank == number % job.size:
        path.write_bytes(b"x")
    job.meet()
    safe.remove(path)
    assert not os.path.lexists(path)


def writing(job: Job, number: int) -> None:
    path = job.directory / "written.txt"
    with safe.atomic_write(path, "wb", sync=number % 20 == 0) as stream:
        stream.write(content(job.rank, number)[:100])
        stream.flush()
        stream.write(content(job.rank, number)[100:])
    assert_whole(path.read_bytes())


def writing_paths(job: Job, number: int) -> None:
    path = job.directory / "path.bin"
    with safe.atomic_path(path, sync=number % 20 == 0) as temporary:
        assert temporary.name == path.name
        temporary.write_bytes(content(job.rank, number))
    assert_whole(path.read_bytes())


def publishing_directories(job: Job, number: int) -> None:
    if number:
        assert sorted((job.directory / f"won{number - 1}").read_bytes()) == sorted(
            b"0" * (job.size - 1) + b"1"
        )
        safe.remove_tree(job.directory / f"published{number - 1}")
    path = job.directory / f"published{number}"
    try:
        with safe.atomic_path(path, sync=number % 20 == 0) as temporary:
            for name, data in MEMBERS.items():
                file = temporary / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        won = True
    except OSError:
        won = False
    assert_tree(path)
    with open(job.directory / f"won{number}", "ab", buffering=0) as wins:
        wins.write(b"1" if won else b"0")


def replacing(job: Job, number: int) -> None:
    source, target = job.directory / f"source{job.rank}", job.directory / "replaced"
    source.write_bytes(content(job.rank, number))
    safe.replace(source, target)
    assert_whole(target.read_bytes())


def linking(job: Job, number: int) -> None:
    link = job.directory / "link"
    safe.publish_symlink(f"target{job.rank}", link)
    assert os.readlink(link) in {f"target{rank}" for rank in range(job.size)}


def extracting(job: Job, number: int) -> None:
    safe.remove_tree(job.directory / f"extracted{number - 1}")
    tree = job.directory / f"extracted{number}"
    assert safe.extract_once(job.directory / "archive.tar.gz", tree, sync=number % 20 == 0) == tree
    assert_tree(tree)


def downloading(job: Job, number: int) -> None:
    safe.remove(job.directory / f"download{number - 1}")
    path = job.directory / f"download{number}"
    data = content(0, number)

    def fetch(temporary: Path) -> None:
        temporary.write_bytes(data[:50])
        with open(temporary, "ab") as stream:
            stream.write(data[50:])

    safe.download_once(
        fetch, path, digest=f"sha256:{hashlib.sha256(data).hexdigest()}" if number % 2 else None
    )
    assert path.read_bytes() == data


def waiting(job: Job, number: int) -> None:
    safe.remove(job.directory / f"handed{number - 1}")
    path = job.directory / f"handed{number}"
    if job.rank == number % job.size:
        with safe.atomic_write(path, "wb", sync=False) as stream:
            stream.write(content(job.rank, number))
    assert_whole(safe.wait_for_path(path, timeout=60).read_bytes())


def meeting(job: Job, number: int) -> None:
    (job.directory / f"before.{job.rank}").write_text(str(number))
    safe.barrier()
    for rank in range(job.size):
        assert int((job.directory / f"before.{rank}").read_text()) == number


def electing(job: Job, number: int) -> None:
    assert safe.run_on_main(lambda: job.rank) == 0
    assert safe.is_main_process() is (job.rank == 0)


def electing_a_filesystem(job: Job, number: int) -> None:
    """All ranks share one directory, every second rank does, or it is missing on one rank."""
    node = job.directory / ("shared" if number % 2 else f"node{job.rank % 2}")
    node.mkdir(exist_ok=True)
    if number % 10 == 9 and job.rank == 1:
        node = node / "missing"
    try:
        is_main = safe.is_main_on_this_filesystem(node)
    except FileNotFoundError:
        assert node.name == "missing"
        is_main = False
    if job.rank == 0 or node.name == "shared":
        assert is_main is (job.rank == 0), "rank 0 is the one where it shares the filesystem"
    if is_main:
        (node / f"main{number}.{job.rank}").touch()
    safe.barrier()
    assert node.name == "missing" or len(list(node.glob(f"main{number}.*"))) == 1


class OddError(Exception):
    """An error that can be pickled but not unpickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


def running_on_main(job: Job, number: int) -> None:
    calls = []

    def work(*args: int, **kwargs: int) -> dict[str, object]:
        calls.append(1)
        return {"args": args, "kwargs": kwargs, "rank": job.rank}

    assert safe.run_on_main(work, number, key=number) == {
        "args": (number,),
        "kwargs": {"key": number},
        "rank": 0,
    }
    assert len(calls) == (job.rank == 0)

    def fail() -> None:
        if number % 3 == 0:
            raise FileNotFoundError(2, "nothing", f"file{number}")
        if number % 3 == 1:
            raise OddError("odd", str(number))
        raise SystemExit(number)

    error = caught(fail)
    odd_elsewhere = number % 3 == 1 and job.rank != 0
    assert type(error) is (
        (FileNotFoundError, OddError, SystemExit)[number % 3] if not odd_elsewhere else RuntimeError
    )
    assert ("OddError" if odd_elsewhere else str(number)) in str(error)
    assert isinstance(caught(threading.Lock), TypeError), (
        "a result that cannot be pickled is an error for all"
    )


def caught(function: Callable[[], object]) -> BaseException:
    try:
        safe.run_on_main(function)
    except (FileNotFoundError, OddError, SystemExit, RuntimeError, TypeError) as error:
        return error
    raise AssertionError("an exception was lost")


def deciding(job: Job, number: int) -> None:
    answer = safe.decide_on_main(lambda: os.urandom(8) if number % 2 else (job.directory / "no").exists())
    assert safe.run_on_main(lambda: answer) == answer


ALONE = (
    directories,
    removing,
    writing,
    writing_paths,
    publishing_directories,
    replacing,
    linking,
    extracting,
    downloading,
    waiting,
)
TOGETHER = (meeting, electing, electing_a_filesystem, running_on_main, deciding)


def hammer(job: Job, rounds: int) -> dict[str, float]:
    """Run every helper `rounds` times; return the seconds for each."""
    if job.rank == 0:
        make_archive(job.directory / "archive.tar.gz")
    seconds = {}
    for act in (*ALONE, *TOGETHER) if job.is_job else ALONE:
        job.meet()
        start = time.monotonic()
        for number in range(rounds):
            job.meet()
            act(job, number)
        seconds[act.__name__] = round(time.monotonic() - start, 1)
    job.meet()
    assert_nothing_hidden(job.directory)
    job.meet()
    return seconds
