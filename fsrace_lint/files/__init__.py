"""Source files, file patterns, and atomic writes.

Reads files, converts between byte and character columns, and writes each file completely or not at all.
"""
