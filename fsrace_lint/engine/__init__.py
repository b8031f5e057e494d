"""When and how often queries are computed: memoization, cycles, budgets, dependencies, workers, the store.

Everything here exists for speed or for termination, and none of it changes what is found.
It knows syntax, and nothing of `program` or `analysis`.
"""
