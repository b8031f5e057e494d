"""The order of the rooms: find, read, extract, link, query, suppress, repair."""

from fsrace_lint.pipeline.accepting import accepted, pruned
from fsrace_lint.pipeline.comments import add_noqa
from fsrace_lint.pipeline.judging import Judged
from fsrace_lint.pipeline.repair import repair, write
from fsrace_lint.pipeline.run import RULE_FAILURE, UNREADABLE, Checked, Run, check, merge, unreadable

__all__ = [
    "RULE_FAILURE",
    "UNREADABLE",
    "Checked",
    "Judged",
    "Run",
    "accepted",
    "add_noqa",
    "check",
    "merge",
    "pruned",
    "repair",
    "unreadable",
    "write",
]
