"""Atomic rewrites of user files: killed processes, full disks, and concurrent writers."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from support.cli import HAZARD, run, write

from fsrace_lint.cli import main
from fsrace_lint.explore import explore
from fsrace_lint.files import atomic_write
from fsrace_lint.files.atomic_write import (
    ObstacleError,
    exchange,
    metadata,
    put,
    rename_exchange,
    stale_temporaries,
)
from fsrace_lint.pipeline import comments, repair
from fsrace_lint.pipeline.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

pytestmark = pytest.mark.usefixtures("here")

OLD, NEW, THEIRS = b"old\n", b"new\n", b"theirs\n"
OWN_ROOT = '[tool.fsrace-lint]\nroot = "."\n'
FIXED = 'import os\n\nos.makedirs("d", exist_ok=True)\n'
DEAD: Final = 2_000_000_000
"""No process has this ID."""
FAILURES = [errno.ENOSPC, errno.EIO, errno.EDQUOT]

linux = pytest.mark.skipif(sys.platform != "linux", reason="extended attributes as Linux has them")
forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is killed that was forked")


@pytest.fixture
def file(here: Path) -> Path:
    """A file with the old content."""
    Path("a.py").write_bytes(OLD)
    return Path("a.py")


@pytest.fixture(params=["swapped", "renamed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to replace a file: by exchanging two names, where supported, and by renaming."""
    if request.param == "renamed":
        monkeypatch.setattr(atomic_write, "swap", lambda one, other: False)
    elif not can_swap():
        pytest.skip("files cannot change places here")
    return str(request.param)


def can_swap() -> bool:
    with contextlib.suppress(OSError):
        Path("one").write_text("1")
        Path("two").write_text("2")
        return rename_exchange.swap(Path("one"), Path("two")) and Path("one").read_text() == "2"
    return False


def entries() -> set[str]:
    return {entry.name for entry in Path().iterdir()} - {"pyproject.toml", "one", "two"}


def temporary(process: int, place: str = "") -> Path:
    return Path(f".fsrace-lint.{place or stale_temporaries.here()}.{process}.0123456789abcdef.tmp")


class TestPreservedMetadata:
    def test_owner_group_and_mode_bits_are_preserved(self, file: Path, way: str) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root gives files away")
        os.chown(file, 12345, 23456)
        file.chmod(0o6751)
        exchange(file, OLD, NEW)
        status = file.stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12345, 23456, 0o6751)

    @pytest.mark.parametrize(
        ("place", "whose"), [(4, "belongs to another user"), (5, "belongs to a group that you cannot assign")]
    )
    def test_ownership_that_cannot_be_restored_is_refused(
        self, file: Path, monkeypatch: pytest.MonkeyPatch, place: int, whose: str
    ) -> None:
        values = list(file.stat())
        values[place] += 1

        def refuse(*_: object) -> None:
            raise PermissionError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "fchown", refuse)
        with Path("b").open("wb") as stream, pytest.raises(ObstacleError, match=whose):
            metadata.dress(stream.fileno(), Path("b"), file, os.stat_result(values))

    def test_mode_that_is_silently_not_applied_is_refused(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file.chmod(0o751)
        monkeypatch.setattr(os, "fchmod", lambda descriptor, mode: None)
        with pytest.raises(ObstacleError, match="has mode 751, which would be lost"):
            exchange(file, OLD, NEW)
        assert (file.read_bytes(), entries()) == (OLD, {"a.py"})

    @linux
    def test_extended_attributes_are_preserved(self, file: Path, way: str) -> None:
        set_attribute(file, "user.origin", b"\0 anything")
        exchange(file, OLD, NEW)
        assert (os.getxattr(file, "user.origin"), file.read_bytes()) == (b"\0 anything", NEW)

    @linux
    def test_acl_is_preserved_and_directory_default_is_not_applied(self, file: Path, way: str) -> None:
        set_attribute(file, "system.posix_acl_access", access_list(12345))
        Path("plain.py").write_bytes(OLD)
        os.setxattr(".", "system.posix_acl_default", access_list(23456))
        for name in ("a.py", "plain.py"):
            before = Path(name).stat().st_mode
            exchange(Path(name), OLD, NEW)
            assert Path(name).stat().st_mode == before
        assert os.getxattr(file, "system.posix_acl_access") == access_list(12345)
        assert "system.posix_acl_access" not in os.listxattr("plain.py")

    @linux
    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("user.note", "extended attribute `user.note`"),
            ("system.nfs4_acl", "access list"),
            ("security.capability", "extended attribute `security.capability`"),
            ("security.selinux", None),
            ("security.ima", None),
            ("trusted.overlay.origin", None),
            ("lustre.lov", None),
        ],
    )
    def test_attribute_that_cannot_be_preserved(
        self, file: Path, monkeypatch: pytest.MonkeyPatch, name: str, reason: str | None
    ) -> None:
        def refuse(*_: object) -> None:
            raise PermissionError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "listxattr", lambda path: [name] if path == file.resolve() else [])
        monkeypatch.setattr(os, "getxattr", lambda path, name: b"value")
        monkeypatch.setattr(os, "setxattr", refuse)
        if reason is None:
            exchange(file, OLD, NEW)
            assert file.read_bytes() == NEW
            return
        with pytest.raises(ObstacleError, match=f"has an {reason} that would be lost"):
            exchange(file, OLD, NEW)
        assert (file.read_bytes(), entries()) == (OLD, {"a.py"})

    @linux
    def test_attribute_that_a_new_file_inherits_is_not_set(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "listxattr", lambda path: ["system.nfs4_acl"])
        monkeypatch.setattr(os, "getxattr", lambda path, name: b"value")
        monkeypatch.delattr(os, "setxattr")
        exchange(file, OLD, NEW)
        assert file.read_bytes() == NEW

    @linux
    def test_filesystem_without_extended_attributes(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise OSError(errno.ENOTSUP, "Operation not supported")

        monkeypatch.setattr(os, "listxattr", refuse)
        exchange(file, OLD, NEW)
        assert file.read_bytes() == NEW


def set_attribute(file: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(file, name, value)
    except OSError as error:
        pytest.skip(f"no {name} here: {error.strerror}")


def access_list(user: int) -> bytes:
    """A POSIX ACL in the kernel's format that grants access to one more user."""
    nobody = 0xFFFFFFFF
    rows = [(1, 6, nobody), (2, 6, user), (4, 4, nobody), (0x10, 6, nobody), (0x20, 0, nobody)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)


def in_place(file: Path) -> None:
    file.write_bytes(THEIRS)


def renamed(file: Path) -> None:
    Path("theirs").write_bytes(THEIRS)
    Path("theirs").replace(file)


def linked(file: Path) -> None:
    Path("theirs").write_bytes(THEIRS)
    file.unlink()
    file.symlink_to("theirs")


def moved(file: Path) -> None:
    file.rename("theirs")
    file.symlink_to("theirs")


def shared(file: Path) -> None:
    Path("theirs").hardlink_to(file)


def closed(file: Path) -> None:
    file.chmod(0o400)


def gone(file: Path) -> None:
    file.unlink()


def directory(file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "theirs").write_bytes(THEIRS)


OTHERS = [in_place, renamed, linked, moved, shared, closed, gone, directory]


def tree() -> dict[str, object]:
    """The directory tree: link targets, and the content, mode, and link count of each file."""
    found: dict[str, object] = {}
    for path in sorted(Path().rglob("*")):
        if path.is_symlink():
            found[str(path)] = path.readlink()
        elif path.is_file():
            found[str(path)] = path.read_bytes(), path.stat().st_mode, path.stat().st_nlink
    return found


def before(step: Callable[..., Any], act: Callable[[Path], object], file: Path, left: int = 1) -> Any:
    """Wrap a step so that another process acts just before it, the first `left` times."""
    times = [left]

    def late(*arguments: Any, **options: Any) -> Any:
        if times[0]:
            times[0] -= 1
            act(file)
        return step(*arguments, **options)

    return late


def tree_after(act: Callable[[Path], None], file: Path) -> dict[str, object]:
    """The tree that results if only the other process changes the old file."""
    shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)
    Path("theirs").unlink(missing_ok=True)
    file.write_bytes(OLD)
    act(file)
    return tree()


class TestConcurrentChange:
    @pytest.mark.parametrize("act", OTHERS)
    def test_change_between_read_and_write_is_refused(
        self, file: Path, act: Callable[[Path], None], way: str
    ) -> None:
        if act is moved:
            pytest.skip("that the link is new, only a run knows: below, of links")
        act(file)
        after = tree()
        with pytest.raises(ObstacleError):
            exchange(file, OLD, NEW)
        assert tree() == after

    @pytest.mark.parametrize("act", OTHERS)
    def test_change_while_the_new_file_is_written_is_refused(
        self, file: Path, act: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch, way: str
    ) -> None:
        monkeypatch.setattr(os, "fsync", before(os.fsync, act, file))
        with pytest.raises(ObstacleError):
            exchange(file, OLD, NEW)
        assert tree() == tree_after(act, file)

    @pytest.mark.parametrize("act", OTHERS)
    def test_change_just_before_the_exchange_is_refused(
        self, file: Path, act: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not can_swap():
            pytest.skip("files cannot change places here")
        monkeypatch.setattr(atomic_write, "swap", before(rename_exchange.swap, act, file))
        with pytest.raises(ObstacleError, match="by another process during the run"):
            exchange(file, OLD, NEW)
        assert tree() == tree_after(act, file)

    @pytest.mark.parametrize("late", [False, True])
    def test_concurrent_chmod_is_refused(
        self, file: Path, monkeypatch: pytest.MonkeyPatch, *, late: bool
    ) -> None:
        if late and not can_swap():
            pytest.skip("files cannot change places here")
        monkeypatch.setattr(atomic_write, "swap", lambda one, other: False)
        step = before(rename_exchange.swap if late else os.fsync, lambda file: file.chmod(0o755), file)
        monkeypatch.setattr(*((atomic_write, "swap") if late else (os, "fsync")), step)
        with pytest.raises(ObstacleError, match="changed by another process"):
            exchange(file, OLD, NEW)
        assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (OLD, 0o755)

    def test_write_to_the_old_file_after_the_exchange_is_kept(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A process that has the old file open does not see the new one."""
        if not can_swap():
            pytest.skip("files cannot change places here")
        with file.open("wb", buffering=0) as stream:
            stream.write(OLD)
            late = before(atomic_write.sync_folder, lambda _: stream.write(THEIRS), file)
            monkeypatch.setattr(atomic_write, "sync_folder", late)
            with pytest.raises(ObstacleError, match="changed by another process"):
                exchange(file, OLD, NEW)
        assert (file.read_bytes(), entries()) == (OLD + THEIRS, {"a.py"})

    def test_second_change_during_rollback_is_saved(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not can_swap():
            pytest.skip("files cannot change places here")
        texts = iter([b"first", b"second"])

        def act(file: Path) -> None:
            file.write_bytes(next(texts))

        monkeypatch.setattr(atomic_write, "swap", before(rename_exchange.swap, act, file, left=2))
        with pytest.raises(
            ObstacleError, match=r"a version that it wrote is saved as a\.py\.fsrace-lint\..*\.saved"
        ):
            exchange(file, OLD, NEW)
        (saved,) = entries() - {"a.py"}
        assert {file.read_bytes(), Path(saved).read_bytes()} == {b"first", b"second"}

    @pytest.mark.parametrize("late", [False, True])
    def test_identical_concurrent_change_is_accepted(
        self, file: Path, monkeypatch: pytest.MonkeyPatch, way: str, *, late: bool
    ) -> None:
        def act(file: Path) -> None:
            file.write_bytes(NEW)
            os.utime(file, ns=(7, 7))

        if late:
            monkeypatch.setattr(os, "fsync", before(os.fsync, act, file))
        else:
            act(file)
        exchange(file, OLD, NEW)
        assert (file.stat().st_mtime_ns, entries()) == (7, {"a.py"})


class TestStaleTemporaries:
    @pytest.mark.parametrize(
        ("is_dead", "place", "age", "stays"),
        [
            (True, "", 0, False),
            (False, "", 0, True),
            (False, "", 7200, False),
            (True, "01234567", 0, True),
            (True, "01234567", 7200, False),
        ],
    )
    def test_temporary_of_a_dead_process_is_removed(
        self, monkeypatch: pytest.MonkeyPatch, place: str, age: int, *, is_dead: bool, stays: bool
    ) -> None:
        process = DEAD if is_dead else os.getpid()
        temporary(process, place).write_bytes(OLD)
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + age)
        stale_temporaries.sweep(Path())
        assert temporary(process, place).exists() == stays

    def test_unrelated_files_are_kept(self) -> None:
        names = {
            ".fsrace-lint.tmp",
            f".fsrace-lint.{DEAD}.0123456789abcdef.tmp",
            f"{temporary(DEAD)}.saved",
            f"x{temporary(DEAD)}",
            str(temporary(DEAD)).upper(),
        }
        for name in names:
            Path(name).touch()
        temporary(DEAD).symlink_to("pyproject.toml")
        temporary(DEAD + 1).mkdir()
        stale_temporaries.sweep(Path())
        assert entries() == names | {str(temporary(DEAD)), str(temporary(DEAD + 1))}

    def test_temporary_of_another_user_is_kept(self) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root gives files away")
        temporary(DEAD).touch()
        os.chown(temporary(DEAD), 12345, -1)
        stale_temporaries.sweep(Path())
        assert temporary(DEAD).exists()

    @pytest.mark.parametrize("write_it", [lambda file: put(file, NEW), lambda file: exchange(file, OLD, NEW)])
    def test_write_removes_stale_temporaries(self, file: Path, write_it: Callable[[Path], None]) -> None:
        temporary(DEAD).write_bytes(OLD)
        write_it(file)
        assert (file.read_bytes(), entries()) == (NEW, {"a.py"})

    def test_stale_temporary_link_does_not_count_as_a_hard_link(self, file: Path) -> None:
        temporary(DEAD).hardlink_to(file)
        exchange(file, OLD, NEW)
        assert (file.read_bytes(), entries()) == (NEW, {"a.py"})
        temporary(os.getpid()).hardlink_to(file)
        with pytest.raises(ObstacleError, match="hard link"):
            exchange(file, NEW, OLD)

    def test_fix_removes_stale_temporaries_without_writing(self) -> None:
        write({"pkg/a.py": "x = 1\n"})
        left = Path("pkg") / temporary(DEAD)
        left.touch()
        run("fix", "--diff", code=0)
        assert left.exists()
        run("fix", code=0)
        assert not left.exists()

    def test_temporary_is_not_checked_as_source(self) -> None:
        write({"a.py": FIXED, str(temporary(os.getpid())): HAZARD})
        assert "No filesystem races found in 1 file" in run("check", code=0).stdout


CHANGES: Final = (
    *("open", "os.rename", "os.link", "os.remove", "os.chmod", "os.chown", "os.setxattr", "os.removexattr"),
    *("os.listxattr", "os.getxattr", "os.scandir"),
)


def call_before_each_access(step: Callable[[], None]) -> None:
    """Call `step` before each call that reads or changes project files."""

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in CHANGES and not str(arguments[0]).endswith((".pyc", ".toml", "site-packages")):
            step()

    def stopped(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            step()
            return function(*arguments)

        return call

    sys.addaudithook(watch)
    for where, name in ((os, "fsync"), (os, "close"), (os, "fstat"), (os, "replace"), (atomic_write, "swap")):
        setattr(where, name, stopped(getattr(where, name)))


def run_forked(act: Callable[[], object]) -> int:
    """Run a function in a forked process; return its exit code or negative signal number."""
    process = os.fork()
    if process == 0:
        code = 99
        try:
            with Path(os.devnull).open("w") as nowhere:
                sys.stdout = sys.stderr = nowhere
                code = int(str(act() or 0))
        except SystemExit as end:
            code = int(str(end.code or 0))
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def run_fix() -> None:
    main.main(["fix", "--no-cache", "--quiet"], prog_name="fsrace-lint")


@forking
class TestKilled:
    FILES: Final = {"pkg/a.py": 0o751}

    def prepare(self) -> None:
        for name, mode in self.FILES.items():
            write({name: HAZARD})
            Path(name).chmod(mode)

    def leftover_files(self) -> list[str]:
        """Assert that every file is complete, and return any extra files."""
        for name, mode in self.FILES.items():
            assert Path(name).read_text() in (HAZARD, FIXED)
            assert stat.S_IMODE(Path(name).stat().st_mode) == mode
        known = {"pyproject.toml", "pkg", "one", "two", *self.FILES}
        return [str(path) for path in Path().rglob("*") if str(path) not in known]

    def test_kill_at_every_step_leaves_complete_files(self, way: str) -> None:
        """Kills during reads are left out: nothing can be lost there."""
        self.prepare()
        run("fix", "--no-cache", code=0)
        assert self.leftover_files() == []
        assert [Path(name).read_text() for name in self.FILES] == [FIXED]
        number, left, whole = 0, 0, False
        while not whole:
            self.prepare()
            whole = run_forked(lambda number=number: self.killed_at(number)) == 0  # type: ignore[misc]
            left += len(extra := self.leftover_files())
            assert len(extra) <= 1
            assert run_forked(run_fix) == 0
            assert self.leftover_files() == []
            assert [Path(name).read_text() for name in self.FILES] == [FIXED]
            number += 1
        assert number > 15, "there are steps to be killed at"
        assert left > 5, "some kills must leave a temporary file"

    def killed_at(self, number: int) -> None:
        whole, left = repair.write, [number]

        def step() -> None:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

        began: list[bool] = []

        def write_it(*patch: Any) -> str | None:
            if not began:
                began.append(True)
                call_before_each_access(step)
            return whole(*patch)

        setattr(repair, "write", write_it)  # noqa: B010  # only the child process is affected
        run_fix()

    def test_kill_test_detects_a_naive_write(self) -> None:
        def naive(*_: Any) -> None:
            for name in self.FILES:
                with Path(name).open("w", buffering=1) as stream:
                    stream.write(FIXED[:10])
                    stream.flush()
                    os.kill(os.getpid(), signal.SIGKILL)

        self.prepare()
        assert run_forked(naive) == -signal.SIGKILL
        with pytest.raises(AssertionError):
            self.leftover_files()


STEPS = ("open", "fdopen", "fsync", "fstat", "fchmod", "fchown", "listxattr", "access", "replace")


class TestDiskErrors:
    @pytest.mark.parametrize("error", FAILURES)
    @pytest.mark.parametrize("step", STEPS)
    @pytest.mark.parametrize("act", [put, lambda file, data: exchange(file, OLD, data)])
    def test_error_at_any_step_loses_nothing(
        self,
        file: Path,
        act: Callable[[Path, bytes], None],
        step: str,
        error: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        if not hasattr(os, step):
            pytest.skip("the system has none")

        def fail(*_: Any, **__: Any) -> None:
            raise OSError(error, os.strerror(error))

        file.chmod(0o640)
        failed = None
        with monkeypatch.context() as broken:
            broken.setattr(atomic_write, "swap", lambda one, other: False)
            broken.setattr(os, step, fail)
            try:
                act(file, NEW)
            except OSError as problem:
                failed = problem
        assert file.read_bytes() == (OLD if failed else NEW)
        assert failed is not None or step == "fchown", "fchown is not called because the owner is unchanged"
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        assert entries() == {"a.py"}

    @pytest.mark.parametrize("when", ["write", "close"])
    def test_stream_error_keeps_the_old_file(
        self, file: Path, when: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """NFS reports a full disk when a file is closed."""
        real = os.fdopen
        monkeypatch.setattr(os, "fdopen", lambda descriptor, mode: Failing(real(descriptor, mode), when))
        with pytest.raises(OSError, match="Disk quota"):
            exchange(file, OLD, NEW)
        assert (file.read_bytes(), entries()) == (OLD, {"a.py"})

    @forking
    def test_file_size_limit_keeps_the_old_file(self) -> None:
        write({"a.py": HAZARD, "big.py": HAZARD + f"# {20_000 * 'x'}\n"})

        def limited() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
            run_fix()

        assert run_forked(limited) == 2
        assert Path("a.py").read_text() == FIXED
        assert Path("big.py").read_text() == HAZARD + f"# {20_000 * 'x'}\n"
        assert entries() == {"a.py", "big.py"}

    def test_full_disk_is_a_one_line_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        write({"a.py": HAZARD})
        monkeypatch.setattr(os, "fsync", full)
        for arguments in (("fix",), ("check", "--add-noqa")):
            done = run(*arguments, code=2)
            message = [line for line in done.stderr.splitlines() if "No space" in line]
            assert message == ["Error: a.py: cannot write the file: No space left on device"]
        assert run("fix", "--silent", code=2).output == ""
        assert (Path("a.py").read_text(), entries() - {".fsrace_cache"}) == (HAZARD, {"a.py"})

    def test_full_filesystem_keeps_the_old_file(self) -> None:
        mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(Path.cwd())]
        done = subprocess.run(mount, capture_output=True, check=False) if shutil.which("mount") else None
        if done is None or done.returncode != 0:
            pytest.skip("a small filesystem cannot be mounted here")
        place = Path.cwd()
        os.chdir("/")
        os.chdir(place)
        try:
            write({"pyproject.toml": "", "a.py": HAZARD})
            with Path("filler").open("wb", buffering=0) as stream, contextlib.suppress(OSError):
                while stream.write(bytes(4096)):
                    pass
            message = run("fix", "--no-cache", code=2).stderr
            assert "a.py: cannot write the file: No space left on device" in message
            assert (Path("a.py").read_text(), entries()) == (HAZARD, {"a.py", "filler"})
            Path("filler").unlink()
            run("fix", "--no-cache", code=0)
            assert Path("a.py").read_text() == FIXED
        finally:
            os.chdir("/")
            subprocess.run(["umount", str(place)], check=True)

    @linux
    def test_immutable_file_is_not_fixed(self) -> None:
        write({"a.py": HAZARD})
        made = ["chattr", "+i", "a.py"]
        if not shutil.which("chattr") or subprocess.run(made, capture_output=True, check=False).returncode:
            pytest.skip("files cannot be made immutable here")
        try:
            assert "FSR101 not fixed: the file is read-only" in run("fix", code=1).stderr
            assert (Path("a.py").read_text(), entries() - {".fsrace_cache"}) == (HAZARD, {"a.py"})
        finally:
            subprocess.run(["chattr", "-i", "a.py"], check=True)

    @forking
    def test_directory_without_write_permission(self) -> None:
        if os.geteuid() != 0:
            pytest.skip("the file must belong to another user")
        scratch = Path(os.path.realpath(os.environ.get("TMPDIR", "/tmp")), f"fsrace-{os.urandom(8).hex()}")
        scratch.mkdir()
        try:
            (scratch / "a.py").write_bytes(OLD)
            (scratch / "a.py").chmod(0o666)
            scratch.chmod(0o755)

            def as_another_user() -> int:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                try:
                    exchange(scratch / "a.py", OLD, NEW)
                except OSError:
                    return 7
                return 0

            assert run_forked(as_another_user) == 7
            scratch.chmod(0o777)
            assert run_forked(as_another_user) == 7, "the file would change owner"
            assert [(entry.name, entry.read_bytes()) for entry in scratch.iterdir()] == [("a.py", OLD)]
        finally:
            shutil.rmtree(scratch)


class Failing:
    """A stream that fails on write, or only on close."""

    def __init__(self, stream: Any, says: str) -> None:
        self.stream, self.says = stream, says

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()
        if self.says == "close":
            raise OSError(errno.EDQUOT, "Disk quota exceeded")

    def write(self, data: bytes) -> None:
        self.stream.write(data[:1])
        if self.says == "write":
            raise OSError(errno.EDQUOT, "Disk quota exceeded")

    def flush(self) -> None:
        self.stream.flush()


class TestLinks:
    def test_fix_writes_the_target_and_keeps_the_link(self) -> None:
        write({"real/a.py": HAZARD, "pyproject.toml": '[tool.fsrace-lint]\nexclude = ["real/"]\n'})
        Path("a.py").symlink_to("real/a.py")
        run("fix", code=0)
        assert Path("a.py").is_symlink()
        assert Path("real/a.py").read_text() == FIXED

    @pytest.mark.parametrize("arguments", [("fix",), ("check", "--add-noqa")])
    def test_link_out_of_the_project_is_not_followed(self, arguments: tuple[str, ...]) -> None:
        write({"other/a.py": HAZARD, "project/pyproject.toml": OWN_ROOT})
        Path("project/a.py").symlink_to("../other/a.py")
        done = run(*arguments, "project", code=1)
        other = Path("other/a.py").resolve()
        assert f"the file is a symbolic link to {other}, outside the project\n" in done.stderr
        assert Path("other/a.py").read_text() == HAZARD

    def test_project_reached_through_a_link(self) -> None:
        write({"real/a.py": HAZARD, "real/pyproject.toml": ""})
        Path("project").symlink_to("real")
        run("fix", "project", code=0)
        assert Path("real/a.py").read_text() == FIXED

    def test_file_replaced_by_a_link_during_the_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write({"a.py": HAZARD})
        monkeypatch.setattr(repair, "write", before(repair.write, moved, Path("a.py")))
        assert (
            "FSR101 not fixed: the file was replaced by a symbolic link during the run"
            in run("fix", code=1).stderr
        )
        assert (Path("a.py").is_symlink(), Path("theirs").read_text()) == (True, HAZARD)

    def test_directory_replaced_by_a_link_out_of_the_project(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write({"project/pyproject.toml": OWN_ROOT, "project/pkg/a.py": HAZARD})

        def act(directory: Path) -> None:
            directory.rename("elsewhere")
            directory.symlink_to("../elsewhere")

        monkeypatch.setattr(repair, "write", before(repair.write, act, Path("project/pkg")))
        assert "elsewhere/a.py, outside the project\n" in run("fix", "project", code=1).stderr
        assert Path("elsewhere/a.py").read_text() == HAZARD

    def test_output_file_in_a_link_loop_is_a_one_line_error(self) -> None:
        write({"a.py": FIXED})
        Path("report").symlink_to("loop")
        Path("loop").symlink_to("report")
        done = run("check", "--output-file", "report", code=2)
        assert len(done.stderr.splitlines()) == 1
        assert "internal" not in done.stderr


class TestChangeDuringRun:
    FILES: Final = {"a.py": HAZARD, "b.py": "import a\n\nx = 1  # noqa: E501\n", "c.py": "x = 1\n"}

    @pytest.mark.parametrize("name", ["a.py", "b.py", "c.py"])
    @pytest.mark.parametrize(
        ("arguments", "module", "step"),
        [
            (("fix",), repair, "repair"),
            (("fix", "--unsafe-fixes", "a.py"), repair, "repair"),
            (("check", "--add-noqa"), comments, "add_noqa"),
        ],
    )
    def test_file_changed_while_fixes_are_computed(
        self,
        name: str,
        arguments: tuple[str, ...],
        module: ModuleType,
        step: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A file whose facts come from the cache is not held in memory and is read only at this point."""
        write(self.FILES)
        for known in self.FILES:
            os.utime(known, (1_500_000_000, 1_500_000_000))
        run("check", code=1)
        later = "import os\n\n# theirs\n"
        act = before(getattr(module, step), lambda file: write({str(file): later}), Path(name))
        monkeypatch.setattr(module, step, act)
        done = run(*arguments, code=1 if name == "a.py" else 0)
        assert "internal error" not in done.stderr
        assert ("changed by another process during the run" in done.stderr) == (name == "a.py")
        assert Path(name).read_text() == later
        assert name == "a.py" or Path("a.py").read_text() != HAZARD

    def test_file_changed_while_fixes_are_verified(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write(self.FILES)
        whole = Run.everything
        theirs = before(whole, lambda file: write({str(file): "# theirs\n"}), Path("a.py"))
        monkeypatch.setattr(Run, "everything", theirs)
        assert "changed by another process during the run" in run("fix", code=1).stderr
        assert Path("a.py").read_text() == "# theirs\n"

    def test_vendored_copy_changed_during_the_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        run("vendor", "fs_safe.py", code=0)
        Path("fs_safe.py").write_text("# mine\n")
        monkeypatch.setattr(
            os, "fsync", before(os.fsync, lambda file: file.write_bytes(THEIRS), Path("fs_safe.py"))
        )
        assert "changed by another process" in run("vendor", "--force", "fs_safe.py", code=2).stderr
        assert Path("fs_safe.py").read_bytes() == THEIRS


@forking
class TestConcurrentRuns:
    def test_two_concurrent_fix_runs(self) -> None:
        files = {f"m{number}.py": HAZARD.replace('"d"', f'"d{number}"') for number in range(6)}
        fixed = {name: FIXED.replace('"d"', f'"d{name[1]}"') for name in files}
        codes = set()
        for _ in range(3):
            write(files)
            gate, opened = os.pipe()
            processes = []
            for _ in range(2):
                process = os.fork()
                if process == 0:
                    os.close(opened)
                    os.read(gate, 1)
                    os._exit(run_forked(run_fix))
                processes.append(process)
            os.close(gate)
            os.close(opened)
            codes |= {os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes}
            assert {name: Path(name).read_text() for name in files} == fixed
            assert {name for name in entries() if name.endswith((".tmp", ".saved"))} == set()
        assert codes <= {0}, "what the other one has done is done"

    @pytest.mark.parametrize("crash", ["none", "kill"])
    def test_every_interleaving_of_two_writers(self, crash: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without the atomic exchange, because the explorer cannot interrupt that call."""
        monkeypatch.setattr(atomic_write, "swap", lambda one, other: False)
        most = 40 if crash == "none" else 25
        explore(
            replace_it, setup=old_file, check=is_whole, crash=crash, preemptions=1, max_schedules=most
        ).assert_ok()


def old_file(root: Path) -> None:
    (root / "a.py").write_bytes(OLD)
    (root / "a.py").chmod(0o640)


def replace_it(root: Path, rank: int) -> None:
    with contextlib.suppress(ObstacleError):
        exchange(root / "a.py", OLD, NEW if rank == 0 else THEIRS)


def is_whole(root: Path) -> None:
    assert (root / "a.py").read_bytes() in (OLD, NEW, THEIRS)
    assert stat.S_IMODE((root / "a.py").stat().st_mode) == 0o640
    others = {entry.name for entry in root.iterdir()} - {"a.py"}
    assert all(stale_temporaries.NAME.fullmatch(name) for name in others)
