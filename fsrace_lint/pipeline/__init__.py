"""The order of the rooms: find, read, extract, link, query, suppress, repair."""

from fsrace_lint.pipeline.accepting import accepted, pruned
from fsrace_lint.pipeline.comments import add_noqa
from fsrace_lint.pipeline.configured import MISTAKES, read_settings
from fsrace_lint.pipeline.handed import check_handed
from fsrace_lint.pipeline.judging import Judged
from fsrace_lint.pipeline.merging import merge
from fsrace_lint.pipeline.observer import SILENT, Observer, Room
from fsrace_lint.pipeline.preview import preview
from fsrace_lint.pipeline.repair import repair, write
from fsrace_lint.pipeline.run import RULE_FAILURE, UNREADABLE, Checked, Run, check, unreadable
from fsrace_lint.pipeline.workers import cpus, uncollected

__all__ = [
    "MISTAKES",
    "RULE_FAILURE",
    "SILENT",
    "UNREADABLE",
    "Checked",
    "Judged",
    "Observer",
    "Room",
    "Run",
    "accepted",
    "add_noqa",
    "check",
    "check_handed",
    "cpus",
    "merge",
    "preview",
    "pruned",
    "read_settings",
    "repair",
    "uncollected",
    "unreadable",
    "write",
]
