"""`python -m fsrace_lint`."""

from fsrace_lint.cli import main

if __name__ == "__main__":
    main(prog_name="fsrace-lint")
