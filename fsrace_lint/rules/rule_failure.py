"""A rule failed on this file; the other rules went on.

This is a bug of fsrace-lint, not of the file. The message names the rule and the
exception. Please report it, with the file if you can.
"""

from __future__ import annotations

from fsrace_lint.rules.base import Rule

RULE = Rule(code="FSR002", name="rule-failure", cwe=0)
