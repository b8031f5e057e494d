"""Parameter types and help of the command line: grouped options, and suggestions for typos."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import click

from fsrace_lint.config.suggestions import did_you_mean
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_GROUPS: Final = {
    "Rules": (
        "profile",
        "min_severity",
        "min_confidence",
        "fail_on",
        "exit_zero",
        "exit_non_zero_on_fix",
        "select",
        "extend_select",
        "ignore",
        "per_file_ignores",
        "filesystem",
    ),
    "Files": (
        "exclude",
        "extend_exclude",
        "force_exclude",
        "include_tests",
        "stdin_filename",
        "watches",
        "show_files",
    ),
    "Baseline and suppressions": (
        "baseline",
        "no_baseline",
        "write_baseline",
        "prune_baseline",
        "add_noqa",
        "reason",
        "ignore_noqa",
    ),
    "Fixes": ("fixes", "unsafe_fixes", "fix_tiers", "only_diff", "interactive", "commit", "require_clean"),
    "Output": (
        "form",
        "output_file",
        "no_fix_preview",
        "prove",
        "reports",
        "show_silenced",
        "show_suppressed",
        "statistics",
    ),
    "Settings": ("config", "isolated"),
    "Performance": ("jobs", "daemon", "cache_dir", "no_cache"),
    "Messages": ("quiet", "silent", "verbose", "color"),
}
"""The options of `check` and `fix`."""


VARIABLES: Final = {
    "cache_dir": "FSRACE_LINT_CACHE_DIR",
    "config": "FSRACE_LINT_CONFIG",
    "daemon": "FSRACE_LINT_DAEMON",
    "form": "FSRACE_LINT_OUTPUT_FORMAT",
    "isolated": "FSRACE_LINT_ISOLATED",
    "jobs": "FSRACE_LINT_JOBS",
    "no_cache": "FSRACE_LINT_NO_CACHE",
    "output_file": "FSRACE_LINT_OUTPUT_FILE",
    "profile": "FSRACE_LINT_PROFILE",
}
"""The environment variables that have the effect of an option of `check` or `fix` that is not given."""

MOST_JOBS: Final = 1024
"""A higher number is treated as a typo."""


class Grouped(click.Command):
    """A command whose help lists its many options in groups.

    Attributes:
        groups: The options of each group, by the names of their parameters. Other options come last.
        variables: The environment variables of options.
    """

    groups: ClassVar[Mapping[str, tuple[str, ...]]] = _GROUPS
    variables: ClassVar[Mapping[str, str]] = VARIABLES

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Create a command, and let its options read environment variables."""
        super().__init__(*args, **kwargs)
        for param in self.params:
            if param.name in self.variables:
                param.envvar = self.variables[param.name]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by group."""
        rows: dict[str, list[tuple[str, str]]] = {group: [] for group in (*self.groups, "Options")}
        for param in self.get_params(ctx):
            row = param.get_help_record(ctx)
            group = next((name for name, names in self.groups.items() if param.name in names), "Options")
            if row is not None and isinstance(param, click.Option):
                rows[group].append(row)
        for group, listed in rows.items():
            if listed:
                with formatter.section(group):
                    formatter.write_dl(listed)


class CommandGroup(click.Group):
    """A group of commands, with suggestions for typos."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, or raise an error with a suggestion.

        Raises:
            click.UsageError: There is no such command.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if args[0].startswith("-"):
                raise
            message = f"No such command `{args[0]}`{self.suggestion(ctx, args[0])}"
            raise click.UsageError(visible(message), error.ctx or ctx) from None

    def suggestion(self, ctx: click.Context, word: str) -> str:
        """Return the end of the error message about an unknown command."""
        return did_you_mean(word, self.list_commands(ctx)) or "."


# click's own classes are generic only since 8.2
_Choice: Any = click.Choice


class OptionChoice(_Choice):  # type: ignore[misc]
    """A choice of words, with suggestions for typos."""

    def __init__(self, words: Sequence[str], aliases: Mapping[str, str] | None = None) -> None:
        """Create a choice.

        Args:
            words: The words that the help lists.
            aliases: Alternative spellings, mapped to words.
        """
        super().__init__(words)
        self._aliases = aliases or {}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word, or raise an error with a suggestion.

        Raises:
            click.BadParameter: The value is not one of the words.
        """
        try:
            return super().convert(self._aliases.get(value, value), param, ctx)
        except click.BadParameter:
            raise click.BadParameter(mistaken(str(value), self.choices), ctx, param) from None


_ParamType: Any = click.ParamType


class Jobs(_ParamType):  # type: ignore[misc]
    """A number of processes. `auto` is converted to None."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        """Return the number, or None for `auto`.

        Raises:
            click.BadParameter: The value is not a number from 1 to `MOST_JOBS`.
        """
        if value is None or value == "auto":
            return None
        text = str(value)
        digits = text if text.isascii() and text.isdecimal() and len(text) <= len(str(MOST_JOBS)) else "0"
        if not 0 < int(digits) <= MOST_JOBS:
            self.fail(f"`{text}` is not `auto` or a number from 1 to {MOST_JOBS}", param, ctx)
        return int(digits)


def mistaken(word: str, known: Sequence[str]) -> str:
    """Return an error message about an unknown word, with a suggestion if a known word is similar."""
    listed = ", ".join(f"`{each}`" for each in known)
    return f"`{word}` is not one of {listed}{did_you_mean(word.lower(), known)}"
