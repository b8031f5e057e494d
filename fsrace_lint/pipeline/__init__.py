"""The order of the rooms: find, read, extract, link, query, suppress, repair.

A part is loaded when it is asked for: a run of which all is known needs neither rules nor fixes.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fsrace_lint.pipeline.accepting import accepted, pruned
    from fsrace_lint.pipeline.comments import add_noqa
    from fsrace_lint.pipeline.configured import NAMES, read_settings
    from fsrace_lint.pipeline.files import ChangedError
    from fsrace_lint.pipeline.handed import check_handed
    from fsrace_lint.pipeline.judging import Judged
    from fsrace_lint.pipeline.kept import Kept, NotKeptError
    from fsrace_lint.pipeline.linking import RULE_FAILURE, UNREADABLE, unreadable
    from fsrace_lint.pipeline.machine import cpus, uncollected
    from fsrace_lint.pipeline.memory import Cached, Memory, folder_of, keep
    from fsrace_lint.pipeline.merging import merge
    from fsrace_lint.pipeline.mistaken import MISTAKES
    from fsrace_lint.pipeline.observer import SILENT, EndedError, Observer, Room
    from fsrace_lint.pipeline.previewing import preview
    from fsrace_lint.pipeline.repairing import repair, sweep, write
    from fsrace_lint.pipeline.run import Checked, Run, check

_PARTS: Final = {
    "accepting": ("accepted", "pruned"),
    "comments": ("add_noqa",),
    "configured": ("NAMES", "read_settings"),
    "files": ("ChangedError",),
    "handed": ("check_handed",),
    "judging": ("Judged",),
    "kept": ("Kept", "NotKeptError"),
    "linking": ("RULE_FAILURE", "UNREADABLE", "unreadable"),
    "machine": ("cpus", "uncollected"),
    "memory": ("Cached", "Memory", "folder_of", "keep"),
    "merging": ("merge",),
    "mistaken": ("MISTAKES",),
    "observer": ("SILENT", "EndedError", "Observer", "Room"),
    "previewing": ("preview",),
    "repairing": ("repair", "sweep", "write"),
    "run": ("Checked", "Run", "check"),
}
_PART_OF: Final = {name: part for part, names in _PARTS.items() for name in names}

__all__ = [
    "MISTAKES",
    "NAMES",
    "RULE_FAILURE",
    "SILENT",
    "UNREADABLE",
    "Cached",
    "ChangedError",
    "Checked",
    "EndedError",
    "Judged",
    "Kept",
    "Memory",
    "NotKeptError",
    "Observer",
    "Room",
    "Run",
    "accepted",
    "add_noqa",
    "check",
    "check_handed",
    "cpus",
    "folder_of",
    "keep",
    "merge",
    "preview",
    "pruned",
    "read_settings",
    "repair",
    "sweep",
    "uncollected",
    "unreadable",
    "write",
]


if not TYPE_CHECKING:  # mypy would take every name for one of ours

    def __getattr__(name: str) -> Any:
        """Load what is asked for.

        Raises:
            AttributeError: There is nothing of that name.
        """
        if name not in _PART_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_PART_OF[name]}"), name)
