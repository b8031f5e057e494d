"""Query evaluation: memoization, cycles, depth budgets, dependencies, worker processes, and the store.

Everything in this package exists for speed or for termination, and none of it changes the findings.
It depends on `syntax`, and not on `program` or `analysis`.
"""
