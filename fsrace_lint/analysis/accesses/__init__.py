"""Filesystem accesses: the effects of calls, their paths, existence checks, and context."""
