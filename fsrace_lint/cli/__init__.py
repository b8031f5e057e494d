"""The command line: parse arguments, run one command, and return its exit code.

`commands` has one module per command. `daemon` runs `check` for many clients.
"""
