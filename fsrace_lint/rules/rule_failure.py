"""Rule failed on this file, and all other rules ran.

This is a bug in fsrace-lint, not in your file. The message names the rule and the exception. Please
report the bug, with the file if you can.
"""

from __future__ import annotations

from fsrace_lint.rules.base import Rule

RULE = Rule(code="FSR002", name="rule-failure", cwe=0)
