"""Rank sources and rank tests: which processes of a job take a branch."""
