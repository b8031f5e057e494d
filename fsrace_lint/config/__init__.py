"""Settings from `pyproject.toml` and the command line, as one frozen value.

Reads and validates them; file patterns and suggestions for misspelled words belong to it.
Knows nothing of rules, catalog or analysis.
"""
