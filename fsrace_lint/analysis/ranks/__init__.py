"""Rank sources and rank checks: which processes of a job take a branch."""
