"""The command line: its commands, and how each of them ends."""

from __future__ import annotations

import difflib
import os
from typing import Any, Final

import click

from fsrace_lint import __version__, failures
from fsrace_lint.commands.check import check
from fsrace_lint.commands.explain import explain, list_rules
from fsrace_lint.commands.fix import fix
from fsrace_lint.commands.prove import prove
from fsrace_lint.commands.server import server
from fsrace_lint.commands.vendor import vendor_helpers
from fsrace_lint.report.words import visible
from fsrace_lint.terminal import FAILED

INTERRUPTED: Final = 130


class _Commands(click.Group):
    """Ends every command with a documented exit code and a message, whatever happens in it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = difflib.get_close_matches(args[0], self.commands, n=1)
            if os.path.lexists(args[0]):
                close = [f"check {args[0]}"]
            if not close:
                raise
            message = f"No such command {args[0]!r}. Did you mean {close[0]!r}?"
            raise click.UsageError(visible(message), error.ctx or ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with failures.guard(click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except failures.InternalError as error:
            click.echo(visible(f"Error: {error}"), err=True)
            ctx.exit(FAILED)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  fsrace-lint check                     the races below the current folder
  fsrace-lint check --format json src   the same for programs
  fsrace-lint fix --diff                what can be fixed, and how
  fsrace-lint explain FSR101            what a rule means
""",
)
@click.version_option(__version__, prog_name="fsrace-lint")
def main() -> None:
    """Find filesystem races in Python that many processes run at once, and fix them.

    Settings are read from [tool.fsrace-lint] in pyproject.toml; what is given here goes first.

    Exit status: 0 nothing found, 1 findings, 2 wrong usage, bad settings or a failure of the run.
    """


for command in (check, fix, list_rules, explain, prove, vendor_helpers, server):
    main.add_command(command)
