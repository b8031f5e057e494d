"""Filesystem steps that stay right when many processes take them at once.

One file for Python 3.8 and later, standard library only: copy it into your project. Nothing rests on a lock:
new content grows under a hidden name beside the target, is flushed to the disk, and takes its place by one
rename; who loses a race throws its own work away. A process that is killed leaves at most a hidden name.
"""

from __future__ import annotations

import errno
import hashlib
import importlib
import os
import pickle
import posixpath
import re
import shutil
import socket
import stat
import sys
import tarfile
import time
import urllib.request
import zipfile
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Where = str | os.PathLike[str]

__all__ = ["atomic_path", "atomic_write", "barrier", "decide_on_main", "download_once", "ensure_dir"]
__all__ += ["extract_once", "is_main_on_this_filesystem", "is_main_process", "publish_symlink", "remove"]
__all__ += ["remove_tree", "replace", "run_on_main", "wait_for_path"]

T = TypeVar("T")
_WINDOWS = os.name == "nt"
_PASSING = (errno.EEXIST, errno.ENOENT, errno.ENOTEMPTY, getattr(errno, "ESTALE", errno.ENOENT))
_FRAMEWORKS = ("torch.distributed", "horovod.torch", "jax._src.distributed", "mpi4py.MPI")
_LAUNCHERS = ("", "OMPI_COMM_WORLD_", "PMI_", "MV2_COMM_WORLD_", "HOROVOD_")
_RANKS = [(f"{name}RANK", f"{name or 'WORLD_'}SIZE") for name in _LAUNCHERS]
_LOCAL_RANKS = [*(f"{name}LOCAL_RANK" for name in _LAUNCHERS), "MPI_LOCALRANKID", "SLURM_LOCALID"]


def ensure_dir(path: Where, mode: int = 0o777, timeout: float = 10.0) -> Path:
    """Make a directory and its parents where they are missing; give its path.

    Against two processes that make it, one that removes it in between, and NFS or FUSE, whose stale answer
    lets `os.makedirs(exist_ok=True)` say FileExistsError of a directory: what exists is opened, which asks
    the server, until the timeout. It does not promise that the directory is still there later."""
    folder = Path(path)
    for over in _attempts(timeout):
        try:
            try:
                os.mkdir(folder, mode)
            except FileNotFoundError:
                if folder.parent == folder:
                    raise
                ensure_dir(folder.parent, timeout=timeout)
                os.mkdir(folder, mode)
            break
        except OSError as error:
            try:
                _look(folder, folder=True)
                break
            except OSError as problem:
                if isinstance(problem, PermissionError) and os.path.isdir(folder):
                    break
                other = isinstance(problem, NotADirectoryError) or os.path.islink(folder)
                if over or other or error.errno not in _PASSING:
                    raise error from None
    return folder


def remove(path: Where) -> None:
    """Remove a file or a link, if it is there.

    Against two processes that both saw it, on any filesystem: the slower one dies of FileNotFoundError. Real
    errors are raised. It does not remove directories, and does not promise that nobody makes it again."""
    with suppress(FileNotFoundError):
        _patiently(os.remove, path)


def remove_tree(path: Where, timeout: float = 10.0) -> None:
    """Remove whatever has this name, like `rm -rf`: a tree, a file, a link but not what it points to.

    Against processes that remove the same tree or add to it, and readers of half a tree: the name goes first,
    by one rename (in place where that fails for directories: overlayfs, some FUSE). What an error or a crash
    leaves stays under a hidden name. It does not promise that nobody makes the name again."""
    path = Path(path)
    if path.name in ("", ".."):
        raise ValueError(f"refused to remove {path}: it ends in no name")
    hidden = _beside(path)
    try:
        replace(path, hidden)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        hidden = path
    for over in _attempts(timeout):
        try:
            shutil.rmtree(hidden) if stat.S_ISDIR(os.lstat(hidden).st_mode) else os.remove(hidden)
            break
        except OSError as error:
            if not os.path.lexists(hidden):
                break
            if over or not (_WINDOWS or error.errno in _PASSING):
                raise


@contextmanager
def atomic_write(
    path: Where, mode: str = "w", encoding: str | None = None, *, sync: bool = True, **options: Any
) -> Iterator[IO[Any]]:
    """Open a file to write it anew; it takes its place when the block ends, whole or not at all.

    Against readers of half a file, two writers in one file, and a crash or a full disk at any step. Links and
    mode bits stay; `options` are those of `open`; `sync=False` leaves out fsync, and with it the promise
    for a loss of power. It does not merge two updates, does not keep owner, ACLs and hard links, does not
    spare an NFS reader of the old file an ESTALE, and is not atomic on object stores."""
    if "w" not in mode:
        raise ValueError(f"mode {mode!r}: a file is replaced ('w'); no portable rename refuses to ('x')")
    with _publishing(path, "file", sync=sync) as new, open(new, mode, encoding=encoding, **options) as out:
        yield out


def atomic_path(path: Where, *, sync: bool = True) -> AbstractContextManager[Path]:
    """Give a path to write to, for `torch.save` and the like; what is there in the end takes its place.

    Against the same as `atomic_write`, with its limits. The path has the target's name, in a hidden directory
    beside it: no `*.pt` finds it. It can become a directory, which does not replace one that holds something
    (OSError): no rename does that; publish it under a new name and switch a link."""
    return _publishing(path, "path", sync=sync)


def replace(src: Where, dst: Where) -> None:
    """Rename, over another file if there is one: `os.replace`, with patience on Windows.

    Against Windows, which says PermissionError while anybody has either file open: it is tried for ten
    seconds. It is not atomic between filesystems or on object stores, and does not flush to the disk."""
    _patiently(os.replace, src, dst)


def publish_symlink(target: Where, link: Where) -> None:
    """Make a symbolic link that says `target`, or point an old one there, in one step.

    Against the gap between `os.remove` and `os.symlink`, on any filesystem: a reader finds no link, a second
    process dies of FileExistsError. It does not promise that the target exists, or to replace a directory."""
    with _publishing(link, "link", sync=True) as made:
        os.symlink(target, made, target_is_directory=os.path.isdir(Path(link).parent / target))


def extract_once(
    archive: Where, destination: Where, *, max_members: int = 10**7, max_bytes: int = 2**38, sync: bool = True
) -> Path:
    """Unpack a tar or zip archive; one whole tree appears, whoever unpacks it how often; give its path.

    Against processes that unpack into one directory, readers of half of it, and a crash: each unpacks into a
    hidden directory and renames its top; losers throw theirs away. So a destination that holds anything *is*
    complete: half a tree of something else is not told apart. ValueError: too many members or bytes, absolute
    names, `..`, links out of the tree or on the way, devices, sparse files, damage (or a zlib.error).
    It does not bound a bomb's memory or time, keep owners (or a zip's modes and links), or replace an empty
    destination on Windows. `sync` as in `atomic_write`."""
    if not _is_filled(destination):
        ensure_dir(Path(destination).parent)
        try:
            with atomic_path(destination, sync=sync) as tree:
                os.mkdir(tree)
                _unpack(archive, tree, max_members, max_bytes)
        except OSError:
            # the others were faster, or were done and have removed the archive
            if not _is_filled(destination):
                raise
        except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
            raise ValueError(f"{archive}: {error}") from error
    return Path(destination)


def download_once(
    source: str | Callable[[Path], object], path: Where, *, digest: str | None = None, timeout: float = 60.0
) -> Path:
    """Fetch a file if it is not there; it appears whole, whoever fetches it how often; give its path.

    Against processes that download into one file, readers of half of it, and a crash, on any filesystem.
    `source` is an http or https address, or a function that writes to the path it is given. What breaks off
    or misses the digest ("sha256:...", ValueError) is not published; what is there is taken, with a digest
    only if right. It does not spare the others the download, does not resume, and without a digest does not
    notice a short answer of a server that tells no length."""
    if not callable(source) and not source.lower().startswith(("http://", "https://")):
        raise ValueError(f"{source!r} is no http or https address")
    with suppress(FileNotFoundError):
        _look(path)
        if digest is None or _digest(path, digest) == digest:
            return Path(path)
    ensure_dir(Path(path).parent)
    with atomic_path(path) as made:
        if callable(source):
            source(made)
        else:
            with urllib.request.urlopen(source, timeout=timeout) as answer, open(made, "wb") as sink:
                shutil.copyfileobj(answer, sink, 1 << 20)
                if sink.tell() != int(answer.headers.get("Content-Length", sink.tell())):
                    raise OSError(f"{source} broke off after {sink.tell()} bytes")
        if digest is not None and _digest(made, digest) != digest:
            raise ValueError(f"{path}: what was fetched is {_digest(made, digest)} and not {digest}")
    return Path(path)


def is_main_process() -> bool:
    """Tell whether this is global rank 0, by the initialized framework, else by the launcher's variables.

    Against processes that all do what one should, on any filesystem. Frameworks count once the program has
    initialized them. It does not tell a rank from workers it starts, and does not make the others wait."""
    return _job(meeting=False)[0] == 0


def is_main_on_this_filesystem(path: Where = ".") -> bool:
    """Tell whether this process is the one to write for all that share this directory.

    A COLLECTIVE: every rank must call it, or the others hang. Against node-local disks taken for shared (one
    node has the file) and the reverse (each node writes it). FSRACE_SHARED_FILESYSTEM=1 in the environment
    makes it global rank 0, =0 local rank 0. Else all create one new name there with O_EXCL, rank 0 first,
    then local ranks 0; who succeeds is it. It does not promise the same one at the next call (keep the
    answer), and does not work where O_EXCL does not (object stores)."""
    told, local = _number("FSRACE_SHARED_FILESYSTEM"), _number(*_LOCAL_RANKS)
    if told == 0 and local is None:
        raise RuntimeError("FSRACE_SHARED_FILESYSTEM=0, but no variable tells the local rank")
    if told is not None:
        return is_main_process() if told else local == 0
    token = Path(path) / run_on_main(lambda: _beside(Path("token")).name)
    mine, problem, own_turn = False, None, 0 if is_main_process() else 1 if local == 0 else 2
    for turn in range(3):
        try:
            if turn == own_turn:
                token.touch(exist_ok=False)
                mine = True
        except OSError as error:
            problem = error
        barrier()
    if mine:
        remove(token)
    if problem is not None and not isinstance(problem, FileExistsError):
        raise problem
    return mine


def barrier() -> None:
    """Wait until all processes of the job are here, by the initialized framework's own barrier.

    A COLLECTIVE. Against readers that come before the writer is done. Several processes without a framework
    are a RuntimeError. It does not refresh caches: on NFS, open what another wrote, do not test for it."""
    _job()[2]()


def run_on_main(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run a function on the main process; all wait for it, and get its result or its exception.

    A COLLECTIVE. Against ranks that go on before rank 0 is done, and the hang of those who wait for a rank 0
    that failed. An exception that cannot be pickled becomes a RuntimeError with its text. It does not refresh
    caches (NFS: see `barrier`), hold the main process back, or outlast the framework's timeout."""
    rank, size, _, share = _job()
    if size == 1:
        return function(*args, **kwargs)
    if rank == 0:
        try:
            result = function(*args, **kwargs)
            answer = pickle.dumps((result, None))
        except BaseException as error:
            share(_packed(error))
            raise
        share(answer)
        return result
    result, problem = pickle.loads(share(b""))
    if problem is not None:
        raise problem
    return result


def decide_on_main(function: Callable[[], T]) -> T:
    """Let the main process decide for all: one answer, such as that of `lambda: os.path.exists(checkpoint)`.

    A COLLECTIVE. Against ranks that part ways because one saw a file and another did not (a race, a stale
    NFS cache), so that the next collective hangs. It does not promise that the answer is still true."""
    return run_on_main(function)


def wait_for_path(path: Where, timeout: float = 600.0) -> Path:
    """Wait until a file or directory is there, for what another job hands over; give its path.

    Against NFS, where `os.path.exists` can deny for a minute what is there: the directory and the path are
    opened, which asks the server. It does not tell a whole file from half of one: see `atomic_write`."""
    path, parent = Path(path), Path(path).parent
    for over in _attempts(timeout, slowest=1.0):
        with suppress(OSError):
            _look(parent, folder=True)
        try:
            _look(path)
            break
        except OSError as error:
            if error.errno not in _PASSING:
                raise
            if over:
                _, folders, files = next(os.walk(parent), ("", None, []))
                seen = "nor is" if folders is None else f"{len(folders + files)} others in"
                raise TimeoutError(f"{path} is not there after {timeout:g} s, {seen} {parent}") from error
    return path


def _attempts(timeout: float, slowest: float = 0.25) -> Iterator[bool]:
    deadline, pause = time.monotonic() + timeout, 0.001
    while time.monotonic() < deadline:
        yield False
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
        pause = min(2 * pause, slowest)
    yield True


def _patiently(function: Callable[..., None], *paths: Where) -> None:
    for over in _attempts(10.0):
        try:
            function(*paths)
            break
        except PermissionError:
            # Windows: somebody has it open; it never renames over a directory
            if over or not _WINDOWS or os.path.isdir(paths[-1]):
                raise


def _beside(target: Path) -> Path:
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:40]
    return target.with_name(f".{target.name[:40]}.{host}.{os.getpid()}.{os.urandom(8).hex()}.tmp")


def _look(path: Where, *, folder: bool = False) -> None:
    """Open and close: this asks an NFS server, where a stat may be answered from a cache."""
    if _WINDOWS:
        os.scandir(path).close() if folder else os.stat(path)
    else:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | (os.O_DIRECTORY if folder else 0)))


def _is_filled(folder: Where) -> bool:
    with suppress(FileNotFoundError):
        _look(folder, folder=True)
        return bool(os.listdir(folder))
    return False


@contextmanager
def _publishing(path: Where, kind: str, *, sync: bool) -> Iterator[Path]:
    """Give a new "file", or a free name in a new directory (for a "path" or a "link"), and publish it."""
    target = Path(os.path.realpath(path)) if kind != "link" and os.path.islink(path) else Path(path)
    old = 0
    with suppress(FileNotFoundError):
        old = os.lstat(target).st_mode
    if old and kind != "link" and not stat.S_ISREG(old) and not (kind == "path" and stat.S_ISDIR(old)):
        raise OSError(errno.EISDIR if stat.S_ISDIR(old) else errno.EINVAL, "no regular file", str(target))
    hidden = _beside(target)
    made = hidden if kind == "file" else hidden / target.name
    try:
        if kind == "file":
            os.close(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if old else 0o666))
        else:
            os.mkdir(hidden, 0o700)
        yield made
        new = os.lstat(made).st_mode
        if stat.S_ISREG(old) and stat.S_ISREG(new) and new != old:
            os.chmod(made, stat.S_IMODE(old))
        if sync:
            _sync(made)
        replace(made, target)
        if sync:
            _sync(target.parent, inner=False)
    finally:
        with suppress(OSError):
            remove(hidden) if kind == "file" else shutil.rmtree(hidden, ignore_errors=True)


def _sync(path: Path, *, inner: bool = True) -> None:
    mode = os.lstat(path).st_mode if inner else stat.S_IFDIR
    for name in os.listdir(path) if inner and stat.S_ISDIR(mode) else ():
        _sync(path / name)
    if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
        with suppress(OSError if stat.S_ISDIR(mode) else PermissionError):
            descriptor = os.open(path, os.O_RDWR if _WINDOWS else os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _unpack(archive: Where, root: Path, max_members: int, max_bytes: int) -> None:
    is_zip = not tarfile.is_tarfile(archive)
    bundle: Any = zipfile.ZipFile(archive) if is_zip else tarfile.open(archive)
    with bundle:
        bundle.extraction_filter = getattr(tarfile, "data_filter", None)
        for count, member in enumerate(bundle.infolist() if is_zip else bundle, 1):
            max_bytes -= abs(member.file_size if is_zip else member.size)
            if count > max_members or max_bytes < 0:
                raise ValueError(f"{archive}: too many members (max_members) or bytes (max_bytes)")
            target = _checked(member, Path(os.path.realpath(root)))
            if is_zip or not (member.issym() or member.islnk()):
                bundle.extract(member, str(root))  # noqa: FSR301  # the root is this process's own
            else:
                first = member.linkname if member.issym() else root / member.linkname
                (os.symlink if member.issym() else os.link)(first, ensure_dir(target.parent) / target.name)
        if not is_zip:
            # tarfile takes a cut between two members, and a damaged header, for the end
            bundle.fileobj.seek(bundle.offset)
            if bundle.fileobj.read(512) != bytes(512):
                raise tarfile.ReadError("damaged or cut off: there is no end mark")
            # the checksum of a compressed stream stands at its end
            while bundle.fileobj.read(1 << 20):
                pass


def _checked(member: Any, root: Path) -> Path:
    """Refuse a member that leads out of the tree or through a link; give its place."""
    is_zip = isinstance(member, zipfile.ZipInfo)
    name, link = (member.filename, "") if is_zip else (member.name, member.linkname)
    parts = [part for part in name.split("/") if part not in ("", ".")]
    target = root.joinpath(*parts)
    bad = any(re.match(r"/|[A-Za-z]:|.*\\", text, re.DOTALL) for text in (name, link)) or ".." in parts
    bad = bad or len(parts) > 100 or os.path.realpath(target) != str(target)
    if is_zip:
        bad = bad or stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR)
    elif member.issym():
        # `..` only at the start of a link, where it counts real directories of this tree
        member.linkname = posixpath.normpath(link)
        bad = bad or member.linkname.split("/").count("..") >= len(parts)
    elif member.islnk():
        bad = bad or os.path.realpath(root / link) != str(root / link) or not (root / link).is_file()
    else:
        bad = bad or not (member.isreg() or member.isdir()) or member.issparse()
    if bad:
        raise ValueError(f"refused: {name!r} leads out or through a link, or is a device or sparse")
    return target


def _digest(path: Where, like: str) -> str:
    digest = hashlib.new(like.partition(":")[0])
    with open(path, "rb") as stream:
        for chunk in iter(lambda: stream.read(1 << 20), b""):
            digest.update(chunk)
    return f"{digest.name}:{digest.hexdigest()}"


def _job(*, meeting: bool = True) -> tuple[int, int, Callable[[], object], Callable[[bytes], bytes]]:
    """Give rank, size, barrier and broadcast of the loaded, initialized framework; else of the launcher."""
    dist, hvd, jax, mpi = map(sys.modules.get, _FRAMEWORKS)
    if dist and dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size(), dist.barrier, partial(_share_torch, dist)
    hvd = hvd or sys.modules.get("horovod.tensorflow")
    if hvd and hvd.is_initialized():
        return hvd.rank(), hvd.size(), partial(hvd.allgather_object, 0), hvd.broadcast_object
    # jax.process_index() would start the backend, and jax.distributed.initialize() could not follow
    if jax and jax.global_state.client:
        top, tools = sys.modules["jax"], importlib.import_module("jax.experimental.multihost_utils")
        meet, share = partial(tools.sync_global_devices, "fsrace"), partial(_share_jax, tools)
        return top.process_index(), top.process_count(), meet, share
    if mpi and mpi.Is_initialized() and not mpi.Is_finalized() and mpi.COMM_WORLD.size > 1:
        return mpi.COMM_WORLD.rank, mpi.COMM_WORLD.size, mpi.COMM_WORLD.Barrier, mpi.COMM_WORLD.bcast
    told, step = [(_number(rank), _number(size)) for rank, size in _RANKS], _number("SLURM_STEP_NUM_TASKS")
    # sbatch sets SLURM_PROCID too, for one process: only srun tells the size of a step
    told += [(step and _number("SLURM_PROCID"), step), (_number("PMIX_RANK"), None), (0, 1)]
    rank, size = next((rank, size) for rank, size in told if rank is not None)
    if meeting and size != 1:
        raise RuntimeError("several processes, and neither torch, horovod, jax nor mpi4py is initialized")
    return rank, 1, lambda: None, lambda data: data


def _share_torch(dist: Any, data: bytes) -> bytes:
    box = [data]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def _share_jax(utils: Any, data: bytes) -> bytes:
    numpy: Any = sys.modules["numpy"]
    size = int(utils.broadcast_one_to_all(numpy.int32(len(data))))
    return bytes(utils.broadcast_one_to_all(numpy.frombuffer(data[:size].ljust(size), numpy.uint8)))


def _number(*names: str) -> int | None:
    return next((int(value) for value in map(os.environ.get, names) if value and value.isdigit()), None)


def _packed(problem: BaseException) -> bytes:
    try:
        data = pickle.dumps((None, problem))
        pickle.loads(data)
    except Exception:
        return pickle.dumps((None, RuntimeError(f"on the main process: {type(problem).__name__}: {problem}")))
    return data
