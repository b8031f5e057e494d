"""Run the daemon. A client starts it and passes the first request on standard input."""

import sys

from fsrace_lint.cli.daemon.process import main

if __name__ == "__main__":
    main(sys.stdin.buffer.read())
