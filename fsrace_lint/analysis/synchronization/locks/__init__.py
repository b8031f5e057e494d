"""Locks between processes: file locks, lock files, and how they are misused."""
