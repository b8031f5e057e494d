"""Facts of one file: functions, blocks, calls and bindings, extracted from its syntax tree.

Syntax only: no settings, no catalog, no judgment, so that facts can be stored by the digest of a file.
The one package that uses `ast`.
"""
