"""Whole-program analysis: the filesystem accesses of a program, and the processes that run them.

It contains abstract domains, transfer functions, a call graph with summaries, accesses, and
synchronization. Rules use it through `queries`. It reads syntax and the catalog, and imports no rule.
"""
