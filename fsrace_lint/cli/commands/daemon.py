"""The command `daemon`: looks at the process that stays for `check --daemon`, or ends it."""

from __future__ import annotations

import click

from fsrace_lint.cli.daemon import client
from fsrace_lint.report.words import visible


@click.group()
def daemon() -> None:
    """Look at the process that stays for `check --daemon`, or end it.

    There is one for each user and installation. It keeps the last four projects, and ends by itself
    when nobody has asked it for half an hour. There is none on Windows.
    """


@daemon.command()
def status() -> None:
    """Tell which projects it keeps, and how many checks it has answered."""
    _tell("status")


@daemon.command()
def stop() -> None:
    """End it."""
    _tell("stop")


def _tell(verb: str) -> None:
    answer = client.call(verb, [], client.LIMIT)
    lines = ["There is no daemon."] if answer is None else answer[0][1].decode().splitlines()
    for line in lines:
        click.echo(visible(line))
