"""A project that is large enough for multiple processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.cli import write

if TYPE_CHECKING:
    from pathlib import Path


HAZARD = """
import os
import torch.distributed as dist
from lib import helpers

def prepare_{n}(out):
    dist.barrier()
    if not os.path.exists(out):
        os.makedirs(out)
    helpers.write(out)
    os.mkdir("d")  # noqa: FSR105 -- known
    os.listdir(out)  # noqa: FSR204
"""


PADDING = "# " + "x" * 98 + "\n"
TOTAL = "lib/helpers.py"


@pytest.fixture
def large_project(here: Path) -> Path:
    """A project large enough for multiple processes, with findings, comments, and a malformed file."""
    write({f"pkg{n % 3}/m{n}.py": HAZARD.format(n=n) + PADDING * 400 for n in range(12)})
    write({TOTAL: "def write(out):\n    open(out + '/x', 'w').write('x')\n", "broken.py": "def broken(:\n"})
    return here
