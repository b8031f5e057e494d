"""Barriers, collectives, and waits: which accesses are ordered, and where ranks diverge."""
