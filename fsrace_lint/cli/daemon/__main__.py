"""Runs the daemon; a client starts it, and writes on standard input what it has checked."""

import sys

from fsrace_lint.cli.daemon.process import main

if __name__ == "__main__":
    main(sys.stdin.buffer.read())
