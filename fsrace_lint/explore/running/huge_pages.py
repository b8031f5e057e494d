"""Huge pages for the memory that the processes of a run share, so that forking them stays cheap."""

from __future__ import annotations

import contextlib
import re
import sys
from typing import Final

_HUGE: Final = 2 << 20
_MADV_COLLAPSE: Final = 25
_AREA: Final = re.compile(
    r"([0-9a-f]+)-([0-9a-f]+) rw-p 0+ 00:00 0\s+(?:\[heap\])?\nSize:.*?\nRss: +(\d+) kB", re.DOTALL
)


def collapse() -> None:
    """Ask the kernel to back the private memory of this process with huge pages.

    `fork()` copies one page table entry for each page, so its time grows with the memory of the exploring
    program. A huge page has one entry for 512 pages. The kernel splits a huge page again when a process
    writes to it. Areas that are less than half in use are skipped, because a huge page would fill memory that
    was never touched.

    Does nothing if the kernel has no `MADV_COLLAPSE` (Linux 6.1, madvise(2)).
    """
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415  # only for Linux

    with contextlib.suppress(OSError, AttributeError):
        madvise = ctypes.CDLL(None).madvise
        madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        with open("/proc/self/smaps", encoding="utf-8", errors="surrogateescape") as maps:
            areas = _AREA.findall(maps.read())
        for begin, end, used in areas:
            first, last = -(-int(begin, 16) // _HUGE) * _HUGE, int(end, 16) // _HUGE * _HUGE
            if first < last and int(used) * 1024 * 2 >= last - first:
                madvise(first, last - first, _MADV_COLLAPSE)
