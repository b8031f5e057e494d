"""File system accesses: effects of calls, their paths, the existence checks before them, their context."""
