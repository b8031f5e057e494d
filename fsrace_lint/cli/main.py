"""The command line: its commands, and their exit status."""

from __future__ import annotations

import contextlib
import importlib
import os
from typing import TYPE_CHECKING, Any, Final

import click

from fsrace_lint import __version__
from fsrace_lint.cli.commands.grouped_options import CommandGroup
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
    "programs": ("programs", "programs"),
    "prove": ("prove", "prove"),
    "vendor": ("vendor", "vendor_helpers"),
    "server": ("server", "server"),
    "cache": ("cache", "cache"),
    "daemon": ("daemon", "daemon"),
}
"""The module and the variable of each command, which are loaded on demand."""


class _Commands(CommandGroup):
    """Ends every command with a documented exit status, and a message if it fails."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click passes it
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click passes it
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        found = getattr(importlib.import_module(f"fsrace_lint.cli.commands.{module}"), name)
        return found if isinstance(found, click.Command) else None

    def suggestion(self, ctx: click.Context, word: str) -> str:
        return f"; did you mean `check {word}`?" if os.path.lexists(word) else super().suggestion(ctx, word)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _visible_mistakes():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            expected = (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError)
            with _visible_mistakes(), internal_error.guard(*expected):
                return super().invoke(ctx)
        except KeyboardInterrupt as error:
            if str(error):
                click.echo(visible(str(error)), err=True)
            ctx.exit(INTERRUPTED)
        except internal_error.InternalError as error:
            click.echo(visible(f"Error: {error}"), err=True)
            ctx.exit(FAILED)


_HELP: Final = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""The error whose message is the help; click 8.1 has none."""


@contextlib.contextmanager
def _visible_mistakes() -> Iterator[None]:
    """Escape control characters in messages of click, because a shell may have expanded file names.

    An unknown option is named as every other unknown word is.
    """
    try:
        yield
    except click.NoSuchOption as error:
        close = f"; did you mean `{error.possibilities[0]}`?" if error.possibilities else "."
        message = f"No such option `{error.option_name}`{close}"
        raise click.UsageError(visible(message), error.ctx) from None
    except click.ClickException as error:
        if not isinstance(error, _HELP):
            vars(error)["message"] = visible(error.message)  # click declares it as final
        raise


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  fsrace-lint check                    # report races in the current directory
  fsrace-lint check --format json src  # report races in src as JSON
  fsrace-lint fix --diff               # preview the fixes
  fsrace-lint explain FSR101           # print the documentation of a rule
""",
)
@click.version_option(__version__, "-V", "--version", prog_name="fsrace-lint")
def main() -> None:
    """Find and fix filesystem races in Python code that runs in multiple processes.

    Command-line options override the settings in `[tool.fsrace-lint]` of pyproject.toml, or in
    fsrace-lint.toml.

    Exit status: 0 if there are no findings, 1 if there are findings, 2 if the usage or the settings are
    invalid or the run fails.
    """
