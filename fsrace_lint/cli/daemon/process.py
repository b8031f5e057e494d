"""The side that answers: one request after the other, in one process."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import resource
import select
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
"""The seconds after which a daemon that nobody asks ends."""
PULSE: Final = 60.0
"""The seconds after which it looks whether it is still wanted."""
CALM: Final = 1.0
"""The seconds after which it does what nobody should have to wait for."""
SLOWEST: Final = 5.0
"""The seconds within which a client must have said what it wants."""
LARGEST: Final = 16 << 20
"""The bytes that this may have."""
_WAITING: Final = 16
_UNIT: Final = 1 if sys.platform == "darwin" else 1024
"""In what the system counts memory, in bytes."""
ANSWERED: Final = frozenset(
    "paths profile select extend_select ignore exclude extend_exclude force_exclude filesystem include_tests"  # noqa: SIM905
    " baseline no_baseline cache_dir form show_suppressed daemon jobs quiet silent verbose color".split()
)
"""The options of `check` that change nothing but what is shown."""


class _Stream(io.RawIOBase):
    """What is written to one of the standard streams, in order with what is written to the other."""

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
    """Answers requests by what it keeps."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self.kept = WarmProjects()
        self.answered = 0
        """How many checks were answered."""
        self.is_done = False
        """Whether nothing more is to be answered."""
        self._version = Version.of()
        self._failure = ""
        self.worked = time.monotonic()
        """When it had answered a check last."""

    def answer(self, request: wire.Request) -> bytes:
        """Do what a client wants.

        Args:
            request: What it has said.

        Returns:
            What it is to hear.
        """
        nothing = wire.frame(wire.CODE, wire.NONE)
        is_outdated = self._version != Version.of()
        self.is_done |= is_outdated or request.verb == "stop"
        if is_outdated or request.identity != wire.IDENTITY:
            return nothing
        if request.verb in {"stop", "status"}:
            return wire.frame(1, self._status().encode()) + wire.frame(wire.CODE, b"%d" % CLEAN)
        self.kept.loads = request.verb == "keep"
        try:
            code, written = checked(request, self.kept)
        except Exception:  # noqa: BLE001  # the client does it, and tells what is wrong
            return nothing
        finally:
            os.chdir("/")
        if code not in {CLEAN, FOUND}:
            return nothing
        self.answered += 1
        self.worked = time.monotonic()
        return b"".join(wire.frame(*each) for each in written) + wire.frame(wire.CODE, b"%d" % code)

    def prepare(self, is_asked: Callable[[], None]) -> None:
        """Compute what the next check may ask for, until `is_asked` raises a CancelledError."""
        try:
            self.kept.prepare(is_asked)
        except Exception as error:  # noqa: BLE001  # the next check finds that itself
            self._failure = f"; it could not prepare the next check: {type(error).__name__}: {error}"

    def _status(self) -> str:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT / 1e6
        about = f"process {os.getpid()}, {count(self.answered, 'check')} answered, at most {most:.0f} MB"
        warm = [
            root if is_done else f"{root}, and prepares for the next check"
            for root, is_done in self.kept.projects
        ]
        return "\n  ".join([f"{about}{self._failure}; it keeps", *(warm or ["nothing yet"])]) + "\n"


def checked(request: wire.Request, warm: WarmProjects) -> tuple[int | None, list[tuple[int, bytes]]]:
    """Run the command `check` as it would run in the client.

    Returns:
        Its exit code and what it wrote; no code where it may do more than to show something.
    """
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    written: list[tuple[int, bytes]] = []
    shown = _text(_Stream(1, written, is_terminal=request.is_terminal), request)
    # what says how far a check is would not be seen in time
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
    """Be there for clients, in place of a daemon that is there already.

    Args:
        place: The path of the socket, which is made beside it and renamed.

    Yields:
        The socket, and what the system says of it while its place is not taken by another one.

    Raises:
        OSError: There can be none.
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
    """Answer clients until nobody asks any more, or another daemon has taken the place.

    Args:
        place: The path of the socket.
        daemon: What answers.
        first: A request whose answer nobody waits for.
        idle: The seconds after which it ends if nobody asks.
        pulse: The seconds after which it looks whether it is still wanted.

    Raises:
        OSError: There can be no socket.
    """
    with listening(place) as (listener, made):
        daemon.answer(first)
        since = time.monotonic()

        def is_asked() -> None:
            if select.select([listener], [], [], 0)[0]:
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
            except OSError:  # who wanted something has gone
                continue
            with connection, contextlib.suppress(OSError, ValueError):
                _attend(connection, daemon)
            since = time.monotonic()


def _attend(connection: socket.socket, daemon: Daemon) -> None:
    """Hear one client, and answer it.

    Raises:
        OSError: It has gone, or says nothing.
        ValueError: It says something else than a client would.
    """
    connection.settimeout(SLOWEST)
    parts, length = [], 0
    while length <= LARGEST and (part := connection.recv(1 << 16)):
        parts.append(part)
        length += len(part)
    if length > LARGEST:
        raise ValueError("nobody has so much to say")
    request = wire.Request.unpack(b"".join(parts))
    if request.verb == "keep":
        daemon.answer(request)  # nobody waits for it
        return
    connection.sendall(wire.TAKEN)
    connection.sendall(daemon.answer(request))


def main(first: bytes) -> None:
    """Be the daemon of this user and installation.

    Args:
        first: What the client that has started it says.

    Raises:
        OSError: There can be no socket.
        ValueError: A client says something else.
    """
    place = wire.place()
    if place is not None:
        gc.disable()
        serve(place, Daemon(), wire.Request.unpack(first))
