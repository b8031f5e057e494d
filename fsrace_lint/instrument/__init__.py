"""The filesystem calls of a process: what each reads and changes, and how it is intercepted."""
