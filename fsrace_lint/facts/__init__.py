"""Extract: what a file says, as plain data."""
