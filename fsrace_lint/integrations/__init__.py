"""Long-running front ends and other programs: the language server, the daemon, the vendored helpers.

Each drives the pipeline as the command line does.
"""
