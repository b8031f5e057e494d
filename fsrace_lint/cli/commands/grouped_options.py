"""The words of the command line: options in groups, and a mistake told with what was probably meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from fsrace_lint.config.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

_GROUPS: Final = {
    "Rules": ("profile", "select", "extend_select", "ignore", "filesystem"),
    "Files": (
        "exclude",
        "extend_exclude",
        "force_exclude",
        "include_tests",
        "stdin_filename",
        "cache_dir",
        "no_cache",
    ),
    "What may stay": (
        "baseline",
        "no_baseline",
        "write_baseline",
        "prune_baseline",
        "add_noqa",
        "reason",
    ),
    "Fixes": ("unsafe_fixes", "only_diff", "require_clean"),
    "Report": ("form", "output_file", "reports", "show_silenced", "show_suppressed", "statistics"),
    "Work": ("jobs", "daemon"),
    "Messages": ("quiet", "silent", "verbose", "color"),
}
"""The options by the group in which the help lists them; the others come last."""


MOST_JOBS: Final = 1024
"""What is more is a slip of the finger."""


class Grouped(click.Command):
    """A command with many options, which its help lists in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, group by group."""
        rows: dict[str, list[tuple[str, str]]] = {group: [] for group in (*_GROUPS, "Options")}
        for param in self.get_params(ctx):
            row = param.get_help_record(ctx)
            group = next((name for name, names in _GROUPS.items() if param.name in names), "Options")
            if row is not None and isinstance(param, click.Option):
                rows[group].append(row)
        for group, listed in rows.items():
            if listed:
                with formatter.section(group):
                    formatter.write_dl(listed)


# click's own classes are generic only since 8.2
_Choice: Any = click.Choice


class OptionChoice(_Choice):  # type: ignore[misc]
    """One of a few words."""

    def __init__(self, words: Sequence[str]) -> None:
        """Take the words.

        Args:
            words: All that may be given.
        """
        super().__init__(words)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take a word, or say which one was probably meant.

        Raises:
            click.BadParameter: It is none of the words.
        """
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            message = mistaken(error.message, str(value), self.choices)
            raise click.BadParameter(message, ctx, param) from None


_ParamType: Any = click.ParamType


class Jobs(_ParamType):  # type: ignore[misc]
    """A number of processes, or `auto`, which is None."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        """Take a number.

        Raises:
            click.BadParameter: It is none, or less than 1.
        """
        if value is None or value == "auto":
            return None
        text = str(value)
        digits = text if text.isascii() and text.isdecimal() and len(text) <= len(str(MOST_JOBS)) else "0"
        if not 0 < int(digits) <= MOST_JOBS:
            self.fail(f"{text!r} is neither 'auto' nor a number from 1 to {MOST_JOBS}", param, ctx)
        return int(digits)


def mistaken(message: str, word: str, known: Sequence[str]) -> str:
    """Add what was probably meant to a message about a word."""
    hint = did_you_mean(word.lower(), known).replace("`", "'")
    return f"{message.rstrip('.')}{hint}" if hint else message
