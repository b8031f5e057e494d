"""The daemon: its answers match those of a new process, and checks also work without it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fsrace_lint import __main__ as program
from fsrace_lint.cli import main
from fsrace_lint.cli.daemon import client, wire
from fsrace_lint.engine.parallel.progress import CancelledError
from fsrace_lint.engine.store import Version
from fsrace_lint.pipeline.warm import WarmProjects

if sys.platform == "win32":
    pytest.skip("there is no daemon on Windows", allow_module_level=True)

from fsrace_lint.cli.daemon import process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.usefixtures("thawed", "runtime")

HAZARD: Final = "import os\nif not os.path.isdir('a'):\n    os.makedirs('a')\n"
CLEAN: Final = "import os\nos.makedirs('a', exist_ok=True)\n"
LONG: Final = 60.0
"""A timeout in seconds that no test reaches."""
TEXTS: Final = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a project, which is the current directory."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "pyproject.toml").touch()
    (root / "a.py").write_text(HAZARD)
    (root / "b.py").write_text(CLEAN)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the directory and environment that a daemon in this process takes from its clients."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.chdir(Path.cwd())


def place() -> str:
    found = wire.place()
    assert found is not None
    return found


class TestWireFormat:
    @given(args=st.lists(TEXTS), name=TEXTS.filter(lambda text: "=" not in text), value=TEXTS)
    def test_request_round_trip(self, args: list[str], name: str, value: str) -> None:
        sent = wire.Request("check", args)
        sent.environment = {**sent.environment, name: value}
        received = wire.Request.unpack(sent.pack())
        assert vars(received) == vars(sent)

    @pytest.mark.parametrize("data", [b"", b"x", b"a\0b\0c\0d\0e\0f\0g", b"\0" * 5])
    def test_malformed_request_is_rejected(self, data: bytes) -> None:
        with pytest.raises(ValueError, match=r"unpack|literal"):
            wire.Request.unpack(data)

    @given(written=st.lists(st.tuples(st.integers(1, 2), st.binary())), code=st.binary(max_size=4))
    def test_frames_round_trip_and_detect_truncation(
        self, written: list[tuple[int, bytes]], code: bytes
    ) -> None:
        sent = [*written, (wire.CODE, code)]
        data = b"".join(wire.frame(*each) for each in sent)
        assert wire.frames(data) == sent
        for end in range(len(data)):
            with pytest.raises(ValueError, match=r"truncated|missing|literal|unpack"):
                wire.frames(data[:end])

    def test_negative_length_is_rejected(self) -> None:
        with pytest.raises(ValueError, match="truncated"):
            wire.frames(b"1 -1\n0 1\n0")


class TestSocketDirectory:
    def test_directory_is_private_to_the_user(self, runtime: Path) -> None:
        directory = Path(place()).parent
        assert directory.parent == runtime
        assert directory.stat().st_mode & 0o777 == 0o700
        assert place() == place()

    def test_temporary_directory_is_the_fallback(
        self, runtime: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("XDG_RUNTIME_DIR")
        monkeypatch.setenv("TMPDIR", str(runtime))
        assert Path(place()).parent.parent == runtime

    @pytest.mark.parametrize("kind", ["open", "file", "link", "absent", "other user", "Windows"])
    def test_unsafe_directory_is_not_used(
        self, kind: str, runtime: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        directory = Path(place()).parent
        directory.rmdir()
        match kind:
            case "open":
                directory.mkdir()
                directory.chmod(0o750)
            case "file":
                directory.touch()
            case "link":
                (runtime / "mine").mkdir(mode=0o700)
                directory.symlink_to("mine")
            case "absent":
                monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime / "none"))
            case "other user":
                directory.mkdir(mode=0o700)
                uid = os.geteuid()
                monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
                directory.rename(directory.with_name(f"fsrace-lint-{uid + 1}"))
            case _:
                monkeypatch.delattr(os, "geteuid")
        assert wire.place() is None
        assert client.call("status", []) is None
        client.keep([])


def answered(daemon: process.Daemon, verb: str, *args: str) -> tuple[list[tuple[int, bytes]], bytes]:
    """Send a request to a daemon in this process, and restore the current directory."""
    directory = Path.cwd()
    try:
        *written, (_, code) = wire.frames(daemon.answer(wire.Request(verb, [*args])))
    finally:
        os.chdir(directory)
    return written, code


def without_daemon(args: list[str]) -> tuple[bytes, bytes, bytes]:
    """Return the output, errors, and exit code of a check without the daemon."""
    found = CliRunner().invoke(main.main, ["check", "--no-cache", *args])
    return found.stdout_bytes, found.stderr_bytes, b"%d" % found.exit_code


@pytest.mark.usefixtures("here", "alone")
class TestAnswers:
    @pytest.fixture
    def daemon(self, here: Path) -> process.Daemon:
        daemon = process.Daemon()
        answered(daemon, "keep", "a.py")
        assert daemon.kept.projects == [(str(here), False)]
        return daemon

    @pytest.mark.parametrize(
        "args",
        [
            ["a.py"],
            ["b.py"],
            ["."],
            ["a.py", "b.py"],
            ["-q", "a.py"],
            ["-s", "a.py"],
            ["--format", "json", "a.py"],
            ["--format", "github", "a.py"],
            ["--color", "a.py"],
            ["--select", "FSR2", "a.py"],
            ["--jobs", "2", "a.py"],
            ["--show-suppressed", "a.py"],
        ],
        ids=" ".join,
    )
    def test_answer_matches_a_check_without_the_daemon(self, daemon: process.Daemon, args: list[str]) -> None:
        if "--select" in args:
            answered(daemon, "keep", *args)
        for text in (HAZARD, CLEAN, HAZARD + "# fsrace\n", "def broken(:\n", HAZARD):
            Path("a.py").write_text(text)
            written, code = answered(daemon, "check", "--daemon", *args)
            streams = [b"".join(data for stream, data in written if stream == number) for number in (1, 2)]
            assert (*streams, code) == without_daemon(args)

    @pytest.mark.parametrize(
        "args",
        [
            ["--no-cache", "a.py"],
            ["--daemon", "--no-cache", "a.py"],
            ["--format", "html", "a.py"],
            ["--output-file", "out", "a.py"],
            ["--report", "json=out", "a.py"],
            ["--write-baseline", "out", "a.py"],
            ["--add-noqa", "a.py"],
            ["--statistics", "a.py"],
            ["--show-silenced", "a.py"],
            ["--show-settings", "a.py"],
            ["-"],
            ["--stdin-filename", "a.py"],
            ["--help"],
            ["--unknown"],
            ["missing.py"],
            ["--select", "FSR101", "a.py"],
            ["/bin"],
        ],
        ids=" ".join,
    )
    def test_unsupported_request_is_left_to_the_client(self, daemon: process.Daemon, args: list[str]) -> None:
        """The request has side effects, is invalid, or concerns a project that is not loaded."""
        before = sorted(Path.cwd().iterdir())
        assert answered(daemon, "check", *args) == ([], wire.NONE)
        assert daemon.answered == 1  # the request that loaded the project
        assert sorted(Path.cwd().iterdir()) == before

    def test_internal_error_is_left_to_the_client(
        self, daemon: process.Daemon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(process, "checked", lambda *_: 1 / 0)
        assert answered(daemon, "check", "a.py") == ([], wire.NONE)

    def test_request_from_a_deleted_directory_is_not_answered(self, daemon: process.Daemon) -> None:
        request = wire.Request("check", ["a.py"])
        request.folder = "/no/such/folder"
        assert wire.frames(daemon.answer(request)) == [(wire.CODE, wire.NONE)]

    def test_request_to_another_installation_is_not_answered(self, daemon: process.Daemon) -> None:
        request = wire.Request("check", ["a.py"])
        request.identity += b"x"
        assert wire.frames(daemon.answer(request)) == [(wire.CODE, wire.NONE)]
        assert not daemon.is_done

    def test_daemon_exits_when_the_program_has_changed(
        self, daemon: process.Daemon, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Version, "of", lambda: None)
        assert answered(daemon, "check", "a.py") == ([], wire.NONE)
        assert daemon.is_done

    def test_answer_uses_the_encoding_of_the_client(self, daemon: process.Daemon) -> None:
        Path("é.py").write_text(HAZARD)
        request = wire.Request("check", ["é.py"])
        request.encoding, request.errors = "latin-1", "strict"
        *written, _ = wire.frames(daemon.answer(request))
        assert "é.py:3:5" in b"".join(data for _, data in written).decode("latin-1")
        assert os.environ.get("XDG_RUNTIME_DIR") == request.environment["XDG_RUNTIME_DIR"]

    @pytest.mark.parametrize(
        ("is_terminal", "variables", "is_colored"),
        [
            (True, {}, True),
            (False, {}, False),
            (True, {"NO_COLOR": "1"}, False),
            (False, {"FORCE_COLOR": "1"}, True),
        ],
    )
    def test_answer_uses_the_color_settings_of_the_client(
        self, daemon: process.Daemon, *, is_terminal: bool, variables: dict[str, str], is_colored: bool
    ) -> None:
        request = wire.Request("check", ["a.py"])
        kept = {name: text for name, text in request.environment.items() if "COLOR" not in name}
        request.is_terminal, request.environment = is_terminal, {**kept, "TERM": "xterm", **variables}
        data = daemon.answer(request)
        assert (b"\x1b[" in data) is is_colored

    def test_verbose_notes_precede_the_report(self, daemon: process.Daemon, here: Path) -> None:
        written, _ = answered(daemon, "check", "--verbose", "a.py")
        assert [stream for stream, _ in written][:1] == [2]
        text = b"".join(data for _, data in written).decode()
        assert f"daemon: pid {os.getpid()} has {here} loaded and reads only changed files\n" in text
        assert text.index("daemon:") < text.index("a.py:3:5") < text.index("time:")

    def test_status_and_stop(self, daemon: process.Daemon, here: Path) -> None:
        written, code = answered(daemon, "status")
        text = rf"pid {os.getpid()}; 1 request served; peak \d+ MB; projects: {here}"
        assert (code, daemon.is_done) == (b"0", False)
        assert re.fullmatch(rf"{text} \(indexing\)\n", written[0][1].decode())
        daemon.prepare(lambda: None)
        daemon.kept.tidy()
        assert re.fullmatch(f"{text}\n", answered(daemon, "status")[0][0][1].decode())
        written, code = answered(daemon, "stop")
        assert re.fullmatch(f"Stopped the daemon: {text}\n", written[0][1].decode())
        assert (code, daemon.is_done) == (b"0", True)

    def test_status_of_a_new_daemon(self) -> None:
        assert answered(process.Daemon(), "status")[0][0][1].endswith(b" MB; projects: none\n")


class Echo(process.Daemon):
    """Answers with the arguments of the request, after `may` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[str] = []
        self.may = threading.Event()
        self.may.set()

    def answer(self, request: wire.Request) -> bytes:
        self.requests.append(request.verb)
        assert self.may.wait(LONG)
        self.is_done = request.verb == "stop"
        return wire.frame(1, os.fsencode(" ".join(request.args))) + wire.frame(wire.CODE, b"1")


@contextlib.contextmanager
def serving(daemon: Echo, **how: float) -> Iterator[threading.Thread]:
    """Run a daemon in a thread, and stop it at the end."""
    first = wire.Request("keep", [])
    thread = threading.Thread(target=process.serve, args=(place(), daemon, first), kwargs=how)
    thread.start()
    try:
        wait(lambda: daemon.requests)
        yield thread
    finally:
        if thread.is_alive():
            client.call("stop", [], LONG)
        thread.join(LONG)
    assert not thread.is_alive()


def wait(happens: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + LONG
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.005)


class TestServing:
    def test_requests_are_served_in_turn(self) -> None:
        with serving(Echo()):
            assert client.call("check", ["a", "b"]) == [(1, b"a b"), (0, b"1")]
            assert client.call("check", [os.fsdecode(b"\xff")], LONG) is not None
        assert not os.path.exists(place())  # noqa: PTH110  # a socket
        assert client.call("check", []) is None

    def test_request_without_a_reply_is_served(self) -> None:
        daemon = Echo()
        with serving(daemon):
            client.keep(["a.py"])
            wait(lambda: daemon.requests == ["keep", "keep"])

    def test_call_does_not_wait_for_a_busy_daemon(self) -> None:
        daemon = Echo()
        daemon.may.clear()
        with serving(daemon):
            wait(lambda: daemon.requests)
            assert client.call("check", []) is None
            daemon.may.set()
            assert client.call("check", ["x"], LONG) == [(1, b"x"), (0, b"1")]

    def test_malformed_request_is_ignored(self) -> None:
        with serving(Echo()):
            for data in (b"", b"nothing"):
                client.said_to(place(), data).close()
            assert client.call("check", ["x"], LONG) == [(1, b"x"), (0, b"1")]

    @pytest.mark.parametrize("length", [120_000, 1_000_000])
    def test_oversized_request_is_not_answered(self, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """A truncated request could be a valid request for something else."""
        monkeypatch.setattr(process, "LARGEST", 100_000)
        daemon = Echo()
        with serving(daemon):
            assert client.call("check", ["x" * length]) is None
            assert client.call("status", ["x"], LONG) is not None
            assert daemon.requests == ["keep", "status"]

    def test_request_interrupts_indexing(self) -> None:
        class Ahead(Echo):
            ended = 0

            def prepare(self, is_asked: Callable[[], None]) -> None:
                with contextlib.suppress(CancelledError):
                    wait(is_asked)
                self.ended += 1

        daemon = Ahead()
        with serving(daemon):
            assert client.call("check", ["x"], LONG) == [(1, b"x"), (0, b"1")]
            assert daemon.ended >= 1

    def test_indexing_failure_does_not_stop_the_daemon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(*_: object) -> None:
            raise ValueError("a bug")

        monkeypatch.setattr(WarmProjects, "prepare", fails)
        daemon = Echo()
        with serving(daemon):
            assert client.call("check", ["x"], LONG) == [(1, b"x"), (0, b"1")]
        status = process.Daemon.answer(daemon, wire.Request("status", []))
        assert b" MB; indexing failed: ValueError: a bug; projects: " in status

    def test_idle_daemon_tidies_its_projects(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tidied: list[bool] = []

        class Tidied(WarmProjects):
            @property
            def is_untidy(self) -> bool:
                return not tidied

            def tidy(self) -> None:
                tidied.append(self.is_untidy)

        monkeypatch.setattr(process, "CALM", 0.01)
        daemon = Echo()
        daemon.kept = Tidied()
        with serving(daemon, pulse=0.1):
            wait(lambda: len(tidied) > 1)
        assert tidied[:2] == [True, False]

    def test_idle_daemon_exits(self) -> None:
        with serving(Echo(), idle=0.2, pulse=0.05) as thread:
            thread.join(LONG)
        assert not os.path.exists(place())  # noqa: PTH110  # a socket

    def test_daemon_exits_when_another_daemon_replaces_it(self) -> None:
        first, second = Echo(), Echo()
        with serving(first, pulse=0.05) as thread, serving(second):
            thread.join(LONG)
            assert client.call("check", ["x"], LONG) is not None
        assert first.requests == ["keep"]

    def test_daemon_exits_when_its_socket_is_deleted(self) -> None:
        with serving(Echo(), pulse=0.05) as thread:
            Path(place()).unlink()
            thread.join(LONG)

    def test_files_of_a_killed_daemon_are_replaced(self) -> None:
        beside = Path(f"{place()}.{os.getpid()}")
        beside.touch()
        Path(place()).touch()
        with serving(Echo()):
            assert client.call("check", ["x"], LONG) is not None
        assert not beside.exists()


class TestClient:
    def test_client_writes_the_answer(
        self, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        answer = [(2, b"note\n"), (1, b"\xe9\n"), (0, b"1")]
        monkeypatch.setattr(client, "call", lambda *_: answer)
        assert client.check([]) == 1
        assert capfdbinary.readouterr() == (b"\xe9\n", b"note\n")

    @pytest.mark.parametrize("answer", [None, [(0, wire.NONE)]])
    def test_unanswered_check_is_left_to_the_client(
        self, answer: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(client, "call", lambda *_: answer)
        assert client.check([]) is None

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            (KeyboardInterrupt(), 130),
            (BrokenPipeError(errno.EPIPE, ""), 1),
            (OSError(errno.ENOSPC, "full"), None),
        ],
    )
    def test_write_errors_set_the_exit_code(
        self, error: BaseException, code: int | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def write(_: bytes) -> None:
            raise error

        with Path(os.devnull).open("wb") as other:
            stream = SimpleNamespace(buffer=SimpleNamespace(write=write), fileno=other.fileno)
            monkeypatch.setattr(sys, "stdout", stream)
            monkeypatch.setattr(client, "call", lambda *_: [(1, b"x"), (0, b"1")])
            found = client.check([])
            monkeypatch.undo()
        assert found == code

    def test_client_without_stdout(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdout", None)
        monkeypatch.setattr(client, "call", lambda *_: [(1, b"x"), (0, b"0")])
        assert client.check([]) == 0
        assert wire.Request("check", []).encoding == "utf-8"

    def test_client_in_a_deleted_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        gone = tmp_path / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()
        assert client.check([]) is None
        client.keep([])

    @pytest.mark.parametrize("nonsense", [b"", b"nonsense", b"1 2\nxx", b"0 9\n1"])
    def test_malformed_answer_is_ignored(self, nonsense: bytes) -> None:
        class Confused(Echo):
            def answer(self, request: wire.Request) -> bytes:
                super().answer(request)
                return nonsense

        with serving(Confused()):
            assert client.call("check", []) is None

    def test_busy_daemon_is_not_started_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def busy(*_: Any) -> Any:
            raise TimeoutError

        monkeypatch.setattr(client, "said_to", busy)
        monkeypatch.setattr(client, "start_daemon", lambda _: pytest.fail("it was started"))
        client.keep([])

    def test_client_imports_few_modules(self, here: Path) -> None:
        """Startup is most of the time of a check that the daemon answers."""
        ours = "from fsrace_lint.cli.daemon import client; client.call('status', [])"
        loaded = []
        for code in ("pass", ours):
            command = [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"]
            found = subprocess.run(command, capture_output=True, check=True, text=True)
            loaded.append({*found.stdout.split()})
        new = loaded[1] - loaded[0]
        assert {name for name in new if name.startswith("fsrace_lint")} == {
            "fsrace_lint", "fsrace_lint.cli", "fsrace_lint.cli.daemon",
            "fsrace_lint.cli.daemon.client", "fsrace_lint.cli.daemon.wire",
        }  # fmt: skip
        others = {name.partition(".")[0].strip("_") for name in new} - {"fsrace_lint"}
        assert others <= {
            *("abc", "collections", "contextlib", "errno", "functools", "future", "itertools", "keyword"),
            *("operator", "reprlib", "socket", "stat", "types", "weakref", "weakrefset", "zlib"),
        }


@pytest.mark.usefixtures("here")
class TestCommandLine:
    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fsrace_lint", *args]
        return subprocess.run(command, capture_output=True, check=False, text=True, timeout=LONG)

    def status(self) -> str:
        return self.run("daemon", "status").stdout

    @pytest.fixture
    def started(self, here: Path) -> Iterator[str]:
        """The process ID of a running daemon."""
        assert self.status() == "No daemon is running.\n"
        found = self.run("check", "--daemon", "a.py")
        assert (found.returncode, found.stderr) == (1, "")
        try:
            wait(lambda: str(here) in self.status())
            yield self.status().split()[1].strip(";")
        finally:
            self.run("daemon", "stop")

    def test_daemon_starts_answers_and_stops(self, here: Path, started: str) -> None:
        for text in (HAZARD + "x = 1\n", CLEAN, HAZARD):
            Path("a.py").write_text(text)
            asked = self.run("check", "--daemon", "--format", "json", "a.py")
            own = self.run("check", "--no-cache", "--format", "json", "a.py")
            assert (asked.stdout, asked.stderr, asked.returncode) == (own.stdout, own.stderr, own.returncode)
            json.loads(asked.stdout)
        text = rf"pid {started}; 4 requests served; peak \d+ MB; projects: {here}\n"
        wait(lambda: re.fullmatch(text, self.status()))
        assert f"daemon: pid {started} has " in self.run("check", "--daemon", "-v", "a.py").stderr

        assert self.run("daemon", "stop").stdout.startswith(f"Stopped the daemon: pid {started}; ")
        assert self.status() == "No daemon is running.\n"
        assert self.run("daemon", "stop").returncode == 0

    def test_unanswered_check_runs_without_the_daemon(self, started: str) -> None:
        found = self.run("check", "--daemon", "--statistics", "a.py")
        assert (found.returncode, started in self.status()) == (1, True)
        assert "1 file" in found.stdout

    def test_usage_error_does_not_start_a_daemon(self) -> None:
        for args in (["--unknown"], ["missing.py"], ["--help"], ["--no-cache", "a.py"]):
            assert self.run("check", "--daemon", *args).returncode == (0 if "--help" in args else 2)
        mixed = self.run("check", "--daemon", "--no-cache", "a.py").stderr
        assert mixed.endswith("Error: --daemon cannot be used with --no-cache\n")
        assert self.status() == "No daemon is running.\n"

    def test_daemon_is_used_only_with_the_option(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(client, "check", len)
        for args, code in ((["check", "--daemon", "a.py"], 2), (["check", "a.py"], 1), (["rules"], 0)):
            monkeypatch.setattr(sys, "argv", ["fsrace-lint", *args])
            with pytest.raises(SystemExit) as ended:
                program.main()
            assert ended.value.code == code
        assert "a.py:3:5" in capsys.readouterr().out
