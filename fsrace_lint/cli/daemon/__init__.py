"""A process that stays, knows the projects that were checked, and answers checks of a few files at once.

`wire` is what both sides say, `client` asks, `process` answers. Nobody needs an answer: who gets none in time
does the work himself.
"""
