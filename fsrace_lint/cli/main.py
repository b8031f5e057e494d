"""The command line: its commands, and how each of them ends."""

from __future__ import annotations

import contextlib
import importlib
import os
from typing import TYPE_CHECKING, Any, Final

import click

from fsrace_lint import __version__
from fsrace_lint.cli.terminal import FAILED
from fsrace_lint.pipeline import internal_error
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERRUPTED: Final = 130
_COMMANDS: Final = {
    "check": ("check", "check"),
    "fix": ("fix", "fix"),
    "rules": ("explain", "list_rules"),
    "explain": ("explain", "explain"),
    "prove": ("prove", "prove"),
    "vendor": ("vendor", "vendor_helpers"),
    "server": ("server", "server"),
    "cache": ("cache", "cache"),
    "daemon": ("daemon", "daemon"),
}
"""The commands: the module that each is loaded from when it is asked for, and what it is called there."""


class _Commands(click.Group):
    """Ends every command with a documented exit code and a message, whatever happens in it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click passes it
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click passes it
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        found = getattr(importlib.import_module(f"fsrace_lint.cli.commands.{module}"), name)
        return found if isinstance(found, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib  # noqa: PLC0415  # for a mistake only

            close = difflib.get_close_matches(args[0], _COMMANDS, n=1)
            if os.path.lexists(args[0]):
                close = [f"check {args[0]}"]
            if not close:
                raise
            message = f"No such command {args[0]!r}. Did you mean {close[0]!r}?"
            raise click.UsageError(visible(message), error.ctx or ctx) from None

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _visible_mistakes():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            expected = (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError)
            with _visible_mistakes(), internal_error.guard(*expected):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except internal_error.InternalError as error:
            click.echo(visible(f"Error: {error}"), err=True)
            ctx.exit(FAILED)


@contextlib.contextmanager
def _visible_mistakes() -> Iterator[None]:
    """Spell out what would steer the terminal in what click says: a shell may have put in names of files."""
    try:
        yield
    except click.ClickException as error:
        vars(error)["message"] = visible(error.message)  # to click it is final
        raise


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
