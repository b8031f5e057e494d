"""The facade for rules: one `Project`, and queries over its accesses, locks and synchronization."""
