"""The command `server`, which editors run."""

from __future__ import annotations

import sys

import click

from fsrace_lint.cli.terminal import FAILED


@click.command(short_help="Run the language server for an editor.")
@click.option(
    "--stdio",
    is_flag=True,
    help="Communicate over standard input and output. This is the default and only transport.",
)
def server(*, stdio: bool) -> None:  # noqa: ARG001  # editors pass it
    """Run the language server over standard input and output.

    Your editor starts this command. For setup, see docs/editors.md. The command requires the extra
    `fsrace-lint[server]`.

    Exit status: 0 after a shutdown request, 1 if the client disconnects without one, 2 if a required
    library is missing.
    """
    try:
        from fsrace_lint.integrations.server.handlers import serve  # noqa: PLC0415  # an optional dependency
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"pygls", "lsprotocol"}:
            raise
        hint = 'run `python -m pip install "fsrace-lint[server]"`'
        click.echo(f"Error: the language server requires pygls 2, which is not installed; {hint}", err=True)
        sys.exit(FAILED)
    sys.exit(serve())
