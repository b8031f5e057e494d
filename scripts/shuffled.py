"""Surroundings in which a program must say the same: hash seeds, locales, time zones, orders of files."""

from __future__ import annotations

import os
from itertools import count, cycle
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SHUFFLE: Final = """
import os, random
scandir = os.scandir
class Shuffled:
    def __init__(self, path="."):
        self.inner = scandir(path)
        self.entries = list(self.inner)
        random.Random(int(os.environ["SHUFFLE"])).shuffle(self.entries)
        self.left = iter(self.entries)
    def __iter__(self): return self
    def __next__(self): return next(self.left)
    def __enter__(self): return self
    def __exit__(self, *_): self.inner.close()
    def close(self): self.inner.close()
os.scandir = Shuffled
"""
_LOCALES: Final = ("C", "C.UTF-8", "tr_TR.UTF-8")
_ZONES: Final = ("UTC", "Asia/Tokyo")


def surroundings(site: Path) -> Iterator[dict[str, str]]:
    """Give one environment after the other, each with another order of the entries of folders.

    Args:
        site: An empty folder, for what Python runs at its start.

    Yields:
        The environment.
    """
    (site / "sitecustomize.py").write_text(_SHUFFLE)
    path = os.pathsep.join(filter(None, (os.fspath(site), os.environ.get("PYTHONPATH"))))
    for number, locale, zone in zip(count(1), cycle(_LOCALES), cycle(_ZONES)):
        seed = {"PYTHONHASHSEED": str(number * 4241), "SHUFFLE": str(number)}
        yield {**os.environ, **seed, "LC_ALL": locale, "TZ": zone, "PYTHONPATH": path}
