"""Find, prove and fix filesystem races in Python that many processes run at once."""

# Nothing is imported here, not even `__future__`: `python -m` would take it from the folder that is checked.
__version__ = "0.1.0"
