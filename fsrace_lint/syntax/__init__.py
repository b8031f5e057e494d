"""The facts of one file: functions, blocks, calls, and bindings, extracted from its syntax tree.

Facts are syntax only. They do not depend on settings or library models, so that they can be cached by the
digest of the file. This is the only package that uses `ast`.
"""
