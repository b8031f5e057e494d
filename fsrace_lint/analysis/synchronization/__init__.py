"""Barriers, collectives and waiting: which accesses are ordered, and where ranks diverge."""
