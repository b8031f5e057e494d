"""The commands, one per file, and helpers that multiple commands use."""
