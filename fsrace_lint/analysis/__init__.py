"""Whole-program analysis: what a program does to the file system, and which processes do it.

Abstract domains, transfer functions, a call graph with summaries, accesses and synchronization.
Rules ask it through `queries`; it reads syntax and the catalog, and imports no rule.
"""
