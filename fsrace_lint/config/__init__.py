"""Settings from `pyproject.toml` and the command line, as one frozen value.

Reads and validates them, and suggests what a misspelled word means.
Knows nothing of rules, catalog or analysis.
"""
