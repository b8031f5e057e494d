"""The interface for rules: one `Project`, with queries over its accesses, locks, and synchronization."""
