"""Huge pages for the memory that the processes of a run share, so that forking them stays cheap."""

from __future__ import annotations

import contextlib
import re
import sys
from typing import Final

_HUGE: Final = 2 << 20
_MADV_COLLAPSE: Final = 25
_ANONYMOUS: Final = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-p 0+ 00:00 0\s+(?:\[heap\])?\n")


def collapse() -> None:
    """Ask the kernel to back the private memory of this process with huge pages.

    `fork` copies one entry of the page table for each page, so its time grows with the memory of the program
    that explores. Huge pages have one entry for 512. The kernel takes those apart again that are written to.
    Does nothing where the kernel has no `MADV_COLLAPSE` (Linux 6.1, madvise(2)).
    """
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415  # only for Linux

    with contextlib.suppress(OSError, AttributeError):
        madvise = ctypes.CDLL(None).madvise
        madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            areas = [
                (int(found[1], 16), int(found[2], 16)) for found in map(_ANONYMOUS.fullmatch, maps) if found
            ]
        for begin, end in areas:
            first, last = -(-begin // _HUGE) * _HUGE, end // _HUGE * _HUGE
            if first < last:
                madvise(first, last - first, _MADV_COLLAPSE)
