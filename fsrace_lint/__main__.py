"""`python -m fsrace_lint`."""

import os
import sys


def _leave_the_project_out() -> None:
    """Import nothing more from the current folder, which `python -m` puts first: it is what is checked."""
    if sys.flags.isolated or getattr(sys.flags, "safe_path", False):
        return  # then Python has not put it there, and PYTHONPATH counts as its user says
    try:
        here = os.getcwd()  # noqa: PTH109  # pathlib is not imported yet, and must not be
    except OSError:
        return
    if sys.path[:1] == [here]:
        del sys.path[0]


def main() -> None:
    """Run the command line, unless a daemon is wanted and answers: that takes less time than to load it."""
    if sys.argv[1:2] == ["check"] and "--daemon" in sys.argv:
        from fsrace_lint.cli.daemon import client  # noqa: PLC0415  # few checks want one

        code = client.check(sys.argv[2:])
        if code is not None:
            sys.exit(code)
    from fsrace_lint.cli import main  # noqa: PLC0415  # after the above

    main.main(prog_name="fsrace-lint")


if __name__ == "__main__":
    _leave_the_project_out()
    main()
