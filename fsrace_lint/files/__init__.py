"""The file system as the linter meets it: discovery, source text, and atomic writes.

Finds Python files below the targets, reads them, and converts between offsets and columns.
Writes a file whole or not at all.
"""
