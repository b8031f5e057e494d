"""Interprocess locks: file locks, lock files, and how they are misused."""
