"""The command `server`: what editors talk to."""

from __future__ import annotations

import sys

import click

from fsrace_lint.cli.terminal import FAILED


@click.command(short_help="Serve an editor by the Language Server Protocol.")
@click.option("--stdio", is_flag=True, help="Talk over standard input and output; there is no other way.")
def server(*, stdio: bool) -> None:  # noqa: ARG001  # editors pass it
    """Serve an editor over standard input and output, by the Language Server Protocol.

    An editor starts this; docs/editors.md tells how to set it up. It needs the extra `server`.

    Exit status: 0 after a shutdown as the protocol has it, 1 if the client went away without one,
    2 if the libraries are missing.
    """
    try:
        from fsrace_lint.integrations.server.handlers import serve  # noqa: PLC0415  # an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"pygls", "lsprotocol"}:
            raise
        hint = 'python -m pip install "fsrace-lint[server]"'
        click.echo(f"Error: the language server needs pygls 2, which is not installed: {hint}", err=True)
        sys.exit(FAILED)
    sys.exit(serve())
