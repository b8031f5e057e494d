"""`noqa: FSR…` comment suppresses nothing.

The code that the comment names is not reported there (any more), or does not exist. Remove the
comment. Otherwise, it hides the next finding on that line.
"""

from __future__ import annotations

from fsrace_lint.rules.base import Rule, Severity

RULE = Rule(code="FSR003", name="unused-suppression", cwe=0, severity=Severity.WARNING)
