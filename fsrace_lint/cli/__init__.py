"""The command line: parses arguments, runs one command, and turns its outcome into an exit code.

One module a command in `commands`; the terminal, the manual and internal errors beside it.
Nothing but entry points imports it.
"""
