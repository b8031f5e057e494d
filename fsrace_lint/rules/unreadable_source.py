"""The file does not parse or decode; nothing else in it was checked.

A file that is not UTF-8 and declares no encoding, a syntax error, a NUL byte, a
file that cannot be opened: the run goes on with the other files.
"""

from __future__ import annotations

from fsrace_lint.rules.base import Rule

RULE = Rule(code="FSR001", name="unreadable-source", cwe=0)
