"""When and how often a query is computed: caches, cycles, depth budgets, dependencies, workers, the store.

Everything here exists for speed or for termination, and none of it changes what is found.
It knows syntax, and nothing of `analysis`.
"""
