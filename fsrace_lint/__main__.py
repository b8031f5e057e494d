"""`python -m fsrace_lint`."""

import os
import sys


def _leave_the_project_out() -> None:
    """Remove the current directory, which `python -m` adds, from `sys.path`: it may be the code to check."""
    if sys.flags.isolated or getattr(sys.flags, "safe_path", False):
        return  # Python did not add it, and an entry of PYTHONPATH is intended
    try:
        here = os.getcwd()  # noqa: PTH109  # pathlib must not be imported yet
    except OSError:
        return
    if sys.path[:1] == [here]:
        del sys.path[0]


def main() -> None:
    """Run the command line; with `--daemon`, first try a daemon, which avoids most imports."""
    if sys.argv[1:2] == ["check"] and "--daemon" in sys.argv:
        from fsrace_lint.cli.daemon import client  # noqa: PLC0415  # few checks use it

        code = client.check(sys.argv[2:])
        if code is not None:
            sys.exit(code)
    from fsrace_lint.cli import main  # noqa: PLC0415  # after the above

    main.main(prog_name="fsrace-lint")


if __name__ == "__main__":
    _leave_the_project_out()
    main()
