"""Findings as plain data, and which of them are withheld.

A finding, its fingerprint, `noqa` comments and the baseline.
Imports neither rules nor analysis: reports and editors need no more than this.
"""
