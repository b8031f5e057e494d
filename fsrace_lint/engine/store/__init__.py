"""What is remembered of a project between two runs. All of it may be lost: then the work is done again."""

from fsrace_lint.engine.store.facts import PackedFacts, Row
from fsrace_lint.engine.store.folder import Folder, FolderError, Info
from fsrace_lint.engine.store.results import Results
from fsrace_lint.engine.store.version import Version

__all__ = ["Folder", "FolderError", "Info", "PackedFacts", "Results", "Row", "Version"]
