"""What Python does at the normal end of a process, after the last line of the program."""

from __future__ import annotations

import atexit
import threading
import weakref


def forget_inherited() -> None:
    """Drop what the parent has registered for its own end, such as the removal of its temporary files."""
    atexit._clear()
    finalize = weakref.finalize
    for each in list(finalize._registry):  # type: ignore[attr-defined]
        each.atexit = False
    finalize._registered_with_atexit = False  # type: ignore[attr-defined]


def leave() -> None:
    """Wait for threads, and run the functions of `atexit` and `weakref.finalize()`, as Python does.

    As in Python, an exception in one of them has no effect.
    """
    if threading.active_count() > 1:
        threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
