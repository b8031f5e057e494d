"""Paths: whether two are one, whose they are, and where they lie."""
