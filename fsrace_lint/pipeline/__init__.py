"""The stages of a run: find, read, extract, link, query, suppress, and, on request, fix.

This is the only package that knows all stages. A run begins in `check`.
"""
