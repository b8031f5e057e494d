"""Findings as plain data, and which of them are suppressed.

A finding, its fingerprint, `noqa` comments, and the baseline. This package imports neither rules nor
analysis, because reports and editors need no more.
"""
