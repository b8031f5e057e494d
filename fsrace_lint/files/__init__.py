"""The file system as the linter meets it: source text, file patterns, and atomic writes.

Reads files, and converts between offsets and columns.
Writes a file whole or not at all.
"""
