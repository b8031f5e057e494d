"""Write a project with as many findings as wanted, to measure what reports on it take.

python scripts/load.py FOLDER --files 1 --findings 10000
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

HEAD: Final = """\
import os

import torch.distributed as dist

"""
FUNCTION: Final = """

def prepare_{number}(p):
    # part {number}
    if not os.path.exists(p):
        os.makedirs(p)
"""
MAIN: Final = """

def main(p):
    dist.init_process_group()
    prepare_0(p)
    dist.barrier()
"""


def write(folder: Path, files: int, findings: int) -> None:
    """Write a project.

    Args:
        folder: Where it is put.
        files: How many files it has.
        findings: How many findings each of them has.

    Raises:
        OSError: It cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").touch()
    functions = "".join(FUNCTION.format(number=number) for number in range(findings))
    for number in range(files):
        (folder / f"load_{number}.py").write_text(f"{HEAD}{functions}{MAIN}", "utf-8")


def main() -> None:
    """Read the arguments, and write the project."""
    parser = argparse.ArgumentParser(description="Write a project with as many findings as wanted.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--findings", type=int, default=10_000, help="in each file")
    given = parser.parse_args()
    write(given.folder, given.files, given.findings)


if __name__ == "__main__":
    main()
