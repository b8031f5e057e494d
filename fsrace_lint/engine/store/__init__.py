"""The cache of a project between runs. It can be deleted at any time; the work is then repeated."""

from fsrace_lint.engine.store.facts import PackedFacts, Row
from fsrace_lint.engine.store.folder import Folder, FolderError, Info
from fsrace_lint.engine.store.results import Results
from fsrace_lint.engine.store.version import Version

__all__ = ["Folder", "FolderError", "Info", "PackedFacts", "Results", "Row", "Version"]
