"""The daemon: answers one request at a time, in one process."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import resource
import selectors
import socket
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from click.core import ParameterSource

from fsrace_lint.cli.commands.check import check
from fsrace_lint.cli.daemon import wire
from fsrace_lint.cli.terminal import CLEAN, FOUND
from fsrace_lint.engine.parallel.progress import CancelledError
from fsrace_lint.engine.store import Version
from fsrace_lint.pipeline.warm import WarmProjects
from fsrace_lint.report import SHOWING_FIXES
from fsrace_lint.report.words import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from click import Context

IDLE: Final = 30 * 60.0
"""The number of seconds after which an idle daemon exits."""
PULSE: Final = 60.0
"""The number of seconds after which the daemon checks whether it was replaced."""
CALM: Final = 1.0
"""The number of seconds after a check at which the daemon frees memory."""
SLOWEST: Final = 5.0
"""The number of seconds within which a client must send its request."""
LARGEST: Final = 16 << 20
"""The maximum size of a request in bytes."""
_WAITING: Final = 16
_UNIT: Final = 1 if sys.platform == "darwin" else 1024
"""The unit of `ru_maxrss` in bytes."""
ANSWERED: Final = frozenset(
    "paths profile select extend_select ignore exclude extend_exclude force_exclude filesystem include_tests"  # noqa: SIM905
    " baseline no_baseline cache_dir form show_suppressed daemon jobs quiet silent verbose color".split()
)
"""The options of `check` that only affect what is printed or checked."""


class _Stream(io.RawIOBase):
    """One of the standard streams. Both append to one list, which preserves their order."""

    def __init__(self, number: int, written: list[tuple[int, bytes]], *, is_terminal: bool) -> None:
        super().__init__()
        self._number, self._written, self._is_terminal = number, written, is_terminal

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, data: Any) -> int:
        written = bytes(data)
        self._written.append((self._number, written))
        return len(written)


def _text(stream: _Stream, request: wire.Request) -> io.TextIOWrapper:
    buffered: Any = io.BufferedWriter(stream)
    return io.TextIOWrapper(buffered, request.encoding, request.errors, line_buffering=True)


class Daemon:
    """Answers requests from the projects in memory."""

    def __init__(self) -> None:
        """Start without projects."""
        self.kept = WarmProjects()
        self.answered = 0
        """The number of checks that were answered."""
        self.is_done = False
        """Whether the daemon should exit."""
        self._version = Version.of()
        self._failure = ""
        self.worked = time.monotonic()
        """The time at which the last check was answered."""

    def answer(self, request: wire.Request) -> bytes:
        """Answer a request of a client.

        Args:
            request: The request.

        Returns:
            The frames of the answer.
        """
        nothing = wire.frame(wire.CODE, wire.NONE)
        is_outdated = self._version != Version.of()
        self.is_done |= is_outdated or request.verb == "stop"
        if is_outdated or request.identity != wire.IDENTITY:
            return nothing
        if request.verb in {"stop", "status"}:
            told = "Stopped the daemon: " if request.verb == "stop" else ""
            return wire.frame(1, (told + self._status()).encode()) + wire.frame(wire.CODE, b"%d" % CLEAN)
        self.kept.loads = request.verb == "keep"
        try:
            code, written = checked(request, self.kept)
        except Exception:  # noqa: BLE001  # the client runs the check, and reports the error
            return nothing
        finally:
            os.chdir("/")
        if code not in {CLEAN, FOUND}:
            return nothing
        self.answered += 1
        self.worked = time.monotonic()
        return b"".join(wire.frame(*each) for each in written) + wire.frame(wire.CODE, b"%d" % code)

    def prepare(self, is_asked: Callable[[], None]) -> None:
        """Compute what the next check may need, until `is_asked` raises a `CancelledError`."""
        try:
            self.kept.prepare(is_asked)
        except Exception as error:  # noqa: BLE001  # the next check reports the error
            self._failure = f"; indexing failed: {type(error).__name__}: {error}"

    def _status(self) -> str:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT / 1e6
        served = f"pid {os.getpid()}; {count(self.answered, 'request')} served; peak {peak:.0f} MB"
        projects = [root if is_done else f"{root} (indexing)" for root, is_done in self.kept.projects]
        return f"{served}{self._failure}; projects: {', '.join(projects) or 'none'}\n"


def checked(request: wire.Request, warm: WarmProjects) -> tuple[int | None, list[tuple[int, bytes]]]:
    """Run the command `check` as in the process of the client.

    Returns:
        The exit status and the output. The status is None if the options may do more than print.
    """
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    written: list[tuple[int, bytes]] = []
    shown = _text(_Stream(1, written, is_terminal=request.is_terminal), request)
    # progress would not be visible in time
    told = _text(_Stream(2, written, is_terminal=False), request)
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(told):
        context = check.make_context("check", list(request.args), obj=warm)
        if not _only_shows(context):
            return None, []
        try:
            with context:
                check.invoke(context)
        except SystemExit as end:
            shown.flush()
            told.flush()
            return (end.code if isinstance(end.code, int) else None), written
    return None, []


def _only_shows(context: Context) -> bool:
    default = ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP
    given = {name for name in context.params if context.get_parameter_source(name) not in default}
    return (
        given <= ANSWERED
        and context.params["form"] not in SHOWING_FIXES
        and "-" not in map(str, context.params["paths"])
    )


@contextlib.contextmanager
def listening(place: str) -> Iterator[tuple[socket.socket, os.stat_result]]:
    """Listen for clients, replacing an existing daemon.

    Args:
        place: The path of the socket. The socket is created next to it and renamed.

    Yields:
        The socket, and its file status, which identifies it until another daemon replaces it.

    Raises:
        OSError: The socket cannot be created.
    """
    beside = f"{place}.{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        listener.bind(beside)
        listener.listen(_WAITING)
        made = os.stat(beside)
        os.replace(beside, place)
        try:
            yield listener, made
        finally:
            if _is_same(place, made):
                os.unlink(place)


def _is_same(place: str, made: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(place), made)
    except OSError:
        return False


def serve(
    place: str, daemon: Daemon, first: wire.Request, *, idle: float = IDLE, pulse: float = PULSE
) -> None:
    """Answer clients until the daemon is idle for too long, stopped, or replaced by another daemon.

    Args:
        place: The path of the socket.
        daemon: The daemon.
        first: The first request, whose answer is discarded.
        idle: The number of seconds after which an idle daemon exits.
        pulse: The number of seconds after which to check whether the daemon was replaced.

    Raises:
        OSError: The socket cannot be created.
    """
    with listening(place) as (listener, made):
        daemon.answer(first)
        since = time.monotonic()

        def is_asked() -> None:
            with selectors.DefaultSelector() as waiting:
                waiting.register(listener, selectors.EVENT_READ)
                if waiting.select(0):
                    raise CancelledError

        while not daemon.is_done and _is_same(place, made) and time.monotonic() - since < idle:
            daemon.prepare(is_asked)
            left = daemon.worked + CALM - time.monotonic()
            if left <= 0 and daemon.kept.is_untidy:
                daemon.kept.tidy()
            listener.settimeout(min(left, pulse) if daemon.kept.is_untidy else pulse)
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                if not daemon.kept.is_untidy:
                    daemon.kept.tidy()
                continue
            except OSError:  # the client disconnected
                continue
            with connection, contextlib.suppress(OSError, ValueError):
                _attend(connection, daemon)
            since = time.monotonic()


def _attend(connection: socket.socket, daemon: Daemon) -> None:
    """Read the request of a client, and answer it.

    Raises:
        OSError: The client disconnected, or sends nothing.
        ValueError: The request is invalid.
    """
    connection.settimeout(SLOWEST)
    parts, length = [], 0
    while length <= LARGEST and (part := connection.recv(1 << 16)):
        parts.append(part)
        length += len(part)
    if length > LARGEST:
        raise ValueError("the request is too large")
    request = wire.Request.unpack(b"".join(parts))
    if request.verb == "keep":
        daemon.answer(request)  # the client does not wait for an answer
        return
    connection.sendall(wire.TAKEN)
    connection.sendall(daemon.answer(request))


def main(first: bytes) -> None:
    """Run the daemon of this user and installation.

    Args:
        first: The request of the client that started the daemon.

    Raises:
        OSError: The socket cannot be created.
        ValueError: The first request is invalid.
    """
    place = wire.place()
    if place is not None:
        gc.disable()
        serve(place, Daemon(), wire.Request.unpack(first))
