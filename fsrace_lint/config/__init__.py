"""Settings from `pyproject.toml` and the command line, as one frozen value.

This package reads and validates settings, and suggests corrections for misspelled words. It does not depend
on rules, library models, or the analysis.
"""
