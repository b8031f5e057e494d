"""Find, reproduce, and fix filesystem races in Python code that runs in multiple processes."""

# No imports here, not even `__future__`: `python -m` would import it from the directory to check.
__version__ = "0.1.0"
