"""A `noqa: FSR…` suppresses nothing.

The code it names is not reported there (any more), or is no rule. Remove it, so
that the next hazard on that line is not hidden.
"""

from __future__ import annotations

from fsrace_lint.rules.base import Rule, Severity

RULE = Rule(code="FSR003", name="unused-suppression", cwe=0, severity=Severity.WARNING)
