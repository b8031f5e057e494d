"""A template process that imports the programs once and forks for each run of a program.

`command("flake8")` does the same as `python -m flake8`: it runs in a separate process, with the streams,
directory, and environment of the caller. Settings that Python reads at startup (`PYTHONHASHSEED`, `-W`,
sitecustomize) are those of the template, and a signal reaches only the process of the caller; tests that need
either start Python themselves.
"""

from __future__ import annotations

import array
import functools
import io
import json
import os
import socket
import sys
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

STREAMS = (0, 1, 2)


def command(module: str) -> list[str]:
    """Return the command that runs a module as a program, without its arguments."""
    if sys.platform == "win32":
        return [sys.executable, "-m", module]
    return [sys.executable, "-I", "-S", __file__, _started(), module]


@functools.cache
def _started() -> str:
    """Start the template of this process, and return its socket."""
    import subprocess
    import tempfile

    path = f"{tempfile.mkdtemp(prefix='fsr-')}/socket"
    process = subprocess.Popen(
        [sys.executable, __file__, "--serve", path],
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    _ends.append(process.communicate)
    return path


_ends: list[Callable[[], object]] = []


def end() -> None:
    """Stop the template, if it was started."""
    while _ends:
        _ends.pop()()
        os.remove(_started())
        os.rmdir(os.path.dirname(_started()))
        _started.cache_clear()


def ask(path: str, arguments: list[str]) -> int:
    """Run a program with the streams of this process, and return its exit code."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        request = json.dumps({"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)})
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", STREAMS))]
        connection.sendmsg([len(request).to_bytes(8, "big")], rights)
        connection.sendall(request.encode("ascii"))
        code = connection.recv(1)
    return code[0] if code else 255


def serve(path: str) -> NoReturn:
    """Load the programs, print `ready`, and fork for each request until standard input is closed."""
    import gc
    import importlib
    import pkgutil
    import select
    import signal

    del sys.path[0]  # the directory of this file, whose modules would shadow others

    import fsrace_lint
    from fsrace_lint import catalog, rules

    importlib.import_module("flake8.main.cli")
    for module in pkgutil.walk_packages(fsrace_lint.__path__, "fsrace_lint."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    rules.load()
    catalog.load()
    vars(sys.modules["fsrace_lint.integrations.server.sessions"])["DEBOUNCE"] = 0.02  # tests do not type
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # reap the supervisors
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _supervise(connection)
            connection.close()
    sys.exit(0)


def _supervise(connection: socket.socket) -> NoReturn:
    """Run one program in a child, and send its exit code."""
    head, rights, _, _ = connection.recvmsg(8, socket.CMSG_SPACE(len(STREAMS) * array.array("i").itemsize))
    streams = array.array("i", rights[0][2])
    size, data = int.from_bytes(head, "big"), b""
    while len(data) < size:
        data += connection.recv(size - len(data))
    child = os.fork()
    if child == 0:
        connection.close()
        _run(json.loads(data), list(streams))
    for stream in (*streams, *STREAMS):
        os.close(stream)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall(bytes([code % 256]))
    os._exit(0)


def _run(request: dict[str, Any], streams: list[int]) -> NoReturn:
    import runpy

    for given, stream in zip(streams, STREAMS, strict=True):
        os.dup2(given, stream)
        os.close(given)
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    module, *sys.argv[1:] = request["arguments"]
    sys.path.insert(0, request["folder"])
    code = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001  # any exception ends this program as Python would
        import traceback

        traceback.print_exc()
        code = 1
    try:
        for shown in (sys.stdout, sys.stderr):
            if not shown.closed:
                shown.flush()
    except OSError:
        code = code or 120
    os._exit(code)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2])
    sys.exit(ask(sys.argv[1], sys.argv[2:]))
