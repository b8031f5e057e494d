"""Rewrite a file in one process while another process writes it, and count the texts that are lost.

    python scripts/collide.py
    python scripts/collide.py --plain --how truncating --seconds 60

Both processes write as fast as they can, and `os.fsync` is disabled. A text of the writer is lost if the file
never begins with it and no `.saved` file contains it. `--plain` disables the exchange of two files in one
step, as on systems that do not support it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from fsrace_lint.files import atomic_write

LONGEST: Final = 40
PATIENCE: Final = 400


def rewrite(file: Path, told: Path) -> None:
    """Append to the file atomically until SIGTERM, then write the counts of rewrites and refusals.

    Args:
        file: The file.
        told: The file for the counts.
    """
    done = refused = 0
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    while not ended:
        refused += 1
        with contextlib.suppress(OSError):
            held = file.read_bytes()
            if held and len(held) < LONGEST:
                atomic_write.exchange(file, held, held + b"F")
                done += 1
            refused -= 1
    told.write_text(f"{done} rewrites, {refused} refused")


def write(file: Path, text: bytes, how: str) -> None:
    """Write a text: `renaming` replaces the file atomically, `truncating` overwrites it in place."""
    if how == "renaming":
        beside = file.with_name("beside")
        beside.write_bytes(text)
        beside.replace(file)
    else:
        with file.open("wb", buffering=0) as stream:
            stream.write(text)


def is_shown(file: Path, text: bytes) -> bool:
    """Return whether the file begins with a text within the time limit, or a `.saved` file contains it."""
    for _ in range(PATIENCE):
        if file.read_bytes().startswith(text):
            return True
        time.sleep(0.0005)
    return any(saved.read_bytes().startswith(text) for saved in file.parent.glob("*.saved"))


def main() -> int:
    """Count lost texts, and return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--how", choices=["renaming", "truncating"], default="renaming")
    parser.add_argument("--plain", action="store_true", help="replace the file by `rename` only")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--folder", help="directory of the file, which decides the filesystem")
    chosen = parser.parse_args()
    if chosen.plain:
        setattr(atomic_write, "swap", lambda *_: False)  # noqa: B010  # the name that `exchange` uses
    setattr(os, "fsync", lambda _: None)  # noqa: B010  # faster, so that more writes collide
    with tempfile.TemporaryDirectory(dir=chosen.folder) as scratch:
        file, told = Path(scratch, "a.py"), Path(scratch, "told")
        file.write_bytes(b"0 ")
        process = os.fork()
        if process == 0:
            with contextlib.suppress(KeyboardInterrupt):
                rewrite(file, told)
            os._exit(0)
        end, number, lost = time.monotonic() + chosen.seconds, 0, 0
        while time.monotonic() < end:
            number += 1
            text = b"%d " % number
            write(file, text, chosen.how)
            lost += not is_shown(file, text)
        os.kill(process, signal.SIGTERM)
        os.waitpid(process, 0)
        saved = len(list(Path(scratch).glob("*.saved")))
        print(f"{number} texts written, {lost} lost, {saved} saved in `.saved` files; {told.read_text()}")
    return bool(lost)


if __name__ == "__main__":
    sys.exit(main())
