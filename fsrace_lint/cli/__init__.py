"""The command line: parses arguments, runs one command, and turns its outcome into an exit code.

One module a command in `commands`; `daemon` runs the command `check` for many callers.
"""
