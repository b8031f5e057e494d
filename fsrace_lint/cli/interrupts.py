"""Ctrl-C: finish what must not be left half done, and say what was done."""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Delay an interrupt to the end of the context, so that the work inside is done completely.

    Raises:
        KeyboardInterrupt: The user interrupted the work. It replaces an error of the work, because Ctrl-C
            reaches child processes too.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    caught: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: caught.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if caught:
            raise KeyboardInterrupt


def reporting(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command that rewrites files say what was done before an interrupt."""

    @functools.wraps(command)
    def reported(*arguments: Any, **choices: Any) -> None:
        try:
            command(*arguments, **choices)
        except KeyboardInterrupt as error:
            what = str(error) or "Interrupted: no file was written"
            raise KeyboardInterrupt("" if choices["silent"] else what) from None

    return reported
