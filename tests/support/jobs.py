"""The environment of jobs that tests start."""

from __future__ import annotations

import os


def environment(**more: str) -> dict[str, str]:
    """Return an environment without the variables of launchers."""
    words = ("RANK", "SIZE", "SLURM", "PMI", "FSRACE")
    return {key: value for key, value in os.environ.items() if not any(word in key for word in words)} | more
