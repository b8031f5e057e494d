"""The command `daemon`, which shows or stops the daemon of `check --daemon`."""

from __future__ import annotations

import click

from fsrace_lint.cli.commands.grouped_options import CommandGroup
from fsrace_lint.cli.daemon import client
from fsrace_lint.report.words import visible


@click.group(cls=CommandGroup)
def daemon() -> None:
    """Show or stop the daemon that `check --daemon` uses.

    Each user and installation has one daemon. It keeps the last four projects in memory and exits after
    30 minutes without a request. The daemon is not available on Windows.
    """


@daemon.command(short_help="Show whether the daemon is running, and its projects.")
def status() -> None:
    """Print the process ID, the requests served, the peak memory, and the loaded projects."""
    _tell("status")


@daemon.command()
def stop() -> None:
    """Stop the daemon."""
    _tell("stop")


def _tell(verb: str) -> None:
    answer = client.call(verb, [], client.LIMIT)
    lines = ["No daemon is running."] if answer is None else answer[0][1].decode().splitlines()
    for line in lines:
        click.echo(visible(line))
