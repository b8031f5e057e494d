"""The order of a run: find, read, extract, link, query, suppress, and repair if asked.

The one package that knows all stages; `check` is where a run begins.
"""
