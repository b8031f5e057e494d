"""Runs the program with everything looked at, and not what may be relevant alone: it finds the same.

python scripts/exhaustive.py check [OPTION]... [PATH]...
"""

from __future__ import annotations

import functools

from fsrace_lint.analysis.queries.project import Project
from fsrace_lint.cli.main import main
from fsrace_lint.pipeline import project_link

if __name__ == "__main__":
    vars(project_link)["Project"] = functools.partial(Project, exhaustive=True)
    main()
