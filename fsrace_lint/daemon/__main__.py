"""`python -m fsrace_lint.daemon`: started by a client, which says on standard input what it has checked."""

import sys

from fsrace_lint.daemon.process import main

if __name__ == "__main__":
    main(sys.stdin.buffer.read())
