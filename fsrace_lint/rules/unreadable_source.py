"""File cannot be read or parsed, so nothing in it is checked.

The file is not encoded as UTF-8 and declares no encoding, has a syntax error, contains a NUL byte,
or cannot be opened. All other files are still checked.

Such a finding is a warning about the check and not about a race, so it does not make a check fail, unless
you select the rule by code or name, or set `fail-on`.
"""

from __future__ import annotations

from fsrace_lint.rules.base import Rule

RULE = Rule(code="FSR001", name="unreadable-source", cwe=0)
