"""The environment of jobs that a test starts."""

from __future__ import annotations

import os


def environment(**more: str) -> dict[str, str]:
    """Give an environment in which no launcher has left its variables."""
    words = ("RANK", "SIZE", "SLURM", "PMI", "FSRACE")
    return {key: value for key, value in os.environ.items() if not any(word in key for word in words)} | more
