"""Filesystem operations that are safe when many processes run them at once.

One file for Python 3.8 and later, standard library only: copy it into your project. No operation relies on a
lock. New content is written under a hidden name in the same directory, flushed to disk, and renamed into
place. A process that loses a race deletes its own copy. A killed process leaves at most a hidden name.
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
    """Create a directory and its missing parents, and return its path.

    Protects against two processes that create it, one that removes it in between, and NFS or FUSE, where
    stale answers make `os.makedirs(exist_ok=True)` raise FileExistsError for a directory: what exists is
    opened, which asks the server, until the timeout. Does not guarantee that the directory exists later."""
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
    """Remove a file or a link, if it exists.

    Protects against two processes that both saw it: the slower one fails with FileNotFoundError. Raises all
    other errors. Does not remove directories, and does not guarantee that nobody creates it again."""
    with suppress(FileNotFoundError):
        _patiently(os.remove, path)


def remove_tree(path: Where, timeout: float = 10.0) -> None:
    """Remove a tree, a file, or a link (not its target), like `rm -rf`.

    Protects against processes that remove the same tree or add to it, and readers of a partial tree: the path
    is renamed first (removed in place where directories cannot be renamed: overlayfs, some FUSE). What an
    error or a crash leaves has a hidden name. Does not guarantee that nobody creates the path again."""
    path = Path(path)
    if path.name in ("", ".."):
        raise ValueError(f"refused to remove {path}: the path does not end in a name")
    hidden = _beside(path)
    try:
        replace(path, hidden)
        _sync(path.parent, inner=False)
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
    """Open a file for writing; it replaces the target in one step when the block ends without an exception.

    Protects against readers of a partial file, two writers of one file, and a crash or a full disk at any
    step. Keeps links and mode bits. `options` are those of `open`. With `sync=False`, which skips fsync, a
    power failure can lose data. Does not merge two updates or keep the owner, ACLs, and hard links. On NFS,
    readers of the old file can get ESTALE. Not atomic on object stores."""
    if "w" not in mode:
        raise ValueError(f"unsupported mode {mode!r}: the file is always replaced, so use 'w' or 'wb'")
    with _publishing(path, "file", sync=sync) as new, open(new, mode, encoding=encoding, **options) as out:
        yield out


def atomic_path(path: Where, *, sync: bool = True) -> AbstractContextManager[Path]:
    """Yield a path to write to, for `torch.save` and similar; the result replaces the target in one step.

    Protects against the same races as `atomic_write`, with its limits. The path has the target's name, in a
    hidden directory next to it, so `*.pt` does not match it. It can become a directory, which cannot replace
    one that is not empty (OSError): publish it under a new name and switch a link."""
    return _publishing(path, "path", sync=sync)


def replace(src: Where, dst: Where) -> None:
    """Rename a file, and replace another one: `os.replace`, with retries on Windows.

    Protects against the PermissionError that Windows raises while either file is open: retries for ten
    seconds. Not atomic between filesystems or on object stores, and does not flush to disk."""
    _patiently(os.replace, src, dst)


def publish_symlink(target: Where, link: Where) -> None:
    """Create a symbolic link to `target`, or redirect an existing one, in one step.

    Protects against the gap between `os.remove` and `os.symlink`, where readers find no link and a second
    process gets FileExistsError. Does not guarantee that the target exists, or replace a directory."""
    with _publishing(link, "link", sync=True) as made:
        os.symlink(target, made, target_is_directory=os.path.isdir(Path(link).parent / target))


def extract_once(
    archive: Where, destination: Where, *, max_members: int = 10**7, max_bytes: int = 2**38, sync: bool = True
) -> Path:
    """Extract a tar or zip archive so that exactly one complete tree appears; return its path.

    Protects against processes that extract into one directory, readers of a partial tree, and a crash: each
    process extracts into a hidden directory and renames it; the slower ones delete theirs. A destination that
    is not empty counts as complete: a partial tree from another tool is not detected. ValueError: too many
    members or bytes, absolute names, `..`, links that leave the tree or are part of a name, devices, sparse
    files, damage (or a zlib.error). Does not limit the memory or time of a bomb, keep owners (or modes and
    links of a zip), or replace an empty destination on Windows. `sync` as in `atomic_write`."""
    if not _is_filled(destination):
        ensure_dir(Path(destination).parent)
        try:
            with atomic_path(destination, sync=sync) as tree:
                os.mkdir(tree)
                _unpack(archive, tree, max_members, max_bytes)
        except OSError:
            # another process was faster, or has finished and deleted the archive
            if not _is_filled(destination):
                raise
        except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
            raise ValueError(f"{archive}: {error}") from error
    return Path(destination)


def download_once(
    source: str | Callable[[Path], object], path: Where, *, digest: str | None = None, timeout: float = 60.0
) -> Path:
    """Download a file unless it exists; it appears complete or not at all. Return its path.

    Protects against processes that download to one file, readers of a partial file, and a crash. `source` is
    an http or https URL, or a function that writes to the path that it is passed. An incomplete download or
    one with another digest ("sha256:...", ValueError) is not published. An existing file is used, with a
    digest only if it matches. Does not prevent parallel downloads or resume them. Without a digest, does not
    detect a truncated response that has no length. On NFS, readers can get ESTALE as with `atomic_write`."""
    if not callable(source) and not source.lower().startswith(("http://", "https://")):
        raise ValueError(f"{source!r} is not an http or https URL")
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
                    raise OSError(f"incomplete download of {source}: got only {sink.tell()} bytes")
        if digest is not None and _digest(made, digest) != digest:
            raise ValueError(f"{path}: the download has the digest {_digest(made, digest)}, not {digest}")
    return Path(path)


def is_main_process() -> bool:
    """Return whether this is global rank 0, from the initialized framework, else from launcher variables.

    Protects against every rank doing what one should do. Frameworks count once the program has initialized
    them. Does not distinguish a rank from workers that it starts, and does not make other ranks wait."""
    return _job(meeting=False)[0] == 0


def is_main_on_this_filesystem(path: Where = ".") -> bool:
    """Return whether this process is the one that writes for all processes that share this directory.

    A COLLECTIVE: every rank must call it, or the others hang. Protects against node-local disks treated as
    shared (one node has the file) and the reverse (each node writes it). FSRACE_SHARED_FILESYSTEM=1 in the
    environment selects global rank 0, =0 selects local rank 0. Otherwise, all ranks create the same new name
    there with O_EXCL, rank 0 first, then local ranks 0; the first one is selected. Keep the answer: the next
    call may not select the same rank. Does not work where O_EXCL does not (object stores)."""
    told, local = _number("FSRACE_SHARED_FILESYSTEM"), _number(*_LOCAL_RANKS)
    if told == 0 and local is None:
        raise RuntimeError("`FSRACE_SHARED_FILESYSTEM=0` needs the local rank: set `LOCAL_RANK`")
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
    """Wait until all processes of the job are here, with the barrier of the initialized framework.

    A COLLECTIVE. Protects against readers that arrive before the writer is done. RuntimeError: no framework,
    and multiple processes. Does not refresh caches: on NFS, open a file instead of checking for it."""
    _job()[2]()


def run_on_main(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run a function on the main process; all ranks wait, and get its result or its exception.

    A COLLECTIVE. Protects against ranks that continue before rank 0 is done, or hang because rank 0 failed.
    An exception that cannot be pickled becomes a RuntimeError with its text. Does not refresh caches (NFS:
    see `barrier`), make the main process wait, or outlast the timeout of the framework."""
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
    """Return one answer on all ranks, that of the main process: `lambda: os.path.exists(checkpoint)`.

    A COLLECTIVE. Protects against ranks that take different branches because only some of them see a file (a
    race, a stale NFS cache), so the next collective hangs. Does not guarantee that it is still true."""
    return run_on_main(function)


def wait_for_path(path: Where, timeout: float = 600.0) -> Path:
    """Wait until a file or directory from another job exists; return its path.

    Protects against NFS, where `os.path.exists` can be wrong for a minute: the directory and the path are
    opened, which asks the server. Does not tell a complete file from a partial one: see `atomic_write`."""
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
                seen = "missing or unreadable" if folders is None else f"{len(folders + files)} found"
                raise TimeoutError(f"no {path} after {timeout:g} s (entries in {parent}: {seen})") from error
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
            # Windows: a process has the file open; a rename onto a directory never succeeds
            if over or not _WINDOWS or os.path.isdir(paths[-1]):
                raise


def _beside(target: Path) -> Path:
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:40]
    return target.with_name(f".{target.name[:40]}.{host}.{os.getpid()}.{os.urandom(8).hex()}.tmp")


def _look(path: Where, *, folder: bool = False) -> None:
    """Open and close a path: this asks an NFS server, while a cache may answer `stat()`."""
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
    """Yield a new "file", or a free name in a new directory (for a "path" or "link"), and publish it."""
    target = Path(os.path.realpath(path)) if kind != "link" and os.path.islink(path) else Path(path)
    old = 0
    with suppress(FileNotFoundError):
        old = os.lstat(target).st_mode
    if old and kind != "link" and not stat.S_ISREG(old) and not (kind == "path" and stat.S_ISDIR(old)):
        raise OSError(errno.EISDIR if stat.S_ISDIR(old) else errno.EINVAL, "not a regular file", str(target))
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
                raise ValueError(f"{archive}: more than `max_members` members or `max_bytes` bytes")
            target = _checked(member, Path(os.path.realpath(root)))
            if is_zip or not (member.issym() or member.islnk()):
                bundle.extract(member, str(root))
            else:
                first = member.linkname if member.issym() else root / member.linkname
                (os.symlink if member.issym() else os.link)(first, ensure_dir(target.parent) / target.name)
        if not is_zip:
            # tarfile treats a truncation between two members, or a damaged header, as the end
            bundle.fileobj.seek(bundle.offset)
            if bundle.fileobj.read(512) != bytes(512):
                raise tarfile.ReadError("damaged or truncated: no end-of-archive mark")
            # the checksum of a compressed stream stands at its end
            while bundle.fileobj.read(1 << 20):
                pass


def _checked(member: Any, root: Path) -> Path:
    """Refuse a member that leaves the tree or crosses a link; return its path."""
    is_zip = isinstance(member, zipfile.ZipInfo)
    name, link = (member.filename, "") if is_zip else (member.name, member.linkname)
    parts = [part for part in name.split("/") if part not in ("", ".")]
    target = root.joinpath(*parts)
    bad = any(re.match(r"/|[A-Za-z]:|.*\\", text, re.DOTALL) for text in (name, link)) or ".." in parts
    bad = bad or len(parts) > 100 or os.path.realpath(target) != str(target)
    if is_zip:
        bad = bad or stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR)
    elif member.issym():
        # allow `..` only at the start of a link, where it refers to real directories of this tree
        member.linkname = posixpath.normpath(link)
        bad = bad or member.linkname.split("/").count("..") >= len(parts)
    elif member.islnk():
        bad = bad or os.path.realpath(root / link) != str(root / link) or not (root / link).is_file()
    else:
        bad = bad or not (member.isreg() or member.isdir()) or member.issparse()
    if bad:
        raise ValueError(f"refused {name!r}: it leaves the tree, crosses a link, or is a device or sparse")
    return target


def _digest(path: Where, like: str) -> str:
    digest = hashlib.new(like.partition(":")[0])
    with open(path, "rb") as stream:
        for chunk in iter(lambda: stream.read(1 << 20), b""):
            digest.update(chunk)
    return f"{digest.name}:{digest.hexdigest()}"


def _job(*, meeting: bool = True) -> tuple[int, int, Callable[[], object], Callable[[bytes], bytes]]:
    """Return the rank, size, barrier, and broadcast of the initialized framework, else of the launcher."""
    dist, hvd, jax, mpi = map(sys.modules.get, _FRAMEWORKS)
    if dist and dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size(), dist.barrier, partial(_share_torch, dist)
    hvd = hvd or sys.modules.get("horovod.tensorflow")
    if hvd and hvd.is_initialized():
        return hvd.rank(), hvd.size(), partial(hvd.allgather_object, 0), hvd.broadcast_object
    # jax.process_index() would start the backend, and jax.distributed.initialize() would then fail
    if jax and jax.global_state.client:
        top, tools = sys.modules["jax"], importlib.import_module("jax.experimental.multihost_utils")
        meet, share = partial(tools.sync_global_devices, "fsrace"), partial(_share_jax, tools)
        return top.process_index(), top.process_count(), meet, share
    if mpi and mpi.Is_initialized() and not mpi.Is_finalized() and mpi.COMM_WORLD.size > 1:
        return mpi.COMM_WORLD.rank, mpi.COMM_WORLD.size, mpi.COMM_WORLD.Barrier, mpi.COMM_WORLD.bcast
    told, step = [(_number(rank), _number(size)) for rank, size in _RANKS], _number("SLURM_STEP_NUM_TASKS")
    # sbatch also sets SLURM_PROCID, for a single process; only srun sets the size of a step
    told += [(step and _number("SLURM_PROCID"), step), (_number("PMIX_RANK"), None), (0, 1)]
    rank, size = next((rank, size) for rank, size in told if rank is not None)
    if meeting and size != 1:
        raise RuntimeError("multiple processes, but none of torch, horovod, jax, mpi4py is initialized")
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
        pickle.loads(data := pickle.dumps((None, problem)))
    except Exception:
        return pickle.dumps((None, RuntimeError(f"main process: {type(problem).__name__}: {problem}")))
    return data
